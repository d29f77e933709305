"""Captures of other archives become checks and versions: content codings are undone, and each is recorded once,
however often it is brought.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

import brotli

from letopis.archive import Archive, CheckDetails, NewCapture
from letopis.archive.recording import unrecorded_captures
from letopis.archive.records import headers_from_outside, status_from_outside
from letopis.errors import BadUrl, Damaged, DocumentTooLarge, LetopisError
from letopis.exchange.sources import ImportedCapture, ImportReport
from letopis.exchange.warc_records import restored_headers
from letopis.model import Outcome, from_millis, rfc3339, to_millis
from letopis.model.times import AHEAD, utc_time
from letopis.urls import normalize
from letopis.zstandard import zstd

MAX_BODY = 256 * 1024 * 1024
"""Larger bodies are refused and named in the report."""


def undo_coding(coding: str, body: bytes, limit: int = MAX_BODY) -> bytes:
    """The bytes behind a coding; an unknown coding leaves them as they are.

    Raises DocumentTooLarge past the limit, ValueError where they are not what the coding says.
    """
    inflate = _CODINGS.get(coding)
    return body if inflate is None else inflate(body, limit)


def knows_coding(coding: str) -> bool:
    """Whether this coding can be undone."""
    return coding in _CODINGS


def _gunzip(body: bytes, limit: int) -> bytes:
    inflate = zlib.decompressobj(47)
    try:
        plain = inflate.decompress(body, limit)
    except zlib.error:
        plain = _raw_deflate(body, limit)
    else:
        _require_bounded(bool(inflate.unconsumed_tail))
    return plain


def _raw_deflate(body: bytes, limit: int) -> bytes:
    """What some servers send as `deflate`: without the header of zlib."""
    inflate = zlib.decompressobj(-15)
    try:
        plain = inflate.decompress(body, limit)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    _require_bounded(bool(inflate.unconsumed_tail))
    return plain


def _unbrotli(body: bytes, limit: int) -> bytes:
    inflate = brotli.Decompressor()
    try:
        plain: bytes = inflate.process(body, output_buffer_limit=limit)
    except brotli.error as error:
        raise ValueError(str(error)) from None
    _require_bounded(len(plain) > limit or not inflate.can_accept_more_data())
    if not inflate.is_finished():
        raise ValueError("it breaks off")
    return plain


def _unzstd(body: bytes, limit: int) -> bytes:
    inflate = zstd.ZstdDecompressor()
    try:
        plain = inflate.decompress(body, limit)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from None
    _require_bounded(not inflate.eof and not inflate.needs_input)
    return plain


def _require_bounded(too_large: bool) -> None:
    if too_large:
        raise DocumentTooLarge("it unpacks to more than 256 MiB")


_CODINGS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _gunzip,
    "br": _unbrotli,
    "zstd": _unzstd,
}

BATCH_CAPTURES = 1024
BATCH_BYTES = 64 * 1024 * 1024
MOST_ERROR_BODY = 64 * 1024
_FACTS = ("final", "hops", "error", "warnings", "score", "blocks", "length", "failure")
_CODING_LENGTHS = (len("content-encoding"), len("transfer-encoding"))


def import_captures(
    archive: Archive,
    found: Iterable[ImportedCapture],
    name: str,
    report: ImportReport,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Takes the captures of one source in; where it cannot be read any more, the report says so."""
    before = report.records + report.same + report.refused.total()
    for batch in _batches(_arrivals(_readable(found, name, report), name, report)):
        _commit(archive, batch, report)
        progress(report.records)
    if report.records + report.same + report.refused.total() == before:
        report.refuse("there are no captures in it", name)


def _readable(found: Iterable[ImportedCapture], name: str, report: ImportReport) -> Iterator[ImportedCapture]:
    """What can be read of a source: an error of its reader ends it, and is reported."""
    try:
        yield from found
    except Damaged as error:
        report.break_off(str(error), name)
    except LetopisError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        report.break_off(f"the rest of the file cannot be read ({type(error).__name__}: {reason})", name)


def _commit(archive: Archive, batch: list[NewCapture], report: ImportReport) -> None:
    """What a run that was killed has already brought is passed over."""
    wanted = unrecorded_captures(archive, batch)
    report.same += len(batch) - len(wanted)
    _note_future(wanted, archive.clock(), report)
    for done in archive.commit(wanted) if wanted else ():
        report.checks += 1
        report.versions += done.outcome in (Outcome.NEW, Outcome.CHANGED)


def _note_future(arrivals: Iterable[NewCapture], now: datetime, report: ImportReport) -> None:
    """Names captures whose clock was wrong, or ours is: they stay the newest of their pages until that time."""
    latest = to_millis(now + AHEAD)
    for arrival in arrivals:
        if arrival.time > latest:
            report.note_future(arrival.url, rfc3339(from_millis(arrival.time)))


