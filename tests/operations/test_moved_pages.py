"""Where pages that are missing on their site may be found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from letopis import Archive
from letopis.errors import NotFound
from letopis.model import Observation, Outcome, Response
from letopis.operations import Context
from letopis.operations.moved_pages import MovedPageQuery, moved

DAY = datetime(2026, 1, 1, tzinfo=UTC)
SITE = "http://a.example"


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = Archive(tmp_path / "archive")
    for path in (
        "/contact.html",
        "/about/history.html",
        "/news/2025/library-opens.html",
        "/news/2024/library-opens.html",
    ):
        made.put(SITE + path, f"<title>The page {path}</title>".encode(), DAY)
    gone = Response(
        SITE + "/news/2024/library-opens.html",
        SITE + "/news/2024/library-opens.html",
        404,
        (),
        b"",
        DAY + timedelta(days=1),
    )
    made.record([Observation(gone, Outcome.UNAVAILABLE)])
    return made


def test_a_missing_address_is_matched_with_redirects_versions_and_like_addresses(archive: Archive) -> None:
    def found(path: str) -> list[tuple[str, str]]:
        return [
            (row.found_by, row.url.removeprefix(SITE))
            for row in moved(Context(archive), MovedPageQuery(url=SITE + path))
        ]

    assert found("/contacts.htm")[0] == ("likeness", "/contact.html")
    assert found("/library-opens")[0] == ("likeness", "/news/2025/library-opens.html")
    assert ("likeness", "/news/2024/library-opens.html") not in found("/library-opens")
    assert found("/news/2024/library-opens.html")[:2] == [
        ("archive", "/news/2024/library-opens.html"),
        ("likeness", "/news/2025/library-opens.html"),
    ]
    assert found("/zzz") == []
    old, new = SITE + "/old", SITE + "/about/history.html"
    archive.record(
        [
            Observation(
                Response(old, new, 200, (("Content-Type", "text/html"),), b"<title>History</title>", DAY), Outcome.NEW
            )
        ]
    )
    assert found("/old")[0] == ("redirect", "/about/history.html")
    with pytest.raises(NotFound):
        moved(Context(archive), MovedPageQuery(url="http://nowhere.example/x"))


def test_a_redirect_that_a_crawl_recorded_is_followed(archive: Archive) -> None:
    old = SITE + "/moved-away"
    answer = Response(old, old, 301, (("Location", "/about/history.html"),), b"", DAY)
    archive.record([Observation(answer, Outcome.UNCHANGED)])
    rows = list(moved(Context(archive), MovedPageQuery(url=old)))
    assert next((row.found_by, row.url) for row in rows) == ("redirect", SITE + "/about/history.html")


def test_a_letter_that_stands_in_every_name_is_no_likeness(archive: Archive) -> None:
    archive.put(SITE + "/a", b"<title>A</title>", DAY)
    assert all(row.url != SITE + "/a" for row in moved(Context(archive), MovedPageQuery(url=SITE + "/dead")))
    assert list(moved(Context(archive), MovedPageQuery(url=SITE + "/c"))) == []
