"""WARC 1.1 out: an export that is deterministic and streamed.

A version is a `response`; a check that found it again is a `revisit` that refers to it; a check without an answer
that could be kept is a `metadata` record. Beside an answer stands its `request` as it was sent. Where a browser made a
version, the `response` is what the server sent, and the page as it was shown is a `conversion` of it. What an import
brought goes out as the record that it came in. Exporting the same part of the same archive twice gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain

from letopis import __version__
from letopis.archive import Archive, identify
from letopis.archive.captures import last_check_time
from letopis.archive.cluster import PieceRunner
from letopis.archive.imported import StoredSource, checks_between, sources_of, waiting_revisits
from letopis.archive.requests import StoredExchange
from letopis.archive.sets import CaptureSet
from letopis.exchange.kept_records import KeptRecord, exchange_fields, request_record
from letopis.exchange.page_looks import AFTER, INFO, PICTURES, TEXTS
from letopis.exchange.revisits import read_waiting
from letopis.exchange.selection import ExportPart, ExportSelection, export_parts
from letopis.exchange.warc_records import (
    CHECK_TYPE,
    PAGE_ID,
    PAGE_INFO,
    SOFTWARE_NAME,
    TEXT,
    VIEW,
    WarcCompression,
    WarcRecord,
    compressed_record,
    is_revisit,
    record_id,
    response_head,
    set_records,
    stable_id,
    with_page_id,
)
from letopis.model import Check, Outcome, Version, from_millis, header, rfc3339, to_millis
from letopis.tuples import NamedTuple
from letopis.urls import normalize
from letopis.urls.request_keys import record_url

SOFTWARE = f"Letopis/{__version__}"
_PROFILE_SAME = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_PROFILE_304 = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_NEWS = (Outcome.NEW, Outcome.CHANGED)


class OriginalCapture(NamedTuple):
    """The record that brought a version, as later ones refer to it."""

    id: str
    url: str
    date: str
    digest: str


def original_of(archive: Archive, check: Check, source: StoredSource | None) -> OriginalCapture:
    """How later records refer to the check that brought a version."""
    date = rfc3339(check.checked_at)
    if source is None:
        digest = archive.answers.sent_digest(check.url, check.version or 0) or check.digest
        return OriginalCapture(record_id("response", check.url, date), check.url, date, f"sha1:{digest}")
    kept = KeptRecord.unpack(source.data)
    digest = kept.field("warc-payload-digest") or f"sha1:{check.digest}"
    return OriginalCapture(kept.field("warc-record-id"), kept.field("warc-target-uri"), kept.field("warc-date"), digest)


class ExportedRecord(NamedTuple):
    """A record, its check, and the bytes of its payload."""

    record: WarcRecord
    check: Check
    body: bytes = b""


def warc_members(
    archive: Archive,
    selected: ExportSelection,
    compression: WarcCompression = "gzip",
    progress: Callable[[int], None] = lambda done: None,
    spread: PieceRunner | None = None,
) -> Iterator[bytes]:
    """The selected part piece by piece: what the file is, then its records; `spread` may make them elsewhere.

    A site or a project that is not known is NotFound before anything is made.
    """
    return (member.data for member in located_members(archive, selected, compression, progress, spread))


class WarcMember(NamedTuple):
    """A record as it stands in a file; of a capture also its URL and the time of its check in milliseconds.

    `opens` is the first record of a check.
    """

    data: bytes
    url: str = ""
    time: int = 0
    opens: bool = False


def located_members(
    archive: Archive,
    selected: ExportSelection,
    compression: WarcCompression = "gzip",
    progress: Callable[[int], None] = lambda done: None,
    spread: PieceRunner | None = None,
) -> Iterator[WarcMember]:
    """The same, and which captures they are. `progress` hears how many checks are done."""
    members = _members(archive, selected, compression, spread)
    yield WarcMember(compressed_record(info_record(last_check_time(archive)), compression))
    checks = 0
    for member in members:
        yield member
        checks += member.opens
        progress(checks)


def _written(records: Iterable[ExportedRecord], compression: WarcCompression) -> Iterator[WarcMember]:
    last: Check | None = None
    for exported in records:
        data, opens = compressed_record(exported.record, compression), exported.check is not last
        last = exported.check
        if is_listed_capture(exported):
            yield WarcMember(data, last.url, to_millis(last.checked_at), opens)
        else:
            yield WarcMember(data, opens=opens)


def is_listed_capture(exported: ExportedRecord) -> bool:
    """Whether a record is what lists of captures mean: what a redirect led to is another one than the redirect."""
    return exported.record.kind in ("response", "revisit") and not exported.check.redirects


def _members(
    archive: Archive, selected: ExportSelection, compression: WarcCompression, spread: PieceRunner | None
) -> Iterator[WarcMember]:
    """The records as they are in a file; locally one by one, from workers in pieces."""
    waiting = (WarcMember(compressed_record(record, compression)) for record in _waiting_records(archive, selected))
    if spread is None:
        return chain(_written(exported_records(archive, selected), compression), waiting)
    pieces = ((compression, part) for part in export_parts(archive, selected))
    return chain(chain.from_iterable(spread.each(_part_members, pieces)), waiting)


def _part_members(archive: Archive, piece: tuple[WarcCompression, ExportPart]) -> list[WarcMember]:
    compression, part = piece
    return list(_written(_part_records(archive, part), compression))


def exported_records(
    archive: Archive, selected: ExportSelection, spread: PieceRunner | None = None
) -> Iterator[ExportedRecord]:
    """All records of the selected part, URL by URL, oldest check first."""
    found = export_parts(archive, selected)
    if spread is None:
        return chain.from_iterable(_part_records(archive, part) for part in found)
    return chain.from_iterable(spread.each(_part_exported, found))


def _part_exported(archive: Archive, part: ExportPart) -> list[ExportedRecord]:
    return list(_part_records(archive, part))


def _part_records(archive: Archive, part: ExportPart) -> Iterator[ExportedRecord]:
    for url in part.urls:
        yield from records_of(archive, part.selected.replayable(archive, url), part.start, part.end)


def records_of(
    archive: Archive, checks: list[Check], start: int = 0, end: int | None = None
) -> Iterator[ExportedRecord]:
    """The records of one URL's checks, or of a stretch of them, which may refer to checks before it."""
    originals: dict[int, OriginalCapture] = {}
    sources = sources_of(archive, checks[0].url) if checks else {}
    sets = {one.time: one for one in archive.sets.of(checks[0].url)} if checks else {}
    exchanges = archive.answers.exchanges(checks[0].url) if checks else {}
    for place, check in enumerate(checks[:end]):
        original = originals.get(check.version) if check.version is not None else None
        source = sources.get(to_millis(check.checked_at))
        if check.outcome in _NEWS and check.version is not None:
            originals[check.version] = original_of(archive, check, source)
        if place >= start and source is None:
            came = exchanges.get(to_millis(check.checked_at))
            yield from check_records(archive, check, original, sets.get(check.checked_at), came)
        elif place >= start and source is not None:
            yield from _records_as_they_came(archive, check, source, sets.get(check.checked_at))


