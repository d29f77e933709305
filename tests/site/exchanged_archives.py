"""What exchange tests share: one URL with every kind of check, and all that a round trip must keep."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from letopis.archive import Archive, Arrival
from letopis.model import Outcome, to_millis

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
URL = "http://example.org/page"


def looked(hours: int, status: int, body: bytes | None, outcome: Outcome, **more: object) -> Arrival:
    headers = (("Content-Type", "text/html"), ("Content-Encoding", "gzip"), ("X-Made-By", "hand")) if status else ()
    moment = to_millis(START + timedelta(hours=hours))
    return Arrival(URL, moment, status, headers, body, outcome, **more)  # type: ignore[arg-type]


def told(archive: Archive) -> dict[str, object]:
    """Everything that a round trip must keep."""
    return {
        row.url: (
            [
                (v.number, v.time, v.digest, v.headers, archive.get(row.url, version=v.number).body)
                for v in archive.versions(row.url)
            ],
            [
                (c.checked_at, c.status, c.outcome, c.version, c.headers, c.redirects, c.error, c.final_url)
                for c in archive.history(row.url)
            ],
        )
        for row in archive.catalog.resources.all()
    }
