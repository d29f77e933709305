"""Reading a zrec file in place: one record, all of it, what it holds, and whether every byte is sound."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self, TypeVar

from letopis.binary import file_sha256, sha256_digest
from letopis.errors import Damaged, LetopisError, NotFound, Remedy, UsageError
from letopis.tuples import NamedTuple
from letopis.zrec import chunk_index as indexes
from letopis.zrec import header as heads
from letopis.zrec import published_file
from letopis.zrec.chunk_index import IndexJournal, align_chunks
from letopis.zrec.chunks import ChunkCoder, Namer, decompress_dictionary, namer, split_chunk
from letopis.zrec.header import MiB, chunk_hash, group_hash

_CACHED = 256

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class ChunkRow(NamedTuple):
    """One chunk as `list` shows it."""

    offset: int
    length: int
    records: tuple[str, ...]
    hash: str


class ZrecInfo(NamedTuple):
    """What `info` shows."""

    size: int
    records: int
    chunks: int
    groups: int
    text_bytes: int
    chunk_bytes: int
    index_bytes: int
    dictionary_bytes: int
    dictionary_size: int
    journal_bytes: int
    generations: int
    history: int
    group: int
    separator: str
    name: str | None
    ordered: bool
    index_sha256: str


class ByteView(Protocol):
    """The bytes of a file, wherever they lie."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, span: slice, /) -> bytes:
        """A part of them."""


