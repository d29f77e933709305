"""How addresses answered over time, where it was not always well: errors and redirects with their dates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from letopis.archive import Archive
from letopis.catalog import OUTCOMES
from letopis.catalog.troubles import TroubleRow, troubled_checks
from letopis.graph.addresses import Addresses
from letopis.graph.columns import Ints
from letopis.graph.segment import Bytes, Int32
from letopis.model import Outcome, header
from letopis.urls import join

GOOD, ERROR, REDIRECT, UNKNOWN = range(4)
"""How an address answers at a date."""

NEVER = -1


class Answered(NamedTuple):
    """One check of an address: when, how, with which status, and where it sent us (-1: nowhere)."""

    time: int
    kind: int
    status: int
    target: int = -1


class States(NamedTuple):
    """Stretches in which an address answered the same way, by address and time.

    `since` is when the present run of errors began, `good` the last check
    before it that was no error, NEVER without one.
    """

    urls: Int32
    times: Ints
    kinds: Bytes
    statuses: npt.NDArray[np.int16]
    targets: Int32
    since: Ints
    good: Ints

    def rows_at(self, time: int) -> Ints:
        """Positions of the stretches that hold at a time, one an address at most."""
        known = np.flatnonzero(self.times <= time)
        urls = self.urls[known]
        is_last = np.ones(len(known), bool)
        is_last[:-1] = urls[1:] != urls[:-1]
        return known[is_last]


Stretch = tuple[int, int, int, int, int, int, int]


def stretches(url: int, checks: Iterable[Answered]) -> Iterator[Stretch]:
    """Rows of `States` for one address; checks come oldest first."""
    before: Answered | None = None
    since = good = last_good = NEVER
    for check in checks:
        if check.kind == ERROR and (before is None or before.kind != ERROR):
            since, good = check.time, last_good
        if check.kind != ERROR:
            last_good = check.time
        if before is None or check[1:] != before[1:]:
            failing = check.kind == ERROR
            yield (url, *check, since if failing else NEVER, good if failing else NEVER)
        before = check


def read_states(archive: Archive, addresses: Addresses, versions_of: Callable[[int], list[Answered]]) -> States:
    """All stretches of addresses that were ever in trouble; `versions_of` names the checks that brought a version."""
    rows: list[Stretch] = []
    for url, checks in groupby(troubled_checks(archive.catalog.database), key=lambda row: row.url):
        number = addresses.number(url)
        told = [found for found in (_answered(archive, addresses, check) for check in checks) if found is not None]
        rows += stretches(number, sorted([*told, *versions_of(number)]))
    return as_states(rows)


def as_states(rows: list[Stretch]) -> States:
    """Rows as columns, in order."""
    table = np.array(sorted(rows), np.int64).reshape(-1, 7)
    kinds = (np.int32, np.int64, np.uint8, np.int16, np.int32, np.int64, np.int64)
    return States(*(table[:, place].astype(kind) for place, kind in enumerate(kinds)))


def _answered(archive: Archive, addresses: Addresses, row: TroubleRow) -> Answered | None:
    """What a check says about its address; None for one that never asked."""
    outcome = OUTCOMES[row.outcome]
    if outcome is Outcome.REFUSED:
        return None
    if outcome is Outcome.UNAVAILABLE or row.status >= 400:
        return Answered(row.time, ERROR, row.status)
    if row.status < 300 or row.status == 304:
        return Answered(row.time, GOOD, 200)
    headers = archive.catalog.heads.get(row.head) if row.head is not None else ()
    target = join(row.url, header(headers, "location"))
    if not target:
        return Answered(row.time, ERROR, row.status)
    return Answered(row.time, REDIRECT, row.status, addresses.number(target))
