from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from behaviours import PAGE
from misbehaving_site import Site

from letopis.config.sections import FetchSettings
from letopis.errors import MissingExtra
from letopis.fetch import Client, CurlTransport
from letopis.fetch.browser import MAX_REQUESTS, BrowserFetcher, Visit, find_browser
from letopis.model import Limits, Request, Response

CHROMIUM = any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    settings = FetchSettings(retries=0)
    transport = CurlTransport(settings, clock=now)
    yield Client(transport, settings, user_agent="t", clock=now)
    await transport.close()


@dataclass
class Asking:
    """A request of the browser as playwright hands it over, without the browser."""

    url: str
    method: str = "GET"
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def request(self) -> Asking:
        return self

    async def abort(self, why: str) -> None:
        self.told = {"refused": why}

    async def fulfill(self, **answer: Any) -> None:
        self.told = answer


def visit(client: Client, site: Site, **how: Any) -> Visit:
    url = site.url("ok")
    page = Response(url, url, 200, (("Content-Type", "text/html"), ("Content-Encoding", "gzip")), PAGE, now())
    return Visit(client, Request(url, **how), page)


async def test_the_page_itself_is_not_fetched_twice(client: Client, misbehaving_site: Site) -> None:
    asking = Asking(misbehaving_site.url("ok"))
    await visit(client, misbehaving_site).answer(asking)  # type: ignore[arg-type]
    assert asking.told == {"status": 200, "headers": {"Content-Type": "text/html"}, "body": PAGE}
    assert misbehaving_site.log == []


async def test_what_the_page_loads_comes_through_the_client(client: Client, misbehaving_site: Site) -> None:
    asking = Asking(misbehaving_site.url("repr-digest"))
    await visit(client, misbehaving_site).answer(asking)  # type: ignore[arg-type]
    assert (asking.told["status"], asking.told["body"]) == (200, PAGE)


async def test_private_addresses_are_refused_to_scripts_too(client: Client, misbehaving_site: Site) -> None:
    asking = Asking(misbehaving_site.url("target"))
    await visit(client, misbehaving_site, private_ok=False).answer(asking)  # type: ignore[arg-type]
    assert asking.told == {"refused": "failed"}
    assert misbehaving_site.log == []


async def test_a_page_cannot_send_forms_nor_ask_for_ever(client: Client, misbehaving_site: Site) -> None:
    one = visit(client, misbehaving_site)
    post = Asking(misbehaving_site.url("target"), method="POST")
    await one.answer(post)  # type: ignore[arg-type]
    assert post.told == {"refused": "blockedbyclient"}
    one.requests = MAX_REQUESTS
    late = Asking(misbehaving_site.url("target"))
    await one.answer(late)  # type: ignore[arg-type]
    assert late.told == {"refused": "blockedbyclient"}


def test_a_rendered_page_over_the_limit_is_dropped(misbehaving_site: Site) -> None:
    one = visit(None, misbehaving_site, limits=Limits(max_bytes=10))  # type: ignore[arg-type]
    assert one.rendered(bytes(11)).dom == b""
    assert one.rendered(bytes(10)).dom == bytes(10)


def test_a_missing_browser_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingExtra, match="chromium"):
        find_browser()


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
async def test_scripts_have_run_in_the_rendered_page(client: Client, misbehaving_site: Site) -> None:
    async with BrowserFetcher(client) as browser:
        rendered = await browser.fetch(Request(misbehaving_site.url("scripted")))
    assert b"written by a script" in rendered.dom
    assert b"written by a script" not in rendered.response.body
    assert rendered.requests >= 2


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
async def test_a_page_that_never_ends_is_left(client: Client, misbehaving_site: Site) -> None:
    async with BrowserFetcher(client) as browser:
        rendered = await browser.fetch(Request(misbehaving_site.url("script-loop"), limits=Limits(total_seconds=4)))
    assert rendered.dom == b""
    assert rendered.warnings
