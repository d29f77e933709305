"""Waiting for the end of a hop without a turn of the loop in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, Self


class Waiter(asyncio.Future[tuple[int, str]]):
    """A future whose one waiting task goes on inside `finish`, where asyncio would let it wait for the next turn.

    A page after the other from one host is one wake-up of the loop a page
    then, not two. Only one task waits for a hop.
    """

    _wake: Callable[[Any], object] | None = None
    _context: Context | None = None

    def add_done_callback(self, fn: Callable[[Self], object], /, *, context: Context | None = None) -> None:
        """Keeps the first callback here, which is that of the task; further ones are asyncio's matter."""
        if self._wake is None and not self.done():
            self._wake, self._context = fn, context
        else:
            super().add_done_callback(fn, context=context)

    def finish(self, code: int, words: str, *, at_once: bool) -> None:
        """Tells libcurl's verdict; harmless when nobody waits any more.

        With `at_once` the task goes on before this returns and may do
        anything, unless another task is at work: then in the next turn.
        """
        if not self.done():
            self.set_result((code, words))
            self._go_on(at_once and asyncio.current_task(self.get_loop()) is None)

    def cancel(self, msg: Any | None = None) -> bool:
        """As any future: the task hears of it in the next turn."""
        cancelled = super().cancel(msg)
        if cancelled:
            self._go_on(False)
        return cancelled

    def _go_on(self, at_once: bool) -> None:
        wake, context, self._wake = self._wake, self._context, None
        if wake is None:
            return
        if at_once and context is not None:
            context.run(wake, self)
        else:
            self.get_loop().call_soon(wake, self, context=context)
