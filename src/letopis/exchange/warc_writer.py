"""WARC records to bytes: headers in order, a block, one compressed member each."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Literal, NamedTuple

from backports import zstd

Compression = Literal["gzip", "zstd", "none"]

ENDINGS: dict[Compression, str] = {"gzip": ".warc.gz", "zstd": ".warc.zst", "none": ".warc"}
"""How the files are called."""


@dataclass(frozen=True, slots=True)
class Record:
    """One WARC record: its headers in order, and its block."""

    headers: tuple[tuple[str, str], ...]
    block: bytes

    @property
    def kind(self) -> str:
        """`response`, `revisit`, `metadata` or `warcinfo`."""
        return self.headers[0][1]

    def to_bytes(self) -> bytes:
        """The record as it stands in a file."""
        lines = [
            "WARC/1.1",
            *(f"{name}: {value}" for name, value in self.headers),
            f"Content-Length: {len(self.block)}",
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape") + self.block + b"\r\n\r\n"


class Place(NamedTuple):
    """Where a record lies in its file."""

    offset: int
    length: int


def gzip_member(data: bytes) -> bytes:
    """One member without a time of its own, so that the same record gives the same bytes."""
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    return press.compress(data) + press.flush()


_SQUEEZE: dict[Compression, Callable[[bytes], bytes]] = {
    "gzip": gzip_member,
    "zstd": lambda data: zstd.compress(data, 12),
    "none": lambda data: data,
}


def member_of(record: Record, compression: Compression) -> bytes:
    """A record as it stands in a file."""
    return _SQUEEZE[compression](record.to_bytes())


class WarcWriter:
    """Appends records to a stream and knows where each of them lies."""

    def __init__(self, out: BinaryIO, compression: Compression = "gzip") -> None:
        self._out = out
        self._compression: Compression = compression
        self.size = 0

    def write(self, record: Record) -> Place:
        """Appends one record."""
        data = member_of(record, self._compression)
        self._out.write(data)
        place = Place(self.size, len(data))
        self.size += len(data)
        return place
