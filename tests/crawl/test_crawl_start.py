"""What a crawl and a check load: their start is most of what a small site costs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.archive.queues import crawl_plans
from letopis.cli.main import main
from letopis.crawl import CrawlLimits, CrawlOptions, crawl, crawl_lock
from letopis.errors import Busy

CODE = """
import sys
before = set(sys.modules)
from letopis.cli.main import main
assert main(sys.argv[1:]) == 0
heavy = ("numpy", "regex", "rapidfuzz", "fast_diff_match_patch", "lxml", "importlib.metadata", "email.utils")
print([name for name in heavy if name in sys.modules and name not in before])
"""
DATED = {"Last_Modified": "Sun, 06 Nov 1994 08:49:37 GMT"}


def loaded_by(*words: str) -> str:
    """The last line printed: which heavy modules a command loaded."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}
    told = subprocess.run([sys.executable, "-c", CODE, *words], env=kept, capture_output=True, text=True, check=True)
    return told.stdout.splitlines()[-1]


def test_a_crawl_of_new_pages_loads_nothing_that_compares(scripted_site: ScriptedSite, tmp_path: Path) -> None:
    seed = scripted_site.set("/", b'<title>home</title><p>words of it <a href="/more">more</a>', **DATED)
    scripted_site.set("/more", b'<title>more</title><p>5 views, <a href="/?utm_source=x">home</a>', **DATED)
    assert loaded_by("crawl", seed, "--archive", str(tmp_path / "a"), "--once", "-q", "--delay", "0") == "[]"
    assert {path for _, path, _ in scripted_site.log} >= {"/", "/more"}


def test_a_changed_page_is_compared_without_numpy(scripted_site: ScriptedSite, tmp_path: Path) -> None:
    seed = scripted_site.set("/", b"<title>home</title><p>words of it", **DATED)
    assert loaded_by("check", seed, "--archive", str(tmp_path / "a")) == "[]"
    scripted_site.set("/", b"<title>home</title><p>other words that it says, and some more of them<p>today")
    assert loaded_by("check", seed, "--now", "--archive", str(tmp_path / "a")) == "['rapidfuzz']"


def test_a_second_crawl_of_one_archive_is_refused_and_stores_nothing(
    scripted_site: ScriptedSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = scripted_site.set("/", b"<p>home")
    with Archive(tmp_path / "a") as archive, crawl_lock(archive):
        for words in ((), ("--agents", "2")):
            assert main(["--archive", str(tmp_path / "a"), "crawl", seed, "--once", *words]) == 1
            assert "'letopis crawls add URL'" in capsys.readouterr().err
        with pytest.raises(Busy, match="another process crawls this archive"):
            asyncio.run(crawl(archive, CrawlOptions((seed,), limits=CrawlLimits(once=True))))
        assert crawl_plans(archive) == []
    assert scripted_site.log == []
    assert main(["--archive", str(tmp_path / "a"), "crawl", seed, "--once", "-q"]) == 0
