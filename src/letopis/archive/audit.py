"""Who did what, and how often: the audit log of an archive, the daily use of accounts with a quota, and anonymous
counts of use.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from letopis.archive.archive import Archive, of_archive
from letopis.catalog.audit import DAY, DAYS_KEPT, AuditLog, AuditRow, DailyUsage, UseCounts, seconds_to_next_day
from letopis.errors import LetopisError
from letopis.lazy import lazy
from letopis.model import from_millis, to_millis
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.catalog import sessions
else:
    sessions = lazy("letopis.catalog.sessions")

__all__ = [
    "DAYS_KEPT", "AuditEntry", "CountedUse", "UseCounter", "audit_entries", "last_done", "record_audit",
    "seconds_to_next_day", "usage_of", "use_by_day",
]  # fmt: skip

CountedUse = Literal["searches", "unanswered", "clicks", "pages", "replays", "requests", "jobs"]
"""What is counted by day where `serve.statistics` is on."""
_WRITE_EVERY = 60.0
"""Seconds for which counts wait to be written together."""


class AuditEntry(NamedTuple):
    """One line of the audit log; `address` is where the request came from, empty for this machine."""

    time: datetime
    who: str
    action: str
    subject: str
    address: str


def record_audit(archive: Archive, who: str, action: str, subject: str = "", address: str = "") -> None:
    """Appends a line about something that has just been done."""
    row = AuditRow(to_millis(archive.clock()), who, action, subject, address)
    AuditLog(archive.catalog.database).append(row)


def audit_entries(archive: Archive, limit: int) -> list[AuditEntry]:
    """The last lines, newest first."""
    rows = AuditLog(archive.catalog.database).latest(limit)
    return [AuditEntry(from_millis(row.time), row.who, row.action, row.subject, row.address) for row in rows]


def last_done(archive: Archive, who: str, action: str, since: int) -> datetime | None:
    """When an account last did something, not before a time."""
    found = AuditLog(archive.catalog.database).last(who, action, since)
    return None if found is None else from_millis(found)


usage_of = of_archive(DailyUsage)
"""How much of their quotas people have used today."""


class UseCounter:
    """Counts of this process and last uses of tokens, written together from time to time and when the archive is
    closed.

    Created by `Archive.attached`, so that all threads share one. Counts say how often something was done on a day and
    nothing about who did it; a crash loses those not yet written.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._is_on = archive.settings.serve.statistics and not archive.is_read_only
        self._guard = threading.Lock()
        self._waiting: Counter[tuple[int, CountedUse]] = Counter()
        self._tokens: dict[bytes, int] = {}
        self._written = time.monotonic()
        archive.closers.append(self.write)

    def add(self, what: CountedUse) -> None:
        """Counts one more; never waits."""
        if self._is_on:
            with self._guard:
                self._waiting[to_millis(self._archive.clock()) // DAY, what] += 1

    def token_used(self, token: str) -> None:
        """Records that a token was used; never waits."""
        if not self._archive.is_read_only:
            with self._guard:
                self._tokens[sessions.hash_token(token)] = to_millis(self._archive.clock())

    @property
    def is_due(self) -> bool:
        """Whether counts have waited long enough to be written; after that it is False for a while."""
        with self._guard:
            now = time.monotonic()
            if not (self._waiting or self._tokens) or now - self._written < _WRITE_EVERY:
                return False
            self._written = now
            return True

    def write(self) -> None:
        """Writes what waits; if that is not possible now it keeps waiting."""
        with self._guard:
            waiting, self._waiting = self._waiting, Counter()
            tokens, self._tokens = self._tokens, {}
        with suppress(LetopisError):
            if tokens:
                sessions.TokenTimes(self._archive.catalog.database).set("used", tokens)
                tokens = {}
            if not waiting:
                return
            counts = UseCounts(self._archive.catalog.database)
            counts.ensure()
            with self._archive.catalog.transaction() as cursor:
                for day in sorted({day for day, _ in waiting}):
                    counts.add(cursor, day, {what: count for (at, what), count in waiting.items() if at == day})
            return
        with self._guard:
            self._waiting += waiting
            self._tokens = tokens | self._tokens


def use_by_day(archive: Archive, days: int) -> dict[datetime, dict[str, int]]:
    """The counts of the last days, those of this process included; newest first, days without any omitted."""
    archive.attached(UseCounter).write()
    today = to_millis(archive.clock()) // DAY
    found: dict[datetime, dict[str, int]] = {}
    for day, what, count in UseCounts(archive.catalog.database).since(today - days + 1):
        found.setdefault(from_millis(day * DAY), {})[what] = count
    return found
