"""Answers that are dear to work out and good enough for a few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from fastapi import Request

T = TypeVar("T")
_MOST = 64


class Remembered:
    """Keeps values for a while; one thread works a value out, the others wait for it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._values: dict[Hashable, tuple[float, Any]] = {}
        self._turns: dict[Hashable, threading.Lock] = {}
        self._guard = threading.Lock()

    def get(self, key: Hashable, seconds: float, make: Callable[[], T]) -> T:
        """The value of a key, not older than `seconds`."""
        with self._guard:
            if len(self._turns) > _MOST:
                self._turns.clear()
                self._values.clear()
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            made, value = self._values.get(key, (0.0, None))
            if key not in self._values or self._clock() - made >= seconds:
                value = make()
                self._values[key] = (self._clock(), value)
            result: T = value
            return result


def remembered_of(request: Request) -> Remembered:
    """What this application remembers."""
    state = request.app.state
    if not hasattr(state, "remembered"):
        state.remembered = Remembered()
    found: Remembered = state.remembered
    return found
