"""Pauses that are owed to hosts, kept where killing the process cannot lose them.

The catalogue learns of a pause with the record of its fetch, up to a commit
later. Until then it stands here: a ring of the last fetches in a small file.
A note is one small write, which stays with the operating system when the
process is killed. The file is read once, when the next run begins, and a
run that ends in order, with everything recorded, takes it away.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from xxhash import xxh3_64_intdigest

from letopis.errors import NotReady
from letopis.frontier import HostFacts, HostRow

ROOM = 8192
"""Notes in the ring: more than an agent may have fetched and not yet recorded, a beginning and an end each."""
_NOTE = struct.Struct("<qQqQq")
"""When it was written, a host and its deadline, an address and its; a beginning has minus the pause as deadlines."""
_SIZE = ROOM * _NOTE.size
_LONGEST = 86_400_000 + 3_600_000
"""No pause is longer; a note that says so was written before the clock was set back."""


class Owed:
    """What one agent owes to hosts and addresses. Every agent of a machine has a file of its own."""

    def __init__(self, folder: Path, agent: int, now: int) -> None:
        """Takes over what earlier agents owed, however many there were."""
        self._hosts: dict[int, int] = {}
        self._addresses: dict[int, int] = {}
        self._take_in((note for file in folder.glob("owed-*") for note in _notes(file)), now)
        self._file = folder / f"owed-{agent}"
        self._ring = _opened(self._file)
        self._at = 0
        self._keep(now)

    def begins(self, host: str, address: str, now: int, pause: int) -> None:
        """A host is about to be asked. Should this process die now, the pause counts from the start of the next."""
        if pause:
            self._note(now, _key(host), -pause, _key(address) if address else 0, -pause)

    def ended(self, host: str, facts: HostFacts, now: int) -> None:
        """A fetch is over; these are the pauses that follow from it."""
        if facts.ready > now or facts.ip_ready > now:
            self._note(now, _key(host), facts.ready, _key(facts.ip) if facts.ip else 0, facts.ip_ready)

    def corrected(self, row: HostRow) -> HostRow:
        """A host as the catalogue knows it, with the pauses that the catalogue never heard of."""
        if not self._hosts and not self._addresses:
            return row
        ready = max(row.ready, self._hosts.get(_key(row.name), 0))
        ip_ready = max(row.ip_ready, self._addresses.get(_key(row.ip), 0)) if row.ip else row.ip_ready
        return row._replace(ready=ready, ip_ready=ip_ready)

    def settle(self) -> None:
        """Everything is recorded: the catalogue knows all pauses."""
        self._file.unlink(missing_ok=True)

    def close(self) -> None:
        """Gives the file back; unless all is settled it stays for the next run."""
        os.close(self._ring)

    def _note(self, now: int, host: int, ready: int, address: int, address_ready: int) -> None:
        os.pwrite(self._ring, _NOTE.pack(now, host, ready, address, address_ready), self._at)
        self._at = (self._at + _NOTE.size) % _SIZE

    def _take_in(self, notes: Iterable[tuple[int, ...]], now: int) -> None:
        """Later notes of a host stand for the earlier ones, so a beginning without its end is told from others."""
        for _, host, ready, address, address_ready in sorted(notes, key=_written):
            _set(self._hosts, host, _deadline(ready, now), now)
            _set(self._addresses, address, _deadline(address_ready, now), now)

    def _keep(self, now: int) -> None:
        """What is still owed stands at the beginning of the new ring: this run may be killed as well."""
        for host, ready in _latest(self._hosts.items()):
            self._note(now, host, ready, 0, 0)
        for address, ready in _latest(self._addresses.items()):
            self._note(now, 0, 0, address, ready)


def _notes(file: Path) -> Iterator[tuple[int, ...]]:
    data = file.read_bytes()
    return _NOTE.iter_unpack(data[: len(data) // _NOTE.size * _NOTE.size])


def _written(note: tuple[int, ...]) -> tuple[int, bool]:
    """By time; an end in the millisecond of its beginning comes after it."""
    return note[0], note[2] >= 0


def _deadline(noted: int, now: int) -> int:
    """A fetch that was under way began before this run did: that is all that is known of it."""
    return noted if noted >= 0 else now - noted


def _set(deadlines: dict[int, int], key: int, ready: int, now: int) -> None:
    if key and now < ready <= now + _LONGEST:
        deadlines[key] = ready
    else:
        deadlines.pop(key, None)


def _latest(pauses: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """As many as leave half of the ring to the run itself, the longest first."""
    return sorted(pauses, key=lambda pause: -pause[1])[: ROOM // 4]


def _key(name: str) -> int:
    return xxh3_64_intdigest(name.encode())


def _opened(file: Path) -> int:
    """The file with all its room: a disk that gets full later does not matter to it."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        os.posix_fallocate(descriptor, 0, _SIZE)
    except OSError as error:
        raise NotReady(
            f"cannot write {file} ({error.strerror}); see to the room and the rights of the archive"
        ) from error
    return descriptor
