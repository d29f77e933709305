"""A question for captures, and the rows that answer it, batch by batch."""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain, islice
from typing import Literal

from letopis.archive import Archive
from letopis.catalog.captures import ALL_TIMES, Captures, KeyRange, Span
from letopis.errors import UsageError
from letopis.serve.cdx.filters import Filter
from letopis.serve.cdx.rows import Row, Types, rows_of

URLS_PER_BLOCK = 1000
"""What `page` counts: this many URLs make one block."""

MAX_SORTED = 100_000
"""Rows that may be held to answer backwards or by nearness."""


@dataclass(frozen=True, slots=True)
class Collapse:
    """Of neighbours that agree in (the first characters of) a field only the first is kept."""

    place: int
    length: int | None


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked for. `resume` is the last row that the client already has."""

    keys: KeyRange
    span: Span = ALL_TIMES
    filters: tuple[Filter, ...] = ()
    collapse: tuple[Collapse, ...] = ()
    order: Literal["forward", "backward", "closest"] = "forward"
    closest: int = 0
    limit: int | None = None
    offset: int = 0
    page: int | None = None
    page_size: int = 1
    resume: tuple[str, int] | None = None
    revisit_status: str = "-"


class Finder:
    """Answers questions over one archive."""

    def __init__(self, archive: Archive) -> None:
        self._captures = Captures(archive.catalog.database)
        self._types = Types(archive.catalog)

    def pages(self, query: Query) -> int:
        """How many pages the whole answer has."""
        return -(-self._captures.blocks(query.keys) // (URLS_PER_BLOCK * query.page_size))

    def find(self, query: Query) -> Iterator[list[Row]]:
        """Rows in the order that was asked for, never more than the limit."""
        batches = self._collapsed(query)
        if query.order == "backward":
            batches = _backward(batches, query.limit)
        elif query.order == "closest":
            batches = _closest(batches, query)
        elif query.limit is not None and query.limit < 0:
            batches = _last(batches, -query.limit)
        return _cut(batches, query.offset, query.limit)

    def _collapsed(self, query: Query) -> Iterator[list[Row]]:
        batches = self._filtered(query)
        for rule in query.collapse:
            batches = _collapse(batches, rule)
        return batches

    def _filtered(self, query: Query) -> Iterator[list[Row]]:
        keys = self._page(query)
        if keys is None:
            return
        if query.resume is not None:
            keys = KeyRange(max(keys.low, query.resume[0]), keys.high)
        for batch in self._captures.batches(keys, query.span):
            rows = rows_of(batch, self._types, query.revisit_status)
            if query.resume is not None:
                seen = query.resume
                rows = [row for row in rows if (row[0], row[7]) > seen]
            for passes in query.filters:
                rows = [row for row in rows if passes(row)]
            yield rows

    def _page(self, query: Query) -> KeyRange | None:
        if query.page is None:
            return query.keys
        count = URLS_PER_BLOCK * query.page_size
        return self._captures.block(query.keys, query.page * count, count)


def _collapse(batches: Iterator[list[Row]], rule: Collapse) -> Iterator[list[Row]]:
    last: object = None
    for rows in batches:
        kept = []
        for row in rows:
            value = str(row[rule.place])[: rule.length]
            if value != last:
                kept.append(row)
                last = value
        yield kept


def _backward(batches: Iterator[list[Row]], limit: int | None) -> Iterator[list[Row]]:
    most = MAX_SORTED if limit is None else min(abs(limit), MAX_SORTED)
    rows = deque(chain.from_iterable(batches), maxlen=most)
    rows.reverse()
    yield list(rows)


def _last(batches: Iterator[list[Row]], count: int) -> Iterator[list[Row]]:
    yield list(deque(chain.from_iterable(batches), maxlen=min(count, MAX_SORTED)))


def _closest(batches: Iterator[list[Row]], query: Query) -> Iterator[list[Row]]:
    most = MAX_SORTED if query.limit is None else min(abs(query.limit), MAX_SORTED)
    yield nsmallest(most, chain.from_iterable(batches), key=lambda row: abs(row[7] - query.closest))


def _cut(batches: Iterator[list[Row]], offset: int, limit: int | None) -> Iterator[list[Row]]:
    left = abs(limit) if limit is not None else None
    for rows in batches:
        if offset:
            offset, rows = max(0, offset - len(rows)), rows[offset:]
        if left is not None:
            rows = rows[:left]
            left -= len(rows)
        if rows:
            yield rows
        if left == 0:
            return


def resume_key(row: Row) -> str:
    """Where the next question goes on; safe in an address however often it is quoted."""
    return base64.urlsafe_b64encode(f"{row[7]} {row[0]}".encode()).decode().rstrip("=")


def parse_resume_key(text: str) -> tuple[str, int]:
    """The inverse of `resume_key`."""
    try:
        plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        time, _, key = plain.partition(" ")
        return key, int(time)
    except (ValueError, binascii.Error):
        raise UsageError("this resumeKey was not given out here; start without one") from None


def first(batches: Iterator[list[Row]], count: int) -> list[Row]:
    """The first rows of an answer."""
    return list(islice(chain.from_iterable(batches), count))
