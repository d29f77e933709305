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
        return self._locks.setdefault(host, asyncio.Lock())

    async def rested(self, host: str) -> None:
        """Waits for the pause since the last `asked`."""
        pause = self._ready.get(host, 0.0) - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)

    def asked(self, host: str) -> None:
        """The host has been asked and rests now."""
        if self._delay:
            self._ready[host] = time.monotonic() + self._delay
