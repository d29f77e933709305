"""WARC and ARC files of others, read: captures in the order of the file, with their own times."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecordType

from letopis.errors import MissingExtra, UsageError
from letopis.exchange.captures import MAX_BODY, parse_check_facts
from letopis.exchange.sources import ImportedCapture, ImportReport
from letopis.exchange.warc_records import CHECK_TYPE, is_warc_name, parse_response
from letopis.model import Headers, header


def warcs_in_folder(folder: Path) -> list[Path]:
    """WARC files that `--warc-file` wrote into the folder of the mirror."""
    return sorted(file for file in folder.iterdir() if is_warc_name(file.name) and file.is_file())


MAX_FACTS = 1024 * 1024


def warc_captures(file: Path, report: ImportReport) -> Iterator[ImportedCapture]:
    """Responses, revisits and resources of a WARC or ARC file, in its order."""
    if not file.is_file():
        raise UsageError(f"cannot read {file}; give a WARC or ARC file")
    with file.open("rb") as stream:
        if _is_arc(stream):
            yield from _arc_captures(stream)
            return
    yield from record_captures(str(file), report)


def _is_arc(stream: BinaryIO) -> bool:
    head = stream.read(4096)
    stream.seek(0)
    if head[:2] == b"\x1f\x8b":
        head = zlib.decompressobj(31).decompress(head, 64)
    return head.startswith(b"filedesc:")


_METADATA, _RESOURCE, _REVISIT = WarcRecordType.metadata, WarcRecordType.resource, WarcRecordType.revisit
_FAST_TYPES = WarcRecordType.response | _REVISIT | _RESOURCE | _METADATA


def record_captures(source: str | BinaryIO, report: ImportReport) -> Iterator[ImportedCapture]:
    """The same of a WARC file by its name, or of a stream that holds whole records."""
    for record in ArchiveIterator(source, record_types=_FAST_TYPES, parse_http=False):
        fields = {name.lower(): value for name, value in record.headers.astuples()}
        url = fields.get("warc-target-uri", "").strip("<>")
        kind = record.record_type
        if record.content_length > MAX_BODY:
            report.refuse("larger than 256 MiB", url)
            continue
        if kind == _METADATA and fields.get("content-type") != CHECK_TYPE:
            continue
        block = _block(record, fields)
        if block is None:
            report.break_off("the record breaks off before its end", url or "a record without an address")
            continue
        date = fields.get("warc-date", "")
        if kind == _METADATA:
            yield ImportedCapture(url, date, 0, (), b"", facts=parse_check_facts(block[:MAX_FACTS]) or {})
            continue
        status, headers, body = _answer(kind, fields.get("content-type", ""), block)
        yield ImportedCapture(url, date, status, headers, body, kind == _REVISIT)


def _block(record: Any, fields: dict[str, str]) -> bytes | None:
    """All bytes of a record; None when they are not all there."""
    # Asked for more than there is, the reader makes room for all of it first.
    block: bytes = record.reader.read(record.content_length)
    is_short = len(block) < record.content_length or "content-length" not in fields
    return _whole_by_length(block) if is_short else block


def _whole_by_length(block: bytes) -> bytes | None:
    """A message whose record breaks off, when it is whole by its own length; else None."""
    status, headers, body = parse_response(block)
    length = header(headers, "content-length")
    if not status or not (length.isascii() and length.isdigit()) or len(length) > 12 or len(body) < int(length):
        return None
    return block[: len(block) - len(body) + int(length)]


def _answer(kind: Any, content_type: str, block: bytes) -> tuple[int, Headers, bytes]:
    """Status, headers and body of a record; a resource without HTTP counts as a plain success."""
    if kind == _RESOURCE and not content_type.startswith("application/http"):
        return 200, (("Content-Type", content_type),), block
    status, headers, body = parse_response(block)
    if not status and kind == _REVISIT:
        return 200, (), b""
    return status, headers, body


def _arc_captures(stream: BinaryIO) -> Iterator[ImportedCapture]:
    """ARC, which only the older reader knows."""
    try:
        from warcio.archiveiterator import ArchiveIterator as SlowIterator  # noqa: PLC0415 - optional dependency
    except ImportError:
        raise MissingExtra("ARC files need warcio; install it with: pip install 'letopis[arc]'") from None

    for record in SlowIterator(stream, arc2warc=True):
        if record.rec_type != "response" or record.http_headers is None:
            continue
        headers = tuple((str(name), str(value)) for name, value in record.http_headers.headers)
        status = int(record.http_headers.get_statuscode() or 0)
        date = record.rec_headers.get_header("WARC-Date") or ""
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        yield ImportedCapture(url, date, status, headers, record.content_stream().read(MAX_BODY), False)
