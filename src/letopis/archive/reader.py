"""Answers from the record: versions, history, and the state of a URL before its next check."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice, takewhile, zip_longest
from typing import Literal

from letopis.archive.details import CheckDetails, own_headers
from letopis.archive.records import digest_text, identity_key
from letopis.archive.requests import StoredExchange, page_of_record, parted_extra
from letopis.catalog import ABSENT, OUTCOMES, CaptureRow, Catalog, ContentRow, ResourceRow, StoredVersion, VersionRow
from letopis.catalog.schema import RowReader
from letopis.catalog.versions import find_by_id, find_newest, find_numbered, find_numbers
from letopis.errors import REPAIR, Damaged, Unavailable, UnknownUrl, UnknownVersion, check_remedy, fill_remedy
from letopis.model import (
    BlockChange,
    BlockKind,
    Change,
    Check,
    Headers,
    MutedBlock,
    Outcome,
    Version,
    from_millis,
    header,
    to_millis,
)
from letopis.model.page import NOT_JUDGED, SAME_LINKS, SAME_TEXT
from letopis.store import ContentPlace, DecodedContent, PackGone, Store

DiffFormat = Literal["unified", "words", "chars", "html", "visual", "links", "json", "binary"]
_PORTION = 500
"""Versions that are read at once."""
_PORTIONS_KEPT = 4

_MOST_PROVED = 1 << 16
"""Places whose contents were verified: some megabytes at most."""


class RecordReader:
    """Read-only queries; safe to use while others write."""

    def __init__(self, catalog: Catalog, store: Store) -> None:
        self._catalog = catalog
        self._store = store
        self._proved: dict[ContentPlace, int] = {}
        self.supplier: Callable[[int], bytes] | None = None
        """Fetches a content, by its id, that a clone has not got yet."""

    def resource(self, url: str) -> ResourceRow:
        """The row of the URL; UnknownUrl if it was never checked."""
        row = self._catalog.resources.find(url)
        if row is None or row.checked is None:
            raise UnknownUrl(f"{url} was never checked or stored here", check_remedy(url))
        return row

    def newest(self, url: str) -> Version:
        """The newest version with its body."""
        return self._whole(url, find_newest, url)

    def numbered(self, url: str, number: int) -> Version:
        """Version `number` with its body; negative numbers count from the newest."""
        if number < 0:
            number += self.resource(url).versions
        return self._whole(url, find_numbered, url, number)

    def at(self, url: str, moment: datetime) -> Version:
        """The version valid at a time; the oldest one before the first."""
        row = self.resource(url)
        found = self._catalog.versions.at(row.id, row.versions, to_millis(moment))
        return self.numbered(url, found.number if found else 0)

    def by_id(self, number: int) -> Version:
        """The version recorded under an id, with its body; UnknownVersion if retention has dropped it."""
        return self._whole("", find_by_id, number)

    def answer(self, number: int) -> tuple[Headers, bytes]:
        """Header and body of the version recorded under an id, in fewer steps than all facts about it."""
        try:
            return self._answer(number)
        except PackGone:
            return self._answer(number)

    def _answer(self, number: int) -> tuple[Headers, bytes]:
        found = find_by_id(self._catalog.database, number)
        if found is None:
            raise UnknownVersion(f"version {number} is not in this archive any more")
        return self._headers_of(found), self._stored(found).body

    def as_sent(self, version: Version) -> Version:
        """The version with header and body of the server's answer, if a browser made the version of it."""
        found = self._sent(version.url, version.number)
        if found is None:
            return version
        head, content = found
        headers = self._catalog.heads.get(head)
        return version._replace(
            headers=headers, body=self.content(content.id), digest=digest_text(content.sha1),
            content_type=header(headers, "content-type"), last_modified=header(headers, "last-modified"),
            raw_bytes=content.raw_bytes, stored_bytes=content.stored_bytes, method=content.method,
        )  # fmt: skip

    def sent_digest(self, url: str, number: int) -> str:
        """The digest of what the server sent for a version that a browser made; empty for all others."""
        found = self._sent(url, number)
        return digest_text(found[1].sha1) if found is not None else ""

    def _sent(self, url: str, number: int) -> tuple[int, ContentRow] | None:
        """Id of the headers and content of the server's answer for a rendered version; None for others."""
        if not self._catalog.renderings.are_any():
            return None
        row = self._catalog.versions.number(self.resource(url).id, number)
        sent = self._catalog.renderings.of(row.id) if row is not None else None
        content = self._catalog.contents.by_id(sent.content) if sent is not None else None
        return (sent.head, content) if sent is not None and content is not None else None

    def content(self, number: int) -> bytes:
        """The bytes of a content by its id in the catalogue, which checks with the body of an error have."""
        try:
            return self._content(number)
        except PackGone:
            return self._content(number)

    def _content(self, number: int) -> bytes:
        row = self._catalog.contents.by_id(number)
        if row is None:
            raise UnknownVersion(f"content {number} is not in this archive any more")
        return self._stored(row).body

    def _stored(self, row: ContentRow | StoredVersion) -> DecodedContent:
        """The bytes of a row, verified by its digest: a row may be damaged like any other bytes."""
        if row.method == ABSENT:
            return self._supplied(row.content if isinstance(row, StoredVersion) else row.id)
        place = ContentPlace(row.pack, row.place, row.slot)
        decoded = self._store.read(place, row.stored_bytes)
        # A place never holds another content, and its record is checked at each read: one proof is enough.
        if self._proved.get(place) != row.identity:
            self._prove(row, decoded.body)
            if len(self._proved) >= _MOST_PROVED:
                self._proved.clear()
            self._proved[place] = row.identity
        return decoded

    @staticmethod
    def _prove(row: ContentRow | StoredVersion, body: bytes) -> None:
        if identity_key(body) != row.identity:
            raise Damaged(
                f"the bytes in pack {row.pack}, offset {row.place}, are not content {digest_text(row.sha1)}, "
                "which the catalogue names there",
                REPAIR,
            )

    def _supplied(self, content: int) -> DecodedContent:
        if self.supplier is None:
            raise Unavailable("this clone has not fetched that content yet", fill_remedy("DIR"))
        body = self.supplier(content)
        return DecodedContent(body, len(body), ABSENT)

    def _whole(self, url: str, find: Callable[..., StoredVersion | None], *asked: str | int) -> Version:
        """Looks up and reads; once more when a compaction moved the bytes in between."""
        try:
            return self._read(url, find, *asked)
        except PackGone:
            return self._read(url, find, *asked)

    def _read(self, url: str, find: Callable[..., StoredVersion | None], *asked: str | int) -> Version:
        found = find(self._catalog.database, *asked)
        if found is None and find is find_by_id:
            raise UnknownVersion("the version that was seen then is no longer kept, so nothing can be compared with it")
        if found is None:
            row = self.resource(url)
            if find is find_newest and row.versions:
                raise Damaged(f"the catalogue does not find the newest version of {url}", REPAIR)
            has = f"it has {row.versions}, numbered from 0" if row.versions else "none of it is kept"
            raise UnknownVersion(f"{url} has no such version; {has}")
        return self._version(found, self._valid_until(found), self._stored(found))

    def _valid_until(self, found: StoredVersion) -> int | None:
        if found.number >= found.versions - 1:
            return None
        following = self._catalog.versions.number(found.resource, found.number + 1)
        return following.time if following else None

    def _version(self, found: StoredVersion, until: int | None, decoded: DecodedContent | None) -> Version:
        headers = self._headers_of(found)
        # By place: fields by name take twice as long, and every read of a version makes one.
        return Version(
            found.url, found.number, from_millis(found.time), None if until is None else from_millis(until),
            digest_text(found.sha1), header(headers, "content-type"), found.raw_bytes, found.stored_bytes, found.method,
            header(headers, "last-modified"), None, headers, decoded.body if decoded else b"",
            decoded.decoded_bytes if decoded else 0,
        )  # fmt: skip

    def _headers_of(self, found: StoredVersion) -> Headers:
        shared = self._catalog.heads.read(bytes(found.head)) if found.head else ()
        return own_headers(shared, found.extra, found.time)

    def final_url(self, extra: str | None) -> str:
        """Where a check ended after its redirects; empty without redirects, which needs no parsing."""
        return CheckDetails.unpack(extra).final_url if extra and '"final"' in extra else ""

    def versions(self, url: str, first: int = 0, most: int | None = None) -> list[Version]:
        """Versions without their bodies, oldest first: `most` from number `first` on, or all."""
        self.resource(url)
        return list(islice(self._versions_from(url, max(0, first)), most))

    def versions_since(self, url: str, since: int, first: int = 0) -> Iterator[Version]:
        """Versions not before a time, in milliseconds, from number `first` on, oldest first, read as they are taken."""
        row = self.resource(url)
        before = self._catalog.versions.at(row.id, row.versions, since - 1)
        return self._versions_from(url, max(first, before.number + 1 if before else 0))

    def _versions_from(self, url: str, first: int) -> Iterator[Version]:
        """Portions by number; each reads one more row, whose time ends its last version."""
        while rows := find_numbers(self._catalog.database, url, first, first + _PORTION + 1):
            for row, following in zip_longest(rows[:_PORTION], rows[1:]):
                yield self._version(row, following.time if following else None, None)
            if len(rows) <= _PORTION:
                return
            first += _PORTION

    def history(self, url: str) -> list[Check]:
        """Every check, oldest first."""
        return list(self.checks(url))

    def checks(self, url: str, since: int = -(2**62), until: int = 2**62) -> Iterator[Check]:
        """The checks of a span of time (milliseconds, both ends included), oldest first, read as they are taken."""
        row = self.resource(url)
        before = self._catalog.versions.at(row.id, row.versions, since - 1)
        found = _StoredVersions(self._catalog.database, url)
        versions = takewhile(lambda v: v.time <= until, self._rows_from(row, before.number + 1 if before else 0))
        others = self._catalog.versions.captures(row.id, since=since, until=until)
        return self._merged(row, versions, others, found)

    def newest_checks(self, url: str, most: int) -> list[Check]:
        """The last checks, oldest first."""
        row = self.resource(url)
        versions = self._catalog.versions.numbers(row.id, row.versions - most, row.versions)
        others = self._catalog.versions.newest_captures(row.id, most)[::-1]
        found = _StoredVersions(self._catalog.database, url)
        return list(self._merged(row, versions, others, found))[-most:]

    def count_checks(self, url: str) -> int:
        """How often a page was checked."""
        row = self.resource(url)
        return row.versions + self._catalog.versions.count_captures(row.id)

    def checks_of_versions(self, url: str, numbers: Sequence[int]) -> dict[int, Check]:
        """The check that brought each of these consecutive versions."""
        if not numbers:
            return {}
        row, found = self.resource(url), _StoredVersions(self._catalog.database, url)
        rows = self._catalog.versions.numbers(row.id, min(numbers), max(numbers) + 1)
        return {check.version: check for check in self._merged(row, rows, (), found) if check.version is not None}

    def _rows_from(self, row: ResourceRow, first: int) -> Iterator[VersionRow]:
        while rows := self._catalog.versions.numbers(row.id, first, first + _PORTION):
            yield from rows
            first += _PORTION

    def _merged(
        self, row: ResourceRow, versions: Iterable[VersionRow], others: Iterable[CaptureRow], found: _StoredVersions
    ) -> Iterator[Check]:
        """Checks that brought versions and those that brought none, by their times."""
        # Retention may renumber while portions are read: what no longer exists is left out.
        brought = (
            (v.time, self._found_check(row, v, stored, found.get(v.number - 1)))
            for v in versions
            if (stored := found.get(v.number)) is not None
        )
        captures = ((c.time, self._other_check(row, c, found)) for c in others)
        return (check for _, check in merge(brought, captures, key=lambda pair: pair[0]))

    def verdict(self, old: Version, new: Version) -> Change | None:
        """How a version was judged against the one before it when it was recorded.

        None for versions that are not consecutive, and for those without a verdict.
        """
        if old.url != new.url or old.number + 1 != new.number:
            return None
        row = self._catalog.versions.number(self.resource(new.url).id, new.number)
        if row is None or row.meaningful is None:
            return None
        details, same = CheckDetails.unpack(row.extra), old.digest == new.digest
        same_text, score = same or details.reason in (SAME_TEXT, SAME_LINKS), 0.0 if same else details.score or 0.0
        blocks, muted = tuple(map(_block_change, details.blocks)), tuple(map(_muted_block, details.muted))
        return Change(same, same_text, bool(row.meaningful), score, blocks, details.reason, muted)

    def error_body(self, url: str, moment: datetime) -> bytes:
        """The body that was kept with a check that brought no version; empty when there is none."""
        row = self._catalog.versions.capture_at(self.resource(url).id, to_millis(moment))
        content = self._catalog.contents.by_id(row.content) if row is not None and row.content is not None else None
        return self._stored(content).body if content else b""

    def last_check(self, url: str) -> Check | None:
        """The latest check, or None when there was none."""
        row = self._catalog.resources.find(url)
        if row is None or row.checked is None:
            return None
        version = self._catalog.versions.by_id(row.newest) if row.newest is not None else None
        capture = self._catalog.versions.last_capture(row.id)
        found = find_newest(self._catalog.database, url)
        if version is not None and found is not None and (capture is None or capture.time < version.time):
            before = find_numbered(self._catalog.database, url, found.number - 1) if found.number else None
            return self._found_check(row, version, found, before)
        if capture is None:
            return None
        return self._other_check(row, capture, {found.number: found} if found else {})

    def exchanges(
        self, url: str, since: datetime | None = None, until: datetime | None = None
    ) -> dict[int, StoredExchange]:
        """How the captures of a URL were made, by their times in milliseconds, as far as that was kept."""
        row = self._catalog.resources.find(url)
        span = (-(2**62) if since is None else to_millis(since), 2**62 if until is None else to_millis(until))
        records: dict[int, Headers] = {}

        def record(number: int) -> Headers:
            if number not in records:
                records[number] = self._catalog.heads.get(number)
            return records[number]

        found = {}
        for time, extra in self._catalog.versions.extras(row.id, *span) if row is not None else ():
            _, kept, page = parted_extra(extra)
            request = kept.spelled_out(record) if kept is not None else None
            if request is not None or page is not None:
                shared = record(request.record) if request is not None else ()
                named = page_of_record(record(page.record)) if page is not None else ""
                found[time] = StoredExchange(shared, request, named, time + page.offset if page is not None else 0)
        return found

    def last_seen(self, url: str) -> Check | None:
        """The latest check that got the document, or the header of one that was too large, if there is one.

        An answer that only says that nothing changed (304) has no such header.
        """
        last = self.last_check(url)
        if last is None or _saw_header(last):
            return last
        return next(filter(_saw_header, reversed(self.history(url))), None)

    def _found_check(
        self, resource: ResourceRow, row: VersionRow, found: StoredVersion, before: StoredVersion | None
    ) -> Check:
        """The check that brought a version; it may equal the previous one if `store.same` is on."""
        same = before is not None and before.content == found.content
        details, outcome = CheckDetails.unpack(row.extra), Outcome.CHANGED if row.number else Outcome.NEW
        headers = own_headers(self._catalog.heads.get(row.head), row.extra, row.time)
        return Check(
            url=resource.url, final_url=details.final_url or resource.url, checked_at=from_millis(row.time),
            available=True, status=row.status, outcome=Outcome.UNCHANGED if same else outcome, version=row.number,
            digest=digest_text(found.sha1), length=found.raw_bytes, content_type=header(headers, "content-type"),
            redirects=details.hops, warnings=details.warnings, headers=headers,
            meaningful=None if row.meaningful is None else bool(row.meaningful),
            score=0.0 if same else None if row.meaningful is None else details.score,
            blocks=() if row.meaningful is None else details.blocks,
            reason=details.reason if row.meaningful is not None else "" if same or not row.number else NOT_JUDGED,
            muted=() if row.meaningful is None else details.muted,
        )  # fmt: skip

    def _other_check(self, resource: ResourceRow, row: CaptureRow, found: Mapping[int, StoredVersion]) -> Check:
        """A check that brought no version."""
        details = CheckDetails.unpack(row.extra)
        outcome = OUTCOMES[row.outcome]
        headers = own_headers(self._catalog.heads.get(row.head), row.extra, row.time) if row.head is not None else ()
        unchanged = outcome is Outcome.UNCHANGED and row.number is not None
        current = found.get(row.number) if unchanged and row.number is not None else None
        return Check(
            url=resource.url, final_url=details.final_url or resource.url, checked_at=from_millis(row.time),
            available=outcome.available, status=row.status, outcome=outcome, version=row.number,
            digest=digest_text(current.sha1) if current else "",
            length=details.length or (current.raw_bytes if current else 0),
            content_type=header(headers, "content-type"), redirects=details.hops, error=details.error,
            warnings=details.warnings, headers=headers,
            meaningful=False if unchanged else None if details.score is None else details.score > 0,
            score=0.0 if unchanged else details.score, blocks=() if unchanged else details.blocks,
            failure=details.failure_kind(row.status),
        )  # fmt: skip


