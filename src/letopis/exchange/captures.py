"""Captures of other archives become checks and versions: content codings are undone, and each is recorded once, however
often it is imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from letopis.archive import Archive, CheckDetails, NewCapture
from letopis.archive.imported import (
    MistakenCheck,
    attach_sources,
    drop_mistaken,
    keep_waiting,
    mistaken_for_page,
    unrecorded_captures,
)
from letopis.archive.outside_values import headers_from_outside, status_from_outside
from letopis.archive.records import CaptureSource, ServerResponse
from letopis.errors import BadUrl, Damaged, LetopisError
from letopis.exchange.body_codings import DecodedBody, decoded_body
from letopis.exchange.page_sets import record_looks
from letopis.exchange.revisits import Arrival, Revisit, digest_key, resolve_revisits, waiting_row
from letopis.exchange.sources import ImportedCapture, ImportReport, RevisitTarget
from letopis.exchange.warc_records import restored_headers
from letopis.model import Headers, Outcome, from_millis, rfc3339, shown_headers, to_millis
from letopis.model.times import AHEAD, utc_time
from letopis.urls import normalize

BATCH_CAPTURES = 1024
BATCH_BYTES = 64 * 1024 * 1024
_FACTS = ("final", "hops", "error", "warnings", "score", "blocks", "length", "failure")


def import_captures(
    archive: Archive,
    found: Iterable[ImportedCapture],
    name: str,
    report: ImportReport,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Imports the captures of one source; if it can no longer be read, the report says so."""
    before = report.records + report.same + report.refused.total()
    for batch in _batches(_arrivals(_readable(found, name, report), name, report)):
        _commit(archive, batch, report)
        for capture, look in ((one.capture, one.look) for one in batch):
            if look is not None:
                report.looks.take(look, capture.url, capture.time, report.refuse)
        record_looks(archive, report)
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


def _commit(archive: Archive, batch: list[Arrival], report: ImportReport) -> None:
    """What a killed run has already imported is skipped; a missing record is added to it."""
    resolved = resolve_revisits(archive, batch)
    news = unrecorded_captures(archive, resolved.captures)
    report.same += len(resolved.captures) - len(news.wanted)
    report.note_sites(capture.url.split("/", 3)[2] for capture in resolved.captures)
    _note_future(news.wanted, archive.clock(), report)
    for done in archive.commit(news.wanted) if news.wanted else ():
        report.checks += 1
        report.versions += done.outcome in (Outcome.NEW, Outcome.CHANGED)
    attach_sources(archive, news.recordless)
    drop_mistaken(archive, [*news.mistaken, *_mistaken_for_pages(archive, batch)])
    if resolved.waiting:
        fresh = keep_waiting(archive, [waiting_row(one, report.run) for one in resolved.waiting])
        report.waiting += fresh
        report.same += len(resolved.waiting) - fresh


def _note_future(arrivals: Iterable[NewCapture], now: datetime, report: ImportReport) -> None:
    """Names captures from the future, which stay the newest of their pages until that time."""
    latest = to_millis(now + AHEAD)
    for arrival in arrivals:
        if arrival.time > latest:
            report.note_future(arrival.url, rfc3339(from_millis(arrival.time)))


def _mistaken_for_pages(archive: Archive, batch: list[Arrival]) -> Iterator[MistakenCheck]:
    """Answers to other methods that an earlier release recorded as versions of the page."""
    for arrival in batch:
        found = mistaken_for_page(archive, normalize(arrival.page), arrival.capture) if arrival.page else None
        if found is not None:
            yield found


def _batches(arrivals: Iterator[Arrival]) -> Iterator[list[Arrival]]:
    batch: list[Arrival] = []
    size = 0
    for arrival in arrivals:
        batch.append(arrival)
        size += len(arrival.capture.body or b"")
        if len(batch) >= BATCH_CAPTURES or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _arrivals(found: Iterable[ImportedCapture], name: str, report: ImportReport) -> Iterator[Arrival]:
    """Captures as arrivals; facts written by Letopis that follow a capture are joined with it."""
    waiting: Arrival | None = None
    for imported in found:
        report.records += 1
        if imported.look is not None and imported.look.alone:
            report.looks.take(imported.look, imported.url, parse_date(imported.date), report.refuse)
            continue
        arrival = _arrival(imported, report, name)
        if arrival is None:
            continue
        if imported.look is not None:
            arrival = arrival._replace(look=imported.look)
        if imported.record is not None:
            report.beside += imported.record.pages_beside
        if imported.facts is not None and waiting is not None:
            held, facts = waiting.capture, arrival.capture
            if (held.time, held.url) == (facts.time, facts.url):
                waiting = waiting._replace(capture=held._replace(details=facts.details))
                continue
        if waiting is not None:
            yield waiting
        waiting = arrival
    if waiting is not None:
        yield waiting


