"""WARC and ARC files of others in: captures become checks and versions with their own times."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import brotli
from backports import zstd
from fastwarc.warc import ArchiveIterator, WarcRecordType
from warcio.archiveiterator import ArchiveIterator as SlowIterator

from letopis.archive import Archive, Arrival, Details
from letopis.errors import BadUrl, LetopisError, UsageError
from letopis.exchange.http_block import restored
from letopis.exchange.warc_out import CHECK_TYPE
from letopis.model import Headers, Hop, Outcome, header, to_millis
from letopis.urls import normalize

BATCH = 256
MAX_FACTS = 1024 * 1024
MAX_BODY = 256 * 1024 * 1024
"""Larger bodies are refused and named in the report."""


@dataclass(slots=True)
class ImportReport:
    """What came in, and what did not and why."""

    records: int = 0
    versions: int = 0
    checks: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def refuse(self, reason: str, where: str) -> None:
        """Counts a record that was left out; the first ones are named."""
        self.refused[reason] += 1
        if len(self.examples) < 20:
            self.examples.append(f"{where}: {reason}")


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture as a file tells it."""

    url: str
    date: str
    status: int
    headers: Headers
    body: bytes
    is_revisit: bool = False
    facts: dict[str, Any] | None = None


def import_files(
    archive: Archive, files: Sequence[Path], progress: Callable[[int], None] = lambda done: None
) -> ImportReport:
    """Takes all files in, in batches; what was committed stays when a later file is broken."""
    report = ImportReport()
    for file in files:
        try:
            for batch in _batches(_arrivals(file, report)):
                _commit(archive, batch, report)
                progress(report.records)
        except LetopisError:
            raise
        except Exception as error:
            report.refuse(f"the rest of the file cannot be read ({type(error).__name__}: {error})", file.name)
    return report


def _commit(archive: Archive, batch: list[Arrival], report: ImportReport) -> None:
    for done in archive.commit(batch):
        report.checks += 1
        report.versions += done.outcome in (Outcome.NEW, Outcome.CHANGED)


def _batches(arrivals: Iterator[Arrival]) -> Iterator[list[Arrival]]:
    batch: list[Arrival] = []
    size = 0
    for arrival in arrivals:
        batch.append(arrival)
        size += len(arrival.body or b"")
        if len(batch) >= BATCH or size > 64 * 1024 * 1024:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _arrivals(file: Path, report: ImportReport) -> Iterator[Arrival]:
    """Captures as arrivals; facts of ours that follow a capture are joined with it."""
    waiting: Arrival | None = None
    for capture in captures(file, report):
        report.records += 1
        arrival = _arrival(capture, report, file.name)
        if arrival is None:
            continue
        if (
            capture.facts is not None
            and waiting is not None
            and (waiting.url, waiting.time) == (arrival.url, arrival.time)
        ):
            waiting = replace(waiting, details=arrival.details)
            continue
        if waiting is not None:
            yield waiting
        waiting = arrival
    if waiting is not None:
        yield waiting


def captures(file: Path, report: ImportReport) -> Iterator[Capture]:
    """Responses, revisits and resources of a WARC or ARC file, in its order."""
    if not file.is_file():
        raise UsageError(f"cannot read {file}; give a WARC or ARC file")
    with file.open("rb") as stream:
        if _is_arc(stream):
            yield from _slow(stream)
            return
    yield from _fast(file, report)


def _is_arc(stream: BinaryIO) -> bool:
    head = stream.read(4096)
    stream.seek(0)
    if head[:2] == b"\x1f\x8b":
        head = zlib.decompressobj(31).decompress(head, 64)
    return head.startswith(b"filedesc:")


_FAST_TYPES = WarcRecordType.response | WarcRecordType.revisit | WarcRecordType.resource | WarcRecordType.metadata


def _fast(file: Path, report: ImportReport) -> Iterator[Capture]:
    for record in ArchiveIterator(str(file), record_types=_FAST_TYPES, parse_http=True):
        url = (record.headers.get("WARC-Target-URI") or "").strip("<>")
        if record.content_length > MAX_BODY:
            report.refuse("larger than 256 MiB", url)
            continue
        date = record.headers.get("WARC-Date") or ""
        if record.record_type == WarcRecordType.metadata:
            if record.headers.get("Content-Type") == CHECK_TYPE:
                yield Capture(url, date, 0, (), b"", facts=json.loads(record.reader.read(MAX_FACTS)))
            continue
        status, headers = _http(record)
        body = record.reader.read(MAX_BODY)
        yield Capture(url, date, status, headers, body, record.record_type == WarcRecordType.revisit)


