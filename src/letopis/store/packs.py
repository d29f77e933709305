"""The packs of a store: numbers, names and records by place; recovery of the newest log; the two writers of packs.

`LogWriter` extends the newest log, `PackWriter` makes a pack that is invisible until it is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from xxhash import xxh3_64_hexdigest

from letopis.errors import Busy, Damaged, LetopisError, NewerFormat
from letopis.store.backend import Backend, PackDraft
from letopis.store.pack_format import (
    HEADER_BYTES,
    ChainFacts,
    PackRecord,
    PackWalker,
    RecordExtent,
    RecordKind,
    RecordMethod,
    checked_record,
    encode_columns,
    encode_pack_header,
    encode_record,
    is_known_record,
    parse_pack_header,
    record_extent,
)
from letopis.store.record_bodies import smallest_body
from letopis.store.values import HighWaterMark, Misnamed, PackGone
from letopis.tuples import NamedTuple

LOG_SUFFIX, PACK_SUFFIX = ".log", ".pack"
_START_READ = 1024
_FIRST_READ = 32 * 1024
"""One read of this size holds nearly every record; a longer record takes a second read."""
_LARGEST_GUESS = 1 << 20


class Packs:
    """Finds packs by number. Numbers only increase, so a number never means two different packs.

    A place that machines share may hold very many names: only those of packs that are read are requested.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._names: dict[int, str] = {}
        self._flags: dict[int, int] = {}
        self._last = 0
        self.floor: Callable[[], int] = lambda: 0
        """The highest number that was ever given out, according to the owner of the store."""
        if not backend.shared:
            self.refresh()

    def refresh(self) -> dict[int, int]:
        """Lists again; numbers and sizes of all packs, in order. Removed packs are closed to free their space."""
        sizes = {name: size for name, size in self.backend.list().items() if pack_number(name) > 0}
        gone = set(self._names.values()).difference(sizes)
        self._names = {pack_number(name): name for name in sorted(sizes)}
        for name in gone:
            self.backend.forget(name)
        self._last = max(self._last, *self._names, 0)
        return {pack: sizes[name] for pack, name in sorted(self._names.items())}

    def allocate(self, suffix: str) -> tuple[int, str]:
        """A number that was never used, and the name that belongs to it."""
        self._last = self.backend.number(max(self._last, self.floor()))
        return self._last, f"{self._last:08d}{suffix}"

    @property
    def highest(self) -> int:
        """The highest number that is there or was given out."""
        return self._last

    def add(self, pack: int, name: str) -> None:
        """Makes a new pack known."""
        self._names[pack] = name

    def drop(self, pack: int) -> None:
        """Removes a pack permanently."""
        self.backend.remove(self._names.pop(pack))
        self._flags.pop(pack, None)

    def name(self, pack: int) -> str:
        """The pack's name; Moved when there is no such pack any more."""
        if pack not in self._names:
            self._look_for(pack)
        try:
            return self._names[pack]
        except KeyError:
            raise PackGone(
                f"pack {pack} is not in {self.backend.where}; look the content up again, or restore it"
            ) from None

    def _look_for(self, pack: int) -> None:
        if not self.backend.shared:
            self.refresh()
        elif name := self.backend.find(pack):
            self.add(pack, name)

    def size(self, pack: int) -> int:
        """Bytes of a pack; PackGone when there is no such pack any more."""
        name = self.name(pack)
        try:
            return self.backend.size(name)
        except FileNotFoundError:
            raise self._gone(name) from None

    def is_log(self, pack: int) -> bool:
        """Whether the pack waits for compaction."""
        return self.name(pack).endswith(LOG_SUFFIX)

    def flags(self, pack: int) -> int:
        """The flags of the header, 0 when it is damaged: no record needs it. A later format is refused."""
        flags = self._flags.get(pack)
        if flags is None:
            try:
                flags = parse_pack_header(self.span(pack, 0, HEADER_BYTES), pack, self.name(pack))
            except PackGone:
                raise
            except Damaged as error:
                if isinstance(error, NewerFormat):
                    raise
                flags = 0
            self._flags[pack] = flags
        return flags

    def misnamed(self, pack: int) -> Misnamed | None:
        """What is wrong if this is another pack."""
        fault = _header_fault(self, pack)
        return fault if isinstance(fault, Misnamed) else None

    def span(self, pack: int, offset: int, length: int) -> bytes:
        """A range of a pack; Moved when the pack is gone."""
        name = self.name(pack)
        try:
            return self.backend.read(name, offset, length)
        except FileNotFoundError:
            self._names.pop(pack, None)
            raise self._gone(name) from None

    def record(self, pack: int, offset: int, guess: int = 0) -> PackRecord:
        """The record at a place, checked. `guess` is its length if the caller knows it."""
        if pack not in self._flags:
            self.flags(pack)
        length = min(max(guess + _START_READ, _FIRST_READ), _LARGEST_GUESS)
        data = self.span(pack, offset, length)
        found = record_extent(data)
        if found is not None and found.end > len(data) == length:
            # All of it again: to join what is there with the rest would take as long as reading it, and more memory.
            data = self.span(pack, offset, found.end)
        record = found and checked_record(data, 0, found, pack=pack, offset=offset)
        if record is None or not is_known_record(record, self.name(pack)):
            raise damaged_at(self.name(pack), offset, "what is stored there is not what was written")
        return record

    def start(self, pack: int, offset: int) -> tuple[RecordExtent, bytes] | None:
        """What the record at an offset claims to be, and its head if that is short; nothing is checked."""
        data = self.span(pack, offset, _START_READ)
        found = record_extent(data)
        return found and (found, data[found.head_at : found.body_at])

    def _gone(self, name: str) -> PackGone:
        return PackGone(f"{name} is not in {self.backend.where}; look the content up again, or restore it from a copy")


