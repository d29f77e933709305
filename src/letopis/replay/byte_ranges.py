"""Parts of archived bodies: `Range` requests of players, and captures that hold only a part themselves."""

from __future__ import annotations

import re

from letopis.fetch.ranges import parse_content_range
from letopis.tuples import NamedTuple

_RANGE = re.compile(r"bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", re.ASCII | re.IGNORECASE)


class BodyPart(NamedTuple):
    """What is sent: `content_range` is empty for a whole body."""

    status: int
    body: bytes
    content_range: str = ""


def body_part(status: int, body: bytes, content_range: str, asked: str | None) -> BodyPart:
    """The part of a captured body that a client asked for.

    `content_range` is what the server said of a captured 206. Of a range that reaches past what is there its beginning
    is sent; several ranges at once are answered with everything, as RFC 9110 allows.
    """
    held = parse_content_range(content_range) if status == 206 else (0, len(body), len(body))
    if status not in (200, 206) or held is None or held[1] - held[0] != len(body):
        return BodyPart(status, body)
    start, end, total = held
    wanted = _wanted(asked, total or end) if asked else None
    if wanted is None:
        whole = start == 0 and end == total
        return BodyPart(200, body) if whole else BodyPart(206, body, _content_range(start, end, total))
    first, last = wanted
    if not start <= first < end or last <= first:
        return BodyPart(416, b"", f"bytes */{end if total is None else total}")
    last = min(last, end)
    return BodyPart(206, body[first - start : last - start], _content_range(first, last, total))


def _wanted(asked: str, total: int) -> tuple[int, int] | None:
    """Start and end of a range over a file of `total` bytes; None where it is no single range."""
    found = _RANGE.fullmatch(asked.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        return max(0, total - int(found[2])), total
    first = int(found[1])
    last = int(found[2]) + 1 if found[2] else total
    return (first, min(last, total)) if not found[2] or last > first else None


def _content_range(start: int, end: int, total: int | None) -> str:
    return f"bytes {start}-{end - 1}/{'*' if total is None else total}"
