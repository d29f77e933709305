"""Who did what, and how often: the audit log of an archive, and the day's use of whoever has a quota."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from letopis.archive.archive import Archive
from letopis.catalog.audit import AuditLog, AuditRow, DailyUsage, seconds_to_next_day
from letopis.model import from_millis, to_millis

__all__ = ["AuditEntry", "DailyUsage", "audit_entries", "record_audit", "seconds_to_next_day", "usage_of"]


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


def usage_of(archive: Archive) -> DailyUsage:
    """How much of their quotas people have used today."""
    return DailyUsage(archive.catalog.database)
