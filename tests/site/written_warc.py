"""WARC files written by hand, as small as they can be."""

from __future__ import annotations


def response(url: str, date: str, body: bytes, status: int = 200) -> bytes:
    """One record."""
    block = b"HTTP/1.1 %d OK\r\nContent-Type: text/html\r\n\r\n" % status + body
    head = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"
