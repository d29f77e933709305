"""Import of CDXJ and CDX: an index names files and places, and only those places are read, from a disk or over HTTP.

An index may be compressed with gzip. CDX of 9 or 11 fields is read by its first line, or without one by their number;
if it has no lengths, a record is searched in the next bytes. If a line names another method than GET, its record is the
answer to that.
"""

from __future__ import annotations

import asyncio
import io
import json
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from letopis.archive import Archive
from letopis.config import FetchSettings
from letopis.errors import LetopisError, UsageError
from letopis.exchange.body_codings import MAX_BODY
from letopis.exchange.captures import BATCH_CAPTURES, import_captures
from letopis.exchange.remote_file import source_of
from letopis.exchange.sources import ImportedCapture, ImportReport
from letopis.exchange.warc_import import record_captures
from letopis.tuples import NamedTuple
from letopis.urls.request_keys import indexed_url
from letopis.zrec import NoRanges, RangeSource

LINES_AT_ONCE = 10_000
"""Lines of the index that are sorted by place at once."""
READ_BYTES = 8 * 1024 * 1024
"""Adjacent records are fetched together up to this size."""

_MOST_LINE = 1024 * 1024
_MOST_OFFSET = 1 << 62
_REMOTE = ("http://", "https://")


_CDX_LETTERS = {9: "NbamskrVg", 11: "NbamskrMSVg"}
_MOST_UNSIZED = 8 * 1024 * 1024
"""The maximum size of a record whose index has no length."""


class _IndexedRecord(NamedTuple):
    """A place that an index names; without a length it is the record that begins there. `method` and `fields` are
    those of a request that was no GET.
    """

    filename: str
    offset: int
    length: int
    method: str = ""
    fields: str = ""

    @property
    def stands_alone(self) -> bool:
        """Whether it is not read together with its neighbours."""
        return bool(self.method) or not self.length


class _Span(NamedTuple):
    start: int
    end: int
    only: _IndexedRecord | None = None


