"""Digests that servers send: to skip a download, and to be checked against the content."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from letopis.model.web import Headers, header

DIGEST_FIELDS = frozenset({"content-md5", "digest", "repr-digest", "content-digest"})
_ALGORITHMS = {"md5": "md5", "sha": "sha1", "sha-256": "sha256", "sha-512": "sha512"}
_SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}


class Claim(NamedTuple):
    """One digest that a header field claims for the content."""

    field: str
    algorithm: str
    value: bytes


def claims(headers: Headers) -> list[Claim]:
    """Every digest in the fields that we can compute; malformed ones are left out."""
    return [claim for name, value in headers if name.lower() in DIGEST_FIELDS for claim in _of_field(name, value)]


def mismatches(headers: Headers, *forms: bytes) -> tuple[str, ...]:
    """A warning for each field whose digest fits none of the forms of the body.

    The forms are the body as it travelled and as it was decoded: by the
    letter the former counts, but servers that compress on the way out send
    the digest of the latter.
    """
    wrong = [claim.field for claim in claims(headers) if not any(_digest(claim, form) == claim.value for form in forms)]
    return tuple(f"the header {field} does not fit the content" for field in dict.fromkeys(wrong))


def repeats(first: Mapping[str, str], known: Headers) -> bool:
    """Whether an answer's length and digests are those of the stored version.

    `first` has the answer's fields by lower-case name. True only when `known`
    has Content-Length and a digest, and the answer repeats the length and
    every digest field of it exactly.
    """
    length = header(known, "content-length")
    digests = [(name, value) for name, value in known if name.lower() in DIGEST_FIELDS and value]
    if not length or not digests or first.get("content-length") != length:
        return False
    return all(first.get(name.lower()) == value for name, value in digests)


def _digest(claim: Claim, form: bytes) -> bytes:
    return hashlib.new(claim.algorithm, form, usedforsecurity=False).digest()


def _of_field(name: str, value: str) -> Iterator[Claim]:
    parts = [f"md5={value}"] if name.lower() == "content-md5" else value.split(",")
    for part in parts:
        label, _, coded = part.strip().partition("=")
        algorithm = _ALGORITHMS.get(label.strip().lower())
        raw = _raw(coded.split(";", 1)[0].strip().strip(":"))
        if algorithm and len(raw) == _SIZES[algorithm]:
            yield Claim(name, algorithm, raw)


def _raw(coded: str) -> bytes:
    try:
        return base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError):
        return b""
