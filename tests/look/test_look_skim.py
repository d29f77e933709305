"""New pages of a crawl are read as far as needed, and their host is learned from a sample of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from politeness_books import free_book

from letopis import Archive
from letopis.archive import identify
from letopis.catalog.database import Database
from letopis.look.known import known_version
from letopis.look.visitor import LookOptions, Visitor
from letopis.model import Limits, Outcome, Request, Response, from_millis

MENU = "<ul><li>Home of the whole institute</li><li>All its people</li></ul>"


class Pages:
    """Every address is a page of its own, with the menu of the site."""

    def __init__(self) -> None:
        self.edition = 0

    async def fetch(self, request: Request, between: object = None) -> Response:
        said = f"<p>The page {request.url} says this, edition {self.edition}.</p>"
        body = f"<title>T</title>{MENU}{said}<a href=/next>n</a>".encode()
        headers = (("Content-Type", "text/html"),)
        return Response(request.url, request.url, 200, headers, body, from_millis(1_700_000_000_000))


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a") as made:
        yield made


def crawl(archive: Archive, web: Pages, count: int, *, skim: bool) -> list[int]:
    """Looks at so many new pages of one host; the number of blocks that each was read into."""
    visitor, options = Visitor(archive, web, free_book()), LookOptions(Limits(), skim=skim)

    async def all_looks() -> list[int]:
        looks = [await visitor.look(f"http://site.example/{number}", None, options) for number in range(count)]
        assert {look.outcome for look in looks} == {Outcome.NEW}
        assert all(look.page and look.page.links[0].target == "http://site.example/next" for look in looks)
        visitor.record(looks)
        return [len(look.page.blocks) if look.page else 0 for look in looks]

    return asyncio.run(all_looks())


def test_the_first_pages_of_a_host_and_a_sample_of_the_rest_are_read_whole(archive: Archive) -> None:
    sizes = crawl(archive, Pages(), 400, skim=True)
    assert all(sizes[:64])
    assert 0.05 < sum(1 for size in sizes[64:] if size) / len(sizes[64:]) < 0.25


def test_all_pages_are_read_whole_when_their_text_is_wanted(archive: Archive) -> None:
    assert all(crawl(archive, Pages(), 100, skim=False))


def test_a_skimmed_page_is_compared_in_full_when_it_changes(archive: Archive) -> None:
    web = Pages()
    crawl(archive, web, 200, skim=True)
    web.edition = 1
    visitor = Visitor(archive, web, free_book())
    url = "http://site.example/199"
    look = asyncio.run(visitor.look(url, known_version(archive, url), LookOptions(Limits(), skim=True)))
    assert look.outcome is Outcome.CHANGED
    assert look.change is not None
    assert look.change.meaningful
    assert look.identity == identify(look.response.body)


def test_what_is_known_about_the_hosts_of_a_batch_is_read_in_one_query(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    web, urls = Pages(), [f"http://h{number}.example/" for number in range(40)]

    async def answers() -> list[Response]:
        return [await web.fetch(Request(url)) for url in urls]

    def batch(learned: int) -> list[str]:
        visitor, options = Visitor(archive, web, free_book()), LookOptions(Limits(), skim=True)
        found, asked = asyncio.run(answers()), []
        ask = Database._ask
        with monkeypatch.context() as patch:
            patch.setattr(
                Database,
                "_ask",
                lambda self, how, statement, values: asked.append(statement) or ask(self, how, statement, values),
            )
            visitor.expect((response, None) for response in found)
            looks = [visitor.judge(response, None, options) for response in found]
        assert {visitor._reading()._noise.profile(url).pages for url in urls} == {learned}
        visitor.record(looks)
        return asked

    assert len(batch(1)) == len(batch(2)) == 1
