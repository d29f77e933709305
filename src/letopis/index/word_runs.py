"""Runs: versions of a page that follow each other and have the same words share one document of the word index.

Most versions of real pages differ from the one before in nothing that can be searched for. Which of its versions stood
at a moment inside a run is asked of the log when an answer names it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from letopis.archive.index_facts import VersionSpan
from letopis.tuples import NamedTuple

OPEN_END = 1 << 62
"""The end of a version that is still valid."""
Content = dict[str, Any]
"""Fields of a document that all versions of its run share."""


class IndexedRun(NamedTuple):
    """What a document says about its run: id, number and time of its last version, number and time of its first."""

    id: int
    first: int
    number: int
    time: int
    newest: int
    until: int

    @property
    def versions(self) -> int:
        """How many there are."""
        return self.number - self.first + 1

    def has(self, span: VersionSpan) -> bool:
        """Whether a version with a number of this run is what the document says of it."""
        if span.number == self.first and span.time != self.time:
            return False
        if span.number == self.number:
            return (span.id, span.time, _end(span)) == (self.id, self.newest, self.until)
        return self.time <= span.time < self.newest


class VersionRun(NamedTuple):
    """The first and the last of versions that follow each other and have the same words."""

    first: VersionSpan
    last: VersionSpan

    @property
    def numbers(self) -> IndexedRun:
        """What its document says about it."""
        first, last = self
        return IndexedRun(last.id, first.number, last.number, first.time, last.time, _end(last))

    def precedes(self, other: VersionRun) -> bool:
        """Whether the other begins where this one ends."""
        return (self.last.resource, self.last.number + 1) == (other.first.resource, other.first.number)


def _end(span: VersionSpan) -> int:
    return OPEN_END if span.until is None else span.until


def single_runs(spans: Iterable[VersionSpan]) -> list[VersionRun]:
    """Every version separately."""
    return [VersionRun(span, span) for span in spans]


def changed_runs(
    spans: Sequence[VersionSpan], known: Sequence[IndexedRun], last: int
) -> tuple[list[int], list[VersionRun]]:
    """Documents of a page that do not hold any more, by id, and the runs that are to be written in their place.

    The versions are in order and lie next to each other, `known` are the documents among them, of versions up
    to `last`. Next to a new version a run is written again, since it may go on there.
    """
    parts = [(run, _joined(group)) for run, group in groupby(spans, lambda span: _owner(span, known, last))]
    stands = [isinstance(run, IndexedRun) and made.numbers == run for run, made in parts]
    is_new = [not isinstance(run, IndexedRun) for run, _ in parts]
    near = [any(is_new[max(0, at - 1) : at + 2]) for at in range(len(parts))]
    # Whatever comes after one that is written again is written again, too: no text refers to one that went.
    first = next((at for at, good in enumerate(stands) if near[at] or not good), len(parts))
    again = parts[first:]
    return [run.id for run, _ in again if isinstance(run, IndexedRun)], [made for _, made in again]


def _owner(span: VersionSpan, known: Sequence[IndexedRun], last: int) -> IndexedRun | int:
    """The document that a version belongs to; its own id where there is none. Times of one page are all different."""
    if span.id > last:
        return span.id
    at = bisect_right(known, span.time, key=lambda run: run.time) - 1
    return known[at] if at >= 0 and span.time <= known[at].newest else span.id


def _joined(spans: Iterable[VersionSpan]) -> VersionRun:
    first, *others = spans
    return VersionRun(first, others[-1] if others else first)


def merged_runs(found: Iterable[tuple[VersionRun, Content]]) -> Iterator[tuple[VersionRun, Content]]:
    """Runs that follow each other with equal content become one."""
    held: tuple[VersionRun, Content] | None = None
    for run, content in found:
        if held is not None and held[0].precedes(run) and held[1] == content:
            held = VersionRun(held[0].first, run.last), content
            continue
        if held is not None:
            yield held
        held = run, content
    if held is not None:
        yield held


def differing_pages(spans: Iterable[VersionSpan], known: Mapping[int, Sequence[IndexedRun]]) -> set[int]:
    """Pages of which the documents, in order of time, do not say what the log does."""
    left = {page: sum(run.versions for run in runs) for page, runs in known.items()}
    found = set()
    for span in spans:
        runs = known.get(span.resource, ())
        at = bisect_right(runs, span.number, key=lambda run: run.first) - 1
        if at < 0 or span.number > runs[at].number or not runs[at].has(span):
            found.add(span.resource)
        else:
            left[span.resource] -= 1
    return found | {page for page, count in left.items() if count}
