"""Figures say what they count, and the same in every door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from scripted_site import ScriptedSite
from served_archive import at, running

from letopis.archive import Archive
from letopis.cli import main

PAGE = b'<title>Page</title><p>The page of day %d.</p><a href="/one">one</a><a href="/two">two</a>'


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a", clock=lambda: at(60 * 24 * 40)) as opened:
        for day in range(3):
            opened.put("http://example.org/", PAGE % day, at(60 * 24 * day))
        opened.put("http://example.org/one", b"<p>One</p>", at(0))
        opened.put("http://example.org/two", b"<p>Two</p>", at(60 * 24 * 2))
        yield opened


def shell(capfd: pytest.CaptureFixture[str], folder: Path, *words: str) -> list[dict[str, Any]]:
    assert main(["--archive", str(folder), *words, "--json"]) == 0
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_totals_are_the_same_in_every_door(archive: Archive, capfd: pytest.CaptureFixture[str]) -> None:
    shell(capfd, archive.folder, "map", "example.org")
    [told] = shell(capfd, archive.folder, "stats")
    with running(archive) as web:
        over_http = web.get("/api/v1/stats").json()
    counted = archive.stats()
    assert told["links"] == over_http["links"] == counted.links > 0
    assert told == over_http
    assert told["disk_bytes"] == counted.disk_bytes


def test_on_disk_is_all_that_the_archive_takes(archive: Archive, capfd: pytest.CaptureFixture[str]) -> None:
    shell(capfd, archive.folder, "search", "page")
    [told] = shell(capfd, archive.folder, "stats")
    index = sum(file.stat().st_size for file in (archive.folder / "index").rglob("*") if file.is_file())
    assert told["index_bytes"] == index > 0
    assert told["disk_bytes"] == told["pack_bytes"] + told["catalog_bytes"] + index
    assert told["ratio"] == round(told["disk_bytes"] / told["raw_bytes"], 4)


def test_a_page_that_is_too_short_to_compress_saves_nothing(archive: Archive) -> None:
    with running(archive) as web:
        shown = web.get("/url/http://example.org/one").text
    assert "nothing saved: too short to compress" in shown
    assert "saved on disk" not in shown


def test_pages_as_of_a_day_are_those_of_its_map(archive: Archive) -> None:
    with running(archive) as web:
        for when, pages in ((at(60 * 24), 2), (at(60 * 24 * 3), 3)):
            shown = web.get(f"/site/example.org?at={when:%Y-%m-%d}").text
            assert f"{pages} pages</a>." in shown, "in the head"
            assert f"{pages} pages." in shown, "on the map"


def test_the_next_visit_is_that_of_the_watch_where_it_comes_first(
    archive: Archive, capfd: pytest.CaptureFixture[str]
) -> None:
    url = "http://example.org/"
    shell(capfd, archive.folder, "watch", "add", url, "--every", "15s")
    [why] = shell(capfd, archive.folder, "why", url)
    assert (why["policy"], why["interval_seconds"]) == ("watch", 15.0)
    [watch] = shell(capfd, archive.folder, "watch", "list")
    assert why["next_visit"] == watch["due"]
    with running(archive) as web:
        assert web.get(f"/api/v1/why?url={url}").json() == why


def test_crawl_figures_count_all_fetches_and_tell_first_visits_apart(
    tmp_path: Path, scripted_site: ScriptedSite, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETOPIS_CRAWL_DELAY", "0")
    seed, folder = scripted_site.set("/", b'<a href="/next">next</a>'), tmp_path / "b"
    scripted_site.set("/next", b"<p>Next</p>")
    shell(capfd, folder, "crawl", seed, "--once")
    scripted_site.set("/next", b"<p>Next, and changed since the first visit of this crawl.</p>")
    shell(capfd, folder, "crawl", seed, "--once", "--revisit-now")
    [told] = shell(capfd, folder, "crawls")
    assert (told["fetched"], told["first_visits"], told["versions"]) == (4, 2, 3)
    assert told["hosts"][0]["fetched"] == 4
    with Archive(folder) as opened, running(opened) as web:
        live = web.get("/crawl/figures").json()
    assert (live["fetched"], live["first_visits"]) == (4, 2)


def test_no_more_hosts_are_touched_than_are_allowed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETOPIS_CRAWL_DELAY", "0")
    with ExitStack() as stack:
        sites = [ScriptedSite() for _ in range(5)]
        for site in sites:
            stack.callback(site.close)
        links = "".join(f'<a href="{site.url("/")}">there</a>' for site in sites).encode()
        for site in sites:
            site.set("/", links)
        shell(capfd, tmp_path / "b", "crawl", sites[0].url("/"), "--scope", "any", "--once", "--max-hosts", "3")
        assert sum(bool(site.log) for site in sites) == 3