def _batches(arrivals: Iterator[NewCapture]) -> Iterator[list[NewCapture]]:
    batch: list[NewCapture] = []
    size = 0
    for arrival in arrivals:
        batch.append(arrival)
        size += len(arrival.body or b"")
        if len(batch) >= BATCH_CAPTURES or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _arrivals(found: Iterable[ImportedCapture], name: str, report: ImportReport) -> Iterator[NewCapture]:
    """Captures as arrivals; facts of ours that follow a capture are joined with it."""
    waiting: NewCapture | None = None
    for capture in found:
        report.records += 1
        arrival = _arrival(capture, report, name)
        if arrival is None:
            continue
        if capture.facts is not None and waiting is not None and _same_check(waiting, arrival):
            waiting = waiting._replace(details=arrival.details)
            continue
        if waiting is not None:
            yield waiting
        waiting = arrival
    if waiting is not None:
        yield waiting


def _same_check(capture: NewCapture, facts: NewCapture) -> bool:
    return capture.time == facts.time and capture.url == facts.url


def _arrival(capture: ImportedCapture, report: ImportReport, where: str) -> NewCapture | None:
    try:
        url = normalize(capture.url)
        moment = _moment(capture.date)
    except BadUrl:
        report.refuse("no web address (http or https)", f"{where} {capture.url[:100]}")
        return None
    except (ValueError, OverflowError):
        report.refuse("no date that can be read", f"{where} {capture.url[:100]}")
        return None
    if capture.facts is not None:
        return _arrival_of_facts(url, moment, capture.facts, report, where)
    if not 100 <= capture.status <= 999:
        report.refuse("no status that can be read", f"{where} {capture.url[:100]}")
        return None
    headers = restored_headers(capture.headers)
    if capture.is_revisit:
        return NewCapture(url, moment, capture.status, headers, None, Outcome.UNCHANGED, versioned=False, dated=True)
    body: bytes | None = capture.body if capture.decoded else _decoded(capture, report, where)
    is_page = 200 <= capture.status < 300
    outcome = Outcome.NEW if is_page else Outcome.UNCHANGED if capture.status < 400 else Outcome.UNAVAILABLE
    if not is_page and (not body or len(body) > MOST_ERROR_BODY):
        body = None
    return NewCapture(url, moment, capture.status, headers, body, outcome, versioned=is_page, dated=True)


def _arrival_of_facts(
    url: str, moment: int, facts: dict[str, Any], report: ImportReport, where: str
) -> NewCapture | None:
    try:
        return _from_facts(url, moment, facts)
    except (KeyError, TypeError, ValueError, IndexError):
        report.refuse("facts of a check that cannot be read", f"{where} {url[:100]}")
        return None


def _from_facts(url: str, moment: int, facts: dict[str, Any]) -> NewCapture:
    """A check without an answer, or what belongs to the capture before it."""
    said = {"final": facts["final_url"], "hops": facts["redirects"], **facts}
    details = CheckDetails.from_outside({name: said.get(name) for name in _FACTS if said.get(name) is not None})
    if details.final_url == url:
        details = details._replace(final_url="")
    headers = headers_from_outside(facts.get("headers", ()))
    # Headers stand here only where no record could hold the answer; elsewhere the capture before has them.
    status = status_from_outside(facts["status"]) if headers else 0
    outcome = Outcome(facts["outcome"])
    return NewCapture(url, moment, status, headers, None, outcome, versioned=False, dated=True, details=details)


def parse_check_facts(text: bytes) -> dict[str, Any] | None:
    """The facts of a check of ours; None when they are none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _moment(date: str) -> int:
    return to_millis(utc_time(date))


def _decoded(capture: ImportedCapture, report: ImportReport, where: str) -> bytes:
    """The body without its codings; one that cannot be undone, or not within bounds, stays as it came."""
    body = capture.body
    coding = ""
    for name, value in capture.headers:
        if len(name) not in _CODING_LENGTHS:
            continue
        lower = name.lower()
        if lower == "transfer-encoding" and "chunked" in value.lower():
            body = unchunked(body)
        elif lower == "content-encoding" and not coding:
            coding = value.lower().strip()
    return _undone(coding, body, capture, report, where) if knows_coding(coding) else body


def _undone(coding: str, body: bytes, capture: ImportedCapture, report: ImportReport, where: str) -> bytes:
    try:
        return undo_coding(coding, body)
    except DocumentTooLarge as error:
        report.refuse(f"{error}; stored as it came", f"{where} {capture.url[:100]}")
    except ValueError:
        report.refuse(f"a body labelled {coding} is not; stored as it came", f"{where} {capture.url[:100]}")
    return body


def unchunked(body: bytes) -> bytes:
    """The body of a chunked message; what is not chunked stays as it is."""
    parts: list[bytes] = []
    place = 0
    while True:
        end = body.find(b"\r\n", place, place + 1024)
        size = _hex(body[place:end].split(b";")[0].strip()) if end >= 0 else None
        if size is None or end + 2 + size > len(body):
            return b"".join(parts) if parts else body
        if size == 0:
            return b"".join(parts)
        parts.append(body[end + 2 : end + 2 + size])
        place = end + 2 + size
        place += 2 if body.startswith(b"\r\n", place) else 0


def _hex(digits: bytes) -> int | None:
    try:
        return int(digits, 16) if digits and len(digits) <= 8 else None
    except ValueError:
        return None
