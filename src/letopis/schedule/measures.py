"""Freshness, age and captured changes of a record of visits against known changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from letopis.schedule.allot import Floats


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over pages and time. `captured` and `hits` are shares of changes and of visits."""

    captured: float
    hits: float
    freshness: float
    age: float
    visits: int


def measure(
    visits: Sequence[Sequence[float] | Floats], changes: Sequence[Floats], start: float, end: float
) -> Measured:
    """What visits achieved between two times; each page has at least one visit before `start` or none at all.

    A visit captures one change, the latest, however many it finds.
    """
    pages = [
        _page(np.asarray(times, dtype=np.float64), true, start, end)
        for times, true in zip(visits, changes, strict=True)
    ]
    fresh, age = sum(page[0] for page in pages), sum(page[1] for page in pages)
    captured, found, made = (sum(page[part] for page in pages) for part in (2, 3, 4))
    happened = sum(int(np.searchsorted(true, end) - np.searchsorted(true, start)) for true in changes)
    whole = len(changes) * (end - start)
    return Measured(captured / max(happened, 1), found / max(made, 1), fresh / whole, age / whole, int(made))


def _page(visits: Floats, changes: Floats, start: float, end: float) -> tuple[float, float, int, int, int]:
    """Fresh seconds, age integrated over time, changes captured, visits that found one, visits made."""
    following = np.append(visits[1:], end)
    stale = np.minimum(np.append(changes, np.inf)[np.searchsorted(changes, visits, side="right")], following)
    fresh = np.clip(stale, start, end) - np.clip(visits, start, end)
    until = np.maximum(np.minimum(following, end) - stale, 0.0)
    already = np.clip(start - stale, 0.0, until)
    hit = (following >= start) & (following < end) & (stale < following)
    latest = np.append(-np.inf, changes)[np.searchsorted(changes, following, side="right")]
    captured = int(np.count_nonzero(hit & (latest >= start)))
    made = int(np.searchsorted(visits, end) - np.searchsorted(visits, start))
    return float(fresh.sum()), float((until**2 - already**2).sum() / 2.0), captured, int(hit.sum()), made
