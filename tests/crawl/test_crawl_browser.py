"""Crawls that look at pages with a real Chromium: whole pages, by politeness, as their plan says whoever goes on."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from patience import UNHURRIED
from scripted_site import ScriptedSite

from letopis import Archive
from letopis.config import CrawlSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, crawl, enqueue_seeds
from letopis.crawl.agent import CaptureMode
from letopis.crawl.levels import crawl_levels
from letopis.crawl.selection import CrawlSelection
from letopis.errors import UsageError
from letopis.urls.scope import Scope, ScopeKind

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
if not (shutil.which("chromium-headless-shell") or shutil.which("chromium")):
    pytestmark.append(pytest.mark.skip(reason="NO CHROMIUM: browser checks did not run; 'make browser' installs it"))

PAGE = b"""<!doctype html><body><link rel=stylesheet href=/style.css><script>
document.body.insertAdjacentHTML("beforeend", "<a href=/second>a link that a script writes</a>");
fetch("/data").then(found => found.text()).then(text => document.body.append(text))</script>"""
ONCE = CrawlLimits(once=True)


def served(site: ScriptedSite) -> str:
    site.set("/style.css", b"a { color: red }", Content_Type="text/css")
    site.set("/data", b"data of a script", Content_Type="text/plain")
    site.set("/second", b"<!doctype html><link rel=stylesheet href=/style.css><p>second")
    return site.set("/", PAGE)


def opened(folder: Path, delay: float = 0.0) -> Archive:
    return Archive(folder, settings=Settings(crawl=CrawlSettings(delay=delay), capture=UNHURRIED))


def members(archive: Archive, url: str) -> set[str]:
    (found,) = archive.sets.of(url)
    return {member.url.rpartition("/")[2] for member in archive.sets.members(found)}


async def test_a_crawl_follows_what_scripts_write_and_keeps_whole_pages(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    url = served(scripted_site)
    with opened(tmp_path / "a") as archive:
        figures = await crawl(archive, CrawlOptions((url,), browser=True, limits=ONCE))
        assert figures.fetched == 2
        assert members(archive, url) == {"style.css", "data"}
        assert members(archive, scripted_site.url("/second")) == {"style.css"}
        assert archive.sets.of(url)[0].has_screenshot
        assert [path for _, path, _ in scripted_site.log].count("/style.css") == 1


async def test_whoever_goes_on_with_a_crawl_looks_as_it_was_told(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = served(scripted_site)
    with opened(tmp_path / "a") as archive:
        enqueue_seeds(archive, CrawlOptions((url,), browser=True))
    with opened(tmp_path / "a") as archive:
        await crawl(archive, CrawlOptions(limits=ONCE))
        assert members(archive, url) == {"style.css", "data"}


async def test_pauses_hold_between_all_requests_of_a_browser_crawl(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = served(scripted_site)
    with opened(tmp_path / "a", delay=0.2) as archive:
        await crawl(archive, CrawlOptions((url,), browser=True, limits=ONCE))
    times = [
        at for at, (_, path, _) in zip(scripted_site.times, scripted_site.log, strict=True) if path != "/robots.txt"
    ]
    assert len(times) == 4
    assert min(later - before for before, later in pairwise(times)) >= 0.19


async def test_a_download_of_a_job_takes_a_browser_as_well(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = served(scripted_site)
    with opened(tmp_path / "a") as archive:
        selection = CrawlSelection(Scope(ScopeKind.HOST, (url,)), 1)
        await crawl_levels(archive, [url], selection, capture=CaptureMode(browser=True))
        assert members(archive, url) == {"style.css", "data"}
        assert members(archive, scripted_site.url("/second")) == {"style.css"}


def test_a_step_that_is_none_is_refused_before_anything_is_planned(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as archive, pytest.raises(UsageError, match="is not a step"):
        enqueue_seeds(archive, CrawlOptions(("http://a.example/",), browser=True, steps=("jump high",)))