class _StoredVersions(Mapping[int, StoredVersion]):
    """Versions of one URL by their numbers, read in batches; the last few batches are cached."""

    def __init__(self, database: RowReader, url: str) -> None:
        self._database = database
        self._url = url
        self._portions: OrderedDict[int, dict[int, StoredVersion]] = OrderedDict()

    def __getitem__(self, number: int) -> StoredVersion:
        portion = number // _PORTION
        if portion not in self._portions:
            first = portion * _PORTION
            rows = find_numbers(self._database, self._url, first, first + _PORTION)
            self._portions[portion] = {row.number: row for row in rows}
            if len(self._portions) > _PORTIONS_KEPT:
                self._portions.popitem(last=False)
        return self._portions[portion][number]

    def __iter__(self) -> Iterator[int]:
        return iter(number for portion in self._portions.values() for number in portion)

    def __len__(self) -> int:
        return sum(map(len, self._portions.values()))


def _saw_header(check: Check) -> bool:
    return bool(check.available and check.headers and check.status != 304)


def _muted_block(text: str) -> MutedBlock:
    """The inverse of how a record names a block that is noise: `counter: its text`."""
    why, _, content = text.partition(": ")
    return MutedBlock(why, "added", BlockKind.PARAGRAPH, content)


def _block_change(text: str) -> BlockChange:
    """The inverse of how a record names an added or removed block: `added paragraph: its text`."""
    named, _, content = text.partition(": ")
    action, _, kind = named.partition(" ")
    return BlockChange("removed" if action == "removed" else "added", BlockKind(kind), content)
