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


def optimal_rates(rates: Floats, budget: float) -> Floats:
    """Visit rates that sum to `budget` and give the highest freshness.

    For a page with change rate d and visits every s, r = d s, the optimum has 1 - (1 + r) e^-r = price d, and no visits
    at all where the right side is one or more.
    """
    rates = np.asarray(rates, dtype=np.float64)
    low, high = np.log(1e-12 / rates.max()), np.log(1.0 / rates.min())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        over = _rates_at_price(rates, float(np.exp(middle))).sum() > budget
        low, high = (middle, high) if over else (low, middle)
    return _rates_at_price(rates, float(np.exp(high)))


def _rates_at_price(rates: Floats, price: float) -> Floats:
    wanted = price * rates
    kept = wanted < 1.0
    low, high = np.zeros(int(kept.sum())), np.full(int(kept.sum()), _MOST_RATIO)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        under = 1.0 - (1.0 + middle) * np.exp(-middle) < wanted[kept]
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    visits = np.zeros_like(rates)
    visits[kept] = rates[kept] / high
    return visits


_SLOWEST_RATE, _FASTEST_RATE, _RATE_STEPS = 1.0 / (10 * 365 * 86400.0), 1.0 / 60.0, 64
_EM_ROUNDS = 60


def estimated_freshness(states: Iterable[VisitState], now: float) -> float | None:
    """The expected share of copies that equal the live pages; None without any.

    Pages that failed at their last visit do not count: that their copies are old is known.
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


def _likelihood(changes: Floats, length: Floats, quiet: Floats, rates: Floats) -> Floats:
    """Of each page's visits at each rate, up to a factor a page."""
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = changes[:, None] * np.log(-np.expm1(-np.outer(length, rates)))
    logs = np.where(changes[:, None] > 0, seen, 0.0) - np.outer(quiet, rates)
    best = logs.max(axis=1, keepdims=True)
    # A change within no time at all says nothing of its page; such a page is taken to be like the others.
    logs = np.where(np.isfinite(best), logs, 0.0)
    likelihood: Floats = np.exp(logs - np.where(np.isfinite(best), best, 0.0))
    return likelihood


def _posterior(likelihood: Floats) -> Floats:
    """What each page's rate may be, once all pages have said how rates are spread."""
    spread = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1])
    weights = likelihood
    for _ in range(_EM_ROUNDS):
        weights = likelihood * spread
        weights /= weights.sum(axis=1, keepdims=True)
        spread = weights.mean(axis=0)
    return weights
