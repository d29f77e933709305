"""Capture sets that an import brings: they belong to checks that are there, and what a set has already stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from letopis.archive.archive import Archive
from letopis.archive.records import Identity, NewSet, RecordedCapture
from letopis.archive.sets import NewPart, SetPart, set_parts, write_parts
from letopis.catalog.versions import checked_contents
from letopis.model import Outcome, SetMember, from_millis
from letopis.tuples import NamedTuple


class ImportedSet(NamedTuple):
    """A look at a page whose check has exactly this time, in milliseconds.

    Without `members` it only adds to a set that is there.
    """

    url: str
    time: int
    members: tuple[SetMember, ...] | None
    screenshot: bytes = b""
    text: str = ""


def checks_between(archive: Archive, url: str, since: int, until: int) -> list[int]:
    """The times of the checks of a URL in a span of milliseconds, both ends included, oldest first."""
    row = archive.catalog.resources.find(url)
    if row is None or row.checked is None:
        return []
    return [check.time for check in checked_contents(archive.catalog.database, row.id, since, until + 1)]


def valid_then(archive: Archive, url: str, time: int) -> SetMember | None:
    """A URL with the time at which what it was then came in first; None where it was never captured."""
    row = archive.catalog.resources.find(url)
    if row is None or row.checked is None:
        return None
    versions = archive.catalog.versions
    version = versions.at(row.id, row.versions, time) or versions.number(row.id, 0)
    return SetMember(url, from_millis(version.time)) if version is not None else None


def shown_then(archive: Archive, url: str, time: int) -> Identity | None:
    """The content of the version that a browser made at exactly this time; None where there is none."""
    row = archive.catalog.resources.find(url) if archive.catalog.renderings.are_any() else None
    version = archive.catalog.versions.at(row.id, row.versions, time) if row is not None else None
    if version is None or version.time != time or archive.catalog.renderings.of(version.id) is None:
        return None
    content = archive.catalog.contents.by_id(version.content)
    return Identity(bytes(content.sha1), content.identity) if content is not None else None


def keep_sets(archive: Archive, found: Sequence[ImportedSet]) -> int:
    """Keeps what the sets of these looks lack; answers how many sets are new. The looks are all different."""
    archive.catalog.sets.ensure()
    with archive.transaction() as (cursor, store):
        parts = [list(_lacking(archive, one)) for one in found]
        if any(parts):
            write_parts(archive.catalog, store, cursor, [part for some in parts for part in some])
    return sum(part.part is SetPart.MEMBERS for some in parts for part in some)


def _lacking(archive: Archive, one: ImportedSet) -> Iterator[NewPart]:
    row = archive.catalog.resources.find(one.url)
    if row is None or not archive.catalog.versions.has_check(row.id, row.versions, one.time):
        return
    there = {part.part for part in archive.catalog.sets.of(row.id, one.time, one.time)}
    if one.members is None and SetPart.MEMBERS not in there:
        return
    nothing = (Outcome.UNCHANGED, None, None, None, False)
    done = RecordedCapture(one.url, row.id, one.time, *nothing, one.members or ())
    for part in set_parts(done, NewSet((), (), one.screenshot, one.text)):
        if part.part not in there:
            yield part
