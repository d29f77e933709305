"""Do pages change by the clock or at random? A curve learned from all pages together.

Under random (Poisson) changes the chance of a change does not depend on how
long ago the last one was. Pages that are written every morning are
different: quiet after a change, nearly certain to change when their period
is over. The curve holds, for each phase (time since the last change over the
page's mean gap), how many times likelier a change is than on average. It is
one for random changes and then plays no part.

A rhythm bends time: measured in `busy` time, in which quiet phases are
short and busy phases long, changes are random again, so the same belief and
the same worth apply.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections.abc import Iterator

from letopis.errors import Damaged
from letopis.schedule.belief import Belief
from letopis.schedule.worth import Weighted, tail

_EDGES = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.6, 2.0)
_ENDS = (*_EDGES[1:], math.inf)
_COUNT = len(_EDGES)
_QUIET = _EDGES.index(0.6)
_PRIOR = 30.0  # changes that each phase is credited with before the first one
_RENEW = 500  # observations between two readings of the curve
_FADE = 0.98  # what older observations keep at each reading
_LEAST, _MOST = 1.0 / 16.0, 8.0
_REGULAR = 0.5  # the curve counts from this hazard in quiet phases downward
_EXACT = 1e-3
_FORMAT = struct.Struct(f"<I{2 * _COUNT + 1}d")


class Rhythm:
    """The curve with what it was learned from. Not shared between threads."""

    def __init__(self) -> None:
        self.hazard = (1.0,) * _COUNT
        self.regular = False
        self.stretch = 1.0
        self._seen = 0
        self._hits = [_PRIOR] * _COUNT
        self._spent = [_PRIOR] * _COUNT

    def gap(self, belief: Belief) -> float:
        """Mean seconds between two changes of a page."""
        return self.stretch * belief[1] / belief[0]

    def busy(self, start: float, end: float) -> float:
        """Busy time between two phases; equals end - start for random changes."""
        return sum((high - low) * self.hazard[phase] for phase, low, high in _pieces(start, end))

    def learn(self, start: float, end: float, hit: bool) -> None:
        """Take in one interval between visits, given as phases, and whether a change fell in it."""
        parts = [(phase, high - low) for phase, low, high in _pieces(start, end)]
        whole = sum(width * self.hazard[phase] for phase, width in parts)
        before = 0.0
        for phase, width in parts:
            share = width * self.hazard[phase] / whole if hit else 0.0
            self._hits[phase] += share
            self._spent[phase] += width * (1.0 - before - share / 2.0)
            before += share
        self._seen += 1
        if self._seen % _RENEW == 0:
            self._read()

    def _read(self) -> None:
        self._hits = [_PRIOR + (value - _PRIOR) * _FADE for value in self._hits]
        self._spent = [_PRIOR + (value - _PRIOR) * _FADE for value in self._spent]
        self._draw()
        if self.regular:
            self.stretch = min(2.0, max(0.5, self.stretch * _mean_gap(self.hazard)))

    def _draw(self) -> None:
        quiet = sum(self._hits[:_QUIET]) / sum(self._spent[:_QUIET])
        self.regular = quiet < _REGULAR
        pairs = zip(self._hits, self._spent, strict=True)
        self.hazard = tuple(min(_MOST, max(_LEAST, hits / spent)) if self.regular else 1.0 for hits, spent in pairs)
        if not self.regular:
            self.stretch = 1.0

    def to_bytes(self) -> bytes:
        """All that was learned."""
        return _FORMAT.pack(self._seen % 2**32, *self._hits, *self._spent, self.stretch)

    @classmethod
    def from_bytes(cls, data: bytes) -> Rhythm:
        """The inverse of `to_bytes`."""
        if len(data) != _FORMAT.size:
            raise Damaged("the learned rhythm of the schedule cannot be read; delete it and it is learned anew")
        rhythm = cls()
        rhythm._seen, *numbers, rhythm.stretch = _FORMAT.unpack(data)
        rhythm._hits, rhythm._spent = list(numbers[:_COUNT]), list(numbers[_COUNT:])
        rhythm._draw()
        return rhythm

    def pays_after(self, objective: Weighted, belief: Belief, phase: float, price: float) -> float:
        """Seconds until a visit pays for a page that is now in `phase` of its rhythm."""
        power = belief[0] + objective.alpha
        wanted = price / objective.factor(belief)
        unit = self.gap(belief) / belief[1]
        sum_before = bent = passed = tail_before = 0.0
        for index, low, high in _pieces(phase, math.inf):
            hazard, width = self.hazard[index], (high - low) * unit
            sum_after = bent_after = tail_after = 0.0
            if width < math.inf:
                bent_after = bent + width * hazard
                tail_after = tail(power, bent_after)
                sum_after = sum_before + (tail_after - tail_before) / hazard
                if sum_after - (passed + width) * math.exp(-power * math.log1p(bent_after)) < wanted:
                    sum_before, bent, passed, tail_before = sum_after, bent_after, passed + width, tail_after
                    continue
            piece = _Piece(power, hazard, sum_before, bent, passed, tail_before)
            return belief[1] * (passed + piece.solve(wanted, min(width, 1e6)))
        return math.inf


class _Piece:
    """Worth inside one phase, as a function of the time spent in it."""

    __slots__ = ("bent", "hazard", "passed", "power", "sum_before", "tail_before")

    def __init__(
        self, power: float, hazard: float, sum_before: float, bent: float, passed: float, tail_before: float
    ) -> None:
        self.power, self.hazard, self.sum_before = power, hazard, sum_before
        self.bent, self.passed, self.tail_before = bent, passed, tail_before

    def worth(self, time: float) -> float:
        bent = self.bent + time * self.hazard
        gained = (tail(self.power, bent) - self.tail_before) / self.hazard
        return self.sum_before + gained - (self.passed + time) * math.exp(-self.power * math.log1p(bent))

    def solve(self, wanted: float, most: float) -> float:
        """The time after which the worth is reached; infinite if it never is."""
        low, high = 0.0, min(most, 1.0)
        short, over = self.worth(low) - wanted, self.worth(high) - wanted
        while over < 0.0:
            if high >= most:
                return math.inf
            low, high, short = high, min(most, high * 4.0), over
            over = self.worth(high) - wanted
        return self._close_in(wanted, low, high, short, over)

    def _close_in(self, wanted: float, low: float, high: float, short: float, over: float) -> float:
        """Between two bounds by false position, halving the weight of a bound that stays (Illinois)."""
        while high - low > _EXACT * (self.passed + high):
            middle = (low * over - high * short) / (over - short)
            error = self.worth(middle) - wanted
            if abs(error) < _EXACT * wanted:
                return middle
            if error < 0.0:
                low, short, over = middle, error, over / 2.0
            else:
                high, over, short = middle, error, short / 2.0
        return high


def _pieces(start: float, end: float) -> Iterator[tuple[int, float, float]]:
    """The parts of a span of phases, one a step of the curve."""
    phase = bisect_right(_EDGES, start) - 1
    while True:
        stop = _ENDS[phase]
        if stop >= end:
            yield phase, start, end
            return
        yield phase, start, stop
        start, phase = stop, phase + 1


def _mean_gap(hazard: tuple[float, ...]) -> float:
    """Mean phase at which a change comes; one when the curve fits the gaps it is measured in."""
    mean, alive = 0.0, 1.0
    for value, low, high in zip(hazard, _EDGES, _ENDS, strict=True):
        stays = math.exp(-value * (high - low))
        mean += alive * (1.0 - stays) / value
        alive *= stays
    return mean
