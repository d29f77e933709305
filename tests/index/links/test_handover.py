"""An index built of what a crawl handed over is, byte for byte, the one built by reading every version again."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from politeness_books import free_book

from letopis import Archive
from letopis.archive.link_cache import LinkCacheReader, LinkCacheWriter, link_cache_folder
from letopis.config import CrawlSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, crawl
from letopis.extract import read_page
from letopis.index.link_index import LinkIndex
from letopis.index.link_storage import LinkJournal
from letopis.look.known import known_versions
from letopis.look.visitor import LookOptions, Visitor
from letopis.model import Limits as FetchLimits
from letopis.model import Request, Response
from letopis_demo import DemoServer, World, running

LONG = 20 if os.environ.get("LETOPIS_LONG") else 1
START = datetime(2026, 1, 1, tzinfo=UTC)
SITE = "http://x.org/"
TAGS = st.sampled_from(
    ("<a href='{}'>{}</a>", "<a href='{}' rel=nofollow title='{}'>x</a>", "<a href='{}'><img src=/i alt='{}'></a>",
     "<area href='{}' alt='{}'>", "<iframe src='{}' title='{}'></iframe>", "<p>{1}</p>", "<title>{1}</title>",
     "<html lang=cs>", "<base href='{}'>", "<link rel=alternate type=application/rss+xml href='{}' title='{}'>",
     "<svg><title>{1}</title><a href='{0}'>{1}</a></svg>", "<div style='background:url({})'>{}</div>",
     "<DIV STYLE='background:url({})'>{}</DIV>", "<style>a{{b:url({})}}</style>", "<noscript><a href='{}'>{}</a>",
     "<meta http-equiv=refresh content='3;url={}'>", "<form action='{}'><input type=image src=/j alt='{}'>",
     "<script src='{}'></script>", "<video src='{}' poster=/k>{}</video>", "<select><a href='{}'>{}", "</table>",
     "<meta http-equiv=content-language content=sk>", "<img srcset='{} 2x, /m 3x' alt='{}'>")
)  # fmt: skip
REFS = st.sampled_from(("/a", "b?x=2&a=1", "http://other.example/", "#top", "mailto:a@b", "//c.example/d", "čaj", ""))
WORDS = st.sampled_from(("home", " two\n lines ", "tab\there", "čaj &amp; káva", "", "&#10;", "<b>bold</b> text"))
MARKUP = st.lists(st.tuples(TAGS, REFS, WORDS), max_size=8).map(
    lambda parts: "".join(tag.format(ref, word) for tag, ref, word in parts)
)
TYPES = st.sampled_from(
    ("text/html; charset=utf-8", "text/html; charset=windows-1250", "text/html", "text/plain", "application/pdf", "")
)


class Web:
    """Answers with what the test wrote down."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[bytes, str]] = {}

    async def fetch(self, request: Request, between: object = None) -> Response:
        body, kind = self.pages[request.url]
        headers = (("Content-Type", kind), ("Content-Language", "de"))
        return Response(request.url, request.url, 200, headers, body, START)


def look_at(archive: Archive, web: Web, *, skim: bool) -> None:
    """Looks at all pages as a crawl does, and hands them over."""
    visitor = Visitor(archive, web, free_book(), link_cache=LinkCacheWriter(archive.folder))
    options = LookOptions(FetchLimits(), skim=skim)
    known = known_versions(archive, list(web.pages))

    async def looks() -> None:
        visitor.record([await visitor.look(url, known.get(url), options) for url in web.pages])

    asyncio.run(looks())


def built(archive: Archive) -> list[bytes]:
    """The whole content of the index of links."""
    index = LinkIndex(archive)
    index.catch_up()
    folder = archive.folder / "index" / "links"
    return [payload for name in ("links.log", "texts.log") for _, payload in LinkJournal(folder / name).frames()]


def assert_same_without(archive: Archive, handed: list[bytes]) -> None:
    shutil.rmtree(archive.folder / "index")
    assert built(archive) == handed