def _records_as_they_came(
    archive: Archive, check: Check, source: StoredSource, found: CaptureSet | None
) -> Iterator[ExportedRecord]:
    """The imported records of a check, and what else is known about it."""
    kept = KeptRecord.unpack(source.data)
    body = b"" if kept.field("warc-type") == "revisit" else _kept_body(archive, check)
    for record in kept.records(body if source.body is None else source.body()):
        yield ExportedRecord(record, check, body if record.kind == "response" else b"")
    if check.redirects or check.warnings or check.error or check.final_url != check.url:
        yield ExportedRecord(_metadata(check), check)
    if found is not None:
        for record in set_records(archive, found, set(_told_of_set(archive, found, kept))):
            yield ExportedRecord(record, check, record.block)


def _told_of_set(archive: Archive, found: CaptureSet, kept: KeptRecord) -> Iterator[str]:
    """The parts of a set that are exported as the imported records."""
    time = to_millis(found.time)

    def came(*schemes: str) -> bool:
        urls = (normalize(record_url(found.url, scheme)) for scheme in schemes)
        return any(checks_between(archive, url, time, time + AFTER) for url in urls)

    if kept.field(PAGE_ID.lower()) or came(INFO):
        yield PAGE_INFO
    if came(*PICTURES):
        yield VIEW
    if came(*TEXTS):
        yield TEXT


