"""How the cost of reading hostile text grows with its length, in seconds of CPU that this process spends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", str, bytes)
LENGTH = 20_000
_UNNOTICED = 0.02
_TRIES = 5
_MOST_GROWTH = 9.0
"""Four times the text takes four times as long, sixteen times where time grows with the square."""


def grows_with_the_square(work: Callable[[T], object], text_of: Callable[[int], T], length: int = LENGTH) -> bool:
    """Whether four times as much text takes clearly more than four times as long, in the best of several tries.

    What takes no time that can be measured even for the long text does not grow.
    """
    short, long = text_of(length), text_of(4 * length)
    for _ in range(_TRIES):
        slow = _spent(work, long)
        if slow < _UNNOTICED or slow < _MOST_GROWTH * _spent(work, short):
            return False
    return True


def _spent(work: Callable[[T], object], text: T) -> float:
    start = time.process_time()
    work(text)
    return time.process_time() - start
