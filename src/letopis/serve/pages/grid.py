"""A year of captures as a sheet of months and days."""

from __future__ import annotations

import calendar
from typing import NamedTuple


class Capture(NamedTuple):
    """A capture as a list shows it: the time of day, where it is shown, and its status."""

    time: str
    address: str
    status: int


Days = list[tuple[str, list[Capture]]]
"""Days (`2026-03-01`) with their captures."""


class Square(NamedTuple):
    """A day of a sheet; those without captures lead nowhere."""

    day: int
    name: str
    captures: int
    shade: int
    address: str


class Month(NamedTuple):
    """A month (`2026-03`) with all its days; `lead` days of the week, from Monday, lie before the first."""

    name: str
    lead: int
    squares: list[Square]


def months(days: Days) -> list[Month]:
    """The months from the first to the last with captures."""
    found = dict(days)
    first, last = (int(days[at][0][5:7]) for at in (0, -1))
    year = days[0][0][:4]
    return [_month(year, month, found) for month in range(first, last + 1)]


def _month(year: str, month: int, found: dict[str, list[Capture]]) -> Month:
    lead, length = calendar.monthrange(int(year), month)
    name = f"{year}-{month:02}"
    return Month(name, lead, [_square(f"{name}-{day:02}", day, found) for day in range(1, length + 1)])


def _square(name: str, day: int, found: dict[str, list[Capture]]) -> Square:
    captures = found.get(name, [])
    shade = min(4, len(captures).bit_length())
    return Square(day, name, len(captures), shade, captures[0].address if captures else "")