def _kept_body(archive: Archive, check: Check) -> bytes:
    body = archive.answers.error_body(check.url, check.checked_at)
    if body or check.version is None or not (check.outcome in _NEWS or is_revisit(check)):
        return body
    return archive.get(check.url, version=check.version).body


def _waiting_records(archive: Archive, selected: ExportSelection) -> Iterator[WarcRecord]:
    """Revisits that wait for their capture are exported unchanged."""
    for rows in waiting_revisits(archive):
        for capture in (read_waiting(row).arrival.capture for row in rows):
            if capture.source is not None and capture.source.data and selected.includes(capture.url, capture.time):
                yield from KeptRecord.unpack(capture.source.data).records(b"")


def check_records(
    archive: Archive,
    check: Check,
    original: OriginalCapture | None,
    found: CaptureSet | None = None,
    came: StoredExchange | None = None,
) -> Iterator[ExportedRecord]:
    """The records of one check; `original` is what brought the version which this one found again.

    `found` is the set of a page that was captured whole, `came` how the capture came to be.
    """
    page = (found.url, found.time) if found is not None else None
    if page is None and came is not None and came.page:
        page = (came.page, from_millis(came.page_time))
    for exported in _with_request(_own_records(archive, check, original), came):
        yield exported if page is None else exported._replace(record=with_page_id(exported.record, *page))
    for record in set_records(archive, found) if found is not None else ():
        yield ExportedRecord(record, check, record.block)


def _with_request(records: Iterator[ExportedRecord], came: StoredExchange | None) -> Iterator[ExportedRecord]:
    """The records of a check, after its answer the request; both name the address of the server."""
    for exported in records:
        record, check, _ = exported
        sent = came.request(check.headers) if came is not None and record.kind in ("response", "revisit") else None
        if sent is None:
            yield exported
            continue
        place = next(place for place, (name, _) in enumerate(record.headers, 1) if name == "WARC-Target-URI")
        fields = (*record.headers[:place], *exchange_fields(sent), *record.headers[place:])
        yield exported._replace(record=record._replace(headers=fields))
        answer, date = header(record.headers, "warc-record-id"), rfc3339(check.checked_at)
        yield ExportedRecord(request_record(sent, check.url, check.final_url, date, answer), check)


def _own_records(archive: Archive, check: Check, original: OriginalCapture | None) -> Iterator[ExportedRecord]:
    if check.outcome in _NEWS and check.version is not None:
        yield from _version_records(check, archive.get(check.url, version=check.version), archive)
    elif check.outcome is Outcome.UNCHANGED and (check.status < 300 or check.status == 304):
        yield ExportedRecord(_revisit(check, original), check)
    elif check.status and not _is_bodiless(check):
        body = archive.answers.error_body(check.url, check.checked_at)
        yield ExportedRecord(_response(check, body), check, body)
    if _is_bodiless(check) or check.redirects or check.warnings or check.error or check.final_url != check.url:
        yield ExportedRecord(_metadata(check), check)


def _version_records(check: Check, version: Version, archive: Archive) -> Iterator[ExportedRecord]:
    """What the server sent, and then what a browser made of it."""
    sent = archive.as_sent(version)
    if sent is version:
        yield ExportedRecord(_response(check, version.body), check, version.body)
        return
    as_sent = check._replace(headers=sent.headers, digest=sent.digest, content_type=sent.content_type)
    yield ExportedRecord(_response(as_sent, sent.body), as_sent, sent.body)
    yield ExportedRecord(_conversion(check, version.body), check)


