"""The client against real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from behaviours import PAGE, md5
from misbehaving_site import Site

from letopis.config.settings import FetchSettings
from letopis.fetch.client import Client, limits_of, retry_after
from letopis.fetch.curl import CookieJar, CurlTransport
from letopis.model import FailureKind, Limits, Request, Response

SETTINGS = FetchSettings(headers=("X-Mine: yes",))


def now() -> datetime:
    return datetime.now(UTC)


class Pauses:
    """Stands in for sleeping and remembers how long it would have been."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def client(pauses: Pauses) -> AsyncIterator[Client]:
    transport = CurlTransport(SETTINGS, clock=now, jar=CookieJar())
    yield Client(transport, SETTINGS, user_agent="Letopis/0.1", clock=now, sleep=pauses)
    await transport.close()


async def test_brings_a_page_with_all_that_is_known_of_it(client: Client, misbehaving_site: Site) -> None:
    before = now()
    response = await client.fetch(Request(misbehaving_site.url("ok")))
    assert (response.status, response.body, response.failure, response.hops) == (200, PAGE, None, ())
    assert (response.ip, response.request.http_version) == ("127.0.0.1", "1.1")
    assert before <= response.at <= now()
    assert response.wire_bytes > len(PAGE)
    assert response.sent_bytes > 100
    assert 0 < response.seconds < 5


async def test_sends_browser_like_headers_and_the_users_own(client: Client, misbehaving_site: Site) -> None:
    await client.fetch(Request(misbehaving_site.url("ok"), headers=(("Accept", "text/plain"), ("X-Once", "1"))))
    asked = misbehaving_site.asked("ok")[0].headers
    assert asked["user-agent"] == "Letopis/0.1"
    assert (asked["accept"], asked["x-mine"], asked["x-once"]) == ("text/plain", "yes", "1")
    assert asked["accept-encoding"] == "gzip, deflate, br, zstd"


async def test_headers_of_one_request_do_not_leak_into_the_next(client: Client, misbehaving_site: Site) -> None:
    await client.fetch(Request(misbehaving_site.url("ok"), headers=(("X-Once", "1"),), etag='"e"'))
    await client.fetch(Request(misbehaving_site.url("ok"), method="HEAD"))
    await client.fetch(Request(misbehaving_site.url("ok")))
    _, second, third = misbehaving_site.asked("ok")
    assert (second.method, third.method) == ("HEAD", "GET")
    assert "x-once" not in second.headers
    assert "if-none-match" not in third.headers


async def test_head_has_no_body(client: Client, misbehaving_site: Site) -> None:
    response = await client.fetch(Request(misbehaving_site.url("large"), method="HEAD"))
    assert (response.status, response.body, response.failure) == (200, b"", None)
    assert response.header("content-length") == str(12 * 1024 * 1024)


async def test_odd_headers_are_kept_in_order(client: Client, misbehaving_site: Site) -> None:
    response = await client.fetch(Request(misbehaving_site.url("odd-headers")))
    names = [name for name, _ in response.headers]
    assert names[1:6] == ["X-Latin", "X-Folded", "x-lower", "X-Twice", "X-Twice"]
    assert response.header("X-Latin") == "caf\xe9"
    assert response.header("x-folded") == "one two"


async def test_not_modified_answers_a_condition(client: Client, misbehaving_site: Site) -> None:
    response = await client.fetch(Request(misbehaving_site.url("target"), etag='"target-1"'))
    assert (response.status, response.body, response.available) == (304, b"", True)
    bare = await client.fetch(Request(misbehaving_site.url("bare-304"), last_modified="Sun, 01 Mar 2026 12:00:00 GMT"))
    assert (bare.status, bare.header("etag")) == (304, "")
    ignored = await client.fetch(Request(misbehaving_site.url("etag-without-304"), etag='"always-the-same"'))
    assert (ignored.status, ignored.body) == (200, PAGE)


async def test_follows_redirects_and_records_each(client: Client, misbehaving_site: Site) -> None:
    response = await client.fetch(Request(misbehaving_site.url("short")))
    assert (response.url, response.final_url) == (misbehaving_site.url("short"), misbehaving_site.url("target"))
    (hop,) = response.hops
    assert (hop.url, hop.status, hop.location, hop.ip) == (misbehaving_site.url("short"), 301, "/target", "127.0.0.1")
    assert response.wire_bytes > len(PAGE) + 60


async def test_validators_go_only_to_the_address_they_came_from(client: Client, misbehaving_site: Site) -> None:
    ours = Request(misbehaving_site.url("short"), etag='"target-1"', validators_for=misbehaving_site.url("target"))
    assert (await client.fetch(ours)).status == 304
    moved = ours._replace(url=misbehaving_site.url("redirect/302?to=/mirror"))
    assert (await client.fetch(moved)).body == PAGE
    assert "if-none-match" not in misbehaving_site.asked("short")[0].headers


