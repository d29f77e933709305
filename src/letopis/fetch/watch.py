"""Time limits that libcurl does not know: first byte, slow drip, whole exchange."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from letopis.fetch.transfer import Transfer


class Watch:
    """Ends transfers whose time has passed, with one timer for all of them.

    The timer stands at the earliest moment at which any transfer can be too
    slow; starting a transfer costs a comparison, finishing one nothing.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, expire: Callable[[Transfer], None]) -> None:
        self._loop = loop
        self._expire = expire
        self._watched: set[Transfer] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def add(self, transfer: Transfer) -> None:
        """Watches a transfer until `discard`."""
        self._watched.add(transfer)
        due = min(transfer.next_watch(), transfer.started + transfer.request.limits.slow_seconds)
        if self._timer is None or due < self._due:
            self._set(due)

    def discard(self, transfer: Transfer) -> None:
        """Watches it no longer."""
        self._watched.discard(transfer)

    def close(self) -> None:
        """Stops watching."""
        self._watched.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_later(max(0.0, due - time.monotonic()), self._look)

    def _look(self) -> None:
        self._timer = None
        now = time.monotonic()
        for transfer in [each for each in self._watched if each.too_slow(now)]:
            self._watched.discard(transfer)
            self._expire(transfer)
        if self._watched:
            self._set(min(each.next_watch() for each in self._watched))
