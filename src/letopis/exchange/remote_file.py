"""A file on a plain HTTP server as a source of byte ranges for zrec."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from letopis.config import FetchSettings
from letopis.errors import NotFound, RemoteChanged, Unavailable
from letopis.fetch import Client, CurlTransport, RangeReader
from letopis.zrec import FileSource, NoRanges, RangeSource, Traffic

_PIECE = 4 * 1024 * 1024
_SUFFIX = ".release"


class RemoteFile:
    """One published file and its release; every byte on the wire is counted."""

    def __init__(self, reader: RangeReader, url: str) -> None:
        self._reader = reader
        self._url = url
        self._size: int | None = None

    @property
    def traffic(self) -> Traffic:
        """Headers included, both ways."""
        return Traffic(self._reader.received_bytes, self._reader.sent_bytes, self._reader.requests)

    async def size(self) -> int:
        """Length of the file, as the answer to its first byte says."""
        if self._size is None:
            parts = await self._reader.read_ranges(self._url, [(0, 1)])
            total = parts[0].total if parts else None
            if total is None:
                raise NoRanges(f"{self._url} does not tell its size; the whole file is fetched instead")
            self._size = total
        return self._size

    async def read(self, start: int, end: int) -> bytes:
        """Exactly the bytes asked for; a server without ranges is noticed before it sends much."""
        try:
            parts = await self._reader.read_ranges(self._url, [(start, end)])
        except RemoteChanged:
            self._reader.forget(self._url)
            self._size = None
            raise
        for part in parts:
            self._size = part.total if part.total is not None else self._size
            if part.start <= start and part.start + len(part.data) >= end:
                if part.start == 0 and len(part.data) > end - start and part.total == len(part.data):
                    raise NoRanges(f"{self._url} is served only as a whole; the whole file is fetched instead")
                return part.data[start - part.start : end - part.start]
        raise Unavailable(f"{self._url} ended before byte {end}; try again")

    async def read_release(self) -> bytes | None:
        """The release beside the file."""
        try:
            return await self._reader.read_whole(self._url + _SUFFIX)
        except NotFound:
            return None

    async def stream(self) -> AsyncIterator[bytes]:
        """The whole file."""
        yield await self._reader.read_whole(self._url)


@asynccontextmanager
async def source_of(address: str, settings: FetchSettings, clock: Callable[[], datetime]) -> AsyncIterator[RangeSource]:
    """The source that an address names: http, https, file, or a plain path."""
    if not address.startswith(("http://", "https://")):
        path = unquote(urlsplit(address).path) if address.startswith("file:") else address
        yield FileSource(Path(path))
        return
    transport = CurlTransport(settings, clock=clock)
    # The fewest bytes: a static server needs none of the headers that a browser sends.
    client = Client(transport, settings, user_agent="Letopis", clock=clock, default_headers=())
    try:
        yield RemoteFile(RangeReader(client), address)
    finally:
        await transport.close()