def _arrival(imported: ImportedCapture, report: ImportReport, where: str) -> Arrival | None:
    try:
        url = normalize(imported.url)
        moment = parse_date(imported.date)
    except BadUrl:
        report.refuse("no web address (http or https)", f"{where} {imported.url[:100]}")
        return None
    except (ValueError, OverflowError):
        report.refuse("no readable date", f"{where} {imported.url[:100]}")
        return None
    if imported.facts is not None:
        facts = _arrival_of_facts(url, moment, imported.facts, report, where)
        return None if facts is None else Arrival(facts)
    has_status = 100 <= imported.status <= 999 or (imported.revisits is not None and not imported.status)
    if not has_status:
        report.refuse("no readable status", f"{where} {imported.url[:100]}")
        return None
    headers = restored_headers(imported.headers) if imported.record is None else imported.headers
    if imported.revisits is not None:
        source = _source(imported, None)
        capture = NewCapture(
            url, moment, imported.status, headers, None, Outcome.UNCHANGED, versioned=False, dated=True, source=source,
            request=imported.request,
        )  # fmt: skip
        return Arrival(capture, _revisit(imported.revisits))
    decoded = DecodedBody(imported.body)
    if not imported.decoded:
        decoded = decoded_body(imported.headers, imported.body, imported.digest)
    if decoded.problem:
        report.refuse(decoded.problem, f"{where} {imported.url[:100]}")
    return Arrival(_with_body(imported, url, moment, headers, decoded.body), page=imported.page)


def _with_body(imported: ImportedCapture, url: str, moment: int, headers: Headers, body: bytes) -> NewCapture:
    is_page = 200 <= imported.status < 300
    outcome = Outcome.NEW if is_page else Outcome.UNCHANGED if imported.status < 400 else Outcome.UNAVAILABLE
    if imported.shown is not None and is_page:
        content_type, shown = imported.shown
        return NewCapture(
            url, moment, imported.status, shown_headers(headers, content_type), shown, outcome, dated=True,
            as_sent=ServerResponse(headers, body), request=imported.request,
        )  # fmt: skip
    return NewCapture(
        url, moment, imported.status, headers, body if is_page or body else None, outcome,
        versioned=is_page, dated=True, source=_source(imported, body), request=imported.request,
    )  # fmt: skip


def _source(imported: ImportedCapture, body: bytes | None) -> CaptureSource | None:
    """What is kept of the record: its body only if that of the capture differs."""
    record = imported.record
    if record is None:
        return None if not imported.digest else CaptureSource(0, b"", None, digest_key(imported.digest))
    raw = imported.body if body is not None and imported.body != body else None
    return CaptureSource(record.key, record.pack(), raw, digest_key(imported.digest))


def _revisit(target: RevisitTarget) -> Revisit:
    try:
        return Revisit(digest_key(target.digest), normalize(target.url), parse_date(target.date))
    except (BadUrl, ValueError, OverflowError):
        return Revisit(digest_key(target.digest), "", None)


def _arrival_of_facts(
    url: str, moment: int, facts: dict[str, Any], report: ImportReport, where: str
) -> NewCapture | None:
    try:
        return _from_facts(url, moment, facts)
    except (KeyError, TypeError, ValueError, IndexError):
        report.refuse("unreadable facts of a check", f"{where} {url[:100]}")
        return None


def _from_facts(url: str, moment: int, facts: dict[str, Any]) -> NewCapture:
    """A check without an answer, or what belongs to the capture before it."""
    said = {"final": facts["final_url"], "hops": facts["redirects"], **facts}
    details = CheckDetails.from_outside({name: said.get(name) for name in _FACTS if said.get(name) is not None})
    if details.final_url == url:
        details = details._replace(final_url="")
    headers = headers_from_outside(facts.get("headers", ()))
    # Headers are here only if no record could hold the answer; otherwise the capture before has them.
    status = status_from_outside(facts["status"]) if headers else 0
    outcome = Outcome(facts["outcome"])
    return NewCapture(url, moment, status, headers, None, outcome, versioned=False, dated=True, details=details)


def parse_check_facts(text: bytes) -> dict[str, Any] | None:
    """The facts of a check written by Letopis; None if they are none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


_DATE_PARTS = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d\d?)(.*))?)?", re.ASCII | re.DOTALL)
_FRACTION = re.compile(r"(?<=\.\d{6})\d+")
_USUAL_DATES = tuple(map(len, ("2024-01-31T12:00:00Z", "2024-01-31T12:00:00.000Z", "2024-01-31T12:00:00.000000Z")))
_STAMP = re.compile(r"\d{14}", re.ASCII)


def parse_date(date: str) -> int:
    """Milliseconds of a date as records write it; ValueError when it is none.

    Years and months without a day mean their first moment. Some writers count the days of the year after the month.
    """
    text = date.strip()
    if len(text) in _USUAL_DATES and text[10] == "T":
        return to_millis(utc_time(text))
    text = _FRACTION.sub("", text)
    if _STAMP.match(text):
        text = f"{text[:8]}T{text[8:14]}Z"
    parts = _DATE_PARTS.fullmatch(text)
    if parts and parts[2] is None:
        text = f"{parts[1]}-01-01"
    elif parts and parts[3] is None:
        text = f"{parts[1]}-{parts[2]}-01"
    elif parts and len(parts[3]) == 3:
        day = datetime(int(parts[1]), 1, 1, tzinfo=UTC) + timedelta(days=int(parts[3]) - 1)
        text = f"{day:%Y-%m-%d}{parts[4]}"
    return to_millis(utc_time(text))