async def test_a_redirect_is_told_when_it_is_not_to_be_followed(client: Client, misbehaving_site: Site) -> None:
    response = await client.fetch(Request(misbehaving_site.url("short"), follow=False))
    assert (response.status, response.hops, response.failure) == (301, (), None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_every_kind_of_redirect_is_followed(client: Client, misbehaving_site: Site, status: int) -> None:
    response = await client.fetch(Request(misbehaving_site.url(f"redirect/{status}?to=/ok")))
    assert (response.body, len(response.hops)) == (PAGE, 1)


async def test_secrets_are_not_sent_to_another_origin(client: Client, misbehaving_site: Site) -> None:
    to = misbehaving_site.url("ok", "other")
    secret = (("Authorization", "Bearer x"),)
    await client.fetch(Request(misbehaving_site.url(f"redirect/302?to={to}"), headers=secret))
    first, second = misbehaving_site.log
    assert first.headers["authorization"] == "Bearer x"
    assert "authorization" not in second.headers


async def test_cookies_are_kept_where_a_site_needs_them(client: Client, misbehaving_site: Site) -> None:
    response = await client.fetch(Request(misbehaving_site.url("cookie-wall?" + uuid4().hex)))
    assert (response.status, len(response.hops)) == (200, 1)


async def test_the_time_limit_spans_all_hops(client: Client, misbehaving_site: Site) -> None:
    limits = Limits(total_seconds=2, first_byte_seconds=60, max_hops=30)
    response = await client.fetch(Request(misbehaving_site.url("redirect/302?to=/silent"), limits=limits))
    assert response.failure is not None
    assert (response.failure.kind, len(response.hops)) == (FailureKind.TIMEOUT, 1)
    assert response.seconds < 30


async def test_tries_again_and_then_succeeds(client: Client, misbehaving_site: Site, pauses: Pauses) -> None:
    response = await client.fetch(Request(misbehaving_site.url("flaky?" + uuid4().hex)))
    assert (response.status, pauses.taken) == (200, [1.0, 2.0])
    again = await client.fetch(Request(misbehaving_site.url("flaky-reset?" + uuid4().hex, "other")))
    assert (again.status, pauses.taken) == (200, [1.0, 2.0, 1.0])


async def test_gives_up_after_the_last_try(client: Client, misbehaving_site: Site, pauses: Pauses) -> None:
    response = await client.fetch(Request(misbehaving_site.url("reset-after-request")))
    assert response.failure is not None
    assert (response.failure.kind, len(pauses.taken)) == (FailureKind.RESET, SETTINGS.retries)


async def test_a_long_retry_after_is_told_and_not_waited_for(
    client: Client, misbehaving_site: Site, pauses: Pauses
) -> None:
    response = await client.fetch(Request(misbehaving_site.url("busy")))
    assert (retry_after(response, now()), pauses.taken) == (3600.0, [])
    until = await client.fetch(Request(misbehaving_site.url("busy-until")))
    assert 3500 < (retry_after(until, now()) or 0) <= 3600


async def test_an_unchanged_digest_saves_the_download(client: Client, misbehaving_site: Site) -> None:
    known = (("Content-Length", str(len(PAGE))), ("Content-MD5", md5(PAGE)))
    response = await client.fetch(Request(misbehaving_site.url("right-md5"), unchanged_if=known))
    assert (response.status, response.skipped, response.body, response.failure) == (200, True, b"", None)
    other = await client.fetch(Request(misbehaving_site.url("wrong-md5"), unchanged_if=known))
    assert (other.skipped, other.body) == (False, PAGE)


async def test_a_wrong_digest_is_a_warning(client: Client, misbehaving_site: Site) -> None:
    wrong = await client.fetch(Request(misbehaving_site.url("wrong-md5")))
    assert wrong.warnings == ("the header Content-MD5 does not fit the content",)
    for path in ("right-md5", "repr-digest"):
        assert (await client.fetch(Request(misbehaving_site.url(path)))).warnings == ()


async def test_keeps_what_came_of_a_broken_body_when_asked(client: Client, misbehaving_site: Site) -> None:
    request = Request(misbehaving_site.url("short-length"), keep_partial=True)
    assert (await client.fetch(request)).body == PAGE
    large = await client.fetch(Request(misbehaving_site.url("large"), keep_partial=True, limits=Limits(max_bytes=1000)))
    assert len(large.body) == 1000


@pytest.mark.parametrize(
    "url", ["", "ftp://a.test/", "file:///etc/passwd", "http://", "http://[x", "mailto:a@b", "//a"]
)
async def test_what_is_no_web_address_is_told_not_raised(client: Client, url: str) -> None:
    response = await client.fetch(Request(url))
    assert (response.status, response.url) == (0, url)
    assert response.failure is not None


async def test_international_addresses_are_sent_in_ascii(client: Client, misbehaving_site: Site) -> None:
    response = await client.fetch(Request(misbehaving_site.url("target/žluť ouč")))
    assert response.status == 200
    assert response.url.endswith("žluť ouč")
    assert misbehaving_site.log[0].target == "/target/%C5%BElu%C5%A5%20ou%C4%8D"


async def test_header_injection_is_not_sent(client: Client, misbehaving_site: Site) -> None:
    await client.fetch(Request(misbehaving_site.url("ok"), etag='"a"\r\nX-Evil: 1'))
    assert "x-evil" not in misbehaving_site.log[0].headers


async def test_many_at_once(client: Client, misbehaving_site: Site) -> None:
    paths = ["ok", "reset-mid-body", "bomb/br", "short", "chain/5"] * 10
    requests = (Request(misbehaving_site.url(path)) for path in paths)
    answers: list[Response] = await asyncio.gather(*(client.fetch(request) for request in requests))
    assert sum(answer.body == PAGE for answer in answers) == 30


def test_limits_follow_the_settings() -> None:
    limits = limits_of(FetchSettings(max_bytes=5, max_hops=2, connect=1, first_byte=2, total=3, slow=4))
    assert limits == Limits(5, 256 * 1024, 2, 1, 2, 3, 256, 4)
