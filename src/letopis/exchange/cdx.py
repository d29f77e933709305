"""CDXJ lines of captures and of WARC records, sorted however many there are, and the export of them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from heapq import merge
from typing import IO, BinaryIO, NamedTuple

from letopis.archive import Archive, identify
from letopis.archive.cluster import LocalRunner, PieceRunner
from letopis.exchange.selection import ExportPart, ExportSelection, export_parts
from letopis.exchange.warc_records import is_revisit
from letopis.extract.detection import bare_type
from letopis.model import Check, Outcome, header, stamp14
from letopis.urls import surt

REVISIT = "warc/revisit"
EMPTY_DIGEST = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""SHA-1 of nothing: what a redirect carried of its own."""


class RecordLocation(NamedTuple):
    """A file and the part of it that holds a record."""

    filename: str
    offset: int
    length: int


def capture_line(check: Check, digest: str, length: int) -> str:
    """The line of a check that got an answer, as the archive's own CDX tells it.

    A redirected check is a redirect; one that found nothing new is a revisit without a status of its own.
    """
    fields = {"url": check.url}
    if check.redirects:
        hop = check.redirects[0]
        fields |= _answer_fields(header(hop.headers, "content-type"), str(hop.status), EMPTY_DIGEST)
        length = 0
    elif is_revisit(check):
        fields |= {"mime": REVISIT, "digest": digest or "-"}
    else:
        fields |= _answer_fields(check.content_type, str(check.status), digest)
    return _line(check, fields | {"length": str(length)})


def record_line(check: Check, digest: str, where: RecordLocation) -> str:
    """The line of a WARC record, as indexers make it of the file."""
    mime = REVISIT if is_revisit(check) else check.content_type
    place = {"length": str(where.length), "offset": str(where.offset), "filename": where.filename}
    digest = f"sha1:{digest}" if digest else "-"
    return _line(check, {"url": check.url} | _answer_fields(mime, str(check.status), digest) | place)


def _answer_fields(content_type: str, status: str, digest: str) -> dict[str, str]:
    words = bare_type(content_type).split()
    return {"mime": words[0] if words else "unk", "status": status, "digest": digest}


def _line(check: Check, fields: dict[str, str]) -> str:
    return f"{surt(check.url)} {stamp14(check.checked_at)} {json.dumps(fields)}"


LINES_IN_MEMORY = 100_000
"""Lines that are held in memory."""
_FAN_IN = 64


class SortedLines:
    """Takes lines in any order and gives them back sorted; used once.

    Lines must not hold a newline. Temporary files vanish with the object.
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
        """Gives the temporary files back."""
        for run in self._runs:
            run.close()
        self._runs.clear()
        self._lines.clear()

    def _spill(self) -> None:
        self._lines.sort()
        self._runs.append(_written(iter(self._lines)))
        self._lines = []
        if len(self._runs) >= _FAN_IN:
            # Too many open files: one of all of them takes their place.
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


_NEWS = (Outcome.NEW, Outcome.CHANGED)


def export_cdxj(
    archive: Archive,
    out: BinaryIO,
    selected: ExportSelection,
    progress: Callable[[int], None] = lambda done: None,
    spread: PieceRunner | None = None,
) -> int:
    """Writes a line for each selected check that got an answer; answers how many. `spread` may work them out."""
    lines = SortedLines()
    count = 0
    try:
        for found in (spread or LocalRunner(archive)).each(_part_lines, export_parts(archive, selected)):
            for line in found:
                lines.add(line)
            count += len(found)
            progress(count)
        out.writelines(lines)
    finally:
        lines.close()
    return count


def _part_lines(archive: Archive, part: ExportPart) -> list[str]:
    checks = (check for url in part.urls for check in part.selected.checks(archive, url)[part.start : part.end])
    return [capture_line(check, *_content(archive, check)) for check in checks if check.status]


def _content(archive: Archive, check: Check) -> tuple[str, int]:
    """Digest and size of what a check carried."""
    if check.outcome in _NEWS or is_revisit(check):
        return check.digest, check.length
    body = archive.answers.error_body(check.url, check.checked_at)
    if body:
        return identify(body).text, len(body)
    return ("-" if check.outcome is Outcome.TOO_LARGE else EMPTY_DIGEST), 0
