"""How long a host and its address are left alone, within one process, between processes and across crashes.

Times are whole milliseconds, delays in the rules are seconds. Agents on one
machine share a small file of times per address: two addresses may share a
slot, which makes us more polite, never less.

The catalogue learns of a pause with the record of its fetch, up to a commit
later. Until then it stands in the journal: a ring of the last fetches in a
small file. A note is one small write, which stays with the operating system
when the process is killed. The file is read once, when the next run begins,
and a run that ends in order, with everything recorded, takes it away.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from xxhash import xxh3_64_intdigest

from letopis.config.settings import CrawlSettings
from letopis.errors import NotReady


class HostState(NamedTuple):
    """What is stored of a host: who it is and when it may be asked again."""

    id: int
    name: str
    ip: str = ""
    ready: int = 0
    ip_ready: int = 0
    crawl_delay: float = 0.0
    fetched: int = 0
    failures: int = 0
    fence: int = 0


class FetchResult(NamedTuple):
    """How a ticket's fetch went. `status` is 0 when no answer came.

    Without `asked` the host was not troubled (robots.txt forbids the URL), so
    nothing is owed to it.
    """

    finished: int
    seconds: float = 0.0
    status: int = 200
    ip: str = ""
    retry_after: float = 0.0
    bytes: int = 0
    crawl_delay: float | None = None
    asked: bool = True


class HostUpdate(NamedTuple):
    """A host's politeness after a fetch, to be stored with the record of that fetch."""

    id: int
    ip: str
    ready: int
    ip_ready: int
    crawl_delay: float
    fetched: int
    failures: int


_BUSY_STATUSES = frozenset((429, 503))
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 3600.0
_LONGEST_RETRY_AFTER = 86400.0
_LONGEST_CRAWL_DELAY = 300.0
_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True)
class Politeness:
    """What we owe to servers, and how the fetches are shared out."""

    delay: float = 1.0
    ip_delay: float = 1.0
    delay_factor: float = 0.0
    new_share: float = 0.5
    max_per_host: int = 0
    bandwidth: int = 0
    most_hosts: int = 10_000
    batch: int = 8


def politeness_of(settings: CrawlSettings) -> Politeness:
    """The manners that the settings of a crawl ask for."""
    return Politeness(
        delay=settings.delay,
        ip_delay=settings.delay,
        delay_factor=settings.delay_factor,
        new_share=settings.new_share,
        max_per_host=settings.max_per_host,
        bandwidth=settings.bandwidth,
    )


def failures_in_a_row(failures: int, returned: FetchResult) -> int:
    """Refusals and silences in a row: 429, 503, and no answer at all."""
    return failures + 1 if returned.status in _BUSY_STATUSES or returned.status == 0 else 0


def host_pause(politeness: Politeness, crawl_delay: float, failures: int, returned: FetchResult) -> int:
    """Milliseconds after the end of a fetch in which the host is left alone.

    The longest of the set delay, the host's Crawl-delay (up to 5 minutes), a
    multiple of the fetch's duration, a pause that doubles from 5 s with each
    failure in a row (up to 1 hour), and what Retry-After asks for (up to a
    day).
    """
    seconds = max(politeness.delay, min(crawl_delay, _LONGEST_CRAWL_DELAY), politeness.delay_factor * returned.seconds)
    if failures:
        seconds = max(seconds, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)))
    if returned.retry_after > 0.0:
        seconds = max(seconds, min(returned.retry_after, _LONGEST_RETRY_AFTER))
    return round(seconds * 1000)


class Bandwidth:
    """A token bucket of bytes: one second's worth may be used at once, more becomes debt."""

    def __init__(self, bytes_a_second: int) -> None:
        """0 for no limit."""
        self._rate = bytes_a_second
        self._tokens = float(bytes_a_second)
        self._clock: int | None = None

    def spend(self, count: int, now: int) -> None:
        """Bytes have travelled."""
        if self._rate:
            self._fill(now)
            self._tokens -= count

    def ready_at(self, now: int) -> int:
        """When the next fetch may begin; `now` or before if at once."""
        if not self._rate:
            return now
        self._fill(now)
        return now if self._tokens > 0.0 else now + 1 + int(-self._tokens * 1000 / self._rate)

    def _fill(self, now: int) -> None:
        if self._clock is not None and now > self._clock:
            self._tokens = min(float(self._rate), self._tokens + (now - self._clock) * self._rate / 1000)
        self._clock = now if self._clock is None else max(now, self._clock)


