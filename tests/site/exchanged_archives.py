"""What exchange tests share: one URL with every kind of check, and all that a round trip must keep."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from letopis.archive import Archive, CheckDetails, NewCapture
from letopis.model import Hop, Outcome, Put, to_millis

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
URL = "http://example.org/page"


def looked(hours: int, status: int, body: bytes | None, outcome: Outcome, **more: object) -> NewCapture:
    headers = (("Content-Type", "text/html"), ("Content-Encoding", "gzip"), ("X-Made-By", "hand")) if status else ()
    moment = to_millis(START + timedelta(hours=hours))
    return NewCapture(URL, moment, status, headers, body, outcome, **more)  # type: ignore[arg-type]


def check_every_way(archive: Archive) -> None:
    """Every kind of check that there is."""
    hop = Hop(URL, 301, "http://example.org/new", "127.0.0.1", (("Location", "http://example.org/new"),))
    archive.commit(
        [
            looked(0, 200, b"<title>One</title><p>first", Outcome.NEW),
            looked(1, 200, b"<title>One</title><p>first", Outcome.UNCHANGED),
            looked(2, 304, None, Outcome.UNCHANGED, versioned=False),
            looked(3, 404, b"gone", Outcome.UNAVAILABLE, versioned=False),
            looked(4, 301, b"", Outcome.UNCHANGED, versioned=False),
            looked(5, 0, None, Outcome.UNAVAILABLE, versioned=False, details=CheckDetails(error="no connection")),
            looked(6, 200, b"<p>second", Outcome.CHANGED, details=CheckDetails("http://example.org/new", (hop,))),
            looked(7, 200, b"<title>One</title><p>first", Outcome.CHANGED),
        ]
    )
    list(archive.put_many([Put("http://other.example/", b"\x00\xff binary", START, "application/octet-stream")]))


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
