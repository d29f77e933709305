"""What the schedule remembers of pages, for questions about all of them."""

from __future__ import annotations

from letopis.catalog.database import Database
from letopis.catalog.queues import AGAIN


def visit_records(database: Database, most: int) -> list[bytes]:
    """The visit records of pages that are visited again: of all, or of about `most`, evenly chosen."""
    row = database.one("SELECT count(*) FROM resource WHERE state = ?", (AGAIN,))
    step = max(1, -(-int(row[0] if row else 0) // most))
    rows = database.all("SELECT schedule FROM resource WHERE state = ? AND id % ? = 0", (AGAIN, step))
    return [bytes(record) for (record,) in rows if record]
