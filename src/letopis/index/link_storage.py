"""The index of links on disk and in memory: a journal of checksummed frames, columns, and segments of them.

    file    = MAGIC frame*
    frame   = size u32, versions u32, last u64, checksum u64, payload[size]
    columns = count u16, column*
    column  = kind u8 (a letter of COLUMN_TYPES), packed size u32, packed bytes

All numbers are little-endian; the checksum is XXH3-64 over size, versions, last and payload. `versions` says how many
versions of the log a frame covers, `last` is the id of the last one; what a crash left half written is cut off. Numbers
are packed as differences of neighbours, their bytes sorted by significance, and then zstd; texts are a column of
lengths beside their UTF-8 bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from struct import Struct
from struct import error as StructError
from typing import Any, TypeAlias

from xxhash import xxh3_64_intdigest

from letopis.binary import make_private_folder
from letopis.errors import Damaged, NewerFormat, NotReady
from letopis.lazy import np, npt
from letopis.tuples import NamedTuple
from letopis.zstandard import zstd

JOURNAL_MAGIC = b"letopis links 2\n"
_OUTDATED_MAGICS = (b"letopis links 1\n",)
"""Of indexes that may hold links of one site on pages of another; they count as empty, and are built again."""
_FRAME_HEAD = Struct("<IIQ")
_FRAME_SUM = Struct("<Q")
FRAME_HEAD_SIZE = _FRAME_HEAD.size + _FRAME_SUM.size


class LinkFrame(NamedTuple):
    """Where a frame is, and its head."""

    offset: int
    size: int
    versions: int
    last: int

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.offset + FRAME_HEAD_SIZE + self.size


class LinkJournal:
    """One file of frames. Appending is for one writer at a time; reading is free."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def size(self) -> int:
        """Bytes on disk; 0 when there is no file."""
        try:
            return self.file.stat().st_size
        except FileNotFoundError:
            return 0

    def frames(self, start: int = 0) -> Iterator[tuple[LinkFrame, bytes]]:
        """Whole frames with their payloads from an offset on; ends at the first that is not whole."""
        if not self.size():
            return
        with self.file.open("rb") as opened:
            magic = opened.read(len(JOURNAL_MAGIC))
            if not _is_journal(self.file, magic):
                return
            opened.seek(max(start, len(JOURNAL_MAGIC)))
            while found := _next_frame(opened.tell(), opened.read(FRAME_HEAD_SIZE)):
                frame, checksum = found
                payload = opened.read(frame.size)
                if len(payload) < frame.size or _frame_checksum(frame, payload) != checksum:
                    return
                yield frame, payload

    def read(self, offset: int) -> bytes | None:
        """The payload of the frame at an offset; None when it is not what was written."""
        return next((payload for _, payload in self.frames(offset)), None)

    def append(self, payload: bytes, versions: int, last: int) -> LinkFrame:
        """Adds a frame; it is on disk when this returns."""
        try:
            make_private_folder(self.file.parent)
            with self.file.open("ab") as opened:
                if not opened.tell():
                    opened.write(JOURNAL_MAGIC)
                frame = LinkFrame(opened.tell(), len(payload), versions, last)
                opened.write(_FRAME_HEAD.pack(*frame[1:]) + _FRAME_SUM.pack(_frame_checksum(frame, payload)) + payload)
                opened.flush()
                os.fsync(opened.fileno())
        except OSError as error:
            raise NotReady(f"cannot write {self.file}: {error.strerror}; free space or check permissions") from None
        return frame

    def cut(self, end: int) -> None:
        """Removes everything from an offset on."""
        if self.size() > end:
            with self.file.open("r+b") as opened:
                opened.truncate(end)
                os.fsync(opened.fileno())


def _is_journal(file: Path, magic: bytes) -> bool:
    """Whether a file is to be read; one of an earlier format or with a damaged beginning is written again."""
    if magic != JOURNAL_MAGIC and magic not in _OUTDATED_MAGICS and magic[:14] == JOURNAL_MAGIC[:14]:
        raise NewerFormat(f"{file} was written by a later release; update Letopis or delete its folder")
    return magic == JOURNAL_MAGIC


def _next_frame(offset: int, head: bytes) -> tuple[LinkFrame, int] | None:
    if len(head) < FRAME_HEAD_SIZE:
        return None
    size, versions, last = _FRAME_HEAD.unpack_from(head)
    return LinkFrame(offset, size, versions, last), _FRAME_SUM.unpack_from(head, _FRAME_HEAD.size)[0]