def damaged_at(name: str, offset: int, problem: str) -> Damaged:
    """The error that names a spot."""
    return Damaged(f"{name}, offset {offset}: {problem}; run verify to see what is affected")


def pack_number(name: str) -> int:
    """The number in the name of a pack or log; 0 for names of other things."""
    stem, dot, suffix = name.partition(".")
    return int(stem) if dot + suffix in (LOG_SUFFIX, PACK_SUFFIX) and stem.isdecimal() else 0


CHECKPOINT_NAME = "checkpoint"


class LogTail(NamedTuple):
    """The log that may be appended to, and its sound length."""

    pack: int
    name: str
    length: int


def encode_checkpoint(pack: int, length: int) -> bytes:
    """The small object that records how far a log was synced."""
    line = f"{pack} {length} "
    return (line + xxh3_64_hexdigest(line.encode()) + "\n").encode()


def parse_checkpoint(data: bytes) -> tuple[int, int]:
    """Pack and length of a checkpoint; zeros when it is missing or not sound."""
    parts = data.split()
    if len(parts) != 3 or not (parts[0].isdigit() and parts[1].isdigit()):
        return 0, 0
    pack, length = int(parts[0]), int(parts[1])
    return (pack, length) if encode_checkpoint(pack, length) == data else (0, 0)


def recover_log(packs: Packs, mark: HighWaterMark) -> LogTail | None:
    """Makes the newest log end with a whole record; None if there is no log to continue.

    Only bytes after the last whole record are cut, so damage in the middle costs no version that follows it. If writers
    share a place, logs of others are not extended: a new one is begun. The same holds if the mark is beyond the newest
    log: bytes are missing then, and new ones would be read in their place.
    """
    packs.backend.sweep()
    if packs.backend.shared:
        return None
    logs = {pack: size for pack, size in packs.refresh().items() if packs.is_log(pack)}
    while logs and logs[max(logs)] < HEADER_BYTES:
        empty = max(logs)
        packs.drop(empty)
        del logs[empty]
    if not logs:
        return None
    pack, size = max(logs.items())
    fault = _header_fault(packs, pack)
    if isinstance(fault, Misnamed):
        return None  # as a log of this number all of it is torn
    marked, length = parse_checkpoint(packs.backend.recall(CHECKPOINT_NAME))
    sure = length if marked == pack and HEADER_BYTES <= length <= size else 0
    sound = _sound_length(packs, pack, size, sure or HEADER_BYTES)
    if sound < size or not sure:
        # Without a checkpoint even the name of the log may not have reached the disk yet.
        packs.backend.cut(packs.name(pack), sound)
    # A log before a finished pack was closed by a compaction; it waits only to be emptied and released.
    closed = pack < max(packs.refresh())
    short = (mark.log, mark.end) > (pack, sound)
    if isinstance(fault, NewerFormat | PackGone) and not (closed or short):
        raise fault
    # A log whose header is damaged is left unchanged.
    return None if closed or short or fault else LogTail(pack, packs.name(pack), sound)


def _sound_length(packs: Packs, pack: int, size: int, start: int) -> int:
    if not packs.backend.torn_appends:
        return size
    walker = PackWalker(lambda offset, count: packs.span(pack, offset, count), pack, size)
    return max((found.end for found in walker.walk(start) if isinstance(found, PackRecord)), default=start)


def _header_fault(packs: Packs, pack: int) -> Damaged | None:
    """What is wrong with the header of a pack."""
    try:
        parse_pack_header(packs.span(pack, 0, HEADER_BYTES), pack, packs.name(pack))
    except Damaged as error:
        return error
    return None


_FLUSH_BYTES = 4 << 20
_CHECKPOINT_BYTES = 32 << 20