class ZrecReader:
    """An open file. Opening reads header and index alone; damage to a chunk concerns that chunk only.

    Use from one thread at a time.
    """

    def __init__(self, path: str | Path, data: ByteView | None = None) -> None:
        """`data` is the file where it is not on this machine; `path` then only names it."""
        self.path = path if data is not None else Path(path)
        self._map: ByteView = _mapped(Path(path)) if data is None else data
        try:
            self.header = heads.parse_header(self._map[: _head_size(self._map)])
            self.index = self._read_index()
        except BaseException:
            self.close()
            raise
        self._offsets = (self.index.offsets + self.header.data_at).tolist()
        self._decoded: Callable[[int], tuple[bytes, ...]] = lru_cache(_CACHED)(self._decode)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        if isinstance(self._map, mmap.mmap):
            self._map.close()

    def __len__(self) -> int:
        return self.header.records

    @cached_property
    def namer(self) -> Namer:
        """What names the records of this file. `Damaged` when the file's own rule does not fit its records."""
        name = _fitting(namer)(self.header.name_rule)
        return name if self.header.name_rule is None else _fitting(name)

    @cached_property
    def dictionary(self) -> bytes:
        """The dictionary, unpacked."""
        return decompress_dictionary(self.stored_dictionary)

    @property
    def stored_dictionary(self) -> bytes:
        """The dictionary as it lies in the file."""
        head = self.header
        stored = self._map[head.dictionary_at : head.data_at]
        if sha256_digest(stored) != head.dictionary_digest:
            raise Damaged(f"The dictionary of {self.path} is damaged; get a fresh copy.")
        return stored

    @cached_property
    def journals(self) -> list[IndexJournal]:
        """The history, newest first."""
        at = self.header.size
        journals = []
        for old, length in self.header.history:
            journals.append(IndexJournal(old, self._map[at : at + length]))
            at += length
        return journals

    @cached_property
    def coder(self) -> ChunkCoder:
        """The coder with this file's dictionary."""
        return ChunkCoder(self.dictionary)

    def stored_chunk(self, number: int) -> bytes:
        """A chunk as it lies in the file, unchecked."""
        at = self._offsets[number]
        return self._map[at : at + int(self.index.sizes[number])]

    def text(self, number: int) -> bytes:
        """The text of a chunk, checked by its hash."""
        stored = self.stored_chunk(number)
        if chunk_hash(stored) != int(self.index.hashes[number]):
            raise Damaged(
                f"Chunk {number} of {self.path} is damaged",
                Remedy("zrec sync", "letopis.zrec.sync()", "get a fresh copy with"),
            )
        return self.coder.decode(stored)

    def chunk(self, number: int) -> tuple[bytes, ...]:
        """The records of a chunk."""
        return self._decoded(number)

    def get(self, name: str | bytes) -> bytes:
        """The first record of this name, without its separator; `NotFound` when there is none.

        Ordered files: about log2(chunks) chunks are decoded. Others are searched from the start.
        """
        for record in self.find(name):
            return record
        shown = name if isinstance(name, str) else name.decode(errors="replace")
        raise NotFound(
            f"{self.path} has no record {shown!r}", Remedy("zrec list", "ZrecReader.records()", "all are named by")
        )

    def find(self, name: str | bytes) -> Iterator[bytes]:
        """All records of this name."""
        wanted = name.encode() if isinstance(name, str) else name
        for number in range(self._first_chunk(wanted), len(self.index)):
            for record in self.chunk(number):
                found = self.namer(record)
                if found == wanted:
                    yield record
                elif self.header.ordered and found > wanted:
                    return

    def starting(self, prefix: bytes) -> Iterator[bytes]:
        """All records that begin so, in order. The prefix must be part of names that stand at their records' start."""
        for number in range(self._first_chunk(prefix), len(self.index)):
            for record in self.chunk(number):
                if record.startswith(prefix):
                    yield record
                elif self.header.ordered and self.namer(record) > prefix:
                    return

    def records(self) -> Iterator[bytes]:
        """All records in order."""
        for number in range(len(self.index)):
            yield from self._decode(number)

    def cat(self) -> Iterator[bytes]:
        """The whole text in parts, byte for byte what was packed."""
        separator = self.header.separator
        for number in range(len(self.index)):
            if number:
                yield separator
            yield self.text(number)
        if self.header.ended:
            yield separator

    def list(self) -> Iterator[ChunkRow]:
        """One row a chunk, in record order."""
        for number, (offset, size) in enumerate(zip(self._offsets, self.index.sizes.tolist(), strict=True)):
            names = tuple(self.namer(record).decode(errors="replace") for record in self._decode(number))
            yield ChunkRow(offset, size, names, f"{int(self.index.hashes[number]):08x}")

    def info(self) -> ZrecInfo:
        """Sizes and counts."""
        head = self.header
        return ZrecInfo(
            size=head.file_size,
            records=head.records,
            chunks=head.chunks,
            groups=len(self.index.group_hashes),
            text_bytes=head.text_size,
            chunk_bytes=head.data_size,
            index_bytes=head.index_size,
            dictionary_bytes=head.dictionary_size,
            dictionary_size=len(self.dictionary),
            journal_bytes=head.journals_size,
            generations=len(set(self.index.ages.tolist())),
            history=len(head.history),
            group=head.group,
            separator=head.separator.decode(errors="backslashreplace"),
            name=head.name_rule,
            ordered=head.ordered,
            index_sha256=head.index_digest.hex(),
        )

    def body_digest(self) -> bytes:
        """SHA-256 of everything after the header, computed now."""
        state = hashlib.sha256()
        for at in range(self.header.size, len(self._map), MiB):
            state.update(self._map[at : at + MiB])
        return state.digest()

    def _read_index(self) -> indexes.ChunkIndex:
        head = self.header
        if head.file_size != len(self._map):
            raise Damaged(f"{self.path} has {len(self._map)} bytes instead of {head.file_size}; get a fresh copy.")
        stored = self._map[head.index_at : head.dictionary_at]
        if sha256_digest(stored) != head.index_digest:
            raise Damaged(f"The index of {self.path} is damaged; get a fresh copy.")
        index = indexes.parse_index(stored, head.chunks)
        if index.data_size != head.data_size:
            raise Damaged(f"The index of {self.path} does not fit its chunks; get a fresh copy.")
        return index

    def _decode(self, number: int) -> tuple[bytes, ...]:
        text = self.text(number)
        if self.header.group == 1:
            return (text,)
        return tuple(split_chunk(text, self.header.separator))

    def _first_chunk(self, wanted: bytes) -> int:
        """The first chunk that may hold the name."""
        if not self.header.ordered:
            return 0
        low, high = 0, len(self.index)
        while low < high:
            middle = (low + high) // 2
            if self.namer(self.chunk(middle)[0]) < wanted:
                low = middle + 1
            else:
                high = middle
        return max(low - 1, 0)


class RecordChange(NamedTuple):
    """A record that one of two files has not, or has otherwise."""

    change: Literal["added", "removed", "changed"]
    name: str


def diff(old: ZrecReader, new: ZrecReader) -> Iterator[RecordChange]:
    """What makes the records of a newer file of those of an older one, in the order of names.

    Records of one name are compared together. Memory holds digests, of chunks that both files have none.
    """
    before, after = _own_records(old, new), _own_records(new, old)
    for name in sorted(before.keys() | after.keys()):
        shown = name.decode(errors="replace")
        if name not in after:
            yield RecordChange("removed", shown)
        elif name not in before:
            yield RecordChange("added", shown)
        elif before[name] != after[name]:
            yield RecordChange("changed", shown)


