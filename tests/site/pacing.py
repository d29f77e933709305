"""Measuring beside other work: what runs next to a measurement only ever makes it slower, so the least one counts."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu(work: Callable[[], object], repeats: int = 5) -> float:
    """The least seconds of CPU that `work` took in several runs."""
    spent = []
    for _ in range(repeats):
        start = time.process_time_ns()
        work()
        spent.append(time.process_time_ns() - start)
    return min(spent) / 1e9


def lowest(measure: Callable[[], float], bound: float, tries: int = 8) -> float:
    """The least of several measurements; ends with the first one that keeps the bound."""
    least = measure()
    for _ in range(tries - 1):
        if least <= bound:
            break
        least = min(least, measure())
    return least
