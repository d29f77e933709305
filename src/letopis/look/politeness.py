"""How long pauses for servers are, and the politeness book with which all users of an archive keep them.

The rules are plain functions: how long the pause for a host and its address is after a fetch. With the book, crawls,
checks, watches and downloads of jobs take turns, in one process or in many. A turn begins right before a request, and
while it lasts no other party sends requests to that host; when it ends, the pause that follows is recorded. If the
process of a turn died, the pause begins when another process notices that. A party that has to wait claims the next
turn, so that a busy crawl does not keep checks out.

Once a crawl plans requests to a host it sets how far apart they must be; while it crawls that host this applies to all
other parties too. A crawl without any delay takes no turns, unless a host asks for pauses. Fetching robots.txt takes
none. Times are whole milliseconds, delays in the rules are seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

from letopis.archive import Archive
from letopis.config.settings import CrawlSettings
from letopis.fetch.client import retry_after
from letopis.lazy import lazy
from letopis.look.slots import MappedSlots, MemorySlots, RowSlots, Slot, Slots
from letopis.model import NOT_ASKED, Response, rfc3339, to_millis
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.archive import queues
else:
    queues = lazy("letopis.archive.queues")  # a check on one machine needs none


class FetchResult(NamedTuple):
    """How a fetch went. `status` is 0 when no answer came.

    Without `asked` the host got no request (robots.txt forbids the URL), so it needs no pause.
    """

    finished: int
    seconds: float = 0.0
    status: int = 200
    ip: str = ""
    retry_after: float = 0.0
    bytes: int = 0
    crawl_delay: float | None = None
    asked: bool = True


_BUSY_STATUSES = frozenset((429, 503))
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 3600.0
_LONGEST_RETRY_AFTER = 86400.0
_LONGEST_CRAWL_DELAY = 300.0
_MOST_DOUBLINGS = 16


class Politeness(NamedTuple):
    """How long the pauses for hosts and addresses are, and how fetches are distributed."""

    delay: float = 1.0
    ip_delay: float = 1.0
    delay_factor: float = 0.0
    new_share: float = 0.5
    max_per_host: int = 0
    bandwidth: int = 0
    most_hosts: int = 10_000
    batch: int = 8
    most_ahead: int | None = None


def politeness_of(settings: CrawlSettings) -> Politeness:
    """The politeness that the settings of a crawl define."""
    return Politeness(
        delay=settings.delay,
        ip_delay=settings.delay,
        delay_factor=settings.delay_factor,
        new_share=settings.new_share,
        max_per_host=settings.max_per_host,
        bandwidth=settings.bandwidth,
    )


def is_refused(response: Response) -> bool:
    """Whether no request was sent, since it is not allowed."""
    return response.failure is not None and response.failure.kind in NOT_ASKED


def fetch_result(response: Response, crawl_delay: float | None, now: datetime) -> FetchResult:
    """What an answer that has just arrived means for the pauses of its host."""
    return FetchResult(
        to_millis(now), response.seconds, response.status, response.ip, retry_after(response, now) or 0.0,
        response.wire_bytes, crawl_delay, response.failure is None or not is_refused(response),
    )  # fmt: skip


def failures_in_a_row(failures: int, returned: FetchResult) -> int:
    """Consecutive failures: 429, 503, and no answer at all."""
    return failures + 1 if returned.status in _BUSY_STATUSES or returned.status == 0 else 0


def host_pause(politeness: Politeness, crawl_delay: float, failures: int, returned: FetchResult) -> int:
    """Milliseconds after the end of a fetch without requests to the host.

    The longest of the configured delay, the host's Crawl-delay (up to 5 minutes), a multiple of the fetch's duration, a
    pause that doubles from 5 s with each consecutive failure (up to 1 hour), and Retry-After (up to a day).
    """
    seconds = politeness.delay
    if crawl_delay or politeness.delay_factor:
        seconds = max(seconds, min(crawl_delay, _LONGEST_CRAWL_DELAY), politeness.delay_factor * returned.seconds)
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
        """Counts transferred bytes."""
        if self._rate:
            self._fill(now)
            self._tokens -= count

    def ready_at(self, now: int) -> int:
        """When the next fetch may begin; `now` or earlier means at once."""
        if not self._rate:
            return now
        self._fill(now)
        return now if self._tokens > 0.0 else now + 1 + int(-self._tokens * 1000 / self._rate)

    def _fill(self, now: int) -> None:
        if self._clock is not None and now > self._clock:
            self._tokens = min(float(self._rate), self._tokens + (now - self._clock) * self._rate / 1000)
        self._clock = now if self._clock is None else max(now, self._clock)


_LONGEST_FOR_CHECKS = 300_000
"""No check waits longer after the last request, whatever pauses the server demands of crawls."""
_CLAIM = 500
"""How long a claimed turn is kept for its claimant after its time has come."""
_LONG_WAIT = 5.0
_FILE = "politeness"


@lru_cache(maxsize=8192)
def _host_key(name: str) -> int:
    return xxh3_64_intdigest(b"host " + name.encode()) or 1


@lru_cache(maxsize=8192)
def _address_key(ip: str) -> int:
    return xxh3_64_intdigest(b"address " + ip.encode()) or 1 if ip else 0


class PolitenessBook:
    """The turns of one party: a crawl, or another process that checks. For one thread.

    Callers ensure that a party has only one turn at a host at a time.
    """

    def __init__(self, slots: Slots, politeness: Politeness, *, crawls: bool) -> None:
        """`crawls`: its delay applies to all parties while it crawls a host, and it waits while a host fails."""
        self._slots = slots
        self._politeness = politeness
        self._crawls = crawls
        self._delay = round(politeness.delay * 1000)
        self._ip_delay = round(politeness.ip_delay * 1000)
        self._troubled: set[str] = set()
        """Hosts that demanded pauses of a crawl without any delay."""
        self._closed = False

    @property
    def has_pauses(self) -> bool:
        """Whether two requests of this party to one host have a pause between them."""
        return self._delay > 0

    def arrive(self, host: queues.HostState, now: int) -> queues.HostState:
        """Announces that a crawl plans requests to a host; returns the host with all pauses in the book."""
        gap = self._gap(host.crawl_delay)

        def note(slot: Slot, address: Slot | None) -> queues.HostState:
            self._space(slot, gap, now)
            ready = max(host.ready, self._opens(slot, 0, now))
            if address is None or not host.ip:
                return host._replace(ready=ready)
            self._space(address, self._ip_delay, now)
            return host._replace(ready=ready, ip_ready=max(host.ip_ready, self._opens(address, 0, now)))

        return self._slots.change(_host_key(host.name), _address_key(host.ip), now, note)

    def begin(self, host: str, ip: str, crawl_delay: float, now: int) -> int:
        """0 if the caller has the turn from now on; otherwise how long to wait before it is worth trying again.

        An empty `ip` means the last known address of the host.
        """
        gap = self._gap(crawl_delay)
        if not gap and self._crawls and host not in self._troubled:
            return 0

        def take(slot: Slot, address: Slot | None) -> int:
            if not self._is_free(slot, address, gap, now) and (wait := self._wait(slot, address, gap, now)):
                if self._crawls and slot.retry > now:
                    self._keep_away(slot, gap, now)
                elif slot.claimed <= now or slot.claimant == self._slots.token:
                    slot.claimant, slot.claimed = self._slots.token, now + wait + _CLAIM
                return wait
            self._take(slot, address, gap, now)
            return 0

        return self._slots.change(_host_key(host), _address_key(ip), now, take)

    def reason(self, host: str, now: int) -> str:
        """Why a host has to be waited for."""

        def read(slot: Slot, address: Slot | None) -> str:
            if slot.ready > now and slot.ready - slot.asked > max(self._delay, slot.least_pause):
                return "its server asked for a pause" if slot.failures else "a pause between requests is asked for"
            if slot.spaced > now and self._is_spaced_by_others(slot):
                return "a crawl asks it, with longer pauses"
            ours = (0, self._slots.token)
            others = slot.busy not in ours or (slot.claimed > now and slot.claimant not in ours)
            return "others ask it as well" if others else "the pause between requests lasts"

        return self._slots.change(_host_key(host), 0, now, read)

    def end(self, host: str, result: FetchResult) -> None:
        """Ends a turn and records the pauses of the host and of its address."""
        crawl_delay, now = result.crawl_delay or 0.0, result.finished
        if self._closed or (self._crawls and not self._gap(crawl_delay) and not self._is_trouble(host, result)):
            return
        special = crawl_delay or result.retry_after or self._politeness.delay_factor

        def note(slot: Slot, address: Slot | None) -> None:
            if slot.busy == self._slots.token:
                slot.busy = 0
            if not result.asked:
                return
            failures = slot.failures = failures_in_a_row(slot.failures, result)
            slot.asked = now
            ready = now + (host_pause(self._politeness, crawl_delay, 0, result) if special else self._delay)
            slot.ready = ready if ready > slot.ready else slot.ready
            slot.retry = now + host_pause(self._politeness, crawl_delay, failures, result) if failures else 0
            if address is not None:
                slot.address = address.key
                address.asked = now
                address.ready = max(address.ready, now + self._ip_delay)

        self._slots.change(_host_key(host), _address_key(result.ip), now, note)

    def cut_off(self, host: str, now: int) -> None:
        """Ends a turn whose outcome is unknown: its minimum pause follows."""
        if self._closed:
            return

        def note(slot: Slot, address: Slot | None) -> None:
            self._leave(slot)
            slot.asked = now
            slot.ready = max(slot.ready, now + slot.least_pause)

        self._slots.change(_host_key(host), 0, now, note)

    def close(self) -> None:
        """Releases what is held; pauses stay in the book. Turns that still last end as those of dead processes do."""
        self._closed = True
        self._slots.close()

    def _is_trouble(self, host: str, result: FetchResult) -> bool:
        """Whether a host that is crawled without any delay needs a pause, or needed one before."""
        was = host in self._troubled
        if failures_in_a_row(0, result) or result.retry_after or self._politeness.delay_factor:
            self._troubled.add(host)
            return True
        self._troubled.discard(host)
        return was

    def _gap(self, crawl_delay: float) -> int:
        return max(self._delay, round(min(crawl_delay, _LONGEST_CRAWL_DELAY) * 1000)) if crawl_delay else self._delay

    def _is_free(self, slot: Slot, address: Slot | None, gap: int, now: int) -> bool:
        """Whether a request is clearly allowed now, as it is for most checks; False if `_wait` has to decide."""
        if slot.ready > now or slot.retry > now or slot.claimed > now or slot.asked + gap > now:
            return False
        if (slot.busy and slot.busy != self._slots.token) or (slot.spacing > gap and slot.spaced > now):
            return False
        if address is None:
            return True
        free = address.ready <= now and address.retry <= now and address.asked + self._ip_delay <= now
        return free and (address.spacing <= self._ip_delay or address.spaced <= now)

    def _wait(self, slot: Slot, address: Slot | None, gap: int, now: int) -> int:
        slots = self._slots
        if slot.busy and slot.busy != slots.token:
            if now < slot.busy_until and slots.is_alive(slot.busy):
                return slots.poll
            # It died during its request: all that is known is that this began earlier.
            slot.ready = max(slot.ready, min(now, slot.busy_until) + slot.least_pause)
            slot.busy = 0
        opens = self._opens(slot, gap, now)
        if address is not None and (there := self._opens(address, self._ip_delay, now)) > opens:
            opens = there
        if slot.claimed > now and slot.claimant != slots.token and opens < now + slots.poll:
            opens = now + slots.poll
        return opens - now if opens > now else 0

    def _opens(self, slot: Slot, gap: int, now: int) -> int:
        """When a host or an address may get a request, `gap` after the last one at the earliest."""
        if slot.spacing > gap and slot.spaced > now and self._is_spaced_by_others(slot):
            gap = slot.spacing
        # Compared by hand: this runs twice for every check.
        opens, spaced = slot.ready, slot.asked + gap
        if self._crawls:
            opens = slot.retry if slot.retry > opens else opens
        elif opens > slot.asked + _LONGEST_FOR_CHECKS:
            opens = slot.asked + _LONGEST_FOR_CHECKS
        return opens if opens > spaced else spaced

    def _is_spaced_by_others(self, slot: Slot) -> bool:
        return slot.crawler != self._slots.token and self._slots.is_alive(slot.crawler)

    def _take(self, slot: Slot, address: Slot | None, gap: int, now: int) -> None:
        slot.busy, slot.busy_until, slot.least_pause = self._slots.token, now + self._slots.hold, gap
        slot.asked, slot.claimed = now, 0
        if address is not None:
            address.asked = now
            if address.ready < now + self._ip_delay:
                address.ready = now + self._ip_delay
        if self._crawls:
            self._space(slot, gap, now)
            if address is not None:
                self._space(address, self._ip_delay, now)

    def _space(self, slot: Slot, gap: int, now: int) -> None:
        """Announces a crawl; the one with the longer delay between two requests takes precedence."""
        if slot.spacing <= gap or slot.spaced <= now or not self._is_spaced_by_others(slot):
            slot.spacing, slot.crawler, slot.spaced = gap, self._slots.token, now + self._slots.span

    def _keep_away(self, slot: Slot, gap: int, now: int) -> None:
        """A failing host is left to checks: no turn is claimed for which they would wait, and the delay stays."""
        self._space(slot, gap, now)
        if slot.crawler == self._slots.token:
            slot.spaced = max(slot.spaced, slot.retry)

    def _leave(self, slot: Slot) -> None:
        if slot.busy == self._slots.token:
            slot.busy = 0


def tell_once(
    say: Callable[[str], None], patience: float, clock: Callable[[], datetime]
) -> Callable[[str, float, str], None]:
    """Says of a host, the seconds and the reason what is waited for, and until when where that is some time.

    Whoever waits without a limit, as a loop does, hears of long waits alone.
    """
    said = set[str]()
    limit = f", {patience:g} s at most" if patience < math.inf else ""

    def tell(host: str, seconds: float, why: str) -> None:
        until = rfc3339(clock() + timedelta(seconds=seconds))
        pause = f" is left alone until {until}" if seconds > _LONG_WAIT else ""
        sentence = f"{host}{pause}: {why}; waiting for our turn{limit}"
        if sentence not in said and (pause or limit):
            said.add(sentence)
            say(sentence)

    return tell


def open_book(archive: Archive, politeness: Politeness, *, crawls: bool) -> PolitenessBook:
    """The book of an archive: a file in its folder, or rows if machines share the record.

    A fleet without any delay has no pauses to share.
    """
    slots: Slots
    if not archive.settings.database.url:
        slots = MappedSlots(archive.folder / _FILE)
    elif crawls and not politeness.delay:
        slots = MemorySlots()
    else:
        slots = RowSlots(queues.pause_rows(archive), round(archive.settings.crawl.lease * 1000))
    return PolitenessBook(slots, politeness, crawls=crawls)
