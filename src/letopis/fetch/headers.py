"""Header blocks parsed and written, and the content digests that servers send in them."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from letopis.errors import SettingError
from letopis.model.web import Headers, header
from letopis.tuples import NamedTuple


class HeaderBlock(NamedTuple):
    """One header block: its fields in order, and the first value of each name in lower case."""

    status: int
    version: str
    fields: Headers
    first: dict[str, str]


def parse_header_block(lines: list[bytes]) -> HeaderBlock:
    """The block of these lines, its status line first.

    Order and spelling are kept; bytes become characters one to one
    (Latin-1), so that nothing is lost. Folded lines are joined by a blank.
    """
    status_line, *rest = b"".join(lines).decode("latin-1").split("\n")
    fields: list[tuple[str, str]] = []
    for line in rest:
        if line[:1] > " ":
            name, _, value = line.partition(":")
            fields.append((name, value.strip()))
        elif line:
            _unfold(fields, line)
    # Read backwards, so that the first of several fields of one name is the one that stays.
    first = {name.lower(): value for name, value in reversed(fields)}
    version, _, tail = status_line.partition(" ")
    code = tail[:3]
    status = int(code) if code.isascii() and code.isdecimal() else 0
    return HeaderBlock(status, version.removeprefix("HTTP/"), tuple(fields), first)


def _unfold(fields: list[tuple[str, str]], line: str) -> None:
    """Adds a continuation line to the field before it."""
    if fields:
        name, value = fields.pop()
        fields.append((name, f"{value} {line.strip()}".strip()))


def header_lines(headers: Headers) -> list[bytes]:
    """Request fields in the form libcurl wants; an empty value needs a semicolon there."""
    return [_header_line(name, value) for name, value in headers]


@lru_cache(maxsize=256)
def _header_line(name: str, value: str) -> bytes:
    """Remembered: nearly all requests send the same fields."""
    line = f"{name}: {value}" if value else f"{name};"
    return line.encode("latin-1", "replace")


_SAYS_WHAT_IS_WANTED = frozenset(
    {
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection",
        "content-type", "dnt", "from", "host", "if-modified-since", "if-none-match", "origin", "pragma", "priority",
        "range", "referer", "te", "upgrade-insecure-requests", "user-agent",
    }
)  # fmt: skip


@lru_cache(maxsize=256)
def _may_be_kept(name: str) -> bool:
    lower = name.lower()
    return lower in _SAYS_WHAT_IS_WANTED or lower.startswith("sec-")


def recordable_headers(headers: Headers) -> Headers:
    """Request fields that may be kept: those known to say what is wanted. Any other may prove who asks."""
    return tuple([field for field in headers if _may_be_kept(field[0])])


def is_sendable_header(name: str, value: str) -> bool:
    """No field may smuggle in another one, nor a second request."""
    both = name + value
    return bool(name) and ":" not in name and "\r" not in both and "\n" not in both and "\0" not in both


def headers_from_settings(lines: Iterable[str]) -> Headers:
    """Fields of the user's 'Name: value' lines, or SettingError."""
    fields = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not is_sendable_header(name.strip(), value):
            raise SettingError(f"fetch.headers has '{line}'; write each header as 'Name: value'")
        fields.append((name.strip(), value.strip()))
    return tuple(fields)


def merge_headers(*layers: Headers) -> Headers:
    """All fields; a name in a later layer replaces those of the layers before it."""
    result: list[tuple[str, str]] = []
    for layer in layers:
        names = {name.lower() for name, _ in layer}
        result = [field for field in result if field[0].lower() not in names] + list(layer)
    return tuple(field for field in result if is_sendable_header(*field))


DIGEST_FIELDS = frozenset({"content-md5", "digest", "repr-digest", "content-digest"})
_ALGORITHMS = {"md5": "md5", "sha": "sha1", "sha-256": "sha256", "sha-512": "sha512"}
_SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}


class DigestClaim(NamedTuple):
    """One digest that a header field claims for the content."""

    field: str
    algorithm: str
    value: bytes


def digest_claims(headers: Headers) -> list[DigestClaim]:
    """Every digest in the fields that Letopis can compute; malformed ones are left out."""
    return [
        claim for name, value in headers if name.lower() in DIGEST_FIELDS for claim in _claims_of_field(name, value)
    ]


def digest_mismatches(headers: Headers, *forms: bytes) -> tuple[str, ...]:
    """A warning for each field whose digest fits none of the forms of the body.

    The forms are the body as it travelled and as it was decoded: by the letter the former counts, but servers that
    compress on the way out send the digest of the latter.
    """
    wrong = [
        claim.field
        for claim in digest_claims(headers)
        if not any(_digest(claim, form) == claim.value for form in forms)
    ]
    return tuple(f"the header {field} does not fit the content" for field in dict.fromkeys(wrong))


def repeats_known_digests(first: Mapping[str, str], known: Headers) -> bool:
    """Whether an answer's length and digests are those of the stored version.

    `first` has the answer's fields by lower-case name. True only when `known` has Content-Length and a digest, and the
    answer repeats the length and every digest field of it exactly.
    """
    length = header(known, "content-length")
    digests = [(name, value) for name, value in known if name.lower() in DIGEST_FIELDS and value]
    if not length or not digests or first.get("content-length") != length:
        return False
    return all(first.get(name.lower()) == value for name, value in digests)


def _digest(claim: DigestClaim, form: bytes) -> bytes:
    return hashlib.new(claim.algorithm, form, usedforsecurity=False).digest()


def _claims_of_field(name: str, value: str) -> Iterator[DigestClaim]:
    parts = [f"md5={value}"] if name.lower() == "content-md5" else value.split(",")
    for part in parts:
        label, _, coded = part.strip().partition("=")
        algorithm = _ALGORITHMS.get(label.strip().lower())
        raw = _decoded_digest(coded.split(";", 1)[0].strip().strip(":"))
        if algorithm and len(raw) == _SIZES[algorithm]:
            yield DigestClaim(name, algorithm, raw)


def _decoded_digest(coded: str) -> bytes:
    try:
        return base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError):
        return b""
