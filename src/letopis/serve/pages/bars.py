"""Small bar charts as geometry: the template draws them, and they need no script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

HEIGHT = 100.0
_GAP = 0.18


class Bar(NamedTuple):
    """A column of two stacked parts in a drawing of 1000 by 100."""

    label: str
    lower: int
    upper: int
    x: float
    width: float
    lower_y: float
    lower_height: float
    upper_y: float
    upper_height: float


def bars(rows: Sequence[tuple[str, int, int]]) -> list[Bar]:
    """Bars for rows of label, lower part, upper part; the highest one fills the drawing."""
    most = max((lower + upper for _, lower, upper in rows), default=0) or 1
    step = 1000.0 / max(len(rows), 1)
    return [_bar(label, lower, upper, at * step, step, most) for at, (label, lower, upper) in enumerate(rows)]


def _bar(label: str, lower: int, upper: int, start: float, step: float, most: int) -> Bar:
    low, high = HEIGHT * lower / most, HEIGHT * upper / most
    x, width = start + step * _GAP / 2, step * (1 - _GAP)
    places = (x, width, HEIGHT - low, low, HEIGHT - low - high, high)
    return Bar(label, lower, upper, *(round(place, 2) for place in places))
