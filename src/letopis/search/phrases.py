"""When a phrase stood on any page: first and last, over all versions ever recorded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tantivy import Occur, Order, Query

from letopis.catalog.spans import last_seen
from letopis.errors import NotFound, UsageError
from letopis.model import from_millis
from letopis.search.follower import WordIndex
from letopis.search.matching import Matcher
from letopis.search.query import Term
from letopis.search.schema import NOW, OPEN
from letopis.search.snapshot import Snapshot
from letopis.search.words import settled, words_of
from letopis.urls import site as site_of


@dataclass(frozen=True, slots=True)
class Stood:
    """The life of a phrase.

    `first` is when a version with it was first captured, `last` when one was
    last seen. `gone` is when the page that had it last was first seen without
    it; None while some page still has it.
    """

    phrase: str
    first: datetime
    first_url: str
    last: datetime
    last_url: str
    gone: datetime | None
    pages: int
    versions: int


def when(index: WordIndex, phrase: str, site: str = "") -> Stood:
    """First and last time the words stood together on any page; NotFound when they never did."""
    words = tuple(words_of(settled(phrase)))
    if not words:
        raise UsageError("a phrase needs at least one word")
    snapshot = index.snapshot()
    query = Matcher(snapshot).term(Term(words, exact=True))
    if site:
        query = _both(query, Query.term_query(snapshot.schema, "site", site_of(site), "basic"))
    addresses = snapshot.every(query)
    if not addresses:
        where = f" on {site_of(site)}" if site else ""
        raise NotFound(f"no version{where} has the words '{' '.join(words)}' together; try 'letopis search' with one")
    first = _top(snapshot, query, "time", Order.Asc)
    last, seen, gone = _last(index, snapshot, query)
    pages = len(set(snapshot.numbers("resource", addresses)))
    return Stood(
        " ".join(words), from_millis(snapshot.numbers("time", [first])[0]), snapshot.stored(first).url,
        from_millis(seen), snapshot.stored(last).url, gone, pages, len(addresses),
    )  # fmt: skip


def _both(first: Any, second: Any) -> Any:
    return Query.boolean_query([(Occur.Must, first), (Occur.Must, second)])


def _top(snapshot: Snapshot, query: Any, field: str, order: Any) -> Any:
    return snapshot.searcher.search(query, 1, count=False, order_by_field=field, order=order).hits[0][1]


def _last(index: WordIndex, snapshot: Snapshot, query: Any) -> tuple[Any, int, datetime | None]:
    """The document that was seen last, when, and by when it was gone."""
    standing = snapshot.every(_both(query, Query.term_query(snapshot.schema, "state", NOW, "basic")))
    candidates = standing or [_top(snapshot, query, "until", Order.Desc)]
    columns = [snapshot.numbers(name, candidates) for name in ("resource", "number", "time")]
    seen = [
        last_seen(index.archive.catalog.database, resource, number) or time
        for resource, number, time in zip(*columns, strict=True)
    ]
    best = max(range(len(candidates)), key=lambda place: (seen[place], -place))
    until = snapshot.numbers("until", [candidates[best]])[0]
    return candidates[best], seen[best], None if until == OPEN else from_millis(until)
