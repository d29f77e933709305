"""The script that the page of a site for what is not found asks where it may be."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from served_archive import running

from letopis.archive import Archive

URL = "http://example.org/news/library.html"


def test_one_script_tag_lists_where_a_missing_page_may_be(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        archive.put(URL, b"<title>The </script> library</title>", datetime(2026, 1, 2, tzinfo=UTC))
        with running(archive) as web:
            assert "letopisMoved" in web.get("/static/moved.js").text
            answers = [
                web.get(f"/moved.js?url={quote(url)}").text
                for url in (URL, "http://example.org/library.htm", "http://nowhere.example/", "javascript:alert(1)")
            ]
    pages = [json.loads(answer.removeprefix("letopisMoved(").removesuffix(");\n")) for answer in answers]
    archived, alike = pages[0][0], pages[1][0]
    assert archived["href"].endswith(f"/web/20260102000000/{URL}")
    assert (archived["found_by"], archived["day"], archived["title"]) == (
        "archive",
        "2026-01-02",
        "The </script> library",
    )
    assert (alike["found_by"], alike["href"]) == ("likeness", URL)
    assert pages[2:] == [[], []]
