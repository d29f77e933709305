"""Records of other writers, put together by hand: any type, any fields, any block."""

from __future__ import annotations

import hashlib
from base64 import b32encode

DAY = "2024-01-{:02}T12:00:00Z"


def sha1(data: bytes) -> str:
    return f"sha1:{b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()}"


def record(kind: str, url: str, date: str, block: bytes, *fields: tuple[str, str], number: int = 0) -> bytes:
    """One record; its id is made of what it is unless a number is given."""
    name = number or int.from_bytes(hashlib.md5(f"{kind} {url} {date}".encode(), usedforsecurity=False).digest()[:6])
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{name:012x}>",
        f"WARC-Target-URI: {url}",
        f"WARC-Date: {date}",
        *(f"{key}: {value}" for key, value in fields),
        f"Content-Type: application/http; msgtype={'request' if kind == 'request' else 'response'}",
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def answer(url: str, day: int, body: bytes, status: str = "200 OK", *head: str, number: int = 0) -> bytes:
    """A response with the digest of its payload."""
    block = answer_block(body, status, *head)
    return record("response", url, DAY.format(day), block, ("WARC-Payload-Digest", sha1(body)), number=number)


def answer_block(body: bytes, status: str = "200 OK", *head: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", *(head or ("Content-Type: text/html",)))
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def revisit(
    url: str, day: int, body: bytes, status: str = "200 OK", *fields: tuple[str, str], head: bool = True
) -> bytes:
    """A revisit of a payload."""
    block = answer_block(b"", status, "Content-Type: text/html", f"X-Day: {day}") if head else b""
    profile = ("WARC-Profile", "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest")
    return record("revisit", url, DAY.format(day), block, profile, ("WARC-Payload-Digest", sha1(body)), *fields)


def request(url: str, day: int, method: str, body: bytes = b"", kind: str = "", to: str = "response") -> bytes:
    """A request that names the answer to it."""
    name = int.from_bytes(hashlib.md5(f"{to} {url} {DAY.format(day)}".encode(), usedforsecurity=False).digest()[:6])
    lines = (f"{method} / HTTP/1.1", "Host: x", *((f"Content-Type: {kind}",) if kind else ()))
    block = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
    concurrent = ("WARC-Concurrent-To", f"<urn:uuid:00000000-0000-4000-8000-{name:012x}>")
    return record("request", url, DAY.format(day), block, concurrent)
