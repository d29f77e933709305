"""Freshness: the best that known change rates allow, and the estimate from the results of visits.

For each page it is known how long visits found nothing new, and in how many intervals of which mean length they found
a change: at a change rate d this has the probability e^(-d quiet) (1 - e^(-d length))^changes. The distribution of
the rates of all pages, including pages that never change, is found by expectation maximisation without prior
assumptions: pages about which little is known are treated like the others. The probability that a copy last checked t
seconds ago is fresh is the mean of e^(-dt) over the possible rates of its page.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from letopis.schedule.policies import VisitState

Floats = npt.NDArray[np.float64]

_BISECTIONS = 60
_MOST_RATIO = 60.0


def optimal_rates(rates: Floats, budget: float, weights: Floats | float = 1.0) -> Floats:
    """Visit rates that sum to `budget` and give the highest weighted freshness.

    For a page with change rate d, weight w and visits every s, r = d s, the
    optimum has 1 - (1 + r) e^-r = price d / w, and no visits at all where the
    right side is one or more.
    """
    rates = np.asarray(rates, dtype=np.float64)
    importance = np.broadcast_to(np.asarray(weights, dtype=np.float64), rates.shape)
    low, high = np.log(1e-12 * (importance / rates).min()), np.log((importance / rates).max())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        over = _rates_at_price(rates, importance, float(np.exp(middle))).sum() > budget
        low, high = (middle, high) if over else (low, middle)
    return _rates_at_price(rates, importance, float(np.exp(high)))


def _rates_at_price(rates: Floats, weights: Floats, price: float) -> Floats:
    wanted = price * rates / weights
    kept = wanted < 1.0
    low, high = np.zeros(int(kept.sum())), np.full(int(kept.sum()), _MOST_RATIO)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        under = 1.0 - (1.0 + middle) * np.exp(-middle) < wanted[kept]
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    visits = np.zeros_like(rates)
    visits[kept] = rates[kept] / high
    return visits


def expected_freshness(rates: Floats, visits: Floats) -> Floats:
    """Expected freshness of pages visited evenly: (1 - e^-r) / r, 0 without visits."""
    ratio = np.divide(rates, visits, out=np.full_like(rates, np.inf), where=visits > 0.0)
    fresh = np.zeros_like(rates)
    known = np.isfinite(ratio)
    fresh[known] = -np.expm1(-ratio[known]) / np.maximum(ratio[known], 1e-300)
    fresh[rates == 0.0] = 1.0
    return fresh


_SLOWEST_RATE, _FASTEST_RATE, _RATE_STEPS = 1.0 / (10 * 365 * 86400.0), 1.0 / 60.0, 64
_EM_ROUNDS = 60

FloatArray = npt.NDArray[np.float64]


def estimated_freshness(states: Iterable[VisitState], now: float) -> float | None:
    """The expected share of copies that equal the live pages; None without any.

    Pages that failed at their last visit do not count: that their copies are
    old is known.
    """
    known = [state for state in states if state.visits and not state.failures]
    if not known:
        return None
    changes = np.array([state.changes for state in known], dtype=np.float64)
    quiet = np.array([state.quiet for state in known])
    length = np.array([state.busy for state in known]) / np.maximum(changes, 1.0)
    since = np.array([max(0.0, now - state.last_visit) for state in known])
    rates = np.append(0.0, np.geomspace(_SLOWEST_RATE, _FASTEST_RATE, _RATE_STEPS))
    weights = _posterior(_likelihood(changes, length, quiet, rates))
    return float((weights * np.exp(-np.outer(since, rates))).sum(axis=1).mean())


def _likelihood(changes: FloatArray, length: FloatArray, quiet: FloatArray, rates: FloatArray) -> FloatArray:
    """Of each page's visits at each rate, up to a factor a page."""
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = changes[:, None] * np.log(-np.expm1(-np.outer(length, rates)))
    logs = np.where(changes[:, None] > 0, seen, 0.0) - np.outer(quiet, rates)
    best = logs.max(axis=1, keepdims=True)
    # A change within no time at all says nothing of its page; such a page is taken to be like the others.
    logs = np.where(np.isfinite(best), logs, 0.0)
    likelihood: FloatArray = np.exp(logs - np.where(np.isfinite(best), best, 0.0))
    return likelihood


def _posterior(likelihood: FloatArray) -> FloatArray:
    """What each page's rate may be, once all pages have said how rates are spread."""
    spread = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1])
    weights = likelihood
    for _ in range(_EM_ROUNDS):
        weights = likelihood * spread
        weights /= weights.sum(axis=1, keepdims=True)
        spread = weights.mean(axis=0)
    return weights
