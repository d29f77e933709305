"""Which ranges to ask for: few requests, few superfluous bytes."""

from __future__ import annotations

from collections.abc import Iterable

from letopis.zrec.limits import MiB
from letopis.zrec.source import Traffic

Range = tuple[int, int]

MOST = 4 * MiB
"""Longest single range, so that what is in flight stays small."""

_COST_UNKNOWN = 400


def merged(wanted: Iterable[Range], gap: int) -> list[Range]:
    """The ranges in ascending order, joined where no more than `gap` bytes lie between two."""
    joined: list[Range] = []
    for start, end in sorted(wanted):
        if start == end:
            continue
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def limited(ranges: Iterable[Range], most: int = MOST) -> list[Range]:
    """The same bytes in ranges of at most `most`."""
    return [(at, min(at + most, end)) for start, end in ranges for at in range(start, end, most)]


def request_cost(traffic: Traffic, payload: int) -> int:
    """Bytes that one more request costs beyond what it fetches, as seen so far."""
    if not traffic.requests:
        return _COST_UNKNOWN
    return max(0, traffic.received + traffic.sent - payload) // traffic.requests
