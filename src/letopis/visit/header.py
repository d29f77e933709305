"""Whether the answer to a HEAD request settles a check without a download. Pure."""

from __future__ import annotations

from letopis.model import FailureKind, Headers, Response
from letopis.visit.known import Known, validators_of

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
    told, before = validators_of(headers), known.told
    if told.etag or before.etag:
        return told.etag == before.etag
    if not told.length or told.length != before.length:
        return False
    digests = _named(known.trusted(known.headers))
    if digests:
        return digests <= _named(known.trusted(headers))
    return bool(told.last_modified) and told.last_modified == before.last_modified


def _named(fields: Headers) -> set[tuple[str, str]]:
    return {(name.lower(), value) for name, value in fields}
