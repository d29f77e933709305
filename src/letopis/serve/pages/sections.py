"""The sections of a site, by the first part of their addresses, and when in the day their pages change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from letopis.catalog.activity import HourRow

HOURS = 24
MOST_SECTIONS = 16
TOP = "/"
"""The section of the pages that lie in no folder."""


class Section(NamedTuple):
    """A section and its changes in each hour of the day."""

    name: str
    total: int
    hours: list[int]


class Hours(NamedTuple):
    """The liveliest sections first; `sections` and `changes` count all, shown or not."""

    rows: list[Section]
    sections: int
    changes: int


def section_of(url: str) -> str:
    """`/news/` of a page in that folder or of the folder itself."""
    first, slash, _ = urlsplit(url).path.lstrip("/").partition("/")
    return f"/{first}/" if first and slash else TOP


def by_hour(rows: Iterable[HourRow]) -> Hours:
    """Changes by section and hour."""
    counts: Counter[tuple[str, int]] = Counter()
    totals: Counter[str] = Counter()
    for row in rows:
        name = section_of(row.url)
        counts[name, row.hour] += row.changes
        totals[name] += row.changes
    chosen = sorted(totals, key=lambda name: (-totals[name], name))[:MOST_SECTIONS]
    shown = [Section(name, totals[name], [counts[name, hour] for hour in range(HOURS)]) for name in chosen]
    return Hours(shown, len(totals), totals.total())
