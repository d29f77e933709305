"""The multipart/byteranges form in which servers answer for several ranges at once."""

from __future__ import annotations

import re
from typing import NamedTuple

_CONTENT_RANGE = re.compile(r"bytes\s+(\d{1,19})-(\d{1,19})/(\d{1,19}|\*)", re.ASCII | re.IGNORECASE)
_BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,200})"?', re.IGNORECASE)
_MAX_PARTS = 10_000


class Part(NamedTuple):
    """Bytes of a file from `start` on; `total` is its whole size, None when it was not told."""

    start: int
    data: bytes
    total: int | None


def content_range(value: str) -> tuple[int, int, int | None] | None:
    """Start, end (exclusive) and total of a Content-Range; None for anything else."""
    match = _CONTENT_RANGE.fullmatch(value.strip())
    if match is None:
        return None
    start, end = int(match[1]), int(match[2]) + 1
    total = None if match[3] == "*" else int(match[3])
    return (start, end, total) if start < end and (total is None or end <= total) else None


def boundary(content_type: str) -> bytes:
    """The separator of a multipart answer; empty when it is none."""
    if not content_type.lower().startswith("multipart/byteranges"):
        return b""
    match = _BOUNDARY.search(content_type)
    return match[1].encode("latin-1") if match else b""


def parts(body: bytes, separator: bytes) -> list[Part]:
    """The ranges in the body; those that contradict their own header are left out."""
    found: list[Part] = []
    at = body.find(b"--" + separator)
    while at >= 0 and len(found) < _MAX_PARTS:
        head_end = body.find(b"\r\n\r\n", at)
        told = _range_of(body[at:head_end]) if head_end >= 0 else None
        if told is None:
            break
        start, end, total = told
        begin = head_end + 4
        data = body[begin : begin + end - start]
        if len(data) == end - start:
            found.append(Part(start, data, total))
        at = body.find(b"--" + separator, begin + end - start)
    return found


def _range_of(head: bytes) -> tuple[int, int, int | None] | None:
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-range":
            return content_range(value)
    return None
