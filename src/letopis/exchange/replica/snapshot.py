"""The catalogue at one moment as lines of the index. Names every column that is ever published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from letopis.catalog import ABSENT, Heads, Snapshot
from letopis.exchange.replica.records import CheckRecord, ContentRecord, check_line, head_line, key_for
from letopis.exchange.replica.release import Counts

_RESOURCES = "SELECT id, url, title FROM resource WHERE checked IS NOT NULL ORDER BY id"
_VERSIONS = (
    "SELECT v.resource, v.time, v.status, v.head, v.meaningful, v.extra, "
    "c.sha1, c.identity, c.raw_bytes, c.stored_bytes, c.method, c.pack, c.place, c.slot "
    "FROM version v JOIN content c ON c.id = v.content ORDER BY v.resource, v.number"
)
_CAPTURES = (
    "SELECT p.resource, p.time, p.status, p.outcome, p.number, p.head, p.extra, "
    "c.sha1, c.identity, c.raw_bytes, c.stored_bytes, c.method, c.pack, c.place, c.slot "
    "FROM capture p LEFT JOIN content c ON c.id = p.content ORDER BY p.resource, p.time"
)
_HEADS = (
    "SELECT id, data FROM head WHERE id IN (SELECT head FROM version) "
    "OR id IN (SELECT head FROM capture WHERE head IS NOT NULL)"
)
_PLACES = (
    "SELECT pack, max(place) FROM content WHERE method != ? AND (id IN (SELECT content FROM version) "
    "OR id IN (SELECT content FROM capture WHERE content IS NOT NULL)) GROUP BY pack"
)
_ABSENT = (
    "SELECT count(*) FROM content WHERE method = ? AND (id IN (SELECT content FROM version) "
    "OR id IN (SELECT content FROM capture WHERE content IS NOT NULL))"
)


def last_places(snapshot: Snapshot) -> dict[int, int]:
    """For each pack that something refers to, where its last such record begins."""
    return {int(pack): int(place) for pack, place in snapshot.all(_PLACES, (ABSENT,))}


def absent(snapshot: Snapshot) -> int:
    """How many contents this archive itself has not got."""
    return int(snapshot.all(_ABSENT, (ABSENT,))[0][0])


def lines(snapshot: Snapshot, progress: Callable[[int], None]) -> tuple[list[bytes], Counts]:
    """All header lists and checks, unsorted, and their counts; `progress` hears how many addresses are done."""
    found = [head_line(int(number), Heads.read(bytes(data))) for number, data in snapshot.stream(_HEADS)]
    versions, captures = _Grouped(snapshot.stream(_VERSIONS)), _Grouped(snapshot.stream(_CAPTURES))
    documents = raw_bytes = seen = 0
    contents: set[tuple[bytes, int]] = set()
    for number, url, title in snapshot.stream(_RESOURCES):
        told = [_version(url, row) for row in versions.of(number)]
        seen += len(told)
        raw_bytes += sum(record.content.raw_bytes for record in told if record.content)
        told = sorted(told + [_capture(url, row) for row in captures.of(number)], key=lambda record: record.time)
        contents.update(record.content[:2] for record in told if record.content)
        found += _lines_of(url, title, told)
        documents += 1
        progress(documents)
    checks = sum(1 for line in found if not line.startswith(b"!"))
    return found, Counts(documents, seen, checks, len(contents), raw_bytes)


def _lines_of(url: str, title: str | None, told: list[CheckRecord]) -> Iterator[bytes]:
    key = key_for(url)
    for place, record in enumerate(told):
        yield check_line(key, record if place else record._replace(title=title))


class _Grouped:
    """Rows in the order of their first column, handed out group by group."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def of(self, number: int) -> list[tuple[Any, ...]]:
        """The rows of this resource, without its number; rows of resources that are passed over are dropped."""
        found = []
        while self._next is not None and self._next[0] <= number:
            if self._next[0] == number:
                found.append(self._next[1:])
            self._next = next(self._rows, None)
        return found


def _version(url: str, row: tuple[Any, ...]) -> CheckRecord:
    time, status, head, meaningful, extra, *content = row
    return CheckRecord(url, time, status, head, None, None, meaningful, extra, None, _content(content))


def _capture(url: str, row: tuple[Any, ...]) -> CheckRecord:
    time, status, outcome, number, head, extra, *content = row
    kept = _content(content) if content[0] is not None else None
    return CheckRecord(url, time, status, head, outcome, number, None, extra, None, kept)


def _content(row: list[Any]) -> ContentRecord:
    sha1, *rest = row
    return ContentRecord(bytes(sha1), *rest)