class HostGates:
    """Politeness of checks: a host never sees two of our connections at once."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._locks: dict[str, asyncio.Lock] = {}
        self._ready: dict[str, float] = {}

    def lock(self, host: str) -> asyncio.Lock:
        """Held while the host is asked."""
        found = self._locks.get(host)
        if found is None:
            found = self._locks[host] = asyncio.Lock()
        return found

    def pause(self, host: str) -> float:
        """Seconds that are left of its rest since the last `asked`."""
        return max(0.0, self._ready[host] - time.monotonic()) if host in self._ready else 0.0

    def asked(self, host: str) -> None:
        """The host has been asked and rests now."""
        if self._delay:
            self._ready[host] = time.monotonic() + self._delay


_SLOTS = 1 << 14
_SLOT = struct.Struct("<q")


class AddressGate(Protocol):
    """Turns at addresses, shared by all agents."""

    def reserve(self, address: str, now: int, delay: int) -> int:
        """Milliseconds to wait before the address may be asked; the turn after that is ours."""

    def close(self) -> None:
        """Gives back what is held."""


class FileAddressGate:
    """Reservations in a file that every agent opens."""

    def __init__(self, file: Path) -> None:
        self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if os.fstat(self._fd).st_size < _SLOTS * _SLOT.size:
            os.ftruncate(self._fd, _SLOTS * _SLOT.size)

    def reserve(self, address: str, now: int, delay: int) -> int:
        """Milliseconds to wait before the address may be asked; the turn after that is ours."""
        at = xxh3_64_intdigest(address.encode()) % _SLOTS * _SLOT.size
        fcntl.lockf(self._fd, fcntl.LOCK_EX, _SLOT.size, at)
        try:
            ready = _SLOT.unpack(os.pread(self._fd, _SLOT.size, at))[0]
            # A clock that was set back must not silence a host for long.
            start = now if ready > now + 100 * max(delay, 1000) else max(ready, now)
            os.pwrite(self._fd, _SLOT.pack(start + delay), at)
            return start - now
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, _SLOT.size, at)

    def close(self) -> None:
        """Gives the file back."""
        os.close(self._fd)


JOURNAL_NOTES = 8192
"""Notes in the ring: more than an agent may have fetched and not yet recorded, a beginning and an end each."""
_NOTE = struct.Struct("<qQqQq")
"""When it was written, a host and its deadline, an address and its; a beginning has minus the pause as deadlines."""
_JOURNAL_BYTES = JOURNAL_NOTES * _NOTE.size
_LONGEST_NOTE = 86_400_000 + 3_600_000
"""No pause is longer; a note that says so was written before the clock was set back."""


class PauseJournal:
    """What one agent owes to hosts and addresses. Every agent of a machine has a file of its own."""

    def __init__(self, folder: Path, agent: int, now: int) -> None:
        """Takes over what earlier agents owed, however many there were."""
        self._hosts: dict[int, int] = {}
        self._addresses: dict[int, int] = {}
        self._take_in((note for file in folder.glob("owed-*") for note in _read_notes(file)), now)
        self._file = folder / f"owed-{agent}"
        self._ring = _open_journal(self._file)
        self._at = 0
        self._keep(now)

    def begins(self, host: str, address: str, now: int, pause: int) -> None:
        """A host is about to be asked. Should this process die now, the pause counts from the start of the next."""
        if pause:
            self._note(now, _host_key(host), -pause, _host_key(address) if address else 0, -pause)

    def ended(self, host: str, facts: HostUpdate, now: int) -> None:
        """A fetch is over; these are the pauses that follow from it."""
        if facts.ready > now or facts.ip_ready > now:
            self._note(now, _host_key(host), facts.ready, _host_key(facts.ip) if facts.ip else 0, facts.ip_ready)

    def corrected(self, row: HostState) -> HostState:
        """A host as the catalogue knows it, with the pauses that the catalogue never heard of."""
        if not self._hosts and not self._addresses:
            return row
        ready = max(row.ready, self._hosts.get(_host_key(row.name), 0))
        ip_ready = max(row.ip_ready, self._addresses.get(_host_key(row.ip), 0)) if row.ip else row.ip_ready
        return row._replace(ready=ready, ip_ready=ip_ready)

    def settle(self) -> None:
        """Everything is recorded: the catalogue knows all pauses."""
        self._file.unlink(missing_ok=True)

    def close(self) -> None:
        """Gives the file back; unless all is settled it stays for the next run."""
        os.close(self._ring)

    def _note(self, now: int, host: int, ready: int, address: int, address_ready: int) -> None:
        os.pwrite(self._ring, _NOTE.pack(now, host, ready, address, address_ready), self._at)
        self._at = (self._at + _NOTE.size) % _JOURNAL_BYTES

    def _take_in(self, notes: Iterable[tuple[int, ...]], now: int) -> None:
        """Later notes of a host stand for the earlier ones, so a beginning without its end is told from others."""
        for _, host, ready, address, address_ready in sorted(notes, key=_note_order):
            _set_deadline(self._hosts, host, _deadline_of(ready, now), now)
            _set_deadline(self._addresses, address, _deadline_of(address_ready, now), now)

    def _keep(self, now: int) -> None:
        """What is still owed stands at the beginning of the new ring: this run may be killed as well."""
        for host, ready in _longest_pauses(self._hosts.items()):
            self._note(now, host, ready, 0, 0)
        for address, ready in _longest_pauses(self._addresses.items()):
            self._note(now, 0, 0, address, ready)


def _read_notes(file: Path) -> Iterator[tuple[int, ...]]:
    data = file.read_bytes()
    return _NOTE.iter_unpack(data[: len(data) // _NOTE.size * _NOTE.size])


def _note_order(note: tuple[int, ...]) -> tuple[int, bool]:
    """By time; an end in the millisecond of its beginning comes after it."""
    return note[0], note[2] >= 0


def _deadline_of(noted: int, now: int) -> int:
    """A fetch that was under way began before this run did: that is all that is known of it."""
    return noted if noted >= 0 else now - noted


def _set_deadline(deadlines: dict[int, int], key: int, ready: int, now: int) -> None:
    if key and now < ready <= now + _LONGEST_NOTE:
        deadlines[key] = ready
    else:
        deadlines.pop(key, None)


def _longest_pauses(pauses: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """As many as leave half of the ring to the run itself, the longest first."""
    return sorted(pauses, key=lambda pause: -pause[1])[: JOURNAL_NOTES // 4]


def _host_key(name: str) -> int:
    return xxh3_64_intdigest(name.encode())


def _open_journal(file: Path) -> int:
    """The file with all its room: a disk that gets full later does not matter to it."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        os.posix_fallocate(descriptor, 0, _JOURNAL_BYTES)
    except OSError as error:
        raise NotReady(
            f"cannot write {file} ({error.strerror}); see to the room and the rights of the archive"
        ) from error
    return descriptor
