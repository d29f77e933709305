"""Chance and change as functions of a key: numbers that look random, and processes in time whose every moment can be
asked for directly.

Times are whole milliseconds since 1970. A process is never stored: the moments of any stretch of time are a function
of its key, so that asking about a day ten years in costs no more than asking about the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from random import Random
from typing import Protocol, TypeVar

from xxhash import xxh3_64_intdigest

from letopis.tuples import NamedTuple

T = TypeVar("T")


def draw_bits(*key: int | str) -> int:
    """64 bits that depend on the key and on nothing else."""
    return xxh3_64_intdigest(repr(key).encode())


def random_source(*key: int | str) -> Random:
    """A generator for one key. Only its `random()` is used: that stream never changes between releases of Python."""
    return Random(draw_bits(*key))


def pick(chance: Random, choices: Sequence[T]) -> T:
    """One of the choices, all equally likely."""
    return choices[int(chance.random() * len(choices))]


NEVER = 1 << 62
"""Later than any time."""
_SHAKE = 0.2


class Stream(Protocol):
    """Moments of change after a first moment `start`."""

    @property
    def start(self) -> int:
        """The moment from which the process runs."""

    def last(self, at: int) -> int:
        """The newest change not after `at`, or `start`."""

    def next(self, at: int) -> int:
        """The first change after `at`, or NEVER."""


class Poisson(NamedTuple):
    """Changes without memory, one in `period` on average."""

    start: int
    period: int
    key: int

    def _window(self, number: int) -> list[int]:
        """The changes of one window of four periods; independent windows make an exact Poisson process."""
        chance, length = random_source(self.key, number), 4 * self.period
        begin, offset, moments = self.start + number * length, 0.0, []
        while (offset := offset - log(1.0 - chance.random()) * self.period) < length:
            moments.append(begin + int(offset) + 1)
        return moments

    def last(self, at: int) -> int:
        """The newest change not after `at`, or `start`."""
        for number in range((at - self.start) // (4 * self.period), -1, -1):
            before = [moment for moment in self._window(number) if moment <= at]
            if before:
                return before[-1]
        return self.start

    def next(self, at: int) -> int:
        """The first change after `at`."""
        number = max(0, (at - self.start) // (4 * self.period))
        while True:
            for moment in self._window(number):
                if moment > at:
                    return moment
            number += 1


class Periodic(NamedTuple):
    """One change in each period, shaken by up to a fifth of it; at most `limit` changes."""

    start: int
    period: int
    key: int
    limit: int = NEVER

    def nth(self, number: int) -> int:
        """The moment of change `number`, from 0 on."""
        unit = draw_bits(self.key, number) / 2.0**64
        return self.start + number * self.period + int(self.period * (0.5 + _SHAKE * (2 * unit - 1)))

    def count(self, at: int) -> int:
        """How many changes there were up to `at`."""
        number = (at - self.start) // self.period
        if number < 0:
            return 0
        return min(self.limit, number + (self.nth(number) <= at))

    def last(self, at: int) -> int:
        """The newest change not after `at`, or `start`."""
        count = self.count(at)
        return self.nth(count - 1) if count else self.start

    def next(self, at: int) -> int:
        """The first change after `at`, or NEVER when the limit is reached."""
        count = self.count(at)
        return self.nth(count) if count < self.limit else NEVER


class Fixed(NamedTuple):
    """Changes at given moments."""

    start: int
    moments: tuple[int, ...]

    def last(self, at: int) -> int:
        """The newest change not after `at`, or `start`."""
        return max((moment for moment in self.moments if moment <= at), default=self.start)

    def next(self, at: int) -> int:
        """The first change after `at`, or NEVER."""
        return min((moment for moment in self.moments if moment > at), default=NEVER)


def moments(streams: tuple[Stream, ...], after: int, until: int) -> list[int]:
    """Every moment in (after, until] at which at least one of the streams changes."""
    found: set[int] = set()
    for stream in streams:
        moment = stream.next(after)
        while moment <= until:
            found.add(moment)
            moment = stream.next(moment)
    return sorted(found)
