"""An event loop of its own thread, so that plain scripts and notebooks can use what is asynchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines for callers in any thread; started at the first use."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result; Ctrl-C in the caller cancels the work and waits for it to end."""
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="letopis-loop", daemon=True)
            self._thread.start()
        return self._loop

    def close(self) -> None:
        """Stops the thread; harmless when nothing ran."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None
