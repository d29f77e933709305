"""One request at a time for each host, with a pause between two."""

from __future__ import annotations

import asyncio
import time


class HostGates:
    """Politeness of checks: a host never sees two of our connections at once."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._locks: dict[str, asyncio.Lock] = {}
        self._ready: dict[str, float] = {}

    def lock(self, host: str) -> asyncio.Lock:
        """Held while the host is asked."""
        found = self._locks.get(host)
        if found is None:
            found = self._locks[host] = asyncio.Lock()
        return found

    def pause(self, host: str) -> float:
        """Seconds that are left of its rest since the last `asked`."""
        return max(0.0, self._ready[host] - time.monotonic()) if host in self._ready else 0.0

    def asked(self, host: str) -> None:
        """The host has been asked and rests now."""
        if self._delay:
            self._ready[host] = time.monotonic() + self._delay
