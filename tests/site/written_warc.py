"""WARC files for tests: written by hand, as small as they can be, and a part of an archive in one stream."""

from __future__ import annotations

from typing import BinaryIO

from letopis.archive import Archive
from letopis.archive.cluster import PieceRunner
from letopis.exchange.selection import ExportSelection
from letopis.exchange.warc_export import warc_members
from letopis.exchange.warc_records import WarcCompression


def response(url: str, date: str, body: bytes, status: int = 200) -> bytes:
    """One record."""
    block = b"HTTP/1.1 %d OK\r\nContent-Type: text/html\r\n\r\n" % status + body
    head = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def export_warc(
    archive: Archive,
    out: BinaryIO,
    selected: ExportSelection,
    compression: WarcCompression = "gzip",
    spread: PieceRunner | None = None,
) -> int:
    """Writes the selected part; answers how many records."""
    return sum(out.write(member) > 0 for member in warc_members(archive, selected, compression, spread=spread))
