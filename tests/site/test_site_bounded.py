"""Every fault of the misbehaving web ends within its limits and is named rightly."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from behaviours import ITEMS, UNKNOWN_HOST, Item
from misbehaving_site import Site

from letopis.config.settings import FetchSettings
from letopis.fetch.client import Client
from letopis.fetch.curl import CookieJar, CurlTransport
from letopis.model import FailureKind, Limits, Request, Response

SMALL = Limits(
    max_bytes=1024 * 1024,
    connect_seconds=1.0,
    first_byte_seconds=0.5,
    total_seconds=6.0,
    min_bytes_per_second=2000,
    slow_seconds=0.3,
)
PATIENT = SMALL._replace(connect_seconds=60.0, first_byte_seconds=60.0, total_seconds=300.0, slow_seconds=60.0)
"""For faults that are none of time: a busy machine must not make a slow answer of them."""
SETTINGS = FetchSettings(retries=0)
MEMORY = 24 * 1024 * 1024
"""What all faults, each allowed 1 MiB, may add to the client's peak memory; 6 MiB when it was written."""


def now() -> datetime:
    return datetime.now(UTC)


def limits_for(failure: FailureKind | None) -> Limits:
    return SMALL if failure == FailureKind.TIMEOUT else PATIENT


async def look_at(url: str, limits: Limits) -> Response:
    transport = CurlTransport(SETTINGS, clock=now, jar=CookieJar())
    client = Client(transport, SETTINGS, user_agent="test", clock=now)
    try:
        return await client.fetch(Request(url, limits=limits))
    finally:
        await transport.close()


def kind_of(response: Response) -> FailureKind | None:
    return response.failure.kind if response.failure is not None else None


def skip_without_tls(site: Site, item: Item) -> None:
    if item.server not in site.ports:
        pytest.skip("needs the openssl command")


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.server}/{item.path}")
async def test_each_fault_ends_and_is_named(misbehaving_site: Site, item: Item) -> None:
    skip_without_tls(misbehaving_site, item)
    response = await look_at(misbehaving_site.url(item.path, item.server), limits_for(item.failure))
    assert (kind_of(response) in (item.failure, item.or_else or item.failure), response.status) == (
        True,
        item.status,
    ), response
    assert len(response.body) <= SMALL.max_bytes
    # A redirect to nowhere came whole; what broke off on the way is never handed on as a body.
    assert kind_of(response) in (None, FailureKind.BAD_REDIRECT) or not response.body


async def test_unknown_host_is_a_dns_failure() -> None:
    response = await look_at(UNKNOWN_HOST, PATIENT)
    assert response.failure is not None
    assert response.failure.kind is FailureKind.DNS


async def test_other_pages_of_the_host_stay_reachable(misbehaving_site: Site) -> None:
    transport = CurlTransport(SETTINGS, clock=now, jar=CookieJar())
    client = Client(transport, SETTINGS, user_agent="test", clock=now)
    for path in ("garbage", "long-length", "reset-mid-body", "bomb/gzip", "cookie-flood", "header-flood", "ok"):
        response = await client.fetch(Request(misbehaving_site.url(path), limits=PATIENT))
    assert (response.status, response.failure) == (200, None)
    await transport.close()


CHILD = """
import asyncio, json, resource, sys
sys.path.insert(0, sys.argv[1])
from test_site_bounded import limits_for, look_at
asked = json.load(sys.stdin)
asyncio.run(look_at(asked[0][0], limits_for(asked[0][1])))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
kinds = []
for address, expected in asked:
    failure = asyncio.run(look_at(address, limits_for(expected))).failure
    kinds.append(failure.kind if failure else None)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"grown": (after - before) * 1024, "kinds": kinds}))
"""


def test_all_faults_together_stay_within_memory(misbehaving_site: Site) -> None:
    items = [item for item in ITEMS if item.server in misbehaving_site.ports]
    asked = [(misbehaving_site.url(item.path, item.server), item.failure) for item in items]
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=600, check=True)
    told = json.loads(done.stdout)
    for item, kind in zip(items, told["kinds"], strict=True):
        assert kind in (item.failure, item.or_else or item.failure), item
    assert told["grown"] < MEMORY
