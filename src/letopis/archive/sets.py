"""Capture sets: a page with every resource that it used, its picture and its text as shown.

A set names its members by URL and time; each of them is a separate check. Order of writes: the contents of page and
members go to a pack, the parts of the set after them, the pack is synced, the catalogue commits. A crash leaves
members without a set at worst, never a set without its members. A set in a pack is the list of URLs, stored once
while it stays the same, and some bytes per member with its time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from itertools import groupby
from typing import TYPE_CHECKING

from letopis.archive.records import SET_PREFIXES, Identity, NewCapture, NewSet, RecordedCapture, identify
from letopis.binary import ByteReader, encode_zigzag
from letopis.catalog import Catalog, ContentRow, Cursor
from letopis.catalog.sets import SetPartRow
from letopis.errors import NotFound
from letopis.model import SetMember, from_millis, to_millis
from letopis.store import AppendResult, VersionItem
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.archive.reader import RecordReader
    from letopis.archive.recording import ContentWriter


class SetPart(IntEnum):
    """A part of a set; the order is that of `SET_PREFIXES`."""

    MEMBERS = 0
    SCREENSHOT = 1
    TEXT = 2


class CaptureSet(NamedTuple):
    """One capture of a whole page: its time, the number of resources, and whether its picture and text were kept."""

    url: str
    time: datetime
    members: int
    has_screenshot: bool = False
    has_text: bool = False


class SetQuality(NamedTuple):
    """How complete a set is when replayed in a browser: requests of the page, those that were answered, what is
    missing.

    `likeness` is the share of pixels that match the picture of the capture; None if there is none.
    """

    checked: datetime
    requests: int
    answered: int
    likeness: float | None = None
    missing: tuple[str, ...] = ()

    @property
    def completeness(self) -> float:
        """The share of requests that were answered."""
        return self.answered / self.requests if self.requests else 1.0


class CaptureSets:
    """The sets of an archive; a page that was never captured whole has none."""

    def __init__(self, catalog: Catalog, answers: RecordReader) -> None:
        self._catalog = catalog
        self._answers = answers

    def of(self, url: str, since: datetime | None = None, until: datetime | None = None) -> list[CaptureSet]:
        """The sets of a page in a span of time, both ends included, oldest first."""
        row = self._catalog.resources.find(url)
        if row is None:
            return []
        span = (-(2**62) if since is None else to_millis(since), 2**62 if until is None else to_millis(until))
        return list(_sets(url, self._catalog.sets.of(row.id, *span)))

    def nearest(self, url: str, moment: datetime) -> CaptureSet | None:
        """The set of a page nearest to a time, of two equally near ones the earlier; None if it has none."""
        row = self._catalog.resources.find(url)
        wanted = to_millis(moment)
        times = self._catalog.sets.beside(row.id, wanted, SetPart.MEMBERS) if row is not None else []
        if row is None or not times:
            return None
        time = min(times, key=lambda found: abs(found - wanted))
        return next(_sets(url, self._catalog.sets.of(row.id, time, time)))

    def members(self, found: CaptureSet) -> tuple[SetMember, ...]:
        """The resources that a check used, by URL: each had the version that was valid then."""
        part = self._part(found, SetPart.MEMBERS)
        urls = self._answers.content(part.content).decode().splitlines()
        offsets = ByteReader(part.data, what="capture set")
        return tuple(SetMember(url, from_millis(part.time + offsets.zigzag())) for url in urls)

    def screenshot(self, found: CaptureSet) -> bytes:
        """The picture of a page, PNG or WebP according to its first bytes; NotFound if there is none."""
        return self._answers.content(self._part(found, SetPart.SCREENSHOT).content)

    def text(self, found: CaptureSet) -> str:
        """The text of a page as it was shown; NotFound if none was kept."""
        return self._answers.content(self._part(found, SetPart.TEXT).content).decode()

    def on_host(self, host: str) -> list[CaptureSet]:
        """The newest set of each page of a host, by URL."""
        rows = self._catalog.resources.of_host(host)
        newest = (self.nearest(row.url, datetime.max.replace(tzinfo=UTC)) for row in list(rows))
        return sorted((found for found in newest if found is not None), key=lambda found: found.url)

    def keep_quality(self, found: CaptureSet, quality: SetQuality) -> None:
        """Stores the result of the replay of a set, replacing that of an earlier one; durable."""
        fields = [to_millis(quality.checked), quality.requests, quality.answered, quality.likeness, quality.missing]
        row = self._catalog.resources.find(found.url)
        if row is not None:
            self._catalog.sets.keep_quality(row.id, to_millis(found.time), json.dumps(fields).encode())

    def quality(self, found: CaptureSet) -> SetQuality | None:
        """How complete a set is; None if it was never replayed to measure that."""
        row = self._catalog.resources.find(found.url)
        data = self._catalog.sets.quality(row.id, to_millis(found.time)) if row is not None else None
        if data is None:
            return None
        checked, requests, answered, likeness, missing = json.loads(data)
        return SetQuality(from_millis(checked), requests, answered, likeness, tuple(missing))

    def _part(self, found: CaptureSet, part: SetPart) -> SetPartRow:
        row, time = self._catalog.resources.find(found.url), to_millis(found.time)
        rows = self._catalog.sets.of(row.id, time, time) if row is not None else []
        named = next((one for one in rows if one.part == part), None)
        if named is None:
            raise NotFound(
                f"{part.name.lower()} of {found.url} was not kept then; capture the page again with a browser"
            )
        return named


def _sets(url: str, rows: Sequence[SetPartRow]) -> Iterator[CaptureSet]:
    for time, group in groupby(rows, key=lambda row: row.time):
        parts = {row.part: row for row in group}
        if SetPart.MEMBERS in parts:
            # A varint ends with the byte that is below 128.
            count = sum(byte < 0x80 for byte in parts[SetPart.MEMBERS].data)
            yield CaptureSet(url, from_millis(time), count, SetPart.SCREENSHOT in parts, SetPart.TEXT in parts)


def pages_with_members(arrivals: Sequence[NewCapture]) -> list[NewCapture]:
    """Each arrival, followed by the members of its set, which refer to their page by its position."""
    flat: list[NewCapture] = []
    for arrival in arrivals:
        place = len(flat)
        flat.append(arrival)
        flat += [member._replace(page=place) for member in arrival.whole.members] if arrival.whole else ()
    return flat


def members_recorded(arrivals: Sequence[NewCapture], everything: Sequence[RecordedCapture]) -> list[RecordedCapture]:
    """The results of pages, with the members of their sets, from the results of all pages and members.

    Members are captures: a resource without an answer has a check, but nothing that a page could show.
    """
    done, rest = [], iter(everything)
    for arrival in arrivals:
        page, whole = next(rest), arrival.whole
        if whole is not None:
            recorded = [(member.status, next(rest)) for member in whole.members]
            found = [SetMember(one.url, from_millis(one.time)) for status, one in recorded if status]
            page = page._replace(members=(*found, *whole.reused))
        done.append(page)
    return done


class NewPart(NamedTuple):
    """A part of a set to be stored."""

    page: RecordedCapture
    part: SetPart
    body: bytes
    data: bytes
    identity: Identity


def write_sets(
    catalog: Catalog, store: ContentWriter, cursor: Cursor, pages: Sequence[tuple[NewCapture, RecordedCapture]]
) -> None:
    """Writes the sets of pages whose members were appended before, and syncs; the caller's transaction commits."""
    parts = [part for one, done in pages if one.whole is not None for part in set_parts(done, one.whole)]
    write_parts(catalog, store, cursor, parts)


