"""WARC files of a few captures, for Letopis and for its judges alike."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

DAY = datetime(2024, 3, 1, 12, 0, 0, tzinfo=UTC)


class Answered(NamedTuple):
    """A response record: `after` in seconds from the first of March 2024, noon."""

    url: str
    after: float
    status: int = 200
    body: bytes = b""
    fields: tuple[tuple[str, str], ...] = (("Content-Type", "text/html"),)
    revisit_of: float | None = None


def stamp(after: float) -> str:
    """Fourteen digits."""
    return (DAY + timedelta(seconds=after)).strftime("%Y%m%d%H%M%S")


def redirect(url: str, after: float, location: str, status: int = 301) -> Answered:
    return Answered(url, after, status, b"moved", (("Location", location), ("Content-Type", "text/html")))


def write_warc(file: Path, answers: Iterable[Answered]) -> Path:
    """The file, uncompressed."""
    file.write_bytes(b"".join(map(_record, answers)))
    return file


def _record(answer: Answered) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in answer.fields)
    block = f"HTTP/1.1 {answer.status} X\r\n{head}Content-Length: {len(answer.body)}\r\n\r\n".encode() + answer.body
    kind = "response"
    more = ""
    if answer.revisit_of is not None:
        kind = "revisit"
        more = (
            "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n"
            f"WARC-Refers-To-Target-URI: {answer.url}\r\nWARC-Refers-To-Date: {_date(answer.revisit_of)}\r\n"
        )
        block = block[: len(block) - len(answer.body)]
    name = uuid.uuid5(uuid.NAMESPACE_URL, repr(answer))
    fields = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{name}>\r\n"
        f"WARC-Target-URI: {answer.url}\r\nWARC-Date: {_date(answer.after)}\r\n{more}"
        f"WARC-Payload-Digest: sha1:{_sha1(answer.body)}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return fields.encode() + block + b"\r\n\r\n"


def _date(after: float) -> str:
    return (DAY + timedelta(seconds=after)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sha1(body: bytes) -> str:
    return base64.b32encode(hashlib.sha1(body).digest()).decode()
