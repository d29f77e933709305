"""Agents in processes of their own get all they need from whoever leads them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from logged_web import logged_web, wait_for_pages
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.config import ArchiveSettings, CrawlSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, Fleet
from letopis.errors import NotReady
from letopis_demo import World


def test_agents_crawl_as_they_are_told_whatever_the_command_line_of_the_process(
    tmp_path: Path, scripted_site: ScriptedSite, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["something", "else", "--limit", "1"])
    seed = scripted_site.set("/", b"<a href='/1'>1</a> <a href='/2'>2</a> <a href='/private'>x</a>")
    for number in (1, 2):
        scripted_site.set(f"/{number}", b"<p>page %d" % number)
    words = ["--archive", str(tmp_path / "a"), "--json", "crawl", seed, "--agents", "2", "--once", "--delay", "0"]
    assert main([*words, "--exclude", "private", "--warc", str(tmp_path / "warc")]) == 0
    assert json.loads(capfd.readouterr().out)["new"] == 3
    assert {path for _, path, _ in scripted_site.log} >= {"/", "/1", "/2"}
    assert "/private" not in {path for _, path, _ in scripted_site.log}
    assert list((tmp_path / "warc").glob("*.warc*"))


def test_settings_of_the_archive_reach_the_agents(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    seed = scripted_site.set("/", b"<p>page")
    settings = Settings(crawl=CrawlSettings(delay=0.0, user_agent="Fleet/1", robots=False, sitemaps=False))
    with Archive(tmp_path / "a", settings=settings) as archive:
        options = CrawlOptions((seed,), limits=CrawlLimits(once=True))
        figures = asyncio.run(Fleet(archive, options, 2).run())
        assert figures.fetched == 1
    assert [path for _, path, _ in scripted_site.log] == ["/"]
    assert {headers.get("user-agent") for _, _, headers in scripted_site.log} == {"Fleet/1"}


def test_what_goes_wrong_with_an_agent_is_told(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        fleet = Fleet(archive, CrawlOptions(("http://127.0.0.1:9/",), limits=CrawlLimits(once=True)), 2)
        (tmp_path / "file").touch()
        archive.settings = replace(archive.settings, archive=ArchiveSettings(path=str(tmp_path / "file")))
        with pytest.raises(NotReady, match="an agent ended with status 1: cannot make"):
            asyncio.run(fleet.run())


def test_agents_end_with_their_leader(tmp_path: Path) -> None:
    with logged_web(World(hosts=4, pages_per_host=30, noisy=0, crawl_delay=0)) as web:
        words = [sys.executable, "-m", "letopis.cli", "--archive", str(tmp_path / "a"), "-q", "crawl"]
        child = subprocess.Popen(
            [*words, *web.world.seeds(), "--agents", "2", "--delay", "0.2"], start_new_session=True
        )
        wait_for_pages(web, 6, child)
        child.kill()
        child.wait()
        time.sleep(1)
        asked = len(web.asked())
        time.sleep(1)
        assert len(web.asked()) == asked
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
