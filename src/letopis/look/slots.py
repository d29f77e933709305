"""Where the politeness book is stored: a small file that all processes of a machine map, rows that machines share, or
memory.

A slot is the state of one host or address. The file is a table of slots by the hash of their names, locked for each
change; it grows while many pauses last at once. A process that opens it keeps a byte of it locked, so that others see
whether it is alive. The operating system keeps the content of the file when a process is killed. Rows are updated by
compare and swap: if another machine changed one meanwhile, it is read again and decided again.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from letopis.binary import PRIVATE_FILE
from letopis.errors import NotReady
from letopis.lazy import lazy

if TYPE_CHECKING:
    from letopis.archive import queues
else:
    queues = lazy("letopis.archive.queues")

T = TypeVar("T")
_SLOT = struct.Struct("<QQqqqqqqQQQIII4x")
_LONGEST = 86_400_000 + 3_600_000
"""No pause is longer; a longer one was written before the clock was set back."""
_FRESH = 10_000
"""A slot is not reused for another name so shortly after the last request to its host."""


class Slot:
    """The state of one host or address. It may get requests from `ready` on, of crawls from `retry` on, which is later
    after consecutive failures. The last request was at `asked`: a turn began then, or the last one ended. `busy` has a
    turn, until `busy_until` at the latest, and the pause after it is `least_pause` if it dies; `claimant` has the next
    turn until `claimed`. Until `spaced` the crawl of `crawler` wants `spacing` between two requests. `address` is the
    key of the last known address of a host.
    """

    __slots__ = (
        "address", "asked", "busy", "busy_until", "claimant", "claimed", "crawler", "failures", "key", "least_pause",
        "ready", "retry", "spaced", "spacing",
    )  # fmt: skip

    def __init__(
        self, key: int, address: int = 0, ready: int = 0, retry: int = 0, asked: int = 0, busy_until: int = 0,
        claimed: int = 0, spaced: int = 0, busy: int = 0, claimant: int = 0, crawler: int = 0, spacing: int = 0,
        least_pause: int = 0, failures: int = 0,
    ) -> None:  # fmt: skip
        self.key, self.address, self.ready, self.retry, self.asked = key, address, ready, retry, asked
        self.busy_until, self.claimed, self.spaced, self.busy = busy_until, claimed, spaced, busy
        self.claimant, self.crawler, self.spacing = claimant, crawler, spacing
        self.least_pause, self.failures = least_pause, failures

    def is_idle(self, now: int) -> bool:
        """Whether it has no information that is still needed."""
        return not self.busy and now >= max(
            self.ready, self.retry, self.claimed, self.spaced, self.asked + _FRESH, self.asked + self.spacing
        )

    def forget_future(self, now: int) -> None:
        """A clock that was set back must not block a host for long."""
        if self.asked > now + _FRESH:
            self.asked = 0
        latest = now + _LONGEST
        if self.ready > latest or self.retry > latest or self.claimed > latest or self.spaced > latest:
            self.ready = self.retry = self.claimed = self.spaced = 0


def _values(slot: Slot) -> tuple[int, ...]:
    """The fields of a slot as they are written; spelled out, in a third of the time that a getter by names takes."""
    return (
        slot.key, slot.address, slot.ready, slot.retry, slot.asked, slot.busy_until, slot.claimed, slot.spaced,
        slot.busy, slot.claimant, slot.crawler, slot.spacing, slot.least_pause, slot.failures,
    )  # fmt: skip


Decide = Callable[[Slot, Slot | None], T]


class Slots(Protocol):
    """Slots by key. `token` identifies the party that has opened them; times are milliseconds."""

    token: int
    poll: int
    """How long to wait for another party during its turn."""
    hold: int
    """How long a turn may last before its holder counts as dead."""
    span: int
    """How long after its last announcement a crawl counts as crawling a host."""

    def is_alive(self, token: int) -> bool:
        """Whether the party that had this token may still be at work."""

    def change(self, host: int, address: int, now: int, decide: Decide[T]) -> T:
        """Lets `decide` change the slots of a host and of its address atomically.

        The address 0 means the last known address of the host, if there is one.
        """

    def close(self) -> None:
        """Releases everything."""


class MemorySlots:
    """Slots of this process alone."""

    poll, hold, span = 20, 600_000, 600_000

    def __init__(self, most: int = 100_000) -> None:
        self.token = 1
        self._most = most
        self._slots: dict[int, Slot] = {}

    def is_alive(self, token: int) -> bool:
        """There are no other parties."""
        return token == self.token

    def change(self, host: int, address: int, now: int, decide: Decide[T]) -> T:
        """See `Slots.change`."""
        slot = self._slot(host, now)
        address = address or slot.address
        return decide(slot, self._slot(address, now) if address else None)

    def _slot(self, key: int, now: int) -> Slot:
        if key not in self._slots:
            if len(self._slots) >= self._most:
                self._slots = {name: slot for name, slot in self._slots.items() if not slot.is_idle(now)}
            self._slots[key] = Slot(key)
        return self._slots[key]

    def close(self) -> None:
        """Nothing is held."""


_MAGIC = b"letopis1"
_HEADER = struct.Struct("<8sII")
"""Mark, number of slots, parties so far."""
_MOST_KEPT = 8192
_COUNT_AT = slice(len(_MAGIC), len(_MAGIC) + 4)
_PARTY = struct.Struct("<I")
_PARTY_BITS = 10
_PARTIES = 1 << _PARTY_BITS
_PARTIES_AT, _SLOTS_AT = 4096, 8192
_WAYS = 8
"""Slots in a row; a name can be in one of two rows."""
_ROW = _WAYS * _SLOT.size
_FIRST_SLOTS, _MOST_SLOTS, _GROWTH = 1 << 9, 1 << 18, 8
_LOCKS = 1 << 40
"""Where the locks of parties are, beyond all bytes of the file."""
_LOCK = struct.Struct("hhqqi4x")
_LOCK_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB
_LOCK_TRIES, _LOCK_PAUSE = 1000, 0.0005
"""A process that was stopped in the middle of a change does not block all others for longer than this."""


def _lock(kind: int, number: int) -> bytes:
    return _LOCK.pack(kind, os.SEEK_SET, _LOCKS + number, 1, 0)


def _table_at(count: int) -> int:
    """Where a table of so many slots begins: after the smaller one that it grew from."""
    return _SLOTS_AT if count <= _FIRST_SLOTS else _table_at(count // _GROWTH) + count // _GROWTH * _SLOT.size


class _KeptSlot:
    """A slot, its position, and the bytes there when it was last written."""

    __slots__ = ("data", "place", "slot")

    def __init__(self, place: int, slot: Slot) -> None:
        self.place = slice(place, place + _SLOT.size)
        self.slot = slot
        self.data = b""


class MappedSlots:
    """Slots in a file that every process of the machine maps."""

    poll, hold, span = 20, 600_000, 600_000

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
            try:
                self._open()
            except BaseException:
                os.close(self._fd)
                raise
        except OSError as error:
            raise NotReady(
                f"cannot write {file} ({error.strerror}); check free space and permissions of the archive"
            ) from error

    def _open(self) -> None:
        self._take_lock()
        try:
            # All its space at once: it keeps working if the disk is full later.
            os.posix_fallocate(self._fd, 0, _table_at(_FIRST_SLOTS * _GROWTH))
            self._map = mmap.mmap(self._fd, 0)
            if self._map[: len(_MAGIC)] != _MAGIC:
                self._map[:] = bytes(len(self._map))
                _HEADER.pack_into(self._map, 0, _MAGIC, _FIRST_SLOTS, 0)
            self._see_count()
            self._kept: dict[int, _KeptSlot] = {}
            """Slots as this process last wrote them; others may have changed them since."""
            self._clock = 0
            self.token = self._join()
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _join(self) -> int:
        """Locks a free byte; its number and how many were locked before are the token."""
        for number in range(1, _PARTIES):
            with suppress(OSError):
                fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _lock(fcntl.F_WRLCK, number))
                _, count, parties = _HEADER.unpack_from(self._map)
                parties = (parties + 1) % (1 << 32 - _PARTY_BITS)
                _HEADER.pack_into(self._map, 0, _MAGIC, count, parties)
                token = int(parties) << _PARTY_BITS | number
                _PARTY.pack_into(self._map, _PARTIES_AT + number * _PARTY.size, token)
                return token
        raise NotReady(f"{_PARTIES} processes use {self._file} already; stop some of them")

    def is_alive(self, token: int) -> bool:
        """Whether the process that got this token still holds its lock."""
        if token == self.token:
            return True
        number = token & _PARTIES - 1
        if not number or _PARTY.unpack_from(self._map, _PARTIES_AT + number * _PARTY.size)[0] != token:
            return False
        answer = fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK, number))
        return bool(_LOCK.unpack(answer)[0] != fcntl.F_UNLCK)

    def change(self, host: int, address: int, now: int, decide: Decide[T]) -> T:
        """See `Slots.change`; spelled out, since it runs twice for every check."""
        try:
            fcntl.flock(self._fd, _LOCK_AT_ONCE)
        except BlockingIOError:
            self._take_lock()
        try:
            if self._map[_COUNT_AT] != self._count_bytes:
                self._map_again()
            if now < self._clock:
                self._kept.clear()  # read again, so that no time in the future stays
            self._clock = now
            kept = self._kept.get(host)
            if kept is None or self._map[kept.place] != kept.data:
                kept = self._read(host, now)
            slot = kept.slot
            if address := address or slot.address:
                other = self._kept.get(address)
                if other is None or self._map[other.place] != other.data:
                    count = self._count
                    other = self._read(address, now, kept.place.start)
                    if self._count != count:  # the table grew, so everything has moved
                        kept = self._read(host, now, other.place.start)
                        slot = kept.slot
                done = decide(slot, other.slot)
                other.data = self._map[other.place] = _SLOT.pack(*_values(other.slot))
            else:
                done = decide(slot, None)
            kept.data = self._map[kept.place] = _SLOT.pack(*_values(slot))
            return done
        except BaseException:
            self._kept.clear()  # the decision was not written
            raise
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Closes the file: others see that this party is gone."""
        if not self._map.closed:
            self._map.close()
            os.close(self._fd)

    def _take_lock(self) -> None:
        for _ in range(_LOCK_TRIES):
            try:
                fcntl.flock(self._fd, _LOCK_AT_ONCE)
            except BlockingIOError:
                time.sleep(_LOCK_PAUSE)
            else:
                return

    def _see_count(self) -> None:
        """How many slots the valid table has, as a number and in its written form."""
        self._count_bytes = self._map[_COUNT_AT]
        self._count = int.from_bytes(self._count_bytes, "little")

    def _map_again(self) -> None:
        self._map.close()
        self._map = mmap.mmap(self._fd, 0)
        self._see_count()
        self._kept.clear()

    def _read(self, key: int, now: int, never: int = -1) -> _KeptSlot:
        """The slot of a name as written; a new one, never in the same place, if there is none."""
        place = self._find(key, now, never)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        kept = self._kept[key] = _KeptSlot(place, Slot(*_SLOT.unpack_from(self._map, place)))
        kept.slot.forget_future(now)
        return kept

    def _find(self, key: int, now: int, never: int = -1) -> int:
        """Where the slot of a name is; a new one, never in the same place, if there is none."""
        name = key.to_bytes(8, "little")
        table, rows = _table_at(self._count), self._count // _WAYS
        starts = [table + half % rows * _ROW for half in (key, key >> 32)]
        for start in starts:
            place = self._map.find(name, start, start + _ROW)
            while place >= 0:
                if (place - start) % _SLOT.size == 0:
                    return place
                place = self._map.find(name, place + 1, start + _ROW)
        return self._make(key, starts, now, never)

    def _make(self, key: int, starts: list[int], now: int, never: int) -> int:
        places = [start + number * _SLOT.size for start in starts for number in range(_WAYS)]
        slots = {place: Slot(*_SLOT.unpack_from(self._map, place)) for place in places if place != never}
        chosen = next((place for place, slot in slots.items() if not slot.key or slot.is_idle(now)), -1)
        if chosen < 0:
            if self._count < _MOST_SLOTS and self._grow(now):
                return self._find(key, now)
            # The shortest pause is dropped; crawls also keep theirs in the record.
            chosen = min(slots, key=lambda place: (slots[place].busy > 0, slots[place].ready))
        _SLOT.pack_into(self._map, chosen, *_values(Slot(key)))
        return chosen

    def _grow(self, now: int) -> bool:
        """Copies what is still needed into a larger table, which becomes valid with its number of slots."""
        count = self._count * _GROWTH
        kept = [values for values in self._table() if values[0] and not Slot(*values).is_idle(now)]
        try:
            os.posix_fallocate(self._fd, 0, _table_at(count * _GROWTH))
        except OSError:
            return False
        self._map.close()
        self._map = mmap.mmap(self._fd, 0)
        before, self._count = self._count, count
        self._kept.clear()
        for values in kept:
            place = self._find(values[0], now)
            _SLOT.pack_into(self._map, place, *values)
        self._map[_COUNT_AT] = self._count.to_bytes(4, "little")
        self._see_count()
        return self._count > before

    def _table(self) -> list[tuple[int, ...]]:
        start = _table_at(self._count)
        return list(_SLOT.iter_unpack(self._map[start : start + self._count * _SLOT.size]))


