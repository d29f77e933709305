"""How often a page changes, what a visit to it is worth, and after which time it pays.

A page's change rate d is believed to follow a Gamma distribution with a shape and a scale (mean shape / scale), so two
numbers hold all that its visits taught. Seeing no change for a time t multiplies the belief by e^(-dt), which a Gamma
absorbs exactly. Seeing that it changed multiplies it by 1 - e^(-dt); the result is replaced by the Gamma of equal mean
and variance.

Let f(u) be the loss at time u after a visit: the chance that the copy is stale (freshness), that chance weighted by the
change rate (captured changes), or the expected age. Visiting every s seconds at the price p a visit costs (f integrated
to s + p) / s on average, which is least where

    worth(s) = s f(s) - integral of f to s = p.

With a Gamma belief (shape a, scale b) about the change rate, all integrals have a closed form, so uncertainty is part
of the answer: the less is known of a page, the longer a visit keeps gaining worth. In units of the scale (x = s / b),
with A = a + alpha and L_A(x) = integral of (1 + u)^-A:

    worth = b^(1 - alpha) G(A)/G(a) (L_A(x) - x (1 + x)^-A)     weight d^alpha
    worth = b^2 (x^2 / 2 - L_(a-1)(x) + L_a(x))                  age

`alpha` is 0 for freshness and 1 for captured changes.

Pages may change by the clock and not at random: a curve is learned from all pages together. Under random (Poisson)
changes the chance of a change does not depend on how long ago the last one was. Pages that are written every morning
are different: quiet after a change, nearly certain to change when their period is over. The curve holds, for each phase
(time since the last change over the page's mean gap), how many times likelier a change is than on average. It is one
for random changes and then plays no part.

A rhythm bends time: measured in `busy` time, in which quiet phases are short and busy phases long, changes are random
again, so the same belief and the same worth apply.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections.abc import Iterator

from letopis.errors import Damaged
from letopis.tuples import NamedTuple

Belief = tuple[float, float]
"""Shape and scale (seconds)."""
_FAR = 1e9
_SMALLEST_SPREAD = 1e-9


def prior_belief(interval: float) -> Belief:
    """A belief worth one change: about one in `interval`, but anything is possible."""
    return 1.0, interval


def belief_unchanged(belief: Belief, seconds: float) -> Belief:
    """After a visit that found nothing new since the visit `seconds` before."""
    return belief[0], belief[1] + seconds


def belief_changed(belief: Belief, seconds: float) -> Belief:
    """After a visit that found one change or more in the `seconds` since the last."""
    shape, scale = belief
    if seconds <= 0.0:
        return belief
    longer = scale + seconds
    missed = math.exp(-shape * math.log1p(seconds / scale))
    seen = -math.expm1(-shape * math.log1p(seconds / scale))
    mean = shape * (1.0 / scale - missed / longer) / seen
    square = shape * (shape + 1.0) * (1.0 / scale**2 - missed / longer**2) / seen
    spread = max(square - mean * mean, _SMALLEST_SPREAD * mean * mean)
    return mean * mean / spread, mean / spread


def fade_belief(belief: Belief, most: float) -> Belief:
    """The belief worth `most` changes at most: its mean stays, old visits lose weight."""
    shape, scale = belief
    return belief if shape <= most else (most, scale * most / shape)


def tail_integral(power: float, x: float) -> float:
    """The integral of (1 + u)^-power for u from 0 to x."""
    log = math.log1p(x)
    if abs(power - 1.0) < 1e-9:
        return log
    return math.expm1((1.0 - power) * log) / (1.0 - power)


class FreshnessObjective(NamedTuple):
    """Share of fresh copies where a page weighs rate ** alpha; alpha 1 counts captured changes."""

    alpha: float

    def factor(self, belief: Belief) -> float:
        """Worth in seconds ** (1 - alpha) of one unit of the scale-free worth."""
        shape, scale = belief
        if self.alpha == 0.0:
            return scale
        if self.alpha == 1.0:
            return shape
        return math.exp(math.lgamma(shape + self.alpha) - math.lgamma(shape) + (1.0 - self.alpha) * math.log(scale))

    def worth(self, belief: Belief, seconds: float) -> float:
        """What a visit gains when the last one is `seconds` old. Grows with time."""
        return self.factor(belief) * _gain(belief[0] + self.alpha, seconds / belief[1])

    def pays_after(self, belief: Belief, price: float) -> float:
        """The time after which a visit is worth `price`; infinite if it never is."""
        wanted = price / self.factor(belief)
        return belief[1] * _solve_gain(belief[0] + self.alpha, wanted)


def _gain(power: float, x: float) -> float:
    return tail_integral(power, x) - x * math.exp(-power * math.log1p(x))


def _solve_gain(power: float, wanted: float) -> float:
    """The x with `_gain(power, x) == wanted`, by Newton steps on logarithms."""
    if power > 1.0 and wanted * (power - 1.0) >= 1.0 - 1e-9:
        return math.inf
    x = math.sqrt(2.0 * wanted / power)
    goal = math.log(wanted)
    for _ in range(40):
        log = math.log1p(x)
        gain = tail_integral(power, x) - x * math.exp(-power * log)
        slope = power * x * x * math.exp(-(power + 1.0) * log) / gain
        step = min(1.5, max(-1.5, (goal - math.log(gain)) / max(slope, 1e-3)))
        x *= math.exp(step)
        if abs(step) < 1e-5:
            return x
        if x > _FAR:
            return math.inf
    return x


class AgeObjective:
    """Mean time since the first change that the copy lacks. Never abandons a page."""

    def worth(self, belief: Belief, seconds: float) -> float:
        """What a visit gains when the last one is `seconds` old. Grows with time."""
        return belief[1] ** 2 * _age_gain(belief[0], seconds / belief[1])

    def pays_after(self, belief: Belief, price: float) -> float:
        """The time after which a visit is worth `price`; infinite if it never is."""
        shape, scale = belief
        wanted = price / scale**2
        x = min(math.cbrt(3.0 * wanted / shape), math.sqrt(2.0 * wanted) + 1.0)
        for _ in range(60):
            gain = _age_gain(shape, x)
            slope = -x * math.expm1(-shape * math.log1p(x))
            step = min(1.5, max(-1.5, (math.log(wanted) - math.log(gain)) * gain / (slope * x)))
            x *= math.exp(step)
            if abs(step) < 1e-6:
                break
        return x * scale


def _age_gain(shape: float, x: float) -> float:
    if x * max(shape, 1.0) < 1e-4:  # the closed form would cancel out
        return shape * x**3 / 3.0
    return x * x / 2.0 - tail_integral(shape - 1.0, x) + tail_integral(shape, x)


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


class ChangeRhythm:
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
    def from_bytes(cls, data: bytes) -> ChangeRhythm:
        """The inverse of `to_bytes`."""
        if len(data) != _FORMAT.size:
            raise Damaged("the learned rhythm of the schedule cannot be read; delete it and it is learned again")
        rhythm = cls()
        rhythm._seen, *numbers, rhythm.stretch = _FORMAT.unpack(data)
        rhythm._hits, rhythm._spent = list(numbers[:_COUNT]), list(numbers[_COUNT:])
        rhythm._draw()
        return rhythm

    def pays_after(self, objective: FreshnessObjective, belief: Belief, phase: float, price: float) -> float:
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
                tail_after = tail_integral(power, bent_after)
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
        gained = (tail_integral(self.power, bent) - self.tail_before) / self.hazard
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
