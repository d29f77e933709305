"""How often somebody may try a password."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

TRIES = 5
WINDOW = 300.0
_MOST = 10_000


class Throttle:
    """Counts failures by key; after `tries` within five minutes the next one has to wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, tries: int = TRIES) -> None:
        self._clock = clock
        self._tries = tries
        self._failures: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def wait(self, *keys: str) -> int:
        """Seconds until the next try is allowed; 0 for now."""
        with self._lock:
            return max(self._wait(key) for key in keys)

    def _wait(self, key: str) -> int:
        tries = self._failures.get(key)
        if tries is None or len(tries) < self._tries:
            return 0
        return max(0, int(tries[0] + WINDOW - self._clock()) + 1) if tries[0] + WINDOW > self._clock() else 0

    def failed(self, *keys: str) -> None:
        """A wrong password."""
        with self._lock:
            if len(self._failures) > _MOST:
                self._forget_old()
            for key in keys:
                self._failures.setdefault(key, deque(maxlen=self._tries)).append(self._clock())

    def succeeded(self, *keys: str) -> None:
        """The right one: earlier failures are forgiven."""
        with self._lock:
            for key in keys:
                self._failures.pop(key, None)

    def _forget_old(self) -> None:
        horizon = self._clock() - WINDOW
        self._failures = {key: tries for key, tries in self._failures.items() if tries[-1] > horizon}