def _frame_checksum(frame: LinkFrame, payload: bytes) -> int:
    return xxh3_64_intdigest(payload, seed=xxh3_64_intdigest(_FRAME_HEAD.pack(*frame[1:])))


Array: TypeAlias = "npt.NDArray[np.generic]"
Ints: TypeAlias = "npt.NDArray[np.int64]"

COMPRESSION_LEVEL = 6
_MAX_NARROW_BYTES = 0xFFFF_FFFF
"""Bytes of texts whose places still fit four bytes."""
COLUMN_TYPES = {b"b": "<u1", b"h": "<i2", b"i": "<i4", b"q": "<i8"}
_TYPE_LETTERS = {int(kind[2:]): letter[0] for letter, kind in COLUMN_TYPES.items()}
_COLUMN_COUNT = Struct("<H")
_COLUMN_HEAD = Struct("<BI")


class TextColumn:
    """Many short texts in one run of bytes; converted to `str` only on access."""

    __slots__ = ("_bounds", "_data")

    def __init__(self, data: bytes, bounds: Ints) -> None:
        self._data = data
        # A million addresses, titles, types and languages: four bytes saved at each.
        self._bounds = bounds.astype(np.uint32) if len(data) <= _MAX_NARROW_BYTES else bounds

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextColumn:
        """A column of these texts."""
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        return cls._joined(b"".join(parts), np.fromiter(map(len, parts), np.int64, len(parts)))

    @classmethod
    def _joined(cls, data: bytes, lengths: Ints) -> TextColumn:
        bounds = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=bounds[1:])
        if int(bounds[-1]) != len(data) or (lengths < 0).any():
            raise Damaged("a column of texts does not fit its lengths; delete the folder of the index")
        return cls(data, bounds)

    @classmethod
    def join(cls, parts: Sequence[TextColumn]) -> TextColumn:
        """The texts of all parts in order."""
        if len(parts) == 1:
            return parts[0]
        return cls._joined(b"".join(part._data for part in parts), np.concatenate([part.lengths for part in parts]))

    @property
    def lengths(self) -> Ints:
        """Bytes of each text."""
        return np.diff(self._bounds).astype(np.int64)

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return len(self._data) + self._bounds.nbytes

    @property
    def data(self) -> bytes:
        """All bytes in a row."""
        return self._data

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __getitem__(self, index: int) -> str:
        return self._data[self._bounds[index] : self._bounds[index + 1]].decode("utf-8", "surrogatepass")


def pack_columns(columns: Sequence[Array | TextColumn]) -> bytes:
    """Columns as bytes."""
    out = []
    for column in columns:
        if isinstance(column, TextColumn):
            out += [
                _pack_column(column.lengths.astype("<i4")),
                _pack_column(np.frombuffer(column.data, "<u1"), delta=False),
            ]
        else:
            out.append(_pack_column(column))
    return _COLUMN_COUNT.pack(len(out)) + b"".join(out)


def unpack_columns(data: bytes) -> list[Array]:
    """The arrays of `pack`, a column of texts as its lengths and its bytes; Damaged for anything else."""
    try:
        (count,) = _COLUMN_COUNT.unpack_from(data)
        at, found = _COLUMN_COUNT.size, []
        for _ in range(count):
            letter, size = _COLUMN_HEAD.unpack_from(data, at)
            at += _COLUMN_HEAD.size
            found.append(_unpack_column(np.dtype(COLUMN_TYPES[bytes((letter,))]), data[at : at + size]))
            at += size
    except (KeyError, ValueError, StructError, zstd.ZstdError):
        raise Damaged("a frame of the index of links cannot be read; delete its folder to rebuild it") from None
    return found


def text_column(lengths: Array, data: Array) -> TextColumn:
    """A column of texts out of its two arrays."""
    return TextColumn._joined(data.tobytes(), lengths.astype(np.int64))


def _pack_column(array: Array, *, delta: bool = True) -> bytes:
    kind = array.dtype.newbyteorder("<")
    plain = np.ascontiguousarray(array, kind)
    if delta and len(plain):
        plain = np.concatenate([plain[:1], np.diff(plain)]).astype(kind)
    rows = plain.view("<u1").reshape(len(plain), kind.itemsize).T
    packed = zstd.compress(bytes([delta]) + np.ascontiguousarray(rows).tobytes(), COMPRESSION_LEVEL)
    return _COLUMN_HEAD.pack(_TYPE_LETTERS[kind.itemsize], len(packed)) + packed


