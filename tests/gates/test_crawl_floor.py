"""A crawl must not grow costly: statements a page, and CPU beside what no crawler that keeps pages can do without."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from bench.measuring import simulated_web
from pacing import cpu, lowest
from scripted_site import ScriptedSite
from selectolax.lexbor import LexborHTMLParser

from letopis import Archive, Settings
from letopis.catalog.database import Cursor
from letopis.crawl import CrawlLimits, CrawlOptions, crawl
from letopis.zstandard import zstd

PAGES = 300
STATEMENTS_A_PAGE = 0.5
"""Statements are made for batches; there were eight when each page had its own."""
MOST = 24.0
"""Times the CPU of parsing, digesting and compressing the same pages; 16 measured on a busy machine."""


def archive_at(folder: Path) -> Archive:
    settings = Settings()
    # Commits by number, not by time: a slow machine must not make more of them.
    return Archive(folder, settings=replace(settings, crawl=replace(settings.crawl, delay=0.0, commit_every=3600.0)))


def crawled(archive: Archive, seed: str) -> int:
    """How many new pages a crawl of the whole site brings."""
    options = CrawlOptions((seed,), exclude=("busy|overload",), limits=CrawlLimits(once=True))
    return asyncio.run(crawl(archive, options)).new


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """The simulated web in a process of its own, whose CPU does not count."""
    with simulated_web(1, PAGES) as seed:
        yield seed


def test_a_crawl_takes_few_statements(
    tmp_path: Path, scripted_site: ScriptedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    menu = "".join(f'<a href="/{number}">page</a>' for number in range(PAGES)).encode()
    for number in range(PAGES):
        scripted_site.set(f"/{number}", b"<p>%d" % number + menu)
    seed = scripted_site.url("/0")
    asked: list[str] = []
    for name in ("run", "one", "all", "run_many", "bulk"):
        original = getattr(Cursor, name)

        def counted(self: Cursor, statement: str, *rest: object, original: object = original) -> object:
            asked.append(statement)
            return original(self, statement, *rest)  # type: ignore[operator]

        monkeypatch.setattr(Cursor, name, counted)
    with archive_at(tmp_path / "a") as archive:
        asked.clear()
        assert crawled(archive, seed) == PAGES
    assert len(asked) / PAGES <= STATEMENTS_A_PAGE


@pytest.mark.timed
def test_a_crawled_page_costs_little_more_than_what_must_be_done_with_it(web: str, tmp_path: Path) -> None:
    folders = (tmp_path / f"archive {number}" for number in count())
    with archive_at(next(folders)) as archive:
        assert crawled(archive, web) > PAGES / 2
        bodies = [archive.get(row.url).body for row in archive.catalog.resources.all() if row.versions]

    def ours() -> None:
        with archive_at(next(folders)) as archive:
            crawled(archive, web)

    def bare() -> None:
        packer = zstd.ZstdCompressor(3)
        for body in bodies:
            LexborHTMLParser(body)
            hashlib.sha1(body, usedforsecurity=False).digest()
            packer.compress(body, zstd.ZstdCompressor.FLUSH_FRAME)

    assert lowest(lambda: cpu(ours, 1) / cpu(bare, 3), MOST) <= MOST
