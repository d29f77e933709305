"""Numbers that look random and are a function of their key alone."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from xxhash import xxh3_64_intdigest

T = TypeVar("T")


def draw(*key: int | str) -> int:
    """64 bits that depend on the key and on nothing else."""
    return xxh3_64_intdigest(repr(key).encode())


def source(*key: int | str) -> Random:
    """A generator for one key. Only its `random()` is used: that stream never changes between releases of Python."""
    return Random(draw(*key))


def pick(chance: Random, choices: Sequence[T]) -> T:
    """One of the choices, all equally likely."""
    return choices[int(chance.random() * len(choices))]
