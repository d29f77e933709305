"""The change heat map of a site: its liveliest pages by day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from letopis.catalog.activity import DAY, ChangeRow
from letopis.model import from_millis
from letopis.serve.pages.rendering import day

MOST_PAGES = 30
STEPS = 4
"""Shades besides the empty one."""
_CALM = 3
"""Changes a day that earn the darkest shade at least."""


class Cell(NamedTuple):
    """Changes of a page on a day, and the shade that shows them."""

    day: str
    changes: int
    shade: int


class HeatRow(NamedTuple):
    """A page with its days."""

    url: str
    total: int
    cells: list[Cell]


class Heat(NamedTuple):
    """The whole map. `pages` counts all that changed, shown or not."""

    rows: list[HeatRow]
    days: list[str]
    pages: int
    changes: int


def heat(changes: Iterable[ChangeRow], first: int, last: int) -> Heat:
    """The pages with the most changes between two days since 1970, the liveliest first."""
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    for row in changes:
        counts[row.url][row.day] = row.changes
    totals = {url: sum(days.values()) for url, days in counts.items()}
    chosen = sorted(totals, key=lambda url: (-totals[url], url))[:MOST_PAGES]
    most = max([_CALM, *(count for url in chosen for count in counts[url].values())])
    names = [day(from_millis(number * DAY)) for number in range(first, last + 1)]
    rows = [
        HeatRow(url, totals[url], [_cell(name, counts[url].get(first + at, 0), most) for at, name in enumerate(names)])
        for url in chosen
    ]
    return Heat(rows, names, len(totals), sum(totals.values()))


def _cell(name: str, count: int, most: int) -> Cell:
    return Cell(name, count, -(-count * STEPS // most) if count else 0)
