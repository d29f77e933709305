"""Parameters that several REST routes share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query

from letopis.archive import Archive
from letopis.errors import UsageError
from letopis.model import parse_time

Url = Annotated[str, Query(description="Address of the page", min_length=1, max_length=8192)]
At = Annotated[str | None, Query(description="Time: RFC 3339, a date, 14 digits, or '2 days ago'", max_length=64)]
From = Annotated[str | None, Query(alias="from", description="Not before this time", max_length=64)]
To = Annotated[str | None, Query(description="Not after this time", max_length=64)]
Limit = Annotated[int, Query(description="Most rows", ge=1, le=10_000)]
Cursor = Annotated[str | None, Query(description="Where an earlier answer ended", max_length=40)]


def moment(archive: Archive, text: str | None) -> datetime | None:
    """A time as people write it; relative ones count from now."""
    return None if text is None else parse_time(text, archive.clock())


def position(cursor: str | None) -> int:
    """The number inside a cursor; 0 at the start."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise UsageError("this cursor was not given out here; start without one")
    return int(cursor)
