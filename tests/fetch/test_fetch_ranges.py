from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from behaviours import RECORDS
from misbehaving_site import Site

from letopis.config.settings import FetchSettings
from letopis.errors import NotFound, Refused, RemoteChanged, Unavailable
from letopis.fetch.client import Client
from letopis.fetch.curl import CurlTransport
from letopis.fetch.ranges import RangeReader


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
async def reader() -> AsyncIterator[RangeReader]:
    settings = FetchSettings(retries=0)
    transport = CurlTransport(settings, clock=now)
    yield RangeReader(Client(transport, settings, user_agent="t", clock=now, default_headers=()))
    await transport.close()


async def part_of(reader: RangeReader, url: str, start: int, end: int) -> bytes:
    """The bytes from `start` up to `end`; fewer only where the file ends before."""
    holding = (part for part in await reader.read_ranges(url, [(start, end)]) if part.start <= start)
    return next((part.data[start - part.start : end - part.start] for part in holding), b"")


async def test_reads_a_range_and_counts_all_bytes(reader: RangeReader, misbehaving_site: Site) -> None:
    url = misbehaving_site.url("records")
    assert await part_of(reader, url, 9, 27) == RECORDS[9:27]
    assert (reader.requests, reader.received_bytes < 300, reader.sent_bytes < 200) == (1, True, True)
    assert reader.received_bytes > 18
    assert await part_of(reader, url, len(RECORDS) - 5, len(RECORDS) + 100) == RECORDS[-5:]
    assert await part_of(reader, url, len(RECORDS) + 5, len(RECORDS) + 10) == b""
    assert await part_of(reader, url, 5, 5) == b""
    assert await reader.read_whole(url) == RECORDS


async def test_a_server_without_ranges_still_serves(reader: RangeReader, misbehaving_site: Site) -> None:
    url = misbehaving_site.url("records-without-ranges")
    assert await part_of(reader, url, 9, 27) == RECORDS[9:27]
    (whole,) = await reader.read_ranges(url, [(0, 1), (50, 60)])
    assert (whole.start, whole.data, whole.total) == (0, RECORDS, len(RECORDS))


async def test_several_ranges_are_one_request(reader: RangeReader, misbehaving_site: Site) -> None:
    url = misbehaving_site.url("records-multipart")
    spans = [(0, 9), (90, 99), (900, 918)]
    parts = await reader.read_ranges(url, spans)
    assert [(part.start, part.data) for part in parts] == [(start, RECORDS[start:end]) for start, end in spans]
    assert reader.requests == 1


async def test_two_versions_are_never_mixed(reader: RangeReader, misbehaving_site: Site) -> None:
    url = misbehaving_site.url("records-changing")
    await part_of(reader, url, 0, 9)
    with pytest.raises(RemoteChanged, match="start again"):
        await part_of(reader, url, 9, 18)
    reader.forget(url)
    assert await part_of(reader, url, 9, 18)


async def test_other_ranges_than_asked_are_noticed(reader: RangeReader, misbehaving_site: Site) -> None:
    with pytest.raises(Unavailable, match="other ranges"):
        await part_of(reader, misbehaving_site.url("records-wrong-range"), 100, 110)


async def test_failures_become_errors(reader: RangeReader, misbehaving_site: Site) -> None:
    with pytest.raises(NotFound):
        await part_of(reader, misbehaving_site.url("no-such-file"), 0, 1)
    with pytest.raises(Unavailable):
        await part_of(reader, misbehaving_site.url("reset-after-request"), 0, 1)
    reader.private_ok = False
    with pytest.raises(Refused):
        await part_of(reader, misbehaving_site.url("records"), 0, 1)
