"""Is a file sound: every rule of the format, every chunk, and its release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from letopis.errors import Damaged, LetopisError, NotFound
from letopis.zrec import releasing
from letopis.zrec.hashing import group_hash
from letopis.zrec.reader import Reader


@dataclass(frozen=True, slots=True)
class Verdict:
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


def verify(path: str | Path) -> Verdict:
    """Reads the whole file and names every fault. `NotFound` when there is no file."""
    place = Path(path)
    try:
        with Reader(place) as reader:
            faults = list(_faults(reader))
            unreadable = sum(fault.startswith("Chunk ") for fault in faults)
            chunks = len(reader.index)
    except Damaged as wrong:
        return Verdict(place, 0, 0, (str(wrong),), False)
    named = releasing.path_of(place)
    if named.exists():
        faults += _release_faults(place, named)
    return Verdict(place, chunks, chunks - unreadable, tuple(faults), named.exists())


def _faults(reader: Reader) -> Iterator[str]:
    try:
        _ = reader.coder
    except Damaged as wrong:
        yield str(wrong)
        return
    yield from _chunk_faults(reader)
    yield from _group_faults(reader)
    if reader.body_digest() != reader.header.body_digest:
        yield "The digest of the file's body is wrong; get a fresh copy."


def _chunk_faults(reader: Reader) -> Iterator[str]:
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


def _sum_faults(reader: Reader, records: int, size: int, ordered: bool) -> Iterator[str]:
    head = reader.header
    whole = size - (len(head.separator) if records and not head.ended else 0)
    if (records, whole) != (head.records, head.text_size):
        yield "The header counts other records or bytes than there are; pack the file again."
    if head.ordered and not ordered:
        yield "Names do not ascend although the header says so; pack the file again."


def _group_faults(reader: Reader) -> Iterator[str]:
    for group, (start, end) in enumerate(pairwise(reader.index.borders.tolist())):
        stored = map(reader.stored_chunk, range(start, end))
        if group_hash(stored) != int(reader.index.group_hashes[group]):
            yield f"The group of chunks {start} to {end - 1} has another hash than the index says; get a fresh copy."


def _release_faults(place: Path, named: Path) -> Iterator[str]:
    try:
        found = releasing.parse(named.read_bytes())
    except (Damaged, NotFound) as wrong:
        yield str(wrong)
        return
    if found.size != place.stat().st_size or found.sha256 != releasing.file_digest(place):
        yield "The release is of another state of the file; make it again with `letopis zrec release`."
