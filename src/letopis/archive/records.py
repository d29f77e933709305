"""What is stored about a capture: its digests, the note in its pack record, the details of its row.

These are pure functions from a check or a put to the stored values.
"""

from __future__ import annotations

import binascii
import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from blake3 import blake3

from letopis.archive.outside_values import (
    MOST_ROWS,
    block_from_outside,
    hop_from_outside,
    list_from_outside,
    number_from_outside,
    text_from_outside,
    whole_from_outside,
)
from letopis.archive.requests import PageReference, RequestReference
from letopis.catalog.contents import VolatileFields, headers_json, with_volatile_fields
from letopis.errors import UsageError
from letopis.model import (
    Change,
    FailureKind,
    Headers,
    Hop,
    Observation,
    Outcome,
    Put,
    Response,
    SentRequest,
    SetMember,
    WholePage,
    as_moment,
    from_millis,
    http_date,
    to_millis,
)
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


_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_NEAR_SECONDS = 100_000
_encode_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


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


class CheckDetails(NamedTuple):
    """Facts of a row that have no column."""

    final_url: str = ""
    hops: tuple[Hop, ...] = ()
    error: str = ""
    warnings: tuple[str, ...] = ()
    score: float | None = None
    blocks: tuple[str, ...] = ()
    length: int | None = None
    failure: str = ""
    reason: str = ""
    muted: tuple[str, ...] = ()
    own: tuple[tuple[int, str, str | int], ...] | None = None
    """Header fields that differ in its shared record: place, name, value; a date as seconds after the check."""
    request: RequestReference | None = None
    page: PageReference | None = None

    def failure_kind(self, status: int) -> str:
        """What went wrong, in one word; `http` if the answer is an error, empty if nothing did."""
        return self.failure or ("http" if status >= 400 else "")

    def pack(self, request: RequestReference | None = None, page: PageReference | None = None) -> str | None:
        """JSON without what is empty, or None if everything is; with `request` and `page` if it has none yet."""
        request, page = self.request or request, self.page or page
        kept = {} if self[:_FOUND_FIELDS] == NO_DETAILS[:_FOUND_FIELDS] else self._found()
        if self.own is not None:
            kept["own"] = self.own
        if request is not None:
            kept["r"] = request.values()
        if page is not None:
            kept["p"] = page
        return _encode_json(kept) if kept else None

    def _found(self) -> dict[str, Any]:
        """The results of the check, without what is empty."""
        fields: dict[str, Any] = {
            "final": self.final_url,
            "hops": [[hop.url, hop.status, hop.location, hop.ip, hop.headers] for hop in self.hops],
            "error": self.error,
            "warnings": self.warnings,
            "score": self.score,
            "blocks": self.blocks,
            "length": self.length,
            "failure": self.failure,
            "why": self.reason,
            "muted": self.muted,
        }
        return {name: value for name, value in fields.items() if value not in ("", [], (), None)}

    @classmethod
    def unpack(cls, text: str | None) -> CheckDetails:
        """The inverse of `pack`."""
        if not text:
            return cls()
        fields = json.loads(text)
        return cls(
            final_url=fields.get("final", ""),
            hops=tuple(_hop(*row) for row in fields.get("hops", ())),
            error=fields.get("error", ""),
            warnings=tuple(fields.get("warnings", ())),
            score=fields.get("score"),
            blocks=tuple(fields.get("blocks", ())),
            length=fields.get("length"),
            failure=fields.get("failure", ""),
            reason=fields.get("why", ""),
            muted=tuple(fields.get("muted", ())),
            own=tuple((place, name, value) for place, name, value in fields["own"]) if "own" in fields else None,
            request=RequestReference.of_values(fields["r"]) if "r" in fields else None,
            page=PageReference.of_values(fields["p"]) if "p" in fields else None,
        )

    @classmethod
    def from_outside(cls, fields: Any) -> CheckDetails:
        """Details from an untrusted source, in the form of `pack`; ValueError unless all are valid.

        Numbers of records, which are valid only in their own catalogue, are skipped.
        """
        if not isinstance(fields, dict):
            raise ValueError("not an object")
        score, length = fields.get("score"), fields.get("length")
        return cls(
            final_url=text_from_outside(fields.get("final", "")),
            hops=tuple(hop_from_outside(row) for row in list_from_outside(fields.get("hops", ()))),
            error=text_from_outside(fields.get("error", "")),
            warnings=tuple(text_from_outside(one) for one in list_from_outside(fields.get("warnings", ()))),
            score=None if score is None else number_from_outside(score),
            blocks=tuple(block_from_outside(one) for one in list_from_outside(fields.get("blocks", ()))),
            length=None if length is None else whole_from_outside(length),
            failure=FailureKind(fields["failure"]).value if fields.get("failure") else "",
            reason=text_from_outside(fields.get("why", "")),
            muted=tuple(text_from_outside(one) for one in list_from_outside(fields.get("muted", ()))),
            own=tuple(_own_from_outside(row) for row in list_from_outside(fields["own"])) if "own" in fields else None,
        )

    def with_own(self, own: VolatileFields | None, time: int) -> CheckDetails:
        """With the fields of an answer that differ from the shared record of its headers."""
        if own is None:
            return self
        return self._replace(own=tuple((place, name, _short_date(name, value, time)) for place, name, value in own))


