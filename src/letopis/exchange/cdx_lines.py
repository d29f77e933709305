"""Lines of CDXJ: a sorted key, 14 digits, and what an index says of a capture."""

from __future__ import annotations

import json
from typing import NamedTuple

from letopis.extract.sniff import bare_type
from letopis.model import Check, Outcome, header, stamp14
from letopis.urls import surt

REVISIT = "warc/revisit"
EMPTY_DIGEST = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""SHA-1 of nothing: what a redirect carried of its own."""


class Located(NamedTuple):
    """A file and the part of it that holds a record."""

    filename: str
    offset: int
    length: int


def capture_line(check: Check, digest: str, length: int) -> str:
    """The line of a check that got an answer, as the archive's own CDX tells it.

    A redirected check is a redirect; one that found nothing new is a revisit without a status of its own.
    """
    fields = {"url": check.url}
    if check.redirects:
        hop = check.redirects[0]
        fields |= _told(header(hop.headers, "content-type"), str(hop.status), EMPTY_DIGEST)
        length = 0
    elif is_revisit(check):
        fields |= {"mime": REVISIT, "digest": digest or "-"}
    else:
        fields |= _told(check.content_type, str(check.status), digest)
    return _line(check, fields | {"length": str(length)})


def record_line(check: Check, digest: str, where: Located) -> str:
    """The line of a WARC record, as indexers make it of the file."""
    mime = REVISIT if is_revisit(check) else check.content_type
    place = {"length": str(where.length), "offset": str(where.offset), "filename": where.filename}
    digest = f"sha1:{digest}" if digest else "-"
    return _line(check, {"url": check.url} | _told(mime, str(check.status), digest) | place)


def is_revisit(check: Check) -> bool:
    """Whether a check found again what was already there."""
    return check.outcome is Outcome.UNCHANGED and (check.status < 300 or check.status == 304)


def _told(content_type: str, status: str, digest: str) -> dict[str, str]:
    words = bare_type(content_type).split()
    return {"mime": words[0] if words else "unk", "status": status, "digest": digest}


def _line(check: Check, fields: dict[str, str]) -> str:
    return f"{surt(check.url)} {stamp14(check.checked_at)} {json.dumps(fields)}"
