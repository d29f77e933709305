"""The end of the newest log: where versions go as they come in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from letopis.errors import Busy, LetopisError
from letopis.store.layout import HEADER_BYTES, Kind, Method, encode_record, pack_header
from letopis.store.packs import LOG, Packs
from letopis.store.recovery import CHECKPOINT, Tail, checkpoint

_FLUSH_BYTES = 4 << 20
_CHECKPOINT_BYTES = 32 << 20


class LogWriter:
    """Appends records. What was added since the last `sync` is lost together when a write fails."""

    def __init__(self, packs: Packs, tail: Tail | None, pack_bytes: int) -> None:
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
            self._pack, self._name = self._packs.allocate(LOG)
            self._packs.add(self._pack, self._name)
            self._written = self._synced = self._marked = 0
            self._buffer += pack_header(0, self._pack)
        return self._pack

    def roll(self) -> None:
        """Closes the log; the next record begins a new one."""
        if self._broken:
            self._mend()
        self.sync()
        self.checkpoint()
        self._pack = 0

    def add(self, kind: Kind, method: Method, head: bytes, body: bytes) -> tuple[int, int]:
        """Buffers one record; its offset and its length."""
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
        """Returns when everything added is durable; NotReady when it is lost instead."""
        self.flush()
        if self._written > self._synced:
            self._guarded(lambda: self._packs.backend.sync(self._name))
            self._synced = self._written
            if self._synced - self._marked >= _CHECKPOINT_BYTES:
                self.checkpoint()

    def checkpoint(self) -> None:
        """Notes how far the log is sound; only saves work, so failing to do it is no failure."""
        if self._synced > self._marked and self._packs.backend.torn_appends:
            with suppress(LetopisError):
                self._packs.backend.remark(CHECKPOINT, checkpoint(self._pack, self._synced))
                self._marked = self._synced

    @property
    def end(self) -> int:
        """Offset of the next record."""
        return self._written + len(self._buffer)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Busy:
            # Somebody else writes to this log against the rules: leave it to them, whatever it holds.
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
        """Takes back what was not synced: nobody was told of it, and nothing may be assumed about it."""
        self._packs.backend.cut(self._name, self._synced)
        if self._synced < HEADER_BYTES:
            self._packs.drop(self._pack)
            self._pack = 0
        self._written = self._synced
        self._broken = False
