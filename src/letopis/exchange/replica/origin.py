"""Where a clone's bytes come from: a static server or a folder, every byte on the wire counted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from letopis.config import FetchSettings
from letopis.errors import NotFound, UsageError
from letopis.exchange.remote_file import RemoteFile
from letopis.exchange.replica.release import MOST_RELEASE_BYTES, PACKS, RELEASE
from letopis.fetch import private_ok
from letopis.fetch.client import Client
from letopis.fetch.ranges import RangeReader
from letopis.lazy import lazy
from letopis.model import Limits
from letopis.zrec import FileSource, NoRanges, RangeSource, Traffic

if TYPE_CHECKING:
    from letopis.fetch import curl
else:
    curl = lazy("letopis.fetch.curl")

_SPARE = 64 * 1024
_SECONDS = 3600.0


class Origin:
    """A published archive. Files may be read several at once."""

    def __init__(self, address: str, client: Client | None, *, private: bool = True) -> None:
        """Without a client the address is a folder. `private` allows private and loopback addresses."""
        self.address = address
        self._client = client
        self._private = private
        self._sources: list[RangeSource] = []
        self._settled = Traffic()
        self._last = ("", b"")
        self._one_by_one = asyncio.Lock()

    @property
    def traffic(self) -> Traffic:
        """Bytes both ways, headers included, and requests."""
        total = self._settled
        for source in self._sources:
            total = _sum(total, source.traffic)
        return total

    async def release(self) -> bytes:
        """The release as it is now; `NotFound` when nothing is published there."""
        try:
            async with self.file(RELEASE, MOST_RELEASE_BYTES) as source:
                return b"".join([part async for part in source.stream()])[: MOST_RELEASE_BYTES + 1]
        except NotFound:
            raise NotFound(f"no archive is published at {self.address}; check the address") from None

    @asynccontextmanager
    async def file(self, name: str, size: int) -> AsyncIterator[RangeSource]:
        """One published file of this size; a server that sends more is cut off."""
        source = self._source(name, size)
        self._sources.append(source)
        try:
            yield source
        finally:
            self._sources.remove(source)
            self._settled = _sum(self._settled, source.traffic)

    @asynccontextmanager
    async def pack(self, name: str, size: int) -> AsyncIterator[RangeSource]:
        """One published pack file."""
        async with self.file(f"{PACKS}/{name}", size) as source:
            yield source

    async def part(self, name: str, size: int, start: int, end: int) -> bytes:
        """A part of a pack file. Of a server without ranges the whole file is fetched, and kept for the next part."""
        if self._last[0] == name:
            return self._last[1][start:end]
        async with self.pack(name, size) as source:
            try:
                return await source.read(start, end)
            except NoRanges:
                async with self._one_by_one:
                    if self._last[0] != name:
                        self._last = (name, b"".join([part async for part in source.stream()]))
                    return self._last[1][start:end]

    def _source(self, name: str, size: int) -> RangeSource:
        if self._client is None:
            return _LocalFile(Path(self.address) / name)
        limits = Limits(max_bytes=size + _SPARE, total_seconds=_SECONDS)
        return RemoteFile(RangeReader(self._client, limits, private_ok=self._private), f"{self.address}/{name}")


class _LocalFile(FileSource):
    """A file of a published folder; a missing one is `NotFound`, as on a server."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = path

    async def read(self, start: int, end: int) -> bytes:
        """The requested bytes."""
        self._expected()
        return await super().read(start, end)

    async def stream(self) -> AsyncIterator[bytes]:
        """The whole file."""
        self._expected()
        async for part in super().stream():
            yield part

    def _expected(self) -> None:
        if not self._file.exists():
            raise NotFound(f"there is no {self._file}; check the address")


def canonical_origin(address: str) -> str:
    """The origin as it is remembered: an address without its last slash, or an absolute path."""
    if address.startswith(("http://", "https://")):
        return address.removesuffix("/" + RELEASE).rstrip("/")
    path = unquote(urlsplit(address).path) if address.startswith("file:") else address
    if "://" in path:
        raise UsageError(f"'{address}' is neither http, https, file: nor a folder; give one of these")
    return os.path.abspath(path)


@asynccontextmanager
async def open_origin(address: str, settings: FetchSettings, clock: Callable[[], datetime]) -> AsyncIterator[Origin]:
    """The origin at a canonical address."""
    if not address.startswith(("http://", "https://")):
        yield Origin(address, None)
        return
    transport = curl.CurlTransport(settings, clock=clock)
    # The fewest bytes: a static server needs none of the headers that a browser sends.
    client = Client(transport, settings, user_agent="Letopis", clock=clock, default_headers=())
    try:
        yield Origin(address, client, private=private_ok(settings.private, "cli"))
    finally:
        await transport.close()


def _sum(one: Traffic, two: Traffic) -> Traffic:
    return Traffic(one.received + two.received, one.sent + two.sent, one.requests + two.requests)