def _own_records(reader: ZrecReader, other: ZrecReader) -> dict[bytes, list[bytes]]:
    """Digests of records by name, without those of chunks that lie in the other file with the same bytes."""
    pairs = align_chunks(other.index, reader.index) if _coded_alike(reader, other) else ()
    same = {to for come, to in pairs if other.stored_chunk(come) == reader.stored_chunk(to)}
    found: dict[bytes, list[bytes]] = {}
    for number in range(len(reader.index)):
        for record in () if number in same else reader._decode(number):
            found.setdefault(reader.namer(record), []).append(sha256_digest(record))
    return found


def _coded_alike(reader: ZrecReader, other: ZrecReader) -> bool:
    """Whether equal chunks hold equal texts, of records cut and named alike."""
    one, two = reader.header, other.header
    return (one.dictionary_digest, one.separator, one.group, one.name_rule) == (
        two.dictionary_digest, two.separator, two.group, two.name_rule,
    )  # fmt: skip


def _fitting(function: Callable[[Argument], Result]) -> Callable[[Argument], Result]:
    """The function, its refusals turned into damage of the file."""

    def fitted(given: Argument) -> Result:
        try:
            return function(given)
        except UsageError as wrong:
            raise Damaged(f"The file's own rule for names does not work: {wrong}") from None

    return fitted


def _mapped(path: Path) -> mmap.mmap | bytes:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}; give the path of a zrec file.") from None
    except ValueError:
        return b""
    except OSError as wrong:
        raise NotFound(f"{path} cannot be read ({wrong.strerror}); give the path of a zrec file.") from None


def _head_size(data: ByteView) -> int:
    return heads.header_size(data[: heads.HEADER_PREFIX])


class ZrecVerdict(NamedTuple):
    """What `verify` found: one sentence a fault, none when the file is sound."""

    path: Path
    chunks: int
    readable: int
    faults: tuple[str, ...]
    release_checked: bool

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def raise_if_damaged(self) -> None:
        """`Damaged` with the first fault."""
        if self.faults:
            more = f" (and {len(self.faults) - 1} further faults)" if len(self.faults) > 1 else ""
            raise Damaged(f"{self.faults[0]}{more}")


def verify(path: str | Path) -> ZrecVerdict:
    """Reads the whole file and names every fault. `NotFound` when there is no file."""
    place = Path(path)
    try:
        with ZrecReader(place) as reader:
            faults = list(_all_faults(reader))
            unreadable = sum(fault.startswith("Chunk ") for fault in faults)
            chunks = len(reader.index)
    except Damaged as wrong:
        return ZrecVerdict(place, 0, 0, (str(wrong),), False)
    named = published_file.release_path(place)
    if named.exists():
        faults += _release_faults(place, named)
    return ZrecVerdict(place, chunks, chunks - unreadable, tuple(faults), named.exists())


def _all_faults(reader: ZrecReader) -> Iterator[str]:
    try:
        _ = reader.coder
    except Damaged as wrong:
        yield str(wrong)
        return
    yield from _chunk_faults(reader)
    yield from _group_faults(reader)
    if reader.body_digest() != reader.header.body_digest:
        yield "The digest of the file's body is wrong; get a fresh copy."


def _chunk_faults(reader: ZrecReader) -> Iterator[str]:
    records = size = 0
    last = b""
    ordered = clean = True
    for number in range(len(reader.index)):
        try:
            texts = reader.chunk(number)
            names = [last, *map(reader.namer, texts)]
        except LetopisError as wrong:
            clean = False
            yield f"Chunk {number} (record {records} and on): {wrong}"
            continue
        ordered = ordered and all(one <= two for one, two in pairwise(names))
        last = names[-1]
        records += len(texts)
        size += sum(map(len, texts)) + len(texts) * len(reader.header.separator)
    if clean:
        yield from _sum_faults(reader, records, size, ordered)


def _sum_faults(reader: ZrecReader, records: int, size: int, ordered: bool) -> Iterator[str]:
    head = reader.header
    whole = size - (len(head.separator) if records and not head.ended else 0)
    if (records, whole) != (head.records, head.text_size):
        yield "The header counts other records or bytes than there are; pack the file again."
    if head.ordered and not ordered:
        yield "Names do not ascend although the header says so; pack the file again."


def _group_faults(reader: ZrecReader) -> Iterator[str]:
    for group, (start, end) in enumerate(pairwise(reader.index.borders.tolist())):
        stored = map(reader.stored_chunk, range(start, end))
        if group_hash(stored) != int(reader.index.group_hashes[group]):
            yield f"The group of chunks {start} to {end - 1} has another hash than the index says; get a fresh copy."


def _release_faults(place: Path, named: Path) -> Iterator[str]:
    try:
        found = published_file.parse_release(named.read_bytes())
    except (Damaged, NotFound) as wrong:
        yield str(wrong)
        return
    if found.size != place.stat().st_size or found.sha256 != file_sha256(place):
        yield "The release is of another state of the file; make it again."