def own_headers(shared: Headers, extra: str | None, time: int) -> Headers:
    """The headers of one answer: those of the shared record, with the fields that differ."""
    if extra is None or '"own"' not in extra:
        return shared
    own = json.loads(extra).get("own", ())
    fields = tuple((place, name, _long_date(value, time)) for place, name, value in own)
    return with_volatile_fields(shared, fields)


def _short_date(name: str, value: str, time: int) -> str | int:
    """A date near its check takes few bytes instead of thirty."""
    if name.lower() != "date":
        return value
    try:
        seconds = 0 if value == _long_date(0, time) else _seconds_of(value) - time // 1000
        return seconds if abs(seconds) < _NEAR_SECONDS and _long_date(seconds, time) == value else value
    except (ValueError, TypeError, OverflowError):
        return value


def _seconds_of(date: str) -> int:
    """The time of a date in the form that HTTP prefers; a parser for all forms loads slowly."""
    month = _MONTHS.index(date[8:11]) // 3 + 1
    hour, minute, second = (int(date[at : at + 2]) for at in (17, 20, 23))
    return int(datetime(int(date[12:16]), month, int(date[5:7]), hour, minute, second, tzinfo=UTC).timestamp())


def _long_date(value: str | int, time: int) -> str:
    return http_date(from_millis((time // 1000 + value) * 1000)) if isinstance(value, int) else value


NO_DETAILS = CheckDetails()
"""Of most looks."""
_FOUND_FIELDS = CheckDetails._fields.index("own")
"""The number of fields with the results of a check; those after them say how it was made."""


def _own_from_outside(row: Any) -> tuple[int, str, str | int]:
    place, name, value = list_from_outside(row)
    if type(value) is int and abs(value) >= _NEAR_SECONDS:
        raise ValueError("not a date near its check")
    shown = value if type(value) is int else text_from_outside(value)
    return whole_from_outside(place, MOST_ROWS), text_from_outside(name), shown


def redirects_of(extra: str | None) -> tuple[Hop, ...]:
    """The redirects that a check followed, first to last; empty where it followed none.

    Lists ask for those of thousands of rows: details that cannot name one are not parsed.
    """
    if extra is None or '"hops"' not in extra:
        return ()
    return tuple(_hop(*row) for row in json.loads(extra).get("hops", ()))


def _hop(url: str, status: int, location: str, ip: str, headers: list[list[str]]) -> Hop:
    return Hop(url, status, location, ip, tuple((name, value) for name, value in headers))


BLOCK_LETTERS = 120
"""How much of an added or removed text a check keeps."""
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


def details_of(look: Observation) -> CheckDetails:
    """The details of the row of this check."""
    response, change = look.response, look.change
    if _says_nothing(look):
        return NO_DETAILS
    return CheckDetails(
        final_url=response.final_url if response.final_url != response.url else "",
        hops=response.hops,
        error=response.failure.message if response.failure else "",
        warnings=response.warnings,
        score=round(change.score, 4) if change and change.meaningful is not None else None,
        length=_content_length(response) if look.outcome is Outcome.TOO_LARGE else None,
        failure=response.failure.kind.value if response.failure else "",
    )._replace(**_judged(change) if change else {})


def with_verdict(details: CheckDetails, change: Change) -> CheckDetails:
    """The details of a version with a verdict that was reached after it was recorded."""
    score = round(change.score, 4) if change.meaningful is not None else None
    return details._replace(score=score, **_judged(change))


def _judged(change: Change) -> dict[str, Any]:
    """What a row keeps of a verdict besides the score."""
    return {
        "blocks": tuple(f"{part.action} {part.kind}: {part.text[:BLOCK_LETTERS]}" for part in change.blocks[:8]),
        "reason": change.reason,
        "muted": tuple(
            f"{part.why}: {part.text[:80]}" for part in sorted(change.muted, key=lambda one: one.action)[:8]
        ),
    }


def _says_nothing(look: Observation) -> bool:
    """The same bytes at the same place: the outcome already says that nothing changed."""
    response, change = look.response, look.change
    moved = response.final_url != response.url or response.hops
    return not ((change and not change.same_bytes) or moved or response.failure or response.warnings)


def _content_length(response: Response) -> int | None:
    length = response.header("content-length")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 16 else None
