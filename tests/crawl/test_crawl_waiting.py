"""A crawl that has nothing to fetch says what it waits for, and until when; one with a limit ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.config import CrawlSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, CrawlPause, CrawlStats, crawl


def test_a_crawl_without_once_says_until_when_it_waits(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    seed = scripted_site.set("/", b"<p>page")
    words = [sys.executable, "-m", "letopis.cli", "--archive", str(tmp_path / "a"), "crawl", seed, "--delay", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        told = child.stderr.readline()
        child.terminate()
        assert child.wait(300) == 0
    assert told.startswith("nothing is due before 20")
    assert "Ctrl-C stops; --once ends a crawl when nothing is due" in told


def test_a_crawl_with_a_limit_ends_when_nothing_is_left(
    tmp_path: Path, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = scripted_site.set("/", b"<a href=/1>one</a>")
    scripted_site.set("/1", b"<p>one")
    words = ["--archive", str(tmp_path / "a"), "--json", "crawl", seed, "--limit", "50", "--delay", "0"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["new"] == 2


def test_a_crawl_held_back_by_a_pause_of_its_host_says_so(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    seed = scripted_site.set("/", b"busy", status=503, Retry_After="40")
    scripted_site.set("/1", b"<p>one")
    pauses: list[CrawlPause] = []

    async def work(archive: Archive) -> None:
        options = CrawlOptions((seed, seed + "1"), limits=CrawlLimits(once=True))
        agents = []

        def stop_at_pause(figures: CrawlStats) -> None:
            if figures.pause is not None:
                pauses.append(figures.pause)
                agents[0].stop()

        await crawl(archive, options, stop_at_pause, begun=agents.append)

    settings = Settings(crawl=CrawlSettings(delay=0.0, robots=False, sitemaps=False, commit_every=0.1))
    with Archive(tmp_path / "a", settings=settings) as archive:
        asyncio.run(work(archive))
    assert pauses[0].paused_hosts
    assert pauses[0].sentence.startswith("all pages that are due wait for a pause of their hosts, the first until 20")
