"""The optimum for known change rates: the bound that schedules are measured against."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_STEPS = 60
_FASTEST = 60.0


def best_rates(rates: Floats, budget: float, weights: Floats | float = 1.0) -> Floats:
    """Visit rates that sum to `budget` and give the highest weighted freshness.

    For a page with change rate d, weight w and visits every s, r = d s, the
    optimum has 1 - (1 + r) e^-r = price d / w, and no visits at all where the
    right side is one or more.
    """
    rates = np.asarray(rates, dtype=np.float64)
    importance = np.broadcast_to(np.asarray(weights, dtype=np.float64), rates.shape)
    low, high = np.log(1e-12 * (importance / rates).min()), np.log((importance / rates).max())
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        over = _at_price(rates, importance, float(np.exp(middle))).sum() > budget
        low, high = (middle, high) if over else (low, middle)
    return _at_price(rates, importance, float(np.exp(high)))


def _at_price(rates: Floats, weights: Floats, price: float) -> Floats:
    wanted = price * rates / weights
    kept = wanted < 1.0
    low, high = np.zeros(int(kept.sum())), np.full(int(kept.sum()), _FASTEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        under = 1.0 - (1.0 + middle) * np.exp(-middle) < wanted[kept]
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    visits = np.zeros_like(rates)
    visits[kept] = rates[kept] / high
    return visits


def freshness(rates: Floats, visits: Floats) -> Floats:
    """Expected freshness of pages visited evenly: (1 - e^-r) / r, 0 without visits."""
    ratio = np.divide(rates, visits, out=np.full_like(rates, np.inf), where=visits > 0.0)
    fresh = np.zeros_like(rates)
    known = np.isfinite(ratio)
    fresh[known] = -np.expm1(-ratio[known]) / np.maximum(ratio[known], 1e-300)
    fresh[rates == 0.0] = 1.0
    return fresh
