"""One request at a time for each host, with a pause between two."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class HostGates:
    """Politeness of checks: a host never sees two of our connections at once."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._locks: dict[str, asyncio.Lock] = {}
        self._ready: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Waits for the host to be free and rested."""
        lock = self._locks.setdefault(host, asyncio.Lock())
        async with lock:
            pause = self._ready.get(host, 0.0) - time.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            try:
                yield
            finally:
                if self._delay:
                    self._ready[host] = time.monotonic() + self._delay