def _http(record: Any) -> tuple[int, Headers]:
    """Status and headers of a record; a resource without HTTP counts as a plain success."""
    http = record.http_headers
    if http is None and record.record_type == WarcRecordType.revisit:
        return 200, ()
    if http is None:
        return 200, (("Content-Type", str(record.headers.get("Content-Type") or "")),)
    return int(http.status_code or 200), tuple(http.astuples())


def _slow(stream: BinaryIO) -> Iterator[Capture]:
    """ARC, which only the older reader knows."""
    for record in SlowIterator(stream, arc2warc=True):
        if record.rec_type != "response" or record.http_headers is None:
            continue
        headers = tuple((str(name), str(value)) for name, value in record.http_headers.headers)
        status = int(record.http_headers.get_statuscode() or 0)
        date = record.rec_headers.get_header("WARC-Date") or ""
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        yield Capture(url, date, status, headers, record.content_stream().read(MAX_BODY), False)


def _arrival(capture: Capture, report: ImportReport, where: str) -> Arrival | None:
    try:
        url = normalize(capture.url)
        moment = _moment(capture.date)
        if not capture.status and capture.facts is None:
            raise ValueError("no status")
    except (BadUrl, ValueError):
        report.refuse("no address, date or status that can be read", f"{where} {capture.url[:100]}")
        return None
    if capture.facts is not None:
        return _from_facts(url, moment, capture.facts)
    headers = restored(capture.headers)
    if capture.is_revisit:
        return Arrival(url, moment, capture.status, headers, None, Outcome.UNCHANGED, versioned=False, dated=True)
    body = _decoded(capture, report, where)
    is_page = 200 <= capture.status < 300
    outcome = Outcome.NEW if is_page else Outcome.UNCHANGED if capture.status < 400 else Outcome.UNAVAILABLE
    if not is_page and (not body or len(body) > 64 * 1024):
        body = None
    return Arrival(url, moment, capture.status, headers, body, outcome, versioned=is_page, dated=True)


def _from_facts(url: str, moment: int, facts: dict[str, Any]) -> Arrival:
    """A check without an answer, or what belongs to the capture before it."""
    hops = [Hop(hop[0], hop[1], hop[2], hop[3], tuple(map(tuple, hop[4]))) for hop in facts["redirects"]]
    final = facts["final_url"] if facts["final_url"] != url else ""
    details = Details(final_url=final, hops=tuple(hops), error=facts["error"], warnings=tuple(facts["warnings"]))
    outcome = Outcome(facts["outcome"])
    return Arrival(url, moment, 0, (), None, outcome, versioned=False, dated=True, details=details)


def _moment(date: str) -> int:
    parsed = datetime.fromisoformat(date.strip())
    return to_millis(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))


def _decoded(capture: Capture, report: ImportReport, where: str) -> bytes | None:
    """The body without its codings; one that cannot be undone stays as it came."""
    body = (
        _unchunked(capture.body) if "chunked" in header(capture.headers, "transfer-encoding").lower() else capture.body
    )
    coding = header(capture.headers, "content-encoding").lower().strip()
    undo = _CODINGS.get(coding)
    if undo is None:
        return body
    try:
        return undo(body)
    except Exception:
        report.refuse(f"a body said to be {coding} is not; stored as it came", f"{where} {capture.url[:100]}")
        return body


def _gunzip(body: bytes) -> bytes:
    return zlib.decompressobj(47).decompress(body, MAX_BODY)


_CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _gunzip,
    "br": brotli.decompress,
    "zstd": zstd.decompress,
}


def _unchunked(body: bytes) -> bytes:
    """The body of a chunked message; what is not chunked stays as it is."""
    parts: list[bytes] = []
    rest = body
    while True:
        line, newline, after = rest.partition(b"\r\n")
        size = _hex(line.split(b";")[0].strip())
        if not newline or size is None or size > len(after):
            return b"".join(parts) if parts else body
        if size == 0:
            return b"".join(parts)
        parts.append(after[:size])
        rest = after[size:].removeprefix(b"\r\n")


def _hex(digits: bytes) -> int | None:
    try:
        return int(digits, 16) if digits and len(digits) <= 8 else None
    except ValueError:
        return None
