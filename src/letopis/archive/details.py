"""The details of a check: the facts of its row that have no column, and how they are stored.

They are JSON without what is empty. The texts that a verdict names are most of it, and only who asks for the verdict
reads them: they are packed into one field.
"""

from __future__ import annotations

import base64
import json
import zlib
from datetime import UTC, datetime
from typing import Any

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
from letopis.catalog.contents import VolatileFields, with_volatile_fields
from letopis.catalog.database import storable_text
from letopis.model import Change, FailureKind, Headers, Hop, Observation, Outcome, Response, from_millis, http_date
from letopis.tuples import NamedTuple

_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_NEAR_SECONDS = 100_000
_encode_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
BLOCK_LETTERS = 120
"""How much of an added or removed text a check keeps."""


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
        kept = {} if self[:_FOUND_FIELDS] == NO_DETAILS[:_FOUND_FIELDS] else _with_packed_verdict(self._found())
        if self.own is not None:
            kept["own"] = self.own
        if request is not None:
            kept["r"] = request.stored()
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
        fields = _with_plain_verdict(json.loads(text))
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
            request=RequestReference.of_stored(fields["r"]) if "r" in fields else None,
            page=PageReference.of_values(fields["p"]) if "p" in fields else None,
        )

    @classmethod
    def from_outside(cls, fields: Any) -> CheckDetails:
        """Details from an untrusted source, in the form of `pack`; ValueError unless all are valid.

        Numbers of records, which are valid only in their own catalogue, are skipped. Only a catalogue packs a verdict.
        """
        if not isinstance(fields, dict) or _PACKED in fields:
            raise ValueError("not an object of plain values")
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


_VERDICT = ("score", "blocks", "why", "muted")
_PACKED = "z"
"""The field that these are in if the verdict names texts: deflated, in base85, which takes half the bytes."""
_USUAL_VERDICT = (
    b'{"score":0.0,"why":"same text"}"only identifier: counter: date: frequent changes, comes and goes: known item: '
    b'moved text, menus and frames, other signs, clocks and counters, labels"removed link: added link: removed cell: '
    b'added cell: removed item: added item: "],"why":"too little text: 2 added, 2 removed","muted":["{"score":1.0,'
    b'"blocks":["removed title: ","added title: ","removed h2: ","added h2: "],"why":"text: 1 added"}{"score":0.1,'
    b'"blocks":["removed paragraph: ","added paragraph: "],"why":"text: 1 added, 1 removed"}'
)
"""What most verdicts have in common, so that none has to spell it out. Part of the format: it never changes."""
_PACKER = zlib.compressobj(9, zlib.DEFLATED, -12, 5, zdict=_USUAL_VERDICT)
"""Has read only what is usual: copied for each verdict, as is the next one."""
_UNPACKER = zlib.decompressobj(-12, zdict=_USUAL_VERDICT)


def _with_packed_verdict(fields: dict[str, Any]) -> dict[str, Any]:
    """Details in which those of a verdict are one field, unless it names no texts or they are shorter as they are."""
    if "blocks" not in fields and "muted" not in fields:
        return fields
    text = storable_text(_encode_json({name: fields[name] for name in _VERDICT if name in fields})).encode()
    packer = _PACKER.copy()
    packed = base64.b85encode(packer.compress(text) + packer.flush()).decode()
    if len(packed) >= len(text):
        return fields
    return {_PACKED: packed} | {name: value for name, value in fields.items() if name not in _VERDICT}


def _with_plain_verdict(fields: dict[str, Any]) -> dict[str, Any]:
    """The inverse, for details of any release; ValueError for damaged ones."""
    if _PACKED not in fields:
        return fields
    try:
        verdict = json.loads(_UNPACKER.copy().decompress(base64.b85decode(fields.pop(_PACKED))))
    except zlib.error as error:
        raise ValueError("not a packed verdict") from error
    return {**fields, **verdict}


def packed_details(extra: str | None) -> str | None:
    """Details in the form of the catalogue."""
    if extra is None or ('"blocks":' not in extra and '"muted":' not in extra):
        return extra
    return _encode_json(_with_packed_verdict(json.loads(extra)))


def plain_details(extra: str | None) -> str | None:
    """Details in the form that is published, which every release reads: nothing in them is packed."""
    if extra is None or f'"{_PACKED}":' not in extra:
        return extra
    return _encode_json(_with_plain_verdict(json.loads(extra)))


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


def found_details(look: Observation) -> CheckDetails:
    """The details of the row of a check that found more than the same bytes at the same place."""
    response, change = look.response, look.change
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


def _content_length(response: Response) -> int | None:
    length = response.header("content-length")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 16 else None
