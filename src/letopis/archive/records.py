"""What is stored about a capture: its digests, and the note in its pack record.

These are pure functions from a check or a put to the stored values.
"""

from __future__ import annotations

import binascii
import hashlib
import json
from collections.abc import Iterator
from datetime import datetime

from blake3 import blake3

from letopis.archive.details import NO_DETAILS, CheckDetails, found_details
from letopis.catalog.contents import headers_json
from letopis.errors import UsageError
from letopis.model import Headers, Observation, Outcome, Put, SentRequest, SetMember, WholePage, as_moment, to_millis
from letopis.tuples import NamedTuple

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


class Identity(NamedTuple):
    """SHA-1, as CDX and WARC require, and 48 bits of BLAKE3.

    SHA-1 alone can be forged; both together cannot with any known effort. SQLite stores six bytes in six bytes, and
    every version has them.
    """

    sha1: bytes
    key: int

    @property
    def text(self) -> str:
        """The SHA-1 in base32, as everywhere in web archives."""
        return digest_text(self.sha1)


def identify(body: bytes) -> Identity:
    """The identity of a content."""
    return Identity(hashlib.sha1(body, usedforsecurity=False).digest(), identity_key(body))


def identity_key(body: bytes) -> int:
    """The half of an identity that costs less: enough to prove that bytes are the recorded ones."""
    return int.from_bytes(blake3(body).digest(6), "big", signed=True)


BASE32_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_LETTERS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef", _ALPHABET.encode())


def _spreading() -> Iterator[tuple[int, int]]:
    """How 32 groups of five bits are spread to six bits each: which bits move, and what to multiply them by and add."""
    places = [5 * group for group in range(32)]
    for step in (16, 8, 4, 2, 1):
        moved = [group for group in range(32) if group & step]
        yield sum(31 << places[group] for group in moved), (1 << step) - 1
        for group in moved:
            places[group] += step


_SPREADING = tuple(_spreading())


def digest_text(sha1: bytes) -> str:
    """Base32 of a SHA-1, by way of base64: every read needs it, and that of the library takes 50 us."""
    number = int.from_bytes(sha1[-20:], "big")
    for moved, factor in _SPREADING:
        number += (number & moved) * factor
    return binascii.b2a_base64(number.to_bytes(24, "big"), newline=False).translate(_LETTERS).decode()


class PackNote(NamedTuple):
    """Status and headers of the response that contained a content."""

    status: int
    headers: Headers
    version: bool = True
    """False for bodies of errors and redirects, which never become versions."""

    def pack(self) -> bytes:
        """Compact JSON; readers ignore further elements."""
        return b"[%d,%b%b]" % (self.status, headers_json(self.headers), b"" if self.version else b",0")

    @classmethod
    def unpack(cls, data: bytes) -> PackNote:
        """The inverse of `pack`."""
        status, headers, *kind = json.loads(data.decode("utf-8", "surrogatepass"))
        return cls(int(status), tuple((name, value) for name, value in headers), version=not kind)


ERROR_BODY_BYTES = 64 * 1024
"""How much of an error answer's body is kept with its check."""
SENT_PREFIX = b"sent "
"""In the packs, the prefix of the key of an answer that a browser made a version of; its URL follows."""
SOURCE_PREFIX = b"source "
"""The same for bodies as they were in imported files; the URL of their check follows."""


SET_PREFIXES = (b"set ", b"screenshot ", b"text ")
"""The same for the parts of capture sets: the URLs of the members, the picture, the text; the page's URL follows."""
_BESIDE = (SENT_PREFIX, SOURCE_PREFIX, *SET_PREFIXES)
PUBLISHED_KINDS = tuple(prefix.decode().strip() for prefix in (SENT_PREFIX, *SET_PREFIXES))
"""The published kinds of bodies that are stored beside checks, by the words of their keys."""


def is_beside(key: bytes) -> bool:
    """Whether a key of the packs is that of a body beside a check, and not of a version."""
    return key.startswith(_BESIDE)


def set_part_of_key(key: bytes) -> int | None:
    """Which part of a set has a key of the packs; None if it is none."""
    return next((part for part, prefix in enumerate(SET_PREFIXES) if key.startswith(prefix)), None)


def url_of_key(key: bytes) -> str:
    """The URL that a key of the packs belongs to."""
    prefix = next((prefix for prefix in _BESIDE if key.startswith(prefix)), b"")
    return key.removeprefix(prefix).decode()