def import_cdxj(
    archive: Archive,
    address: str,
    report: ImportReport,
    progress: Callable[[int], None] = lambda done: None,
    *,
    base: str = "",
) -> None:
    """Imports what the lines of an index point at.

    File names are looked up under `base`, or next to the index; both may be folders or http URLs.
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
        self._lines = _IndexLines()

    async def run(self) -> None:
        """Reads the index part by part."""
        async with self._stack:
            async for part in self._parts():
                for name, spans in _by_file(self._lines.places(part, self._name(), self._report)).items():
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
        """An index on a server, in pieces if the server supports ranges."""
        source = await self._open(self._address)
        rest, unpack = b"", _Unpacker()
        async for piece in _pieces(source):
            for plain in unpack(piece):
                *lines, rest = (rest + plain).split(b"\n")
                yield [line.decode("utf-8", "replace") for line in lines]
                rest = rest if len(rest) <= _MOST_LINE else b""
        yield [rest.decode("utf-8", "replace")]

    async def _file(self, name: str, spans: list[_Span]) -> None:
        """A file or a place that cannot be read is named; the others are imported."""
        for span in spans:
            try:
                source = await self._open(self._where(name))
                end = span.end if span.end > span.start else min(span.start + _MOST_UNSIZED, await source.size())
                data = await source.read(span.start, end)
            except NoRanges:
                self._report.refuse(
                    "its server does not support ranges; download it and name its folder with --base", name
                )
                return
            except LetopisError as error:
                self._report.refuse(f"cannot be read ({error})", name)
                return
            self._take(data, name, span.only)

    def _take(self, data: bytes, name: str, only: _IndexedRecord | None) -> None:
        """Records of single places wait until there are enough for a commit."""
        try:
            # What follows a record without a length belongs to others.
            found = record_captures(io.BytesIO(data), ImportReport() if only and not only.length else self._report)
            self._waiting += found if only is None else _answering(only, found)
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
            # A foreign index must not lead into the private network of the importer.
            named = any(urlsplit(where).netloc == urlsplit(one).netloc for one in (self._base, self._address))
            opened = source_of(where, settings, self._archive.clock, named_by="cli" if named else "http")
            self._sources[where] = await self._stack.enter_async_context(opened)
        return self._sources[where]

    def _where(self, name: str) -> str:
        """The place of a file of the index. Local indexes never lead out of their folder, nor remote ones to a disk."""
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
        if file.exists() and not file.is_file():  # reading a pipe would never end
            raise UsageError("it is not a regular file")
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


class _Unpacker:
    """Pieces of an index, decompressed if necessary; damage ends it with UsageError."""

    def __init__(self) -> None:
        self._inflate: zlib._Decompress | None = None
        self._begun = False

    def __call__(self, piece: bytes) -> Iterator[bytes]:
        """The content of a piece, in parts of bounded size; members follow one another."""
        if not self._begun:
            self._begun = True
            self._inflate = zlib.decompressobj(31) if piece.startswith(b"\x1f\x8b") else None
        if self._inflate is None:
            yield piece
            return
        try:
            while piece:
                yield self._inflate.decompress(piece, READ_BYTES)
                piece = self._inflate.unconsumed_tail
                if self._inflate.eof:
                    piece, self._inflate = self._inflate.unused_data, zlib.decompressobj(31)
        except zlib.error as error:
            raise UsageError(f"the index is damaged ({error}); fetch it again") from None


def _lines_of(file: Path) -> Iterator[str]:
    rest, unpack = b"", _Unpacker()
    try:
        with file.open("rb") as stream:
            while piece := stream.read(_MOST_LINE):
                for plain in unpack(piece):
                    *lines, rest = (rest + plain).split(b"\n")
                    yield from (line.decode("utf-8", "replace") for line in lines)
                    rest = rest if len(rest) <= _MOST_LINE else b""
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; give a CDXJ or CDX file") from None
    yield rest.decode("utf-8", "replace")


class _IndexLines:
    """Lines of one index; the fields in its first line apply to all."""

    def __init__(self) -> None:
        self._letters: dict[int, str] = dict(_CDX_LETTERS)

    def places(self, lines: Iterable[str], where: str, report: ImportReport) -> Iterator[_IndexedRecord]:
        """The places that lines name; headers are skipped, lines without a place are counted."""
        for line in lines:
            if not line.strip() or line.startswith("!"):
                continue
            if line.lstrip().startswith("CDX "):
                letters = "".join(line.split()[1:])
                self._letters[len(letters)] = letters
                continue
            try:
                place = _cdxj_place(line) if "{" in line else self._cdx_place(line)
                if not 0 <= place.offset < _MOST_OFFSET or not 0 <= place.length <= MAX_BODY or not place.filename:
                    raise ValueError("no such place")
                yield place
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                report.refuse("a line without filename, offset and length", f"{where} {line[:80].strip()}")

    def _cdx_place(self, line: str) -> _IndexedRecord:
        values = line.split()
        named = dict(zip(self._letters[len(values)], values, strict=True))
        length = named.get("S", "0")
        return _IndexedRecord(named["g"], int(named["V"]), int(length) if length.isdigit() else 0)


def _cdxj_place(line: str) -> _IndexedRecord:
    fields = json.loads(line[line.index("{") :])
    place = _IndexedRecord(str(fields["filename"]), int(fields["offset"]), int(fields["length"]))
    if place.length < 1:
        raise ValueError("no length")
    method = str(fields.get("method") or "").upper()
    if method in ("", "GET") or not (method.isascii() and method.isalpha()):
        return place
    return place._replace(method=method[:20], fields=str(fields.get("requestBody") or ""))


def _answering(only: _IndexedRecord, found: Iterator[ImportedCapture]) -> Iterator[ImportedCapture]:
    """The first capture of a place, under the URL that follows from its method and the body of its request."""
    first = next(found, None)
    if first is None:
        raise UsageError("there is none, or it is larger than 8 MiB and the index does not tell its length")
    page = first.page or first.url
    url = indexed_url(page, only.method, only.fields)
    yield first if url == page or first.page else first._replace(url=url, page=page)


def _by_file(places: Iterable[_IndexedRecord]) -> dict[str, list[_Span]]:
    """Spans to read by file, in the order of their places; neighbours joined, repeats read once."""
    found: dict[str, list[_Span]] = defaultdict(list)
    for place in sorted(set(places)):
        name, start, length, *_ = place
        spans, end = found[name], start + length
        if place.stands_alone:
            spans.append(_Span(start, end, place))
        elif spans and spans[-1].only is None and start < spans[-1].end and end - spans[-1].start <= MAX_BODY:
            spans[-1] = _Span(spans[-1].start, max(end, spans[-1].end))
        elif spans and spans[-1].only is None and start == spans[-1].end and end - spans[-1].start <= READ_BYTES:
            spans[-1] = _Span(spans[-1].start, end)
        else:
            spans.append(_Span(start, end))
    return found