def _unpack_column(kind: np.dtype[Any], data: bytes) -> Array:
    raw = zstd.decompress(data)
    rows = np.frombuffer(raw, "<u1", offset=1).reshape(kind.itemsize, -1)
    plain: Array = np.ascontiguousarray(rows.T).reshape(-1).view(kind)
    if not raw[0]:
        return plain
    # Differences wrap around like the sums that undo them.
    return np.cumsum(plain, dtype=kind)


Int32: TypeAlias = "npt.NDArray[np.int32]"
Bytes: TypeAlias = "npt.NDArray[np.uint8]"

SAME_LINKS = -1
"""A count of links that means "those of the version of this page that was recorded before"."""
ROLE_DOCUMENT, ROLE_LIST, ROLE_REQUISITE = range(3)
"""In `roles`: a page for people, a list of addresses for programs (sitemap, feed), a part of pages (picture, style)."""
NOT_JUDGED = 2
"""In `judged`: the version has no verdict yet."""


@dataclass(frozen=True, slots=True)
class LinkSegment:
    """Columns of hosts, of addresses, of versions and of links; each refers to the ones before by position.

    `names`: hosts. `urls`, `keys` (64-bit keys), `hosts`: addresses. `ids` to `languages`: versions in the order of
    recording; `finals` is the address a check ended at after redirects, -1 when it stayed. `targets`, `kinds`: the
    links of all versions, in document order. `text_frames`, `text_links`: where the texts of the links lie, and of how
    many links.
    """

    names: TextColumn
    urls: TextColumn
    keys: Ints
    hosts: Int32
    ids: Ints
    pages: Int32
    times: Ints
    statuses: npt.NDArray[np.int16]
    sizes: Ints
    digests: Ints
    link_keys: Ints
    judged: Bytes
    roles: Bytes
    finals: Int32
    counts: Int32
    types: TextColumn
    titles: TextColumn
    languages: TextColumn
    targets: Int32
    kinds: Bytes
    text_frames: Ints
    text_links: Ints

    def pack(self) -> bytes:
        """The columns as bytes."""
        return pack_columns([getattr(self, field.name) for field in fields(self)])

    @property
    def nbytes(self) -> int:
        """Memory that the columns take."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))


_FIELD_TYPES = {"Ints": "<i8", "Int32": "<i4", "Bytes": "<u1", "npt.NDArray[np.int16]": "<i2"}


def unpack_segment(data: bytes) -> LinkSegment:
    """The inverse of `LinkSegment.pack`; Damaged when the columns are others."""
    arrays = iter(unpack_columns(data))
    try:
        columns: list[Any] = [_read_column(str(field.type), arrays) for field in fields(LinkSegment)]
        return LinkSegment(*columns)
    except StopIteration:
        raise Damaged("a frame of the index of links lacks columns; delete its folder to rebuild it") from None


def _read_column(kind: str, arrays: Iterator[Array]) -> Array | TextColumn:
    first = next(arrays)
    if kind == "TextColumn":
        return text_column(first, next(arrays))
    if first.dtype != _FIELD_TYPES[kind]:
        raise Damaged("a frame of the index of links has a wrong column; delete its folder to rebuild it")
    return first


def empty_segment() -> LinkSegment:
    """No hosts, no addresses, no versions."""
    columns: list[Any] = [
        TextColumn.of([]) if str(field.type) == "TextColumn" else np.zeros(0, _FIELD_TYPES[str(field.type)])
        for field in fields(LinkSegment)
    ]
    return LinkSegment(*columns)


def join_segments(parts: Sequence[LinkSegment]) -> LinkSegment:
    """One segment that says what all parts say in order."""
    if len(parts) == 1:
        return parts[0]
    columns: list[Any] = []
    for field in fields(LinkSegment):
        column = [getattr(part, field.name) for part in parts]
        columns.append(TextColumn.join(column) if str(field.type) == "TextColumn" else np.concatenate(column))
    return LinkSegment(*columns)


class LastLinks:
    """The key of the links of each page's last version: 8 bytes an address."""

    def __init__(self) -> None:
        self._keys = np.zeros(1024, np.int64)

    def learn(self, segment: LinkSegment) -> None:
        """What a segment says, in its order."""
        if len(segment.pages):
            self._grow(int(segment.pages.max()))
            self._keys[segment.pages] = segment.link_keys

    def replaced(self, page: int, key: int) -> bool:
        """Stores the links of a page; whether they differ from those stored before."""
        self._grow(page)
        if int(self._keys[page]) == key:
            return False
        self._keys[page] = key
        return True

    def _grow(self, page: int) -> None:
        if page >= len(self._keys):
            larger = np.zeros(max(page + 1, 2 * len(self._keys)), np.int64)
            larger[: len(self._keys)] = self._keys
            self._keys = larger
