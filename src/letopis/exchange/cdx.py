"""CDX: captures as rows and as CDXJ lines, the index of a WARC file, lines sorted however many there are, the export.

The CDX servers, TimeMaps, WACZ files and the export all write their lines here.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import IO

from letopis.archive import Archive
from letopis.archive.captures import REPEAT, TOO_LARGE, UNKNOWN_TYPE, VERSION, CaptureList, ListedCapture, digest_texts
from letopis.archive.cluster import LocalRunner, PieceRunner
from letopis.exchange.selection import ExportPart, ExportSelection, export_parts
from letopis.exchange.warc_records import WarcRecord, is_revisit
from letopis.model import Check, header, stamp14
from letopis.model.times import timestamps
from letopis.tuples import NamedTuple
from letopis.urls import surt

FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
"""The fields of a row, in the order of its places; the time in milliseconds follows them."""

CdxRow = tuple[str, str, str, str, str, str, str, int]

REVISIT = "warc/revisit"
EMPTY_DIGEST = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""SHA-1 of nothing: the body of a redirect."""

_NOTHING = bytes(20)
_MEDIA_TYPE = re.compile(r'\s*([^"\\;,\s]+)')


class RecordLocation(NamedTuple):
    """A file and the part of it that holds a record."""

    filename: str
    offset: int
    length: int


def cdx_rows(
    captures: CaptureList, batch: Sequence[ListedCapture], revisit_status: str, *, resolved: str | None = None
) -> list[CdxRow]:
    """The rows of a batch; a redirected check is a redirect.

    An answer without a body (304) is a revisit; where `resolved` names a status, it has that one and the media type of
    what it stands for. A whole answer that brought nothing new is an answer like others.
    """
    kinds = captures.media_types(batch)
    texts = digest_texts([capture[5] or _NOTHING for capture in batch])
    rows: list[CdxRow] = []
    add = rows.append
    stamps = timestamps([capture[2] for capture in batch])
    for capture, digest, stamp in zip(batch, texts, stamps, strict=True):
        name, url, time, status, head, sha1, length, redirect, kind = capture
        if redirect is not None:
            media_type = _media_type(header(redirect.headers, "content-type"))
            add((name, stamp, url, media_type, str(redirect.status), EMPTY_DIGEST, "0", time))
        elif kind == VERSION:
            add((name, stamp, url, kinds[head], str(status), digest, str(length), time))
        elif kind == REPEAT and (status != 304 or resolved is not None):
            shown = resolved or "" if status == 304 else str(status)
            add((name, stamp, url, kinds[head], shown, digest if sha1 else "-", str(length or 0), time))
        elif kind == REPEAT:
            add((name, stamp, url, REVISIT, revisit_status, digest if sha1 else "-", str(length or 0), time))
        elif sha1:
            add((name, stamp, url, kinds[head], str(status), digest, str(length), time))
        else:
            kept = "-" if kind == TOO_LARGE else EMPTY_DIGEST
            add((name, stamp, url, kinds[head], str(status), kept, "0", time))
    return rows


def _media_type(content_type: str) -> str:
    """Lower-case, without parameters, and without anything that would end a field."""
    match = _MEDIA_TYPE.match(content_type)
    return match[1].lower() if match else UNKNOWN_TYPE


def cdxj_line(row: CdxRow, place: str = "") -> str:
    """Key, timestamp and a JSON object, without the end of the line; `place` is JSON that follows the other fields.

    Joined as text: lists run to millions. A row without a status is a revisit, which has none.
    """
    key, stamp, url, mime, status, digest, length, _ = row
    if '"' in url or "\\" in url:
        url = json.dumps(url)[1:-1]
    shown = f'"status": "{status}", ' if status else ""
    return (
        f'{key} {stamp} {{"url": "{url}", "mime": "{mime}", {shown}"digest": "{digest}", "length": "{length}"{place}}}'
    )


def record_line(check: Check, digest: str, where: RecordLocation) -> str:
    """The line of a WARC record, as indexers derive it from the file."""
    mime = REVISIT if is_revisit(check) else _media_type(check.content_type)
    digest = f"sha1:{digest}" if digest else "-"
    fields = (surt(check.url), stamp14(check.checked_at), check.url, mime, str(check.status), digest)
    place = f', "offset": "{where.offset}", "filename": {json.dumps(where.filename)}'
    return cdxj_line((*fields, str(where.length), 0), place)


def resource_line(check: Check, record: WarcRecord, where: RecordLocation) -> str:
    """The line of a record that is no capture of a page: its URL is its key, as with other indexers."""
    address, kind = (header(record.headers, name) for name in ("warc-target-uri", "content-type"))
    digest = header(record.headers, "warc-payload-digest")
    place = f', "offset": "{where.offset}", "filename": {json.dumps(where.filename)}'
    fields = (address, stamp14(check.checked_at), address, _media_type(kind), "200", digest)
    return cdxj_line((*fields, str(where.length), 0), place)


LINES_IN_MEMORY = 100_000
"""Lines in memory."""
_FAN_IN = 64


class SortedLines:
    """Takes lines in any order and returns them sorted; used once.

    Lines must not contain a newline. Temporary files are removed with the object.
    """

    def __init__(self, held: int = LINES_IN_MEMORY) -> None:
        self._most = held
        self._lines: list[bytes] = []
        self._runs: list[IO[bytes]] = []

    def add(self, line: str) -> None:
        """Takes one line without its end."""
        self._lines.append(line.encode("utf-8", "surrogateescape") + b"\n")
        if len(self._lines) >= self._most:
            self._spill()

    def __iter__(self) -> Iterator[bytes]:
        """All lines with their ends, sorted; equal ones stay."""
        self._lines.sort()
        yield from merge(*map(_read, self._runs), self._lines)

    def close(self) -> None:
        """Removes the temporary files."""
        for run in self._runs:
            run.close()
        self._runs.clear()
        self._lines.clear()

    def _spill(self) -> None:
        self._lines.sort()
        self._runs.append(_written(iter(self._lines)))
        self._lines = []
        if len(self._runs) >= _FAN_IN:
            # Too many open files: they are merged into one.
            whole = _written(merge(*map(_read, self._runs)))
            for run in self._runs:
                run.close()
            self._runs = [whole]


def _written(lines: Iterator[bytes]) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by its owner
    file.writelines(lines)
    return file


def _read(run: IO[bytes]) -> Iterator[bytes]:
    run.seek(0)
    return iter(run)


def cdxj_lines(
    archive: Archive,
    selected: ExportSelection,
    progress: Callable[[int], None] = lambda done: None,
    spread: PieceRunner | None = None,
) -> Iterator[bytes]:
    """A line for each selected check that got an answer; `spread` may compute them. Sorted as a whole."""
    lines = SortedLines()
    count = 0
    try:
        for found in (spread or LocalRunner(archive)).each(_part_lines, export_parts(archive, selected)):
            for line in found:
                lines.add(line)
            count += len(found)
            progress(count)
        yield from lines
    finally:
        lines.close()


def _part_lines(archive: Archive, part: ExportPart) -> list[str]:
    captures = archive.attached(CaptureList)
    found: list[str] = []
    for url in part.urls:
        batch = list(islice(part.selected.captures(captures, url), part.start, part.end))
        found += map(cdxj_line, cdx_rows(captures, batch, revisit_status=""))
    return found
