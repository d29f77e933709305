from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from misbehaving_site import Site

from letopis.config.settings import FetchSettings
from letopis.fetch.client import Client
from letopis.fetch.curl import CurlTransport
from letopis.look.robots import MAX_ROBOTS_BYTES, ROBOTS_LIFETIME, Robots, agent_token, fetch_robots, robots_of_response
from letopis.model import Failure, FailureKind, Response

NOW = datetime(2026, 3, 1, tzinfo=UTC)
AGENT = "Letopis/0.1 (+https://example.org/bot)"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    transport = CurlTransport(FetchSettings(retries=0), clock=lambda: NOW)
    yield Client(transport, FetchSettings(retries=0), user_agent=AGENT, clock=lambda: NOW)
    await transport.close()


def answered(status: int, body: bytes = b"", *headers: tuple[str, str]) -> Robots:
    return robots_of_response(Response("u", "u", status, tuple(headers), body, NOW), AGENT, NOW)


async def test_rules_of_the_own_group_are_obeyed(client: Client, misbehaving_site: Site) -> None:
    ours = await fetch_robots(client, misbehaving_site.base(), AGENT, NOW)
    theirs = await fetch_robots(client, misbehaving_site.base(), "OtherBot/2", NOW)
    base = misbehaving_site.base()
    assert (ours.allowed(f"{base}/private"), ours.allowed(f"{base}/not-letopis/x")) == (True, False)
    assert (theirs.allowed(f"{base}/private"), theirs.allowed(f"{base}/not-letopis/x")) == (False, True)
    assert (theirs.crawl_delay, ours.crawl_delay) == (2.0, None)
    assert ours.sitemaps == ("http://127.0.0.1/sitemap.xml",)
    assert ours.expires_at == NOW + ROBOTS_LIFETIME
    assert not ours.expired(NOW)
    assert ours.expired(NOW + ROBOTS_LIFETIME)


async def test_a_missing_file_allows_everything(client: Client, misbehaving_site: Site) -> None:
    robots = await fetch_robots(client, misbehaving_site.base("robots-404"), AGENT, NOW)
    assert robots.allowed(misbehaving_site.url("private", "robots-404"))


async def test_a_server_in_trouble_is_left_alone_for_a_while(client: Client, misbehaving_site: Site) -> None:
    robots = await fetch_robots(client, misbehaving_site.base("robots-5xx"), AGENT, NOW)
    assert not robots.allowed(misbehaving_site.url("ok", "robots-5xx"))
    assert robots.allowed(misbehaving_site.url("robots.txt", "robots-5xx"))
    assert robots.expires_at == NOW + timedelta(minutes=10)
    silent = await fetch_robots(client, misbehaving_site.base("reset-on-accept"), AGENT, NOW)
    assert not silent.allowed(misbehaving_site.url("ok", "reset-on-accept"))


async def test_a_huge_file_is_read_in_its_beginning(client: Client, misbehaving_site: Site) -> None:
    robots = await fetch_robots(client, misbehaving_site.base("robots-huge"), AGENT, NOW)
    base = misbehaving_site.base("robots-huge")
    assert (robots.allowed(f"{base}/early"), robots.allowed(f"{base}/late")) == (False, True)


async def test_a_web_page_in_its_place_has_no_rules(client: Client, misbehaving_site: Site) -> None:
    robots = await fetch_robots(client, misbehaving_site.base("robots-html"), AGENT, NOW)
    assert robots.allowed(misbehaving_site.url("ok", "robots-html"))


async def test_more_than_five_redirects_count_as_no_file(client: Client, misbehaving_site: Site) -> None:
    robots = await fetch_robots(client, misbehaving_site.base("robots-loop"), AGENT, NOW)
    assert robots.allowed(misbehaving_site.url("ok", "robots-loop"))
    assert len(misbehaving_site.log) == 6


async def test_private_addresses_stay_refused(client: Client, misbehaving_site: Site) -> None:
    robots = await fetch_robots(client, misbehaving_site.base(), AGENT, NOW, private_ok=False)
    assert not robots.allowed(misbehaving_site.url("ok"))
    assert misbehaving_site.log == []


@pytest.mark.parametrize(
    ("status", "allowed"), [(401, True), (403, True), (404, True), (429, False), (500, False), (503, False)]
)
def test_statuses(status: int, allowed: bool) -> None:
    assert answered(status).allowed("http://a.test/x") is allowed


def test_retry_after_is_honoured_within_a_day() -> None:
    assert answered(503, b"", ("Retry-After", "3600")).expires_at == NOW + timedelta(hours=1)
    assert answered(503, b"", ("Retry-After", "999999")).expires_at == NOW + timedelta(days=1)


def test_half_a_line_at_the_cut_is_not_a_rule() -> None:
    head = b"User-agent: *\nDisallow: /a\n"
    body = (head + b"#" * (MAX_ROBOTS_BYTES - len(head) - 12) + b"\nDisallow: /private\n")[:MAX_ROBOTS_BYTES]
    too_large = Failure(FailureKind.TOO_LARGE, "")
    robots = robots_of_response(Response("u", "u", 200, (), body, NOW, failure=too_large), AGENT, NOW)
    assert not robots.allowed("http://x.test/a")
    assert robots.allowed("http://x.test/b")


@pytest.mark.parametrize("value", [b"nan", b"inf", b"-1", b"soon"])
def test_a_senseless_delay_is_none(value: bytes) -> None:
    assert answered(200, b"User-agent: *\nCrawl-delay: " + value).crawl_delay is None


@given(st.binary(max_size=400), st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_file_is_read(body: bytes, path: str) -> None:
    assert answered(200, b"User-agent: *\nDisallow: /\n" + body).allowed("http://a.test/" + path) in (True, False)


def test_the_product_name_is_what_groups_are_matched_with() -> None:
    assert [agent_token(text) for text in ("Letopis/0.1 (+x)", "Letopis (x)", "  ")] == ["Letopis", "Letopis", "*"]
