"""What a visit is worth, and after which time it pays.

Let f(u) be the loss at time u after a visit: the chance that the copy is
stale (freshness), that chance weighted by the change rate (captured
changes), or the expected age. Visiting every s seconds at the price p a
visit costs (f integrated to s + p) / s on average, which is least where

    worth(s) = s f(s) - integral of f to s = p.

With a Gamma belief (shape a, scale b) about the change rate, all integrals
have a closed form, so uncertainty is part of the answer: the less is known
of a page, the longer a visit keeps gaining worth. In units of the scale
(x = s / b), with A = a + alpha and L_A(x) = integral of (1 + u)^-A:

    worth = b^(1 - alpha) G(A)/G(a) (L_A(x) - x (1 + x)^-A)     weight d^alpha
    worth = b^2 (x^2 / 2 - L_(a-1)(x) + L_a(x))                  age

`alpha` is 0 for freshness and 1 for captured changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from letopis.schedule.belief import Belief

_FAR = 1e9


class Objective(Protocol):
    """One meaning of "up to date"."""

    def worth(self, belief: Belief, seconds: float) -> float:
        """What a visit gains when the last one is `seconds` old. Grows with time."""
        ...

    def pays_after(self, belief: Belief, price: float) -> float:
        """The time after which a visit is worth `price`; infinite if it never is."""
        ...


def tail(power: float, x: float) -> float:
    """The integral of (1 + u)^-power for u from 0 to x."""
    log = math.log1p(x)
    if abs(power - 1.0) < 1e-9:
        return log
    return math.expm1((1.0 - power) * log) / (1.0 - power)


@dataclass(frozen=True, slots=True)
class Weighted:
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
        """See `Objective.worth`."""
        return self.factor(belief) * _gain(belief[0] + self.alpha, seconds / belief[1])

    def pays_after(self, belief: Belief, price: float) -> float:
        """See `Objective.pays_after`."""
        wanted = price / self.factor(belief)
        return belief[1] * _solve_gain(belief[0] + self.alpha, wanted)


def _gain(power: float, x: float) -> float:
    return tail(power, x) - x * math.exp(-power * math.log1p(x))


def _solve_gain(power: float, wanted: float) -> float:
    """The x with `_gain(power, x) == wanted`, by Newton steps on logarithms."""
    if power > 1.0 and wanted * (power - 1.0) >= 1.0 - 1e-9:
        return math.inf
    x = math.sqrt(2.0 * wanted / power)
    goal = math.log(wanted)
    for _ in range(40):
        log = math.log1p(x)
        gain = tail(power, x) - x * math.exp(-power * log)
        slope = power * x * x * math.exp(-(power + 1.0) * log) / gain
        step = min(1.5, max(-1.5, (goal - math.log(gain)) / max(slope, 1e-3)))
        x *= math.exp(step)
        if abs(step) < 1e-5:
            return x
        if x > _FAR:
            return math.inf
    return x


@dataclass(frozen=True, slots=True)
class Age:
    """Mean time since the first change that the copy lacks. Never abandons a page."""

    def worth(self, belief: Belief, seconds: float) -> float:
        """See `Objective.worth`."""
        return belief[1] ** 2 * _age_gain(belief[0], seconds / belief[1])

    def pays_after(self, belief: Belief, price: float) -> float:
        """See `Objective.pays_after`."""
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
    return x * x / 2.0 - tail(shape - 1.0, x) + tail(shape, x)
