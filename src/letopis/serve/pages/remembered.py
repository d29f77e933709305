"""Answers that are dear to work out and good enough for a while.

What is made quickly is made anew when it is old. What takes long is made anew
in the background while readers still get the old one, and the dearer it was,
the longer it holds: counting a large archive takes a small share of the time,
however many people look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWorking
from typing import Any, NamedTuple, TypeVar

from fastapi import Request

T = TypeVar("T")
_MOST = 64
_QUICK = 0.1
"""CPU seconds up to which a reader waits for a fresh value."""
_REST = 50
"""A dear value holds for so many times what it cost."""
_PATIENCE = 2.0
"""Seconds that a reader waits at most for the first value of something that can be left blank."""


class Kept(NamedTuple):
    """A value, when it was made, and the CPU seconds it took."""

    value: Any
    made: float
    cost: float


class Remembered:
    """Keeps values for a while; one thread works a value out, the others wait for it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._values: dict[Hashable, Kept] = {}
        self._turns: dict[Hashable, threading.Lock] = {}
        self._renewing: dict[Hashable, Future[None]] = {}
        self._guard = threading.Lock()
        self._worker: ThreadPoolExecutor | None = None

    def get(self, key: Hashable, seconds: float, make: Callable[[], T]) -> T:
        """The value of a key, not older than `seconds` unless it is dear."""
        kept = self._values.get(key)
        if kept is not None and kept.cost > _QUICK:
            if self._is_old(kept, seconds):
                self._renew(key, make)
            value: T = kept.value
            return value
        with self._turn(key):
            kept = self._values.get(key)
            if kept is None or self._is_old(kept, seconds):
                kept = self._make(key, make)
            result: T = kept.value
            return result

    def soon(self, key: Hashable, seconds: float, make: Callable[[], T]) -> T | None:
        """The same, but None while a first value takes long."""
        if key not in self._values:
            try:
                self._renew(key, make).result(_PATIENCE)
            except StillWorking:
                return None
        return self.get(key, seconds, make)

    def _is_old(self, kept: Kept, seconds: float) -> bool:
        return self._clock() - kept.made >= max(seconds, _REST * kept.cost)

    def _turn(self, key: Hashable) -> threading.Lock:
        with self._guard:
            if len(self._turns) > _MOST:
                self._turns.clear()
                self._values.clear()
            return self._turns.setdefault(key, threading.Lock())

    def _make(self, key: Hashable, make: Callable[[], Any]) -> Kept:
        began = time.thread_time()
        value = make()
        kept = self._values[key] = Kept(value, self._clock(), time.thread_time() - began)
        return kept

    def _renew(self, key: Hashable, make: Callable[[], Any]) -> Future[None]:
        """Makes a value in the background, unless that is already under way."""
        with self._guard:
            running = self._renewing.get(key)
            if running is None or running.done():
                self._worker = self._worker or ThreadPoolExecutor(1, "letopis-counting")
                running = self._renewing[key] = self._worker.submit(self._renewed, key, make)
            return running

    def _renewed(self, key: Hashable, make: Callable[[], Any]) -> None:
        self._make(key, make)


def remembered_of(request: Request) -> Remembered:
    """What this application remembers."""
    state = request.app.state
    if not hasattr(state, "remembered"):
        state.remembered = Remembered()
    found: Remembered = state.remembered
    return found
