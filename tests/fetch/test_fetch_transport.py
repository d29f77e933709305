"""libcurl underneath: connections, handles, cancelling, TLS, proxies, guarded addresses, cookies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvloop
from behaviours import PAGE
from misbehaving_site import Site
from patience import until

from letopis.config.settings import FetchSettings
from letopis.fetch.client import Client
from letopis.fetch.curl import MAX_PER_DOMAIN, CookieJar, CurlTransport, cookies_within_bounds
from letopis.fetch.curl_multi import idle_connections
from letopis.model import FailureKind, Limits, Request, Response


def now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def transport(
    settings: FetchSettings | None = None, jar: CookieJar | None = None
) -> AsyncIterator[CurlTransport]:
    made = CurlTransport(settings or FetchSettings(), clock=now, jar=jar)
    yield made
    await made.close()


def kind(response: Response) -> FailureKind | None:
    return response.failure.kind if response.failure is not None else None


async def test_one_hop_only(misbehaving_site: Site) -> None:
    async with transport() as sender:
        response = await sender.send(Request(misbehaving_site.url("short")))
    assert (response.status, response.header("location")) == (301, "/target")


async def test_a_connection_is_used_again(misbehaving_site: Site) -> None:
    async with transport() as sender:
        for _ in range(20):
            assert (await sender.send(Request(misbehaving_site.url("ok")))).body == PAGE
        before = set(misbehaving_site._tasks)
        await sender.send(Request(misbehaving_site.url("ok")))
        assert set(misbehaving_site._tasks) <= before


@pytest.mark.parametrize(("may_open", "kept"), [(512, 128), (1024, 256), (100_000, 1024), (-1, 1024)])
def test_kept_connections_leave_descriptors_to_others(
    may_open: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (may_open, may_open))
    assert idle_connections() == kept


async def test_a_cancelled_exchange_leaves_the_others_alone(misbehaving_site: Site) -> None:
    async with transport() as sender:
        hanging = asyncio.create_task(sender.send(Request(misbehaving_site.url("silent"))))
        while not misbehaving_site.asked("silent"):
            assert (await sender.send(Request(misbehaving_site.url("ok")))).body == PAGE
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert (await sender.send(Request(misbehaving_site.url("ok")))).body == PAGE


async def test_closing_ends_what_is_in_flight(misbehaving_site: Site) -> None:
    async with transport() as sender:
        hanging = asyncio.create_task(sender.send(Request(misbehaving_site.url("silent"))))
        while not misbehaving_site.asked("silent"):
            await sender.send(Request(misbehaving_site.url("ok")))
    with pytest.raises(asyncio.CancelledError):
        await hanging


async def test_no_descriptor_is_left_behind(misbehaving_site: Site) -> None:
    async def round_trip() -> None:
        async with transport() as sender:
            for path in ("ok", "reset-mid-body", "short-length", "bomb/gzip"):
                await sender.send(Request(misbehaving_site.url(path)))
            await sender.send(Request(misbehaving_site.url("ok"), private_ok=False))

    await round_trip()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        await round_trip()
    until(lambda: len(os.listdir("/proc/self/fd")) <= before + 6)  # the server's own ends may still be closing


def test_runs_on_uvloop(misbehaving_site: Site) -> None:
    async def main() -> list[Response]:
        async with transport() as sender:
            brief = {"slow-drip": Limits(total_seconds=0.3)}
            asked = [
                Request(misbehaving_site.url(path), limits=brief.get(path, Limits()))
                for path in ("ok", "slow-drip", "ok", "bomb/zstd")
            ]
            return await asyncio.gather(*map(sender.send, asked))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        answers = runner.run(main())
    assert [answer.body == PAGE for answer in answers] == [True, False, True, False]
    assert kind(answers[1]) is FailureKind.TIMEOUT


QUICK = [
    "ok", "short-length", "broken-chunk", "truncated-gzip", "garbage", "interim-few", "loop/a", "chain/29",
    "cookie-wall", "cookie-flood", "reset-after-request", "reset-mid-header", "reset-mid-body", "close-after-request",
    "header-flood", "endless", "large", "wrong-md5", "silent", "slow-drip",
]  # fmt: skip


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_storm_of_faults_and_cancellations_leaves_it_whole(
    misbehaving_site: Site, make_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    chance = random.Random(7)
    limits = Limits(max_bytes=1 << 18, first_byte_seconds=0.5, slow_seconds=0.5, connect_seconds=1.0)

    async def one(client: Client) -> None:
        url = misbehaving_site.url(chance.choice(QUICK))
        request = Request(url, limits=limits, private_ok=chance.random() < 0.9)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(client.fetch(request), 0.05 * chance.random() if chance.random() < 0.3 else None)

    async def main() -> Response:
        settings = FetchSettings(retries=0)
        async with transport(settings, CookieJar()) as sender:
            client = Client(sender, settings, user_agent="t", clock=now)
            for _ in range(5):
                await asyncio.gather(*(one(client) for _ in range(40)))
            return await client.fetch(Request(misbehaving_site.url("ok")))

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(main()).body == PAGE


async def test_certificates_are_checked(misbehaving_site: Site) -> None:
    if "tls" not in misbehaving_site.ports:
        pytest.skip("needs the openssl command")
    url = misbehaving_site.url("ok", "tls")
    async with transport() as sender:
        assert kind(await sender.send(Request(url))) is FailureKind.TLS
    async with transport(FetchSettings(ca_file=str(misbehaving_site.ca_file))) as sender:
        assert (await sender.send(Request(url))).body == PAGE
        stranger = misbehaving_site.url("ok", "tls-untrusted")
        assert kind(await sender.send(Request(stranger))) is FailureKind.TLS
    async with transport(FetchSettings(verify_tls=False)) as sender:
        assert (await sender.send(Request(url))).body == PAGE


async def test_speaks_http2_over_tls(misbehaving_site: Site) -> None:
    if "tls-http2" not in misbehaving_site.ports:
        pytest.skip("needs the openssl command")
    async with transport(FetchSettings(ca_file=str(misbehaving_site.ca_file))) as sender:
        urls = [misbehaving_site.url(str(number), "tls-http2") for number in range(4)]
        answers = await asyncio.gather(*(sender.send(Request(url)) for url in urls))
    assert {(answer.request and answer.request.http_version, answer.status, answer.body) for answer in answers} == {
        ("2", 200, b"<!doctype html><title>Two</title>")
    }


async def test_an_idle_handle_holds_no_page(misbehaving_site: Site) -> None:
    async with transport() as sender:
        body = (await sender.send(Request(misbehaving_site.url("ok")))).body
        assert sys.getrefcount(body) == 2  # this function's own, and the argument's


async def test_a_closed_port_is_a_connect_failure() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        async with transport() as sender:
            response = await sender.send(Request(f"http://127.0.0.1:{held.getsockname()[1]}/"))
    assert kind(response) is FailureKind.CONNECT


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0"])
async def test_private_addresses_are_refused_before_anything_is_sent(misbehaving_site: Site, host: str) -> None:
    async with transport() as sender:
        response = await sender.send(Request(misbehaving_site.base(host=host) + "/ok", private_ok=False))
    assert kind(response) is FailureKind.FORBIDDEN_ADDRESS
    assert misbehaving_site.log == []


async def test_a_kept_connection_to_a_private_address_is_not_borrowed(misbehaving_site: Site) -> None:
    async with transport() as sender:
        assert (await sender.send(Request(misbehaving_site.url("ok")))).body == PAGE
        response = await sender.send(Request(misbehaving_site.url("target"), private_ok=False))
    assert kind(response) is FailureKind.FORBIDDEN_ADDRESS
    assert misbehaving_site.asked("target") == []


async def test_a_redirect_to_a_private_address_is_refused(misbehaving_site: Site) -> None:
    class PublicThenReal:
        """Answers for a public host, and leaves every other hop to libcurl."""

        def __init__(self, real: CurlTransport) -> None:
            self.real = real

        async def send(self, request: Request) -> Response:
            if request.url.startswith("http://public.test/"):
                to = (("Location", misbehaving_site.url("ok")),)
                return Response(request.url, request.url, 302, to, b"", now(), ip="93.184.216.34")
            return await self.real.send(request)

    async with transport() as sender:
        client = Client(PublicThenReal(sender), FetchSettings(), user_agent="t", clock=now)
        response = await client.fetch(Request("http://public.test/", private_ok=False))
    assert (kind(response), len(response.hops)) == (FailureKind.FORBIDDEN_ADDRESS, 1)
    assert misbehaving_site.log == []


async def test_a_proxy_is_asked_with_the_whole_address(misbehaving_site: Site) -> None:
    async with transport(FetchSettings(proxy=misbehaving_site.base("other"))) as sender:
        await sender.send(Request("http://elsewhere.test/ok"))
        refused = await sender.send(Request(misbehaving_site.url("ok"), private_ok=False))
    assert [(asked.server, asked.target) for asked in misbehaving_site.log] == [("other", "http://elsewhere.test/ok")]
    assert kind(refused) is FailureKind.FORBIDDEN_ADDRESS


async def told_to_proxy(host: str, *addresses: str) -> tuple[Response, bytes]:
    """A request for whom private addresses are refused, through a proxy that only listens; and what that was told."""

    async def resolve(name: str) -> list[str]:
        assert name == host
        return list(addresses)

    heard: list[bytes] = []

    async def listening(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    proxy = await asyncio.start_server(listening, "127.0.0.1", 0)
    settings = FetchSettings(proxy=f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
    sender = CurlTransport(settings, clock=now, resolve=resolve)
    try:
        response = await sender.send(Request(f"http://{host}:8080/page", private_ok=False))
    finally:
        await sender.close()
        proxy.close()
    return response, b"".join(heard)


async def test_a_guarded_request_through_a_proxy_goes_to_the_address_that_was_judged() -> None:
    """The proxy looks no name up: it could find another address than the one that is public here."""
    _, heard = await told_to_proxy("changing.test", "93.184.216.34")
    assert heard.startswith(b"CONNECT 93.184.216.34:8080 ")
    assert b"changing.test" not in heard.partition(b"\r\n")[0]


@pytest.mark.parametrize("addresses", [("10.0.0.1",), ("93.184.216.34", "127.0.0.1")])
async def test_a_proxy_is_not_asked_for_a_name_with_any_private_address(addresses: tuple[str, ...]) -> None:
    response, heard = await told_to_proxy("inside.test", *addresses)
    assert (kind(response), heard) == (FailureKind.FORBIDDEN_ADDRESS, b"")


async def test_a_proxy_is_not_asked_for_a_name_that_only_it_knows() -> None:
    response, heard = await told_to_proxy("inside.test")
    assert (kind(response), heard) == (FailureKind.DNS, b"")


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".test", "nobody-knows-this.invalid"])
async def test_names_that_no_name_service_knows_fail_by_themselves_through_a_proxy(
    misbehaving_site: Site, host: str
) -> None:
    async with transport(FetchSettings(proxy=misbehaving_site.base("other"))) as sender:
        response = await sender.send(Request(f"http://{host}/", private_ok=False))
    assert kind(response) is FailureKind.DNS
    assert misbehaving_site.log == []


async def test_proxies_of_the_environment_are_not_used(misbehaving_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", misbehaving_site.base("other"))
    async with transport() as sender:
        await sender.send(Request(misbehaving_site.url("ok")))
    assert misbehaving_site.log[0].server == "main"


async def test_cookies_live_on_in_their_file(misbehaving_site: Site, tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    async with transport(jar=CookieJar(file)) as sender:
        assert (await sender.send(Request(misbehaving_site.url("cookie-wall")))).status == 302
        assert (await sender.send(Request(misbehaving_site.url("cookie-wall")))).status == 200
    assert file.exists()
    persistent = file.read_text().replace("\t0\tpass", "\t4102444800\tpass")
    file.write_text(persistent)
    async with transport(jar=CookieJar(file)) as sender:
        assert (await sender.send(Request(misbehaving_site.url("cookie-wall")))).status == 200


async def test_no_jar_keeps_no_cookies(misbehaving_site: Site) -> None:
    async with transport() as sender:
        statuses = [(await sender.send(Request(misbehaving_site.url("cookie-wall")))).status for _ in range(3)]
    assert statuses == [302, 302, 302]


async def test_a_flood_of_cookies_is_cut_back(misbehaving_site: Site) -> None:
    jar = CookieJar()
    async with transport(jar=jar) as sender:
        for _ in range(4):
            assert (await sender.send(Request(misbehaving_site.url("cookie-flood")))).status == 200
        assert len(jar.lines()) <= MAX_PER_DOMAIN


def test_a_flood_of_one_domain_leaves_the_cookies_of_others() -> None:
    lines = ["kept.test\tFALSE\t/\tFALSE\t0\ta\tb"] + [f".flood.test\tTRUE\t/\tFALSE\t0\tc{n}\tv" for n in range(9000)]
    kept = cookies_within_bounds(lines)
    assert kept[0].startswith("kept.test")
    assert kept[-1] == lines[-1]
    assert len(kept) == 1 + MAX_PER_DOMAIN
