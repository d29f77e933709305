"""CDXJ in: an index names files and places, and only those places are read, from a disk or over HTTP."""

from __future__ import annotations

import asyncio
import io
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import urljoin

from letopis.archive import Archive
from letopis.config import FetchSettings
from letopis.errors import LetopisError, UsageError
from letopis.exchange.body_codings import MAX_BODY
from letopis.exchange.captures import BATCH_CAPTURES, import_captures
from letopis.exchange.cdx import RecordLocation
from letopis.exchange.remote_file import source_of
from letopis.exchange.sources import ImportedCapture, ImportReport
from letopis.exchange.warc_import import record_captures
from letopis.zrec import NoRanges, RangeSource

LINES_AT_ONCE = 10_000
"""Lines of the index that are sorted by place at once."""
READ_BYTES = 8 * 1024 * 1024
"""Records that lie one after another are fetched together up to this."""

_MOST_LINE = 1024 * 1024
_MOST_OFFSET = 1 << 62
_REMOTE = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int


def import_cdxj(
    archive: Archive,
    address: str,
    report: ImportReport,
    progress: Callable[[int], None] = lambda done: None,
    *,
    base: str = "",
) -> None:
    """Takes in what the lines of an index point at.

    File names are looked up under `base`, else beside the index; both may be
    folders or http addresses.
    """
    asyncio.run(_CdxImport(archive, address, base, report, progress).run())


class _CdxImport:
    """One index; files stay open while it is read."""

    def __init__(
        self, archive: Archive, address: str, base: str, report: ImportReport, progress: Callable[[int], None]
    ) -> None:
        self._archive = archive
        self._address = address
        self._base = base
        self._report = report
        self._progress = progress
        self._sources: dict[str, RangeSource] = {}
        self._stack = AsyncExitStack()
        self._waiting: list[ImportedCapture] = []
        self._bytes = 0

    async def run(self) -> None:
        """Reads the index part by part."""
        async with self._stack:
            async for part in self._parts():
                for name, spans in _by_file(_places(part, self._name(), self._report)).items():
                    await self._file(name, spans)
            self._flush()

    async def _parts(self) -> AsyncIterator[list[str]]:
        if self._address.startswith(_REMOTE):
            async for part in self._remote_parts():
                yield part
            return
        lines = _lines_of(Path(self._address))
        while part := list(islice(lines, LINES_AT_ONCE)):
            yield part

    async def _remote_parts(self) -> AsyncIterator[list[str]]:
        """An index on a server, piece by piece where it gives ranges."""
        source = await self._open(self._address)
        rest = b""
        async for piece in _pieces(source):
            *lines, rest = (rest + piece).split(b"\n")
            yield [line.decode("utf-8", "replace") for line in lines]
        yield [rest.decode("utf-8", "replace")]

    async def _file(self, name: str, spans: list[_Span]) -> None:
        """A file or a place that cannot be read is named; the others come in."""
        for span in spans:
            try:
                source = await self._open(self._where(name))
                data = await source.read(span.start, span.end)
            except NoRanges:
                self._report.refuse("its server gives no ranges; download it and name its folder with --base", name)
                return
            except LetopisError as error:
                self._report.refuse(f"cannot be read ({error})", name)
                return
            self._take(data, name)

    def _take(self, data: bytes, name: str) -> None:
        """Records of single places wait until a commit is worth it."""
        try:
            self._waiting += record_captures(io.BytesIO(data), self._report)
        except Exception as error:
            self._report.refuse(f"a place holds no record ({type(error).__name__}: {error})", name)
        self._bytes += len(data)
        if len(self._waiting) >= BATCH_CAPTURES or self._bytes >= READ_BYTES:
            self._flush()

    def _flush(self) -> None:
        import_captures(self._archive, iter(self._waiting), self._name(), self._report, self._progress)
        self._waiting, self._bytes = [], 0

    async def _open(self, where: str) -> RangeSource:
        if where not in self._sources:
            settings: FetchSettings = self._archive.settings.fetch
            opened = source_of(where, settings, self._archive.clock)
            self._sources[where] = await self._stack.enter_async_context(opened)
        return self._sources[where]

    def _where(self, name: str) -> str:
        """Where a file of the index lies. A local index never leads outside its folder, nor a remote one to a disk."""
        base = self._base or self._address
        if name.startswith(_REMOTE):
            return name
        if base.startswith(_REMOTE):
            folder = base if not self._base or base.endswith("/") else base + "/"
            return urljoin(folder, name)
        folder_path = Path(base) if self._base else Path(base).parent
        file = (folder_path / name).resolve()
        if not file.is_relative_to(folder_path.resolve()):
            raise UsageError("it lies outside the folder of the index; name that folder as its base")
        if file.exists() and not file.is_file():  # a pipe would be waited for without end
            raise UsageError("it is no plain file")
        return str(file)

    def _name(self) -> str:
        return self._address.rpartition("/")[2]


async def _pieces(source: RangeSource) -> AsyncIterator[bytes]:
    try:
        size = await source.size()
        first = await source.read(0, min(READ_BYTES, size))
    except NoRanges:
        async for piece in source.stream():
            yield piece
        return
    yield first
    for start in range(READ_BYTES, size, READ_BYTES):
        yield await source.read(start, min(start + READ_BYTES, size))


def _lines_of(file: Path) -> Iterator[str]:
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(_MOST_LINE):
                yield line
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; give a CDXJ file") from None


def _places(lines: Iterable[str], where: str, report: ImportReport) -> Iterator[RecordLocation]:
    """The places that lines name; headers are passed over, lines without a place are counted."""
    for line in lines:
        if not line.strip() or line.startswith(("!", " CDX")):
            continue
        try:
            fields = json.loads(line[line.index("{") :])
            place = RecordLocation(str(fields["filename"]), int(fields["offset"]), int(fields["length"]))
            if not 0 <= place.offset < _MOST_OFFSET or not 0 < place.length <= MAX_BODY:
                raise ValueError("no such place")
            yield place
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            report.refuse("a line without filename, offset and length", f"{where} {line[:80].strip()}")


def _by_file(places: Iterable[RecordLocation]) -> dict[str, list[_Span]]:
    """Spans to read by file, in the order of their places; neighbours joined, repeats read once."""
    found: dict[str, list[_Span]] = defaultdict(list)
    for name, start, length in sorted(set(places)):
        spans, end = found[name], start + length
        if spans and start < spans[-1].end and end - spans[-1].start <= MAX_BODY:
            spans[-1] = _Span(spans[-1].start, max(end, spans[-1].end))
        elif spans and start == spans[-1].end and end - spans[-1].start <= READ_BYTES:
            spans[-1] = _Span(spans[-1].start, end)
        else:
            spans.append(_Span(start, end))
    return found