class ServerResponse(NamedTuple):
    """The response of the server from which a browser rendered a version; it is kept if that version is."""

    headers: Headers
    body: bytes


class CaptureSource(NamedTuple):
    """The imported record of a capture, without its body.

    `record` is a key of its id, 0 if it has none. `body` is the original body if that of the capture differs;
    `digest` is the payload digest that the writer of the file declared.
    """

    record: int
    data: bytes
    body: bytes | None = None
    digest: bytes = b""


class NewSet(NamedTuple):
    """The parts of the set of a page: its resources, those from earlier checks, the picture and the text."""

    members: tuple[NewCapture, ...]
    reused: tuple[SetMember, ...]
    screenshot: bytes
    text: str


class NewCapture(NamedTuple):
    """One check, reduced to what is stored.

    `versioned` bodies may become versions; others (errors, redirects) stay with their check. Without a body the outcome
    says what happened. `dated` captures may be older than what is already known. `page` is the position, in the batch,
    of the page whose set it belongs to.
    """

    url: str
    time: int
    status: int
    headers: Headers
    body: bytes | None
    outcome: Outcome
    versioned: bool = True
    dated: bool = False
    identity: Identity | None = None
    details: CheckDetails = NO_DETAILS
    meaningful: bool | None = None
    title: str | None = None
    as_sent: ServerResponse | None = None
    source: CaptureSource | None = None
    whole: NewSet | None = None
    request: SentRequest | None = None
    page: int | None = None


class RecordedCapture(NamedTuple):
    """The result of recording a capture. `version` is the id of the current version afterwards, `members` are those
    of its set.
    """

    url: str
    resource: int
    time: int
    outcome: Outcome
    number: int | None
    version: int | None
    identity: Identity | None
    first: bool
    members: tuple[SetMember, ...] = ()


_VERSIONED = (Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED)


def capture_of_put(put: Put, url: str, now: datetime) -> NewCapture:
    """A put counts as a capture with status 200."""
    if not isinstance(put.body, bytes | bytearray | memoryview):
        raise UsageError(f"the body of {url} is of type {type(put.body).__name__}; give bytes, such as text.encode()")
    return NewCapture(
        url=url,
        time=to_millis(now if put.at is None else as_moment(put.at, now)),
        status=200,
        headers=(("Content-Type", put.content_type),),
        body=bytes(put.body),
        outcome=Outcome.NEW,
        dated=put.at is not None,
    )


def details_of(look: Observation) -> CheckDetails:
    """The details of the row of this check."""
    return NO_DETAILS if _says_nothing(look) else found_details(look)


def _says_nothing(look: Observation) -> bool:
    """The same bytes at the same place: the outcome already says that nothing changed."""
    response, change = look.response, look.change
    moved = response.final_url != response.url or response.hops
    return not ((change and not change.same_bytes) or moved or response.failure or response.warnings)


def capture_of(look: Observation) -> NewCapture:
    """A check as the rows and bytes that are stored."""
    response, sent, status = look.response, look.response.as_sent, look.response.status
    has_content = 200 <= status < 300 and look.outcome in _VERSIONED and not response.skipped
    # By position, in half the time: this runs for every check.
    return NewCapture(
        response.url, to_millis(response.at), status, response.headers, _kept_body(look, has_content), look.outcome,
        has_content, look.dated, Identity(*look.identity) if look.identity is not None and has_content else None,
        details_of(look), look.change.meaningful if look.change else None, look.page.title if look.page else None,
        ServerResponse(sent.headers, sent.body) if sent and has_content else None, None,
        _new_set(look.whole) if look.whole is not None else None, response.request if status else None,
    )  # fmt: skip


def _new_set(whole: WholePage) -> NewSet:
    return NewSet(tuple(map(capture_of, whole.resources)), whole.reused, whole.screenshot, whole.text)


def _kept_body(look: Observation, has_content: bool) -> bytes | None:
    response = look.response
    if has_content:
        return response.body if look.keep_body else None
    if response.failure is not None and response.as_sent is not None:
        return response.as_sent.body or None  # a page that could not be rendered is kept as it was sent
    is_small_error = 0 < len(response.body) <= ERROR_BODY_BYTES and response.status >= 300
    return response.body if is_small_error else None