def write_parts(catalog: Catalog, store: ContentWriter, cursor: Cursor, parts: Sequence[NewPart]) -> None:
    """Writes single parts, none of which exists yet."""
    known = catalog.contents.find_many({(part.identity.key, part.identity.sha1) for part in parts}, cursor)
    fresh = list({part.identity: part for part in parts if part.identity[::-1] not in known}.values())
    items = [_pack_item(part, part.body) for part in fresh]
    items += [_pack_item(part, None) for part in parts if part not in fresh]
    placed = store.append(items)
    store.sync()
    rows = [_content_row(part, where) for part, where in zip(fresh, placed[: len(fresh)], strict=True)]
    for part, number in zip(fresh, catalog.contents.add_many(cursor, rows), strict=True):
        known[part.identity.key, part.identity.sha1] = number
    catalog.sets.add(
        cursor,
        [
            SetPartRow(part.page.resource, part.page.time, part.part, known[part.identity[::-1]], part.data)
            for part in parts
        ],
    )


def set_parts(done: RecordedCapture, whole: NewSet) -> Iterator[NewPart]:
    """The parts of the set of a recorded page whose members are recorded."""
    members = sorted(done.members, key=lambda member: (member.url, member.time))
    offsets = b"".join(encode_zigzag(to_millis(member.time) - done.time) for member in members)
    bodies = {SetPart.MEMBERS: "\n".join(member.url for member in members).encode()}
    bodies |= {SetPart.SCREENSHOT: whole.screenshot} if whole.screenshot else {}
    bodies |= {SetPart.TEXT: whole.text.encode()} if whole.text else {}
    for part, body in bodies.items():
        yield NewPart(done, part, body, offsets if part is SetPart.MEMBERS else b"", identify(body))


def _pack_item(part: NewPart, body: bytes | None) -> VersionItem:
    key = SET_PREFIXES[part.part] + part.page.url.encode()
    return VersionItem(key, part.page.time, part.data, part.identity.sha1, body)


def _content_row(part: NewPart, where: AppendResult) -> ContentRow:
    assert where.place is not None
    fields = (part.identity.key, part.identity.sha1, len(part.body), where.stored_bytes, where.method)
    return ContentRow(0, *fields, *where.place)
