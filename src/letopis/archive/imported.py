"""What an import reads from and writes to the record: what is already there, the body that a revisit refers to,
records as they were in their files, revisits that wait for their capture, and capture sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

from letopis.archive.archive import Archive
from letopis.archive.details import own_headers
from letopis.archive.recording import Recorder
from letopis.archive.records import ERROR_BODY_BYTES, Identity, NewCapture, NewSet, RecordedCapture, identify
from letopis.archive.sets import NewPart, SetPart, set_parts, write_parts
from letopis.catalog import CaptureRow, ResourceRow
from letopis.catalog.imported import SourceRecordRow, WaitingRevisit
from letopis.catalog.versions import CheckedContent, checked_contents, last_checks
from letopis.model import Headers, Outcome, SetMember, from_millis
from letopis.tuples import NamedTuple

__all__ = [
    "MistakenCheck", "NewCaptures", "RecordedPayload", "RecordlessCheck", "StoredSource", "WaitingRevisit",
    "attach_sources", "drop_mistaken", "is_recorded", "keep_waiting", "known_payloads", "mistaken_for_page",
    "payload_then", "record_waiting", "sources_of", "unrecorded_captures", "waiting_revisits",
]  # fmt: skip

_SAME_MOMENT_RUN = 1000
"""The span in which checks may have the same time in their source, in milliseconds: a second, as in most sources."""
_WAITING_AT_ONCE = 1000
_EMPTY = identify(b"")


def is_recorded(archive: Archive, url: str) -> bool:
    """Whether a URL, normalised, was ever checked or linked to here."""
    return bool(last_checks(archive.catalog.database, [url]))


class RecordlessCheck(NamedTuple):
    """A check that is imported again, with the record that an earlier import did not keep."""

    resource: int
    time: int
    capture: NewCapture


class MistakenCheck(NamedTuple):
    """A check that an earlier release recorded wrongly; it is recorded again correctly."""

    resource: int
    time: int


class NewCaptures(NamedTuple):
    """The captures of a batch that the archive does not have, those without their records, and those recorded
    wrongly.
    """

    wanted: list[NewCapture]
    recordless: list[RecordlessCheck]
    mistaken: list[MistakenCheck]


def unrecorded_captures(archive: Archive, batch: Sequence[NewCapture]) -> NewCaptures:
    """What is new of a batch, each once, in their order.

    A capture is identified by the id of its record; without one, by time, status and content.
    """
    known = last_checks(archive.catalog.database, list(dict.fromkeys(arrival.url for arrival in batch)))
    seen: dict[tuple[str, int], list[NewCapture]] = defaultdict(list)
    found = NewCaptures([], [], [])
    for arrival in batch:
        twins = seen[arrival.url, arrival.time]
        if any(_are_twins(arrival, twin) for twin in twins):
            continue
        before = known.get(arrival.url)
        if before is not None and before.time is not None and arrival.time <= before.time:
            same = _recorded_as(archive, before.resource, arrival)
            if same is not None:
                found.recordless.extend(same)
                continue
            found.mistaken.extend(_without_body(archive, before.resource, arrival))
        twins.append(arrival)
        found.wanted.append(arrival)
    return found


def _are_twins(one: NewCapture, other: NewCapture) -> bool:
    first, second = _record_of(one), _record_of(other)
    if first and second and first != second:
        return False
    return one.status == other.status and one.body == other.body and one.identity == other.identity


def _record_of(arrival: NewCapture) -> int:
    return arrival.source.record if arrival.source else 0


def _recorded_as(archive: Archive, resource: int, arrival: NewCapture) -> list[RecordlessCheck] | None:
    """The existing check of a capture, in a list if it lacks the record; None if there is no such check."""
    checks = _recorded_then(archive, resource, arrival.time)
    if not checks:
        return None
    arrival = _identified(arrival)
    sources = archive.catalog.imported.of(resource, checks[0].time, checks[-1].time)
    record = _record_of(arrival)
    for check in checks:
        source = sources.get(check.time)
        is_other = record and source is not None and source.record and source.record != record
        if not is_other and _is_same_check(arrival, check):
            return [RecordlessCheck(resource, check.time, arrival)] if record and source is None else []
    return None


def _without_body(archive: Archive, resource: int, arrival: NewCapture) -> Iterator[MistakenCheck]:
    """Where a revisit with a body was recorded as one of whatever the URL had at its time, or an error without its
    body because that was large.
    """
    is_revisit = arrival.body == b"" and arrival.identity is not None and arrival.identity != _EMPTY
    is_large = not arrival.versioned and arrival.body is not None and len(arrival.body) > ERROR_BODY_BYTES
    if (is_revisit or is_large) and not archive.catalog.imported.of(resource, arrival.time, arrival.time):
        capture = archive.catalog.versions.capture_at(resource, arrival.time)
        if capture is not None and capture.content is None and capture.status == arrival.status:
            yield MistakenCheck(resource, arrival.time)


def mistaken_for_page(archive: Archive, page: str, answer: NewCapture) -> MistakenCheck | None:
    """The check of a page that is really the answer to another request than GET; None if there is none."""
    row = archive.catalog.resources.find(page)
    if row is None or row.checked is None or answer.time > row.checked or answer.source is None:
        return None
    answer = _identified(answer)
    sources = archive.catalog.imported.of(row.id, answer.time, answer.time + _SAME_MOMENT_RUN)
    checks = (check for check in _recorded_then(archive, row.id, answer.time) if check.time not in sources)
    found = next((check for check in checks if _is_same_check(answer, check)), None)
    return MistakenCheck(row.id, found.time) if found is not None else None


def drop_mistaken(archive: Archive, checks: Sequence[MistakenCheck]) -> None:
    """Removes wrong checks from the histories of their pages; the correct ones have been recorded before."""
    if not checks:
        return
    with archive.transaction() as (cursor, _):
        for resource, time in checks:
            archive.catalog.versions.drop_check(cursor, resource, time)


def _recorded_then(archive: Archive, resource: int, time: int) -> list[CheckedContent]:
    """What the URL has at this time and in the milliseconds that follow without a gap."""
    found = checked_contents(archive.catalog.database, resource, time, time + _SAME_MOMENT_RUN)
    return [check for index, check in enumerate(found) if check.time == time + index]


def _identified(arrival: NewCapture) -> NewCapture:
    if arrival.body is None or arrival.identity is not None:
        return arrival
    return arrival._replace(identity=identify(arrival.body))


def _is_same_check(arrival: NewCapture, check: CheckedContent) -> bool:
    if arrival.status != check.status:
        return False
    return arrival.identity is None or arrival.identity.sha1 == bytes(check.sha1 or b"")


def attach_sources(archive: Archive, checks: Sequence[RecordlessCheck]) -> None:
    """Keeps the records of checks that an earlier release imported without them."""
    if not checks:
        return
    archive.catalog.imported.ensure()
    with archive.transaction() as (cursor, store):
        Recorder(archive.catalog, store, record_same=False).keep_records(
            cursor, [(check.resource, check.time, check.capture) for check in checks]
        )


# Bodies that revisits mean


class RecordedPayload(NamedTuple):
    """A content, and the response that contained it."""

    identity: Identity
    status: int
    headers: Headers


def known_payloads(archive: Archive, digests: Collection[bytes]) -> dict[bytes, Identity]:
    """The contents that other archives name by these digests, as far as they were imported."""
    return {
        digest: Identity(row.sha1, row.identity) for digest, row in archive.catalog.imported.payloads(digests).items()
    }


def payload_then(archive: Archive, url: str, time: int) -> RecordedPayload | None:
    """What the check of a URL in the second that begins at a time found; None when there is no such check."""
    row = archive.catalog.resources.find(url)
    if row is None or row.checked is None:
        return None
    return _version_then(archive, row, time) or _error_then(archive, row, time)


def _version_then(archive: Archive, row: ResourceRow, time: int) -> RecordedPayload | None:
    catalog = archive.catalog
    version = catalog.versions.at(row.id, row.versions, time + _SAME_MOMENT_RUN - 1)
    if version is None or version.time < time:
        repeats = [one for one in _captures_then(archive, row, time) if one.content is None and one.number is not None]
        number = repeats[0].number if repeats else None
        version = catalog.versions.number(row.id, number) if number is not None else None
    content = catalog.contents.by_id(version.content) if version is not None else None
    if version is None or content is None:
        return None
    headers = own_headers(catalog.heads.get(version.head), version.extra, version.time)
    return RecordedPayload(Identity(bytes(content.sha1), content.identity), version.status, headers)


def _error_then(archive: Archive, row: ResourceRow, time: int) -> RecordedPayload | None:
    for capture in _captures_then(archive, row, time):
        content = archive.catalog.contents.by_id(capture.content) if capture.content is not None else None
        if content is not None:
            shared = archive.catalog.heads.get(capture.head) if capture.head is not None else ()
            headers = own_headers(shared, capture.extra, capture.time)
            return RecordedPayload(Identity(bytes(content.sha1), content.identity), capture.status, headers)
    return None


def _captures_then(archive: Archive, row: ResourceRow, time: int) -> list[CaptureRow]:
    return list(archive.catalog.versions.captures(row.id, since=time, until=time + _SAME_MOMENT_RUN - 1))


# Revisits that wait


def keep_waiting(archive: Archive, rows: Sequence[WaitingRevisit]) -> int:
    """Keeps revisits whose bodies are not here; returns how many are new."""
    archive.catalog.imported.ensure()
    with archive.transaction() as (cursor, _):
        return archive.catalog.imported.wait(cursor, rows)


def waiting_revisits(archive: Archive) -> Iterator[list[WaitingRevisit]]:
    """All that wait, in batches; recording some of them meanwhile is safe."""
    last: WaitingRevisit | None = None
    while rows := archive.catalog.imported.waiting(last, _WAITING_AT_ONCE):
        yield rows
        last = rows[-1]


def record_waiting(
    archive: Archive, rows: Sequence[WaitingRevisit], captures: Sequence[NewCapture]
) -> list[RecordedCapture]:
    """Records revisits whose bodies have arrived; in the same transaction they stop waiting."""
    return archive.commit(captures, lambda cursor, done: archive.catalog.imported.stop_waiting(cursor, rows))


# Records as they were in their files


class StoredSource(NamedTuple):
    """A record without its body, and how to restore the original body if it differs from that of the check."""

    data: bytes
    body: Callable[[], bytes] | None


def sources_of(archive: Archive, url: str) -> dict[int, StoredSource]:
    """The imported records of the checks of a URL, by the times of the checks in milliseconds."""
    row = archive.catalog.resources.find(url)
    if row is None:
        return {}
    found = archive.catalog.imported.unframed(archive.catalog.imported.of(row.id).values())
    return {one.time: _stored_source(archive, one) for one in found}


def _stored_source(archive: Archive, row: SourceRecordRow) -> StoredSource:
    number = row.content
    return StoredSource(row.data, None if number is None else lambda: archive.answers.content(number))


# Capture sets


class ImportedSet(NamedTuple):
    """A set for the page whose check has exactly this time, in milliseconds; existing parts of a set are kept.

    Without `members` it only adds to an existing set.
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
    """A URL with the time at which its content of that time was first captured; None if there is no capture."""
    row = archive.catalog.resources.find(url)
    if row is None or row.checked is None:
        return None
    versions = archive.catalog.versions
    version = versions.at(row.id, row.versions, time) or versions.number(row.id, 0)
    return SetMember(url, from_millis(version.time)) if version is not None else None


def shown_then(archive: Archive, url: str, time: int) -> Identity | None:
    """The content of the version that a browser made at exactly this time; None if there is none."""
    row = archive.catalog.resources.find(url) if archive.catalog.renderings.are_any() else None
    version = archive.catalog.versions.at(row.id, row.versions, time) if row is not None else None
    if version is None or version.time != time or archive.catalog.renderings.of(version.id) is None:
        return None
    content = archive.catalog.contents.by_id(version.content)
    return Identity(bytes(content.sha1), content.identity) if content is not None else None


def keep_sets(archive: Archive, found: Sequence[ImportedSet]) -> int:
    """Adds what the sets of these checks lack; returns how many sets are new. The checks are all different."""
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