@settings(max_examples=LONG * 12, deadline=None)
@given(
    st.lists(st.tuples(MARKUP, TYPES, st.sampled_from(("utf-8", "windows-1250"))), min_size=1, max_size=20),
    st.integers(0, 3), st.booleans(),
)  # fmt: skip
def test_both_ways_give_the_same_index(
    tmp_path_factory: pytest.TempPathFactory, shown: list[tuple[str, str, str]], changed: int, skim: bool
) -> None:
    web = Web()
    with Archive(tmp_path_factory.mktemp("both")) as archive:
        # So many that most are skimmed, not read whole as a sample of their host.
        for number in range(70):
            web.pages[f"{SITE}{number}"] = (f"<title>{number}</title><a href=/x>{number}</a>".encode(), "text/html")
        look_at(archive, web, skim=skim)
        for number, (markup, kind, charset) in enumerate(shown):
            place = number if number < changed else 100 + number
            web.pages[f"{SITE}{place}"] = (markup.encode(charset, "replace"), kind)
        look_at(archive, web, skim=skim)
        assert_same_without(archive, built(archive))


@settings(max_examples=LONG * 100, deadline=None)
@given(MARKUP, TYPES, st.sampled_from(("utf-8", "windows-1250", "utf-16")))
def test_a_page_read_whole_has_the_links_of_one_read_for_its_links(markup: str, kind: str, charset: str) -> None:
    body, headers = markup.encode(charset, "replace"), (("Content-Type", kind),)
    whole, basic = (read_page(body, SITE, headers, detect_language=False, mode=mode) for mode in ("full", "basic"))
    assert (whole.links, whole.title, whole.language) == (basic.links, basic.title, basic.language)


@pytest.fixture
def crawled(tmp_path: Path) -> Iterator[Archive]:
    """A crawl of the simulated web, and another two days later."""
    server = DemoServer(World(hosts=2, pages_per_host=60, crawl_delay=0, noisy=0))
    day, began = [START + timedelta(days=9)], time.monotonic()
    server._clock = lambda: day[0]
    settings = Settings(crawl=CrawlSettings(delay=0))

    def clock() -> datetime:
        return day[0] + timedelta(seconds=time.monotonic() - began)

    with running(server), Archive(tmp_path / "a", settings=settings, clock=clock) as archive:
        seeds = tuple(server.world.seeds())
        for _ in range(2):
            options = CrawlOptions(seeds, exclude=("busy", "overload"), limits=CrawlLimits(once=True), revisit_now=True)
            asyncio.run(crawl(archive, options))
            day[0] += timedelta(days=2)
        yield archive


def test_a_crawl_hands_over_what_it_reads(crawled: Archive) -> None:
    rows = crawled.catalog.versions.since(0, 10_000)
    assert len(rows) > 100
    received = LinkCacheReader(crawled.folder).between(1, rows[-1].id)
    sha1 = {row.id: crawled.catalog.contents.by_id(row.content).sha1 for row in rows}  # type: ignore[union-attr]
    handed = [row for row in rows if received.of(row.id, row.time, bytes(sha1[row.id]))]
    assert len(handed) > 0.9 * len(rows)
    taken = built(crawled)
    assert not list(link_cache_folder(crawled.folder).iterdir())
    assert_same_without(crawled, taken)


def test_a_crawl_that_is_told_not_to_map_hands_nothing_over(tmp_path: Path) -> None:
    server = DemoServer(World(hosts=1, pages_per_host=10, crawl_delay=0, noisy=0))
    settings = Settings(crawl=CrawlSettings(delay=0, map=False))
    with running(server), Archive(tmp_path / "a", settings=settings) as archive:
        asyncio.run(
            crawl(
                archive,
                CrawlOptions(tuple(server.world.seeds()), exclude=("busy", "overload"), limits=CrawlLimits(once=True)),
            )
        )
        assert archive.stats().versions > 5
        assert not link_cache_folder(archive.folder).exists()
        assert LinkIndex(archive).catch_up() == archive.stats().versions
