"""Whether the answer to a HEAD request settles a check without a download. Pure."""

from __future__ import annotations

from letopis.model import FailureKind, Headers, Response, header
from letopis.visit.known import DIGESTS, Known

_FINAL = frozenset(
    (FailureKind.DNS, FailureKind.CONNECT, FailureKind.TLS, FailureKind.TIMEOUT, FailureKind.FORBIDDEN_ADDRESS)
)
"""Failures that another method would meet as well."""


def header_suffices(told: Response, known: Known) -> bool:
    """True when no GET is needed: nothing changed by the header's word, or nothing can be had now.

    An error status settles nothing, since many servers know no HEAD; neither
    does a header that names no validator, or one of another address.
    """
    if told.failure is not None:
        return told.failure.kind in _FINAL
    if told.status == 304:
        return True
    if not told.available or told.status >= 300 or told.final_url != known.final_url:
        return False
    return says_same(known, told.headers)


def says_same(known: Known, headers: Headers) -> bool:
    """Whether a header names the content that is known: by entity tag, else digest, else date and length."""
    tag = header(headers, "etag")
    if tag or known.etag:
        return tag == known.etag
    length = header(headers, "content-length")
    if not length or length != header(known.headers, "content-length"):
        return False
    digests = _trusted(known.headers, known)
    if digests:
        return digests <= _trusted(headers, known)
    date = header(headers, "last-modified")
    return bool(date) and date == known.last_modified


def _trusted(headers: Headers, known: Known) -> set[tuple[str, str]]:
    return {
        (name.lower(), value)
        for name, value in headers
        if name.lower() in DIGESTS and name.lower() not in known.distrusted
    }
