"""Framesets, frames, fonts and refreshing pages of the archive in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from served_archive import WebClient, look, running

from letopis.archive import Archive
from letopis.model import Outcome

AT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
STAMP = "20240506070809"
FRAMES = b"<!doctype html><title>Frames</title><frameset cols='50%,50%'><frame src=/left><frame src=/right></frameset>"


@pytest.fixture(scope="module")
def framed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebClient]:
    with Archive(tmp_path_factory.mktemp("frames") / "a", clock=lambda: AT) as archive:
        archive.put("http://old.example/", FRAMES, at=AT)
        archive.put("http://old.example/left", b"<p id=left>left", at=AT)
        archive.put("http://old.example/right", b"<iframe src=/inner></iframe>", at=AT)
        archive.put("http://old.example/inner", b"<p id=inner>inner", at=AT + timedelta(minutes=3))
        archive.put("http://old.example/start", b'<meta http-equiv=refresh content="0; url=/left">start', at=AT)
        yield from _served(archive)


def _served(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as web:
        yield web


def test_frames_within_frames_are_shown(framed: WebClient, open_tab: Any) -> None:
    with open_tab(framed) as tab:
        tab.goto(f"/web/{STAMP}/http://old.example/")
        inside = tab.frame_locator("iframe")
        assert inside.frame_locator("frame >> nth=0").locator("#left").inner_text() == "left"
        assert inside.frame_locator("frame >> nth=1").frame_locator("iframe").locator("#inner").inner_text() == "inner"


def test_a_page_that_refreshes_leads_on(framed: WebClient, open_tab: Any) -> None:
    with open_tab(framed) as tab:
        tab.goto(f"/web/{STAMP}/http://old.example/start")
        tab.wait_for_url(f"**/web/{STAMP}/http://old.example/left")
        assert tab.frame_locator("iframe").locator("#left").inner_text() == "left"


def test_fonts_load_over_redirects(tmp_path: Path, open_tab: Any) -> None:
    page = b"<!doctype html><style>@font-face { font-family: Old; src: url(/font) } p { font-family: Old }</style><p>x"
    moved = (("Location", "/moved"), ("Access-Control-Allow-Origin", "*"))
    with Archive(tmp_path / "a", clock=lambda: AT) as archive:
        archive.put("http://old.example/", page, at=AT)
        archive.record([look("http://old.example/font", AT, b"", 301, headers=moved, outcome=Outcome.UNCHANGED)])
        archive.put("http://old.example/moved", b"no font", at=AT + timedelta(minutes=9), content_type="font/woff2")
        with (
            running(archive) as web,
            open_tab(web) as tab,
            tab.expect_response(lambda got: got.status == 200 and "/moved" in got.url),
        ):
            tab.goto(f"/web/{STAMP}/http://old.example/")
