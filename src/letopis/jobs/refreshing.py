"""When a kept question is asked again: at a fixed interval, or the sooner, the more its answer is looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass

from letopis.catalog.stored_queries import QueryRow
from letopis.config import JobsSettings
from letopis.errors import UsageError
from letopis.jobs.query import USE_DRIVEN
from letopis.model import parse_duration

HALF_LIFE = 7 * 86_400_000
"""Milliseconds after which a look at an answer counts half."""
SHORTEST = 60_000
"""No question asks itself more often than once a minute."""
_LONGEST = 10 * 365 * 86_400_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """Shortest and longest interval of a use-driven refresh, in milliseconds."""

    least: int
    most: int

    @classmethod
    def of(cls, settings: JobsSettings) -> Bounds:
        """As the settings have it."""
        return cls(round(settings.refresh_min * 1000), round(settings.refresh_max * 1000))


def first_interval(refresh: str, bounds: Bounds) -> int:
    """Milliseconds until a new question is asked again; 0 for never. UsageError for what is no interval."""
    if not refresh:
        return 0
    if refresh == USE_DRIVEN:
        return bounds.most
    every = parse_duration(refresh) * 1000
    if not 0 < every <= _LONGEST:
        raise UsageError(f"refresh='{refresh[:40]}' is not an interval; write 10m, 1h, 7d or 'use'")
    return max(SHORTEST, round(every))


def weight_now(weight: float, since: int) -> float:
    """How much earlier looks still count, some milliseconds later."""
    return weight * math.exp2(-max(0, since) / HALF_LIFE)


def use_interval(weight: float, bounds: Bounds) -> int:
    """About one refresh a look: the mean time between the looks of late, within the bounds."""
    if weight <= 0:
        return bounds.most
    between = HALF_LIFE / (weight * math.log(2))
    return round(min(max(between, bounds.least), bounds.most))


def looked_at(row: QueryRow, now: int, bounds: Bounds) -> QueryRow:
    """The question after somebody looked at its answer; a use-driven one may become due sooner."""
    weight = weight_now(row.weight, now - row.used) + 1
    seen = row._replace(uses=row.uses + 1, weight=weight, used=now)
    if row.refresh != USE_DRIVEN:
        return seen
    every = use_interval(weight, bounds)
    due = None if row.due is None else max(now, row.due - row.every + every)
    return seen._replace(every=every, due=due)