class LogWriter:
    """Appends records. What was added since the last `sync` is lost together when a write fails."""

    def __init__(self, packs: Packs, tail: LogTail | None, pack_bytes: int) -> None:
        self._packs = packs
        self._pack_bytes = pack_bytes
        self._pack, self._name = (tail.pack, tail.name) if tail else (0, "")
        self._written = self._synced = self._marked = tail.length if tail else 0
        self._buffer = bytearray()
        self._broken = False

    @property
    def pack(self) -> int:
        """Number of the log being written, 0 when there is none yet."""
        return self._pack

    def begin(self) -> int:
        """Number of the pack that the next records go to; begins a new one when the last is full."""
        if self._broken:
            self._mend()
        if self._pack and self.end >= self._pack_bytes:
            self.roll()
        if not self._pack:
            self._pack, self._name = self._packs.allocate(LOG_SUFFIX)
            self._packs.add(self._pack, self._name)
            self._written = self._synced = self._marked = 0
            self._buffer += encode_pack_header(0, self._pack)
        return self._pack

    def roll(self) -> None:
        """Closes the log; the next record begins a new one."""
        if self._broken:
            self._mend()
        self.sync()
        self.checkpoint()
        self._pack = 0

    def add(self, kind: RecordKind, method: RecordMethod, head: bytes, body: bytes) -> tuple[int, int]:
        """Buffers one record; returns its offset and its length."""
        offset = self.end
        record = encode_record(kind, method, head, body, pack=self._pack, offset=offset)
        self._buffer += record
        if len(self._buffer) >= _FLUSH_BYTES:
            self.flush()
        return offset, len(record)

    def flush(self) -> None:
        """Writes the buffer, so that it can be read back."""
        if self._buffer:
            data = bytes(self._buffer)
            self._buffer.clear()
            self._guarded(lambda: self._packs.backend.append(self._name, self._written, data))
            self._written += len(data)

    def sync(self) -> None:
        """Returns when everything added is durable; NotReady if it is lost."""
        self.flush()
        if self._written > self._synced:
            self._guarded(lambda: self._packs.backend.sync(self._name))
            self._synced = self._written
            if self._synced - self._marked >= _CHECKPOINT_BYTES:
                self.checkpoint()

    def checkpoint(self) -> None:
        """Records how far the log is sound; this only saves work, so a failure is ignored."""
        if self._synced > self._marked and self._packs.backend.torn_appends:
            with suppress(LetopisError):
                self._packs.backend.remark(CHECKPOINT_NAME, encode_checkpoint(self._pack, self._synced))
                self._marked = self._synced

    @property
    def end(self) -> int:
        """Offset of the next record."""
        return self._written + len(self._buffer)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Busy:
            # Another process writes to this log against the rules: it is left to that process, whatever it holds.
            self._buffer.clear()
            self._pack = self._written = self._synced = 0
            raise
        except LetopisError:
            self._buffer.clear()
            self._broken = True
            with suppress(LetopisError):
                self._mend()
            raise

    def _mend(self) -> None:
        """Removes what was not synced: it was never acknowledged, and nothing may be assumed about it."""
        self._packs.backend.cut(self._name, self._synced)
        if self._synced < HEADER_BYTES:
            self._packs.drop(self._pack)
            self._pack = 0
        self._written = self._synced
        self._broken = False


_CHAINS_PER_FACTS = 256
_WRITE_BYTES = 1 << 20


class PackWriter:
    """Writes records into a draft, and the facts of its documents behind their frames."""

    def __init__(self, packs: Packs, flags: int) -> None:
        self._packs = packs
        self.pack, self._name = packs.allocate(PACK_SUFFIX)
        self._draft: PackDraft = packs.backend.create(self._name)
        self._buffer = bytearray(encode_pack_header(flags, self.pack))
        self._facts: list[ChainFacts] = []
        self.end = len(self._buffer)

    def add(self, kind: RecordKind, method: RecordMethod, head: bytes, body: bytes) -> tuple[int, int]:
        """Writes one record; its offset and its length."""
        offset = self.end
        record = encode_record(kind, method, head, body, pack=self.pack, offset=offset)
        self._buffer += record
        self.end += len(record)
        if len(self._buffer) >= _WRITE_BYTES:
            self._flush()
        return offset, len(record)

    def add_facts(self, facts: ChainFacts) -> None:
        """Adds the facts of a document whose frames were written."""
        self._facts.append(facts)
        if len(self._facts) >= _CHAINS_PER_FACTS:
            self._write_facts()

    def commit(self) -> int:
        """Makes the pack durable and known; returns its size."""
        self._write_facts()
        self._flush()
        self._draft.commit()
        self._packs.add(self.pack, self._name)
        return self.end

    def discard(self) -> None:
        """Discards the pack."""
        self._draft.discard()

    def _write_facts(self) -> None:
        if self._facts:
            method, body = smallest_body(encode_columns(self._facts, self.end))
            self._facts.clear()
            self.add(RecordKind.FACTS, method, b"", body)

    def _flush(self) -> None:
        data = bytes(self._buffer)
        self._buffer.clear()
        self._draft.write(data)
