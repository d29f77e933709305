"""Values that are costly to work out and good enough for a while.

What is made quickly is made anew when it is old. What takes long is made anew in the background while readers still
get the old one, and the costlier it was, the longer nothing else is: counting a large archive takes a small share of
the time, however many people look at however many pages.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

from fastapi import Request

from letopis.tuples import NamedTuple

T = TypeVar("T")
_MOST = 96
"""Values that are kept; the one that was asked for longest ago goes first."""
_QUICK = 0.05
"""CPU seconds up to which a reader waits for a fresh value."""
_FIRST, _SURELY = 0.1, 0.25
"""The same for a first value, which may have to load code and to open files, and from where on it surely was more."""
_REST = 50
"""A costly value holds for so many times what it cost, and no other is made anew meanwhile."""
_PATIENCE = 2.0
"""Seconds that a reader waits at most for the first value of something that can be left blank."""
_WORKERS = 2
"""Threads in the background: what takes long to make for the first time keeps nobody from the rest."""


_QUEUE = 16
"""First values that wait to be made; more are asked for in vain, and may be asked for again."""


class CachedValue(NamedTuple):
    """A value, the state of the archive that it tells, when it was made, and for how long at least it holds.

    `costly` says that nobody should wait for the next one, `lasting` that nobody ever should: what surely took long
    once may do so again, even if the last time was short because nothing was new.
    """

    value: Any
    state: Hashable
    made: float
    rest: float
    costly: bool
    lasting: bool


class BackgroundPool:
    """Threads that end with the process, whatever they are at: what they make is remembered, never recorded."""

    def __init__(self, workers: int) -> None:
        self._workers, self._begun = workers, 0
        self._waiting: SimpleQueue[tuple[Future[None], Callable[[], object]]] = SimpleQueue()

    def submit(self, work: Callable[[], object]) -> Future[None]:
        """Has something done; the future carries errors. For one caller at a time."""
        future: Future[None] = Future()
        self._waiting.put((future, work))
        if self._begun < self._workers:
            self._begun += 1
            threading.Thread(target=self._work, name=f"letopis-counting-{self._begun}", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            future, work = self._waiting.get()
            try:
                work()
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(None)


class PageCache:
    """Keeps values for a while; one thread works a value out, the others wait for it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, workers: int = _WORKERS) -> None:
        self._clock, self._background = clock, BackgroundPool(workers)
        self._values: dict[Hashable, CachedValue] = {}
        self._turns: dict[Hashable, threading.Lock] = {}
        self._making: dict[Hashable, Future[None]] = {}
        self._guard = threading.Lock()
        self._rested = 0.0

    def get(self, key: Hashable, seconds: float, make: Callable[[], T], state: Hashable = None) -> T:
        """The value of a key, not older than `seconds` unless it is costly.

        A value with a `state` holds as long as that is the same, and `seconds` once it is another.
        """
        kept = self._known(key)
        if kept is None or not kept.costly:
            kept = self._quickly(key, seconds, make, state)
        elif self._is_old(kept, seconds, state):
            self._renew(key, make, state)
        value: T = kept.value
        return value

    def anew(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key as it is now, for whoever knows that the one at hand is too old."""
        with self._turn(key):
            value: T = self._make(key, make, None).value
            return value

    def soon(self, key: Hashable, seconds: float, make: Callable[[], T], state: Hashable = None) -> T | None:
        """The same, but None while a first value takes long."""
        if self._known(key) is None:
            making = self._begin(key, make, state)
            if making is None or not wait([making], _PATIENCE).done:
                return None
            self._raise_failure(key, making)
        return self.get(key, seconds, make, state)

    def done_soon(self, key: Hashable, work: Callable[[], object], patience: float) -> bool:
        """Has something done in the background, unless that is under way; whether it ended within some seconds."""
        with self._guard:
            making = self._making.get(key)
            if making is None or making.done():
                making = self._making[key] = self._background.submit(work)
        ended = bool(wait([making], patience).done)
        if ended:
            making.result()
        return ended

    def _known(self, key: Hashable) -> CachedValue | None:
        """What is kept of a key, which is moved behind all others."""
        with self._guard:
            kept = self._values.pop(key, None)
            if kept is not None:
                self._values[key] = kept
            return kept

    def _quickly(self, key: Hashable, seconds: float, make: Callable[[], T], state: Hashable) -> CachedValue:
        with self._turn(key):
            kept = self._known(key)
            if kept is None or self._is_old(kept, seconds, state):
                kept = self._make(key, make, state)
            return kept

    def _is_old(self, kept: CachedValue, seconds: float, state: Hashable) -> bool:
        if state is not None and state == kept.state:
            return False
        return self._clock() - kept.made >= max(seconds, kept.rest)

    def _turn(self, key: Hashable) -> threading.Lock:
        with self._guard:
            if len(self._turns) > _MOST:
                self._turns = {name: turn for name, turn in self._turns.items() if turn.locked()}
            return self._turns.setdefault(key, threading.Lock())

    def _make(self, key: Hashable, make: Callable[[], Any], state: Hashable) -> CachedValue:
        before, began = self._values.get(key), time.thread_time()
        value = make()
        cost = time.thread_time() - began
        lasting = cost > _SURELY if before is None else before.lasting or cost > _QUICK
        costly = lasting or (before is None and cost > _FIRST)
        # What a first value took says little about the next: often an index had to be built for it.
        kept = CachedValue(value, state, self._clock(), _REST * cost if costly and before else 0.0, costly, lasting)
        with self._guard:
            self._values.pop(key, None)
            self._values[key] = kept
            while len(self._values) > _MOST:
                del self._values[next(iter(self._values))]
        return kept

    def _begin(self, key: Hashable, make: Callable[[], Any], state: Hashable) -> Future[None] | None:
        """Makes a first value in the background, unless that is under way or has failed since it was asked for."""
        with self._guard:
            if key not in self._making:
                if sum(not making.done() for making in self._making.values()) >= _QUEUE:
                    return None
                if len(self._making) > _MOST:
                    self._making = {name: making for name, making in self._making.items() if not making.done()}
                self._making[key] = self._background.submit(lambda: self._made(key, make, state))
            return self._making[key]

    def _made(self, key: Hashable, make: Callable[[], Any], state: Hashable) -> None:
        self._make(key, make, state)
        with self._guard:
            del self._making[key]

    def _renew(self, key: Hashable, make: Callable[[], Any], state: Hashable) -> None:
        """Makes a value anew in the background, when nothing else is and the last time was long enough ago."""
        with self._guard:
            if self._clock() >= self._rested:
                self._rested = math.inf
                self._background.submit(lambda: self._renewed(key, make, state))

    def _renewed(self, key: Hashable, make: Callable[[], Any], state: Hashable) -> None:
        began = time.thread_time()
        try:
            self._make(key, make, state)
        finally:
            self._rested = self._clock() + _REST * (time.thread_time() - began)

    def _raise_failure(self, key: Hashable, making: Future[None]) -> None:
        """Raises what a first value failed with, once."""
        with self._guard:
            if self._making.get(key) is making:
                del self._making[key]
        making.result()


def page_cache_of(request: Request) -> PageCache:
    """What this application remembers."""
    state = request.app.state
    if not hasattr(state, "page_cache"):
        state.page_cache = PageCache()
    found: PageCache = state.page_cache
    return found
