"""Captured pages replayed in a browser: what they lack, and how like their pictures they are."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from many_ways import picture
from patience import UNHURRIED
from scripted_site import ScriptedSite
from served_archive import WebClient, running
from single_page import SEARCH_STEPS, single_page

from letopis import Monitor
from letopis.archive import READ, WRITE, Archive
from letopis.config import FetchSettings, Settings
from letopis.errors import MissingExtra, NotFound, Unavailable
from letopis.fetch.page_steps import parse_steps
from letopis.fetch.replayed_page import ReplayedPage, ReplayVisitor
from letopis.model import to_millis
from letopis.model.times import timestamp
from letopis.operations.context import Context
from letopis.operations.replay_quality import QualityQuery, qa, replay_of

PRIVATE = Settings(fetch=FetchSettings(private="always"), capture=UNHURRIED)
if not (shutil.which("chromium-headless-shell") or shutil.which("chromium")):
    pytest.skip("NO CHROMIUM: replays were not judged", allow_module_level=True)


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Archive, str]]:
    """An application that was captured whole; its server is off since."""
    with Archive(tmp_path_factory.mktemp("qa") / "a", settings=PRIVATE) as archive:
        with single_page() as page, Monitor(archive) as monitor:
            steps = parse_steps(SEARCH_STEPS)
            monitor.look([page.url], monitor.options._replace(now=True, browser=True, steps=steps))
        yield archive, page.url


def test_the_replay_of_a_whole_page_answers_every_request_and_looks_as_it_did(captured: tuple[Archive, str]) -> None:
    archive, url = captured
    words = [sys.executable, "-m", "letopis.cli", "qa", url, "--json", "--archive", str(archive.folder)]
    row = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert (row["completeness"], row["missing"]) == (1.0, [])
    assert row["requests"] >= 13
    assert row["likeness"] > 0.9
    (found,) = archive.sets.of(url)
    kept = archive.sets.quality(found)
    assert kept is not None
    assert (kept.requests, kept.likeness) == (row["requests"], pytest.approx(row["likeness"], abs=0.001))


def test_what_a_page_lacks_is_named_and_shown_with_the_capture(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", b"<link rel=stylesheet href=/a.css><img src=/left-out.png><p>text")
    scripted_site.set("/a.css", b"p { color: red }", Content_Type="text/css")
    scripted_site.set("/left-out.png", picture(), Content_Type="image/png")
    host = url.split("/")[2]
    with Archive(tmp_path / "a", settings=replace(PRIVATE, capture=replace(UNHURRIED, take=("styles",)))) as archive:
        with Monitor(archive) as monitor:
            monitor.look([url], monitor.options._replace(now=True, browser=True))
        context = Context(archive, rights=READ | WRITE, private_ok=True)
        (row,) = qa(context, QualityQuery(place=host, at=None, limit=5))
        assert (row.url, row.requests, row.answered) == (url, 3, 2)
        assert row.missing == [url.replace("page", "left-out.png")]
        assert row.likeness == 1.0
        with running(archive) as web:
            bar = web.get(f"/web/{timestamp(to_millis(row.time))}/{url}", Sec_Fetch_Dest="document")
            assert "Complete: 66.7\u00a0% · Likeness: 100.0\u00a0%" in bar.text
            assert web.post("/api/v1/qa", {"place": host}).status == 401, "it takes the right to write"


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_pictures_are_compared_at_the_size_that_they_have(
    tmp_path: Path, scripted_site: ScriptedSite, scale: float
) -> None:
    url = scripted_site.set("/page", b"<h1>A long line of text</h1>" * 20)
    now = replace(PRIVATE, capture=replace(UNHURRIED, screenshot_scale=0.5))
    then = replace(PRIVATE, capture=replace(UNHURRIED, screenshot_scale=scale))
    with Archive(tmp_path / "a", settings=then) as archive, Monitor(archive) as monitor:
        monitor.look([url], monitor.options._replace(now=True, browser=True))
    with Archive(tmp_path / "a", settings=now) as archive:
        (row,) = qa(Context(archive, rights=READ | WRITE, private_ok=True), QualityQuery(place=url, at=None, limit=5))
        assert row.likeness == 1.0


@pytest.mark.parametrize("killed", [1, 2])
def test_a_browser_that_ends_under_a_page_is_started_again_once(
    captured: tuple[Archive, str], monkeypatch: pytest.MonkeyPatch, killed: int
) -> None:
    archive, url = captured
    visits = []

    async def visit(self: ReplayVisitor, address: str, picture: bytes = b"") -> ReplayedPage:
        visits.append(address)
        if len(visits) <= killed:
            os.killpg(self._chromium.devtools.pid, signal.SIGKILL)
            return ReplayedPage(0, ())  # as from a page of which nothing came in time
        return await whole(self, address, picture)

    whole = ReplayVisitor.visit
    monkeypatch.setattr(ReplayVisitor, "visit", visit)
    context, asked = Context(archive, rights=READ | WRITE, private_ok=True), QualityQuery(place=url, at=None, limit=5)
    if killed == 1:
        (row,) = qa(context, asked)
        assert row.completeness == 1.0
        assert row.requests >= 13
    else:
        with pytest.raises(Unavailable, match="could not be replayed: the browser ended"):
            qa(context, asked)


def test_a_page_that_was_never_captured_whole_has_no_quality(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://example.org/", b"<p>alone")
        for place in ("http://example.org/", "example.org"):
            with pytest.raises(NotFound, match="never captured whole"):
                qa(Context(archive, rights=WRITE), QualityQuery(place=place, at=None, limit=5))


def test_without_a_browser_it_is_said_what_to_install(captured: tuple[Archive, str]) -> None:
    archive, url = captured
    settings = replace(archive.settings, fetch=FetchSettings(chromium="no-such-program"))
    with (
        Archive(archive.folder, settings=settings) as other,
        pytest.raises(MissingExtra, match=r"fetch\.chromium names 'no-such-program'"),
    ):
        qa(Context(other, rights=WRITE), QualityQuery(place=url, at=None, limit=5))


def test_whoever_finds_the_port_of_a_judged_replay_gets_nothing_without_its_name(captured: tuple[Archive, str]) -> None:
    archive, url = captured
    with replay_of(archive) as base:
        port = base.rpartition(":")[2]
        for name in ("127.0.0.1", "localhost", "letopis.localhost", "s0000000-example-org.letopis.localhost"):
            stranger = WebClient(f"http://127.0.0.1:{port}").get(f"/web/2026/{url}", Host=f"{name}:{port}")
            assert (stranger.status, url.encode() in stranger.body) == (421, False), name
        known = WebClient(f"http://127.0.0.1:{port}").get(f"/web/2026/{url}", Host=base.removeprefix("http://"))
        assert known.status == 302
