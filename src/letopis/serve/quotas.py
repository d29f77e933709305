"""What one user may ask of the machine in a day: whoever asks, the others are not kept waiting."""

from __future__ import annotations

from fastapi import HTTPException

from letopis.archive import Archive
from letopis.catalog.accounts import OWN
from letopis.catalog.usage import Usage, next_day
from letopis.model import to_millis
from letopis.serve.access import Principal

CHECKS = "checks"
WATCHES = "watches"


def charge(archive: Archive, principal: Principal, what: str, amount: int = 1) -> None:
    """Counts what a user asks for; 429 when the day's share is used up. Owners have no limit."""
    most = _most(archive, what)
    if not most or principal.may(OWN):
        return
    now = to_millis(archive.clock())
    if not Usage(archive.catalog.database).take(principal.name, what, most, now, amount):
        sentence = f"'{principal.name}' has used up the {most} {what} of today; go on tomorrow (UTC), or ask an owner"
        raise HTTPException(429, sentence, {"retry-after": str(next_day(now))})


def _most(archive: Archive, what: str) -> int:
    settings = archive.settings.serve
    return settings.checks_a_day if what == CHECKS else settings.watches_a_day
