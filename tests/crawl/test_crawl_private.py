"""Crawls that came through HTTP never reach private addresses by the rights of the owner who runs the crawler."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_site import ScriptedSite
from served_archive import running

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.queues import crawl_plans, drop_site
from letopis.cli.main import main
from letopis.config import CrawlSettings, FetchSettings, Settings
from letopis.crawl import Agent, CrawlLimits, CrawlOptions, crawl, enqueue_seeds
from letopis.fetch import is_public

NAME = socket.gethostname()
"""A name without any sign that it lies inside."""


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", settings=Settings(crawl=CrawlSettings(delay=0, sitemaps=True))) as opened:
        yield opened


@pytest.fixture
def inside(scripted_site: ScriptedSite) -> str:
    """A page of this machine by a name."""
    assert not is_public(socket.gethostbyname(NAME)), "this machine's own name leads to itself"
    scripted_site.set("/robots.txt", b"Sitemap: /map.xml\nUser-agent: *\nAllow: /", Content_Type="text/plain")
    scripted_site.set("/", b"<a href='/next'>next</a><img src='/picture.png'>")
    return scripted_site.url("/").replace("127.0.0.1", NAME)


@pytest.fixture
def other_site() -> Iterator[ScriptedSite]:
    site = ScriptedSite()
    site.set("/", b"the secret of another server")
    yield site
    site.close()


def plan_through_http(archive: Archive, **body: object) -> None:
    token = accounts_of(archive).create_token(f"t{len(crawl_plans(archive))}", None, "write", 0)
    with running(archive) as web:
        answer = web.post("/api/v1/crawls", body, Authorization=f"Bearer {token}")
        assert answer.status == 201, answer.text


def run_crawl(archive: Archive, *seeds: str, **options: object) -> dict[str, int]:
    asked = CrawlOptions(seeds, limits=CrawlLimits(once=True), **options)  # type: ignore[arg-type]
    done = asyncio.run(crawl(archive, asked))
    return dict(done.errors + done.not_asked)


def test_a_name_that_resolves_inside_is_not_asked_for_somebody_who_came_through_http(
    archive: Archive, scripted_site: ScriptedSite, inside: str
) -> None:
    plan_through_http(archive, seeds=[inside], scope="any", requisites=True)
    assert set(run_crawl(archive)) == {"forbidden-address"}
    assert scripted_site.log == [], "not even robots.txt or the sitemap"
    [check] = archive.history(inside)
    assert "private" in check.error


def test_the_same_crawl_planned_at_the_command_line_is_carried_out(
    archive: Archive, scripted_site: ScriptedSite, inside: str
) -> None:
    assert main(["--archive", str(archive.folder), "-q", "crawls", "add", inside]) == 0
    run_crawl(archive)
    assert {"/", "/next", "/map.xml"} <= {path for _, path, _ in scripted_site.log}


def test_what_others_planned_stays_guarded_beside_a_crawl_of_the_owner_without_bounds(
    archive: Archive, scripted_site: ScriptedSite, other_site: ScriptedSite, inside: str
) -> None:
    plan_through_http(archive, seeds=[inside])
    run_crawl(archive, other_site.url("/"), scope="any")
    assert scripted_site.log == []
    assert "/" in {path for _, path, _ in other_site.log}


def test_what_a_dropped_crawl_of_others_left_behind_stays_guarded(
    archive: Archive, scripted_site: ScriptedSite, inside: str
) -> None:
    """Its links may wait under other hosts, which nobody can tell from the owner's."""
    plan_through_http(archive, seeds=["http://elsewhere.invalid/", inside])
    drop_site(archive, "elsewhere.invalid")
    with archive.catalog.transaction() as cursor:
        archive.catalog.queues.set_plans(cursor, "[]")
    run_crawl(archive)
    assert scripted_site.log == []


def test_a_crawl_of_others_does_not_take_the_place_of_the_owners_from_the_same_seeds(
    archive: Archive, scripted_site: ScriptedSite, inside: str
) -> None:
    enqueue_seeds(archive, CrawlOptions((inside,)))
    plan_through_http(archive, seeds=[inside], scope="any")
    assert [plan.origin for plan in crawl_plans(archive)] == ["cli", "http"]
    run_crawl(archive)
    assert "/next" in {path for _, path, _ in scripted_site.log}


def test_a_running_crawl_notices_that_others_have_begun_to_plan(
    archive: Archive, scripted_site: ScriptedSite, other_site: ScriptedSite, inside: str
) -> None:
    """The agent was there first, with an archive that only its owner had crawled."""

    async def both() -> None:
        enqueue_seeds(archive, CrawlOptions((other_site.url("/"),)))
        plan = CrawlOptions((inside,), origin="http")

        def meanwhile(agent: Agent) -> None:
            enqueue_seeds(archive, plan)

        await crawl(archive, CrawlOptions(limits=CrawlLimits(once=True)), begun=meanwhile)

    asyncio.run(both())
    assert other_site.log
    assert scripted_site.log == []


def test_plans_of_earlier_releases_count_as_the_owners_only_where_nobody_has_an_account(archive: Archive) -> None:
    plan = [["http://example.org/"], "host", [], [], None, False]
    with archive.catalog.transaction() as cursor:
        archive.catalog.queues.set_plans(cursor, json.dumps([plan]))
    assert [plan.origin for plan in crawl_plans(archive)] == ["cli"]
    accounts_of(archive).add("olga", "owner", None, 0)
    assert [plan.origin for plan in crawl_plans(archive)] == ["http"]


def test_the_owner_can_allow_private_addresses_for_everybody(
    tmp_path: Path, scripted_site: ScriptedSite, inside: str
) -> None:
    settings = Settings(crawl=CrawlSettings(delay=0), fetch=FetchSettings(private="always"))
    with Archive(tmp_path / "open", settings=settings) as archive:
        plan_through_http(archive, seeds=[inside])
        run_crawl(archive)
    assert "/next" in {path for _, path, _ in scripted_site.log}
