"""Agents in processes of their own get all they need from whoever leads them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from logged_web import logged_web, wait_for_pages
from patience import until
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.config import ArchiveSettings, CrawlSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, CrawlPause, CrawlStats, Fleet
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
        agents = agents_of(child.pid)
        assert len(agents) >= 2
        child.kill()
        child.wait()
        until(lambda: not any(map(is_running, agents)))


def agents_of(leader: int) -> list[int]:
    """The processes that a leader has started."""
    return [int(number) for number in Path(f"/proc/{leader}/task/{leader}/children").read_text().split()]


def is_running(process: int) -> bool:
    """Whoever has ended and was not waited for by its new parent yet, runs no more."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_hosts_of_an_agent_that_ends_are_taken_over_at_once(tmp_path: Path, number: signal.Signals) -> None:
    """Without --once: nobody else would ever come back to them."""
    with logged_web(World(hosts=4, pages_per_host=30, noisy=0, crawl_delay=0)) as web:
        words = [sys.executable, "-m", "letopis.cli", "--archive", str(tmp_path / "a"), "crawl"]
        child = subprocess.Popen(
            [*words, *web.world.seeds(), "--agents", "2", "--delay", "0.2"], stderr=subprocess.PIPE, text=True
        )
        wait_for_pages(web, 12, child)
        os.kill(agents_of(child.pid)[0], number)
        hosts = {each.host for each in web.asked()}
        before = Counter(each.host for each in web.asked())
        until(lambda: all(Counter(each.host for each in web.asked())[host] >= before[host] + 5 for host in hosts))
        child.terminate()
        told = child.communicate(timeout=300)[1]
    assert child.returncode == 0
    assert "another goes on with its hosts" in told
    with Archive(tmp_path / "a") as archive:
        assert list(archive.verify()) == []


KILLING = """
import os, signal

def around(archive):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_crawl_whose_agents_end_again_and_again_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agents_that_die.py").write_text(KILLING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    around = import_module("agents_that_die").around
    with Archive(tmp_path / "a") as archive:
        fleet = Fleet(archive, CrawlOptions(("http://127.0.0.1:9/",)), 2, around=around)
        with pytest.raises(NotReady, match="an agent was killed by SIGKILL; what was fetched is recorded"):
            asyncio.run(fleet.run())


KILLED_AFTER_A_COMMIT = """
import os, signal
from contextlib import nullcontext
from pathlib import Path

def around(archive):
    def follow(recorded):
        if recorded:
            try:
                Path(archive.folder, "killed").touch(exist_ok=False)
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

    archive.followers.append(follow)
    return nullcontext()
"""


def test_what_an_agent_recorded_right_before_it_was_killed_is_in_the_figures(
    tmp_path: Path, scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agents_killed_once.py").write_text(KILLED_AFTER_A_COMMIT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    around = import_module("agents_killed_once").around
    seed = scripted_site.set("/", b"".join(b"<a href='/%d'>%d</a>" % (n, n) for n in range(9)))
    for number in range(8):
        scripted_site.set(f"/{number}", b"<p>page %d" % number)
    settings = Settings(crawl=CrawlSettings(delay=0.0, robots=False, sitemaps=False))
    told: list[str] = []
    with Archive(tmp_path / "a", settings=settings) as archive:
        options = CrawlOptions((seed,), limits=CrawlLimits(once=True))
        figures = asyncio.run(Fleet(archive, options, 2, around, remark=told.append).run())
        checks = [check for row in archive.catalog.resources.all() for check in archive.answers.history(row.url)]
        assert (figures.fetched, figures.new, figures.errors) == (10, 9, {"404": 1})
        assert len(checks) == figures.fetched
        assert asyncio.run(Fleet(archive, options, 2, around).run()).fetched == 0
    assert (tmp_path / "a" / "killed").exists()
    assert [sentence[len("agent N ") :] for sentence in told] == [
        "was killed by SIGKILL; another goes on with its hosts"
    ]


def test_a_fleet_tells_what_it_waits_for(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    seed = scripted_site.set("/", b"<p>page")
    settings = Settings(crawl=CrawlSettings(delay=0.0, robots=False, sitemaps=False, commit_every=0.1))
    pauses: list[CrawlPause] = []

    def stop_at_pause(figures: CrawlStats) -> None:
        if figures.pause is not None and figures.fetched:
            pauses.append(figures.pause)
            os.kill(os.getpid(), signal.SIGTERM)

    with Archive(tmp_path / "a", settings=settings) as archive:
        asyncio.run(Fleet(archive, CrawlOptions((seed,)), 2, progress=stop_at_pause).run())
    assert pauses[0].until is not None
    assert pauses[0].sentence.startswith("nothing is due before ")
