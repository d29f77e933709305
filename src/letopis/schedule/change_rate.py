"""How often does a page change? Estimates from visits that only report whether it changed.

The change rate d of a page has a Gamma belief with a shape and a scale (mean shape / scale), so two numbers contain
everything that its visits taught. A visit without a change for a time t multiplies the belief by e^(-dt), which a
Gamma distribution absorbs exactly. A visit with a change multiplies it by 1 - e^(-dt); the result is replaced by the
Gamma distribution of equal mean and variance. The mean of the belief is the smoothed estimate.

Also here: whether the Last-Modified of a host (or the lastmod of a sitemap) can be trusted, learned from
observations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from letopis.tuples import NamedTuple

Belief = tuple[float, float]
"""Shape and scale (seconds)."""

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


def belief_dated(belief: Belief, age: float) -> Belief:
    """After a change whose time is known: it happened `age` seconds before the visit."""
    return belief[0] + 1.0, belief[1] + max(age, 0.0)


def fade_belief(belief: Belief, most: float) -> Belief:
    """The belief worth `most` changes at most: its mean stays, old visits lose weight."""
    shape, scale = belief
    return belief if shape <= most else (most, scale * most / shape)


def rate_from_history(
    with_change: Sequence[float], without: Sequence[float], shape: float = 0.0, scale: float = 0.0
) -> float:
    """The most likely change rate given whole lists of intervals between visits.

    Solves sum t / (e^(dt) - 1) over intervals with a change + shape / d =
    sum of intervals without one + scale. With shape and scale zero this is
    the plain estimate: 0.0 without changes, infinite when every visit found
    one.
    """
    quiet = sum(without) + scale
    if not with_change and shape <= 0.0:
        return 0.0
    if quiet <= 0.0:
        return math.inf

    def excess(rate: float) -> float:
        return sum(t * _one_over_expm1(rate * t) for t in with_change) + shape / rate - quiet

    low = high = (len(with_change) + shape) / (quiet + sum(with_change))
    while excess(high) > 0.0:
        high *= 2.0
    while excess(low) < 0.0:
        low /= 2.0
    return _bisect(excess, low, high)


def _one_over_expm1(x: float) -> float:
    return 1.0 / math.expm1(x) if x < 700.0 else 0.0


def _bisect(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses zero, to twelve digits."""
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if falling(middle) > 0.0 else (low, middle)
    return (low + high) / 2.0


_ENOUGH_DATES = 8
_SLACK = 1.0  # HTTP dates have whole seconds
_MOST_LIES = 0.05


class DateTrust(NamedTuple):
    """How often a source of dates was right about a change, for one host."""

    right: int = 0
    wrong: int = 0

    @property
    def earned(self) -> bool:
        """Enough dates were right, and hardly any wrong."""
        total = self.right + self.wrong
        return total >= _ENOUGH_DATES and self.wrong <= _MOST_LIES * total

    def after(self, changed: bool, modified: float | None, last_visit: float, now: float) -> DateTrust:
        """Take in one visit: the date must lie after the last visit exactly when the page changed."""
        if modified is None:
            return self
        says_changed = last_visit - _SLACK < modified <= now + _SLACK
        if says_changed == changed and modified <= now + _SLACK:
            return self._halved()._replace(right=self._halved().right + 1)
        return self._halved()._replace(wrong=self._halved().wrong + 1)

    def _halved(self) -> DateTrust:
        """Old experience fades, so that a host can win and lose trust."""
        return self if self.right + self.wrong < 1000 else DateTrust(self.right // 2, self.wrong // 2)


def age_of_change(trust: DateTrust, modified: float | None, last_visit: float, now: float) -> float | None:
    """Seconds since the change, where a trusted date tells; None otherwise."""
    if modified is None or not trust.earned or not last_visit < modified <= now:
        return None
    return now - modified
