"""How long a host and its address are left alone: pure values and functions.

Times are whole milliseconds, delays in the rules are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from letopis.config.sections import CrawlSettings
from letopis.frontier.states import Returned

_BUSY = frozenset((429, 503))
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 3600.0
_LONGEST_ASKED = 86400.0
_LONGEST_CRAWL_DELAY = 300.0
_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True)
class Manners:
    """What we owe to servers, and how the fetches are shared out."""

    delay: float = 1.0
    ip_delay: float = 1.0
    delay_factor: float = 0.0
    new_share: float = 0.5
    max_per_host: int = 0
    bandwidth: int = 0
    most_hosts: int = 10_000
    batch: int = 8


def manners_of(settings: CrawlSettings) -> Manners:
    """The manners that the settings of a crawl ask for."""
    return Manners(
        delay=settings.delay,
        ip_delay=settings.delay,
        delay_factor=settings.delay_factor,
        new_share=settings.new_share,
        max_per_host=settings.max_per_host,
        bandwidth=settings.bandwidth,
    )


def failures_after(failures: int, returned: Returned) -> int:
    """Refusals and silences in a row: 429, 503, and no answer at all."""
    return failures + 1 if returned.status in _BUSY or returned.status == 0 else 0


def pause(manners: Manners, crawl_delay: float, failures: int, returned: Returned) -> int:
    """Milliseconds after the end of a fetch in which the host is left alone.

    The longest of the set delay, the host's Crawl-delay (up to 5 minutes), a
    multiple of the fetch's duration, a pause that doubles from 5 s with each
    failure in a row (up to 1 hour), and what Retry-After asks for (up to a
    day).
    """
    seconds = max(manners.delay, min(crawl_delay, _LONGEST_CRAWL_DELAY), manners.delay_factor * returned.seconds)
    if failures:
        seconds = max(seconds, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)))
    if returned.retry_after > 0.0:
        seconds = max(seconds, min(returned.retry_after, _LONGEST_ASKED))
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


class Share:
    """Holds a share of fetches for never-seen URLs, by a bounded credit."""

    _BOUND = 8.0

    def __init__(self, share: float) -> None:
        self._share = min(1.0, max(0.0, share))
        self._credit = 0.0
        self.new = 0
        self.again = 0

    @property
    def wants_new(self) -> bool:
        """Whose turn it is, if both kinds are ready."""
        return self._share > 0.0 and self._credit + self._share >= 0.5

    @property
    def shown(self) -> float:
        """The share of never-seen URLs among all fetches so far."""
        return self.new / max(1, self.new + self.again)

    def note(self, new: bool) -> None:
        """A URL of this kind was taken. What one kind could not use is not saved up for long."""
        self._credit = min(self._BOUND, max(-self._BOUND, self._credit + self._share - new))
        self.new += new
        self.again += not new