_IN_MEMORY = 20_000


class RowSlots:
    """Slots in rows of the record. They do not show whether others are alive, so turns and spacings last less long."""

    poll, span = 100, 60_000

    def __init__(self, rows: queues.PauseRows, hold: int) -> None:
        self.token = int.from_bytes(os.urandom(8)) >> 1 | 1
        self.hold = hold
        self._rows = rows
        self._known: OrderedDict[str, queues.PauseRow] = OrderedDict()

    def is_alive(self, token: int) -> bool:
        """Until its time is over."""
        return True

    def change(self, host: int, address: int, now: int, decide: Decide[T]) -> T:
        """See `Slots.change`; reads the row unless this process wrote it last, and again if that is outdated."""
        while True:
            name, row, slot = self._slot(host, now)
            before = {name: (row, _values(slot))}
            slots = {name: slot}
            if address := address or slot.address:
                other_name, other_row, other = self._slot(address, now)
                before[other_name] = (other_row, _values(other))
                slots[other_name] = other
            done = decide(slot, slots[other_name] if address else None)
            changed = {
                key: queues.PauseRow(before[key][0].revision, _SLOT.pack(*_values(each)))
                for key, each in slots.items()
                if _values(each) != before[key][1]
            }
            if self._swapped(changed):
                return done

    def _slot(self, key: int, now: int) -> tuple[str, queues.PauseRow, Slot]:
        name = f"{key:016x}"
        row = self._known.pop(name, None) or self._rows.read([name]).get(name) or queues.PauseRow(0, b"")
        slot = Slot(*_SLOT.unpack(row.slot)) if row.slot else Slot(key)
        slot.forget_future(now)
        return name, row, slot

    def _swapped(self, changed: dict[str, queues.PauseRow]) -> bool:
        """Only what this process has just written counts as known: others may have changed everything else."""
        written = self._rows.swap(changed) if changed else set()
        for name in written:
            self._known[name] = queues.PauseRow(changed[name].revision + 1, changed[name].slot)
        while len(self._known) > _IN_MEMORY:
            self._known.popitem(last=False)
        return len(written) == len(changed)

    def close(self) -> None:
        """Nothing is held."""