def _conversion(check: Check, body: bytes) -> WarcRecord:
    refers = ("WARC-Refers-To", record_id("response", check.url, rfc3339(check.checked_at)))
    digest = _digest(body)
    return WarcRecord(
        (
            *_common_headers("conversion", check),
            refers,
            ("WARC-Block-Digest", digest),
            ("WARC-Payload-Digest", digest),
            ("Content-Type", check.content_type or "text/html"),
        ),
        body,
    )


def _is_bodiless(check: Check) -> bool:
    """Whether a check has no answer for a record: there was none, or it was too large to be stored."""
    return not check.status or check.outcome is Outcome.TOO_LARGE


def info_record(moment: datetime) -> WarcRecord:
    """The first record of each file; its time is that of the last check, so that equal exports give equal files."""
    text = f"{SOFTWARE_NAME}{__version__}\r\nformat: WARC File Format 1.1\r\n"
    date = rfc3339(moment)
    return WarcRecord(
        (
            ("WARC-Type", "warcinfo"),
            ("WARC-Record-ID", f"<urn:uuid:{stable_id('warcinfo', text, date)}>"),
            ("WARC-Date", date),
            ("WARC-Block-Digest", _digest(text.encode())),
            ("Content-Type", "application/warc-fields"),
        ),
        text.encode(),
    )


def _digest(data: bytes) -> str:
    return f"sha1:{identify(data).text}"


def _common_headers(kind: str, check: Check) -> list[tuple[str, str]]:
    return [
        ("WARC-Type", kind),
        ("WARC-Record-ID", record_id(kind, check.url, rfc3339(check.checked_at))),
        ("WARC-Date", rfc3339(check.checked_at)),
        ("WARC-Target-URI", check.url),
    ]


def _response(check: Check, body: bytes) -> WarcRecord:
    headers = _common_headers("response", check)
    block = response_head(check.status, check.headers, len(body)) + body
    headers.append(("WARC-Block-Digest", _digest(block)))
    headers.append(("WARC-Payload-Digest", _digest(body)))
    headers.append(("Content-Type", "application/http; msgtype=response"))
    return WarcRecord(tuple(headers), block)


def _revisit(check: Check, original: OriginalCapture | None) -> WarcRecord:
    """A check that found a version again; where that version is no longer kept, only its digest is named."""
    headers = _common_headers("revisit", check)
    headers.append(("WARC-Profile", _PROFILE_304 if check.status == 304 else _PROFILE_SAME))
    digest = original.digest if original else f"sha1:{check.digest}" if check.digest else ""
    if digest:
        headers.append(("WARC-Payload-Digest", digest))
    if original is not None:
        headers += [
            ("WARC-Refers-To", original.id),
            ("WARC-Refers-To-Target-URI", original.url),
            ("WARC-Refers-To-Date", original.date),
        ]
    block = response_head(check.status, check.headers, None)
    headers.append(("WARC-Block-Digest", _digest(block)))
    headers.append(("Content-Type", "application/http; msgtype=response"))
    return WarcRecord(tuple(headers), block)


def _metadata(check: Check) -> WarcRecord:
    """What WARC has no field for: failures, redirects that were followed, warnings."""
    facts: dict[str, object] = {
        "outcome": check.outcome,
        "status": check.status,
        "error": check.error,
        "final_url": check.final_url,
        "redirects": [[hop.url, hop.status, hop.location, hop.ip, hop.headers] for hop in check.redirects],
        "warnings": list(check.warnings),
    }
    if check.failure and check.failure != "http":
        facts["failure"] = check.failure
    if check.status and _is_bodiless(check):
        facts |= {"headers": check.headers, "length": check.length, "score": check.score, "blocks": check.blocks}
    block = json.dumps(facts, ensure_ascii=False, sort_keys=True).encode()
    digest = ("WARC-Block-Digest", _digest(block))
    return WarcRecord((*_common_headers("metadata", check), digest, ("Content-Type", CHECK_TYPE)), block)
