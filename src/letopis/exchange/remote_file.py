"""A file on a plain HTTP server as a source of byte ranges for zrec, and zrec files read and synced from there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from letopis.archive import utc_now
from letopis.config import FetchSettings
from letopis.errors import NotFound, RemoteChanged, Unavailable
from letopis.fetch import Origin, private_ok
from letopis.fetch.client import Client
from letopis.fetch.ranges import CutShort, RangePart, RangeReader, RangesIgnored
from letopis.lazy import lazy
from letopis.zrec import (
    FileSource,
    NoRanges,
    RangeCut,
    RangeSource,
    SyncProgress,
    SyncReport,
    Traffic,
    ZrecReader,
    sync,
)
from letopis.zrec.header import MAX_RELEASE
from letopis.zrec.published_file import limit_ranges

if TYPE_CHECKING:
    from letopis.fetch import curl
else:
    curl = lazy("letopis.fetch.curl")

_SUFFIX = ".release"
_BLOCK = 16 * 1024
_BLOCKS = 64


class RemoteFile:
    """One published file and its release; every byte on the wire is counted."""

    def __init__(self, reader: RangeReader, url: str) -> None:
        self._reader = reader
        self._url = url
        self._size: int | None = None
        self._whole = b""

    @property
    def traffic(self) -> Traffic:
        """Bytes transferred, headers included, both ways."""
        return Traffic(self._reader.received_bytes, self._reader.sent_bytes, self._reader.requests)

    async def size(self) -> int:
        """Length of the file, according to the answer to the request for its first byte."""
        if self._size is None:
            part = await self._part(0, 1)
            if part.total is None:
                raise NoRanges(f"{self._url} does not report its size; the whole file is fetched instead")
        return self._size or 0

    async def read(self, start: int, end: int) -> bytes:
        """Exactly the requested bytes, however often the connection is cut, as long as each try brings some."""
        got = b""
        while True:
            try:
                part = await self._part(start + len(got), end)
            except CutShort as cut:
                got += cut.data[: end - start - len(got)]
                if not cut.data:
                    raise RangeCut(str(cut), got) from None
            except RangesIgnored as whole:
                raise NoRanges(str(whole)) from None
            else:
                data = part.data[start + len(got) - part.start :][: end - start - len(got)]
                if self._whole:
                    raise NoRanges(f"{self._url} is served only as a whole; the whole file is fetched instead")
                if len(got) + len(data) < end - start:
                    raise Unavailable(f"{self._url} ended before byte {end}; try again")
                return got + data

    async def _part(self, start: int, end: int) -> RangePart:
        try:
            parts = await self._reader.read_ranges(self._url, [(start, end)])
        except RemoteChanged:
            self._reader.forget(self._url)
            self._size, self._whole = None, b""
            raise
        for part in parts:
            self._size = part.total if part.total is not None else self._size
            if part.start <= start and part.start + len(part.data) >= end:
                if part.start == 0 and len(part.data) > end - start and part.total == len(part.data):
                    self._whole = part.data
                return part
        raise Unavailable(f"{self._url} ended before byte {end}; try again")

    async def read_release(self) -> bytes | None:
        """The release next to the file, as it is now."""
        self._reader.forget(self._url + _SUFFIX)
        try:
            return await self._reader.read_whole(self._url + _SUFFIX, MAX_RELEASE + 1)
        except NotFound:
            return None

    async def stream(self) -> AsyncIterator[bytes]:
        """The whole file as it comes; a small one that a server sent for a part of it is not requested again."""
        if self._whole:
            whole, self._whole = self._whole, b""
            yield whole
            return
        pieces: asyncio.Queue[bytes] = asyncio.Queue()
        transfer = asyncio.ensure_future(self._reader.stream_whole(self._url, pieces.put_nowait))
        transfer.add_done_callback(lambda _: pieces.put_nowait(b""))
        try:
            while piece := await pieces.get():
                yield piece
            await transfer
        except RemoteChanged:
            self._reader.forget(self._url)
            raise
        finally:
            transfer.cancel()


def _local_path(address: str) -> Path:
    return Path(unquote(urlsplit(address).path) if address.startswith("file:") else address)


@asynccontextmanager
async def source_of(
    address: str, settings: FetchSettings, clock: Callable[[], datetime], *, named_by: Origin = "cli"
) -> AsyncIterator[RangeSource]:
    """The source that an address names: http, https, file, or a plain path.

    `named_by` says whether the owner named the address or somebody else's file did, which decides as for requests
    through HTTP whether it may be in a private network.
    """
    if not address.startswith(("http://", "https://")):
        yield FileSource(_local_path(address))
        return
    transport = curl.CurlTransport(settings, clock=clock)
    # The fewest bytes: a static server needs none of the headers that a browser sends.
    client = Client(transport, settings, user_agent="Letopis", clock=clock, default_headers=())
    try:
        yield RemoteFile(RangeReader(client, private_ok=private_ok(settings.private, named_by)), address)
    finally:
        await transport.close()


class RangedBytes:
    """The bytes of a source, read on demand; bytes near those read are cached for a while."""

    def __init__(self, source: RangeSource, runner: asyncio.Runner) -> None:
        self._source = source
        self._runner = runner
        self._size = runner.run(source.size())
        self._block = lru_cache(_BLOCKS)(self._read_block)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, span: slice, /) -> bytes:
        start, end, _ = span.indices(self._size)
        if end - start > _BLOCK:
            return b"".join(self._runner.run(self._source.read(*part)) for part in limit_ranges([(start, end)]))
        first, last = start // _BLOCK, max(start, end - 1) // _BLOCK
        data = b"".join(self._block(number) for number in range(first, last + 1)) if end > start else b""
        return data[start - first * _BLOCK : end - first * _BLOCK]

    def _read_block(self, number: int) -> bytes:
        start = number * _BLOCK
        return self._runner.run(self._source.read(start, min(start + _BLOCK, self._size)))


@contextmanager
def open_zrec(address: str, settings: FetchSettings | None = None) -> Iterator[ZrecReader]:
    """A zrec file at http, https, file: or a path, for reading single records; of a remote one parts are fetched."""
    if not address.startswith(("http://", "https://")):
        with ZrecReader(_local_path(address)) as reader:
            yield reader
        return
    with asyncio.Runner() as runner:
        opened = source_of(address, settings or FetchSettings(), utc_now)
        source = runner.run(opened.__aenter__())
        try:
            with ZrecReader(address, RangedBytes(source, runner)) as reader:
                yield reader
        finally:
            runner.run(opened.__aexit__(None, None, None))


def sync_file(
    address: str,
    out: str | Path,
    *,
    seed: str | Path | None = None,
    key: bytes | None = None,
    settings: FetchSettings | None = None,
    progress: SyncProgress | None = None,
) -> SyncReport:
    """Makes `out` the zrec file that is published at an address, downloading only what changed; see `zrec.sync`."""

    async def work() -> SyncReport:
        async with source_of(address, settings or FetchSettings(), utc_now) as source:
            return await sync(source, out, seed=seed, key=key, progress=progress)

    return asyncio.run(work())
