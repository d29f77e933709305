"""WARC and ARC files of others, read: captures in the order of the file, with their own times.

Whatever a file says of a capture is kept beside it: its record as it stood there, its request, and other records
that tell of it.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from letopis.errors import BadUrl, UsageError
from letopis.exchange.captures import parse_check_facts
from letopis.exchange.kept_records import CAPTURE_TYPES, MAX_BESIDE, KeptRecord, parse_request, sent_request
from letopis.exchange.page_looks import INFO, PICTURES, TEXTS, LookFact, own_fact
from letopis.exchange.record_stream import (
    BREAKS_OFF,
    DAMAGED_MEMBER,
    NO_RECORD,
    WRONG_LENGTH,
    SourceRecord,
    is_arc,
    read_arc_records,
    read_records,
)
from letopis.exchange.sources import ImportedCapture, ImportReport, RevisitTarget
from letopis.exchange.warc_records import (
    CHECK_TYPE,
    MAX_HEAD,
    PAGE_ID,
    SOFTWARE_NAME,
    is_warc_name,
    page_id,
    parse_response,
    record_id,
    restored_headers,
)
from letopis.model import Headers, SentRequest, header
from letopis.urls import normalize
from letopis.urls.request_keys import record_url, request_url


def warcs_in_folder(folder: Path) -> list[Path]:
    """WARC files that `--warc-file` wrote into the folder of the mirror."""
    return sorted(file for file in folder.iterdir() if is_warc_name(file.name) and file.is_file())


MAX_FACTS = 1024 * 1024
_WEB = re.compile(r"<?\s*https?:", re.IGNORECASE)
_MADE = re.compile(r"([a-z][a-z0-9.+-]*(?::[a-z0-9.+-]+)*):(https?://.*)", re.IGNORECASE | re.DOTALL)
_MOST_HELD = 8
_MOST_OF_LOOK = 3
"""Records of a look of ours, the list of its resources last; without that they are captures like those of others."""
_MOST_REQUESTS = 64
_MOST_BESIDE = 64
_NO_BODY = (204, 304)
_LOOK_PARTS = (INFO, *PICTURES, *TEXTS)
_DAMAGE = (BREAKS_OFF, DAMAGED_MEMBER, NO_RECORD)
_TOLD_EVERY = 64
_UUID_VERSION = len("<urn:uuid:00000000-0000-")


def warc_captures(file: Path, report: ImportReport) -> Iterator[ImportedCapture]:
    """Responses, revisits and resources of a WARC or ARC file, in its order."""
    if not file.is_file():
        raise UsageError(f"there is no {file}; check the path")
    before = report.bytes_read
    with file.open("rb") as stream:
        found = arc_captures(stream, report) if is_arc(stream) else record_captures(stream, report)
        for number, capture in enumerate(found):
            if not number % _TOLD_EVERY:
                report.bytes_read = before + stream.tell()
            yield capture
    report.bytes_read = before + file.stat().st_size


def record_captures(stream: BinaryIO, report: ImportReport) -> Iterator[ImportedCapture]:
    """The same of a WARC file, or of a stream that holds whole records."""
    group, look = _RecordGroup(), list[tuple[SourceRecord, LookFact]]()
    for record in read_records(stream):
        sound = _sound(record, report) if record.fault else record
        if sound is None:
            continue
        said = sound.by_name()
        kind = said.get("warc-type", "").lower()
        fact = _own_fact(sound) if kind == "resource" else None
        if look and (fact is None or fact.page != look[0][1].page or len(look) >= _MOST_OF_LOOK):
            yield from group.take([record for record, _ in look], report)
            look.clear()
        if fact is not None:
            look.append((sound, fact))
            if fact.part == INFO:
                yield from (ImportedCapture(one.page, said["warc-date"], 0, (), b"", look=one) for _, one in look)
                look.clear()
        elif kind == "metadata" and said.get("content-type") == CHECK_TYPE:
            yield from group.released(0, report)
            facts = parse_check_facts(sound.block[:MAX_FACTS]) or {}
            yield ImportedCapture(_target(sound), sound.field("warc-date"), 0, (), b"", facts=facts)
        elif kind == "conversion" and group.show(sound):
            continue
        elif (kind in CAPTURE_TYPES and _WEB.match(said.get("warc-target-uri", ""))) or made_of_page(sound):
            yield from group.take([sound], report)
        elif not (kind == "warcinfo" and SOFTWARE_NAME.encode() in sound.block[:200]):
            group.add_beside(sound, report)
    yield from group.take([record for record, _ in look], report)
    yield from group.released(0, report)
    group.refuse_left(report)


def _target(record: SourceRecord) -> str:
    return record.field("warc-target-uri").strip("<> ")


def made_of_page(record: SourceRecord) -> str:
    """The URL under which a picture or text of a page is kept; empty for other records.

    That is the text of a conversion, and the resources that crawlers write of a page as they saw it: `urn:view:`,
    `urn:text:`, `screenshot:` and the like, in front of its address.
    """
    kind = record.field("warc-type").lower()
    if kind not in ("resource", "conversion"):
        return ""
    target = _target(record)
    named = _MADE.fullmatch(target)
    if named:
        return record_url(named[2], named[1])
    return record_url(target, kind) if kind == "conversion" and _WEB.match(target) else ""


def _own_fact(record: SourceRecord) -> LookFact | None:
    """What a record of Letopis says about a look at a page; None for all others."""
    if record.fault or not _is_own(record):
        return None
    date, ident = record.field("warc-date"), record.field(PAGE_ID.lower())
    return own_fact(record.field("warc-target-uri"), date, ident, record.block)


def _sound(record: SourceRecord, report: ImportReport) -> SourceRecord | None:
    """A record with a fault as far as its block can be trusted; the fault is reported."""
    where = record.field("warc-target-uri") or record.field("url") or "a record without an address"
    if record.fault == BREAKS_OFF and (whole := _whole_by_length(record.block)) is not None:
        return record._replace(block=whole, fault="")
    if record.fault in _DAMAGE:
        report.break_off(record.fault, where)
        return None
    report.refuse(record.fault, where)
    return record if record.fault == WRONG_LENGTH else None


def _whole_by_length(block: bytes) -> bytes | None:
    """A message whose record breaks off, when it is whole by its own length or has no body; else None."""
    status, headers, body = parse_response(block)
    length = header(headers, "content-length")
    if 300 <= status < 400 or status in _NO_BODY:
        length = length or "0"
    if not status or not (length.isascii() and length.isdigit()) or len(length) > 12 or len(body) < int(length):
        return None
    return block[: len(block) - len(body) + int(length)]


_TIES = ("warc-concurrent-to", "warc-refers-to")


class _Tied:
    """A record with what it says of others, found once: each is held against all that wait."""

    __slots__ = ("concurrent", "id", "is_request", "names", "record", "target")

    def __init__(self, record: SourceRecord) -> None:
        said = record.by_name()
        self.record = record
        self.id = said.get("warc-record-id", "")
        self.target = said.get("warc-target-uri", "").strip("<> ")
        self.is_request = said.get("warc-type") == "request"
        self.concurrent = _values_of(record, _TIES[0]) if _TIES[0] in said else ()
        self.names = self.concurrent + _values_of(record, _TIES[1]) if _TIES[1] in said else self.concurrent

    def belongs_to(self, capture: _Tied) -> bool:
        """Whether both describe the same exchange: one names the other, or, if neither does, by their URL."""
        if capture.id in self.names or self.id in capture.concurrent:
            return True
        return self.is_request and not self.names and capture.target == self.target


def _values_of(record: SourceRecord, name: str) -> tuple[str, ...]:
    """All values of a field."""
    return tuple([value for key, value in record.fields if key.lower() == name])


class _HeldCapture:
    """A capture while the records that belong to it are collected."""

    def __init__(self, tied: _Tied) -> None:
        self.tied = tied
        self.record = tied.record
        self.beside: list[SourceRecord] = []
        self.request: SourceRecord | None = None
        self.shown: SourceRecord | None = None


class _RecordGroup:
    """Puts requests and other records to the captures they belong to: those they name, else those beside them.

    Captures wait until some more have been read, since writers put requests before or after answers.
    """

    def __init__(self) -> None:
        self._held: deque[_HeldCapture] = deque()
        self._early: OrderedDict[int, _Tied] = OrderedDict()
        self._count = 0

    def take(self, records: Iterable[SourceRecord], report: ImportReport) -> Iterator[ImportedCapture]:
        """Captures; answers with those that wait no longer."""
        for record in records:
            self._add(record, report)
            yield from self.released(_MOST_HELD, report)

    def _add(self, record: SourceRecord, report: ImportReport) -> None:
        """A capture, with what came before it and belongs to it."""
        held = _HeldCapture(_Tied(record))
        for number, early in list(self._early.items()) if self._early else ():
            if not early.is_request or early.belongs_to(held.tied):
                self._attach(held, self._early.pop(number), report)
        self._held.append(held)

    def show(self, record: SourceRecord) -> bool:
        """Whether a record is what we wrote of a browser's version of an answer that waits; it goes with that."""
        refers = record.field("warc-refers-to")
        held = next((one for one in self._held if one.tied.id == refers and one.shown is None), None)
        if held is None or record.fault or not _is_own(record) or not _is_own(held.record):
            return False
        held.shown = record
        return True

    def add_beside(self, record: SourceRecord, report: ImportReport) -> None:
        """A record that is no capture of the web."""
        if len(record.block) > MAX_BESIDE:
            report.refuse("not a capture, and too large to be kept with one", _target(record))
            return
        tied = _Tied(record)
        owners = (one for one in reversed(self._held) if tied.belongs_to(one.tied))
        first = owner = next(owners, None)
        while owner is not None and owner.request is not None:
            owner = next(owners, None)
        owner = owner or first
        if owner is None and not tied.is_request and record.field("warc-type") != "warcinfo" and self._held:
            owner = self._held[-1]
        if owner is not None:
            self._attach(owner, tied, report)
            return
        self._count += 1
        self._early[self._count] = tied
        if len(self._early) > _MOST_REQUESTS:
            self._refuse(self._early.popitem(last=False)[1].record, report)

    def _attach(self, held: _HeldCapture, tied: _Tied, report: ImportReport) -> None:
        if tied.is_request and held.request is None and tied.belongs_to(held.tied):
            held.request = tied.record
        if len(held.beside) < _MOST_BESIDE:
            held.beside.append(tied.record)
        else:
            report.refuse(f"more than {_MOST_BESIDE} records with one capture", tied.target)

    def released(self, most: int, report: ImportReport) -> Iterator[ImportedCapture]:
        """Those that wait no longer, in their order."""
        while self._held and (len(self._held) > most):
            held = self._held.popleft()
            if not most and not self._held:
                for number in list(self._early):
                    self._attach(held, self._early.pop(number), report)
            found = _capture(held)
            yield found
            if held.shown is not None and found.shown is None:
                yield _capture(_HeldCapture(_Tied(held.shown)))

    def refuse_left(self, report: ImportReport) -> None:
        """Names what belongs to no capture."""
        while self._early:
            self._refuse(self._early.popitem()[1].record, report)

    def _refuse(self, record: SourceRecord, report: ImportReport) -> None:
        kind = record.field("warc-type")
        if kind == "request":
            report.refuse("a request without its answer", _target(record))
        elif kind in CAPTURE_TYPES:
            report.refuse("no web address (http or https)", _target(record))


def _capture(held: _HeldCapture) -> ImportedCapture:
    """The capture of a record with all that belongs to it."""
    record, said = held.record, held.record.by_name()
    kind = said.get("warc-type", "").lower()
    content_type = said.get("content-type", "")
    if kind in ("resource", "conversion") and not content_type.startswith("application/http"):
        status, headers, body = 200, _resource_headers(content_type), record.block
    else:
        status, headers, body = _answer(record.block)
    own = _is_own(record)
    asked = _own_request(held) if own else None
    request = None
    if held.request is not None and asked is None and not held.request.block.startswith(b"GET "):
        request = parse_request(held.request.block)  # what is asked for by GET is named by its address alone
    head = record.block[: len(record.block) - len(body)]
    revisits = None
    if kind == "revisit":
        revisits = RevisitTarget(
            said.get("warc-payload-digest", ""),
            said.get("warc-refers-to-target-uri", "").strip("<> "),
            said.get("warc-refers-to-date", ""),
        )
        head, body, status = record.block, b"", status if headers or status else 0
    target = held.tied.target
    made = made_of_page(record) if kind != "response" else ""
    url = made or request_url(target, request)
    others = [one for one in held.beside if asked is None or one is not held.request]
    is_made_anew = own and not others and _is_no_member(record)
    # An address without a request of ours is one that another source told.
    is_made_anew = is_made_anew and (asked is not None or not said.get("warc-ip-address"))
    kept = None if is_made_anew else KeptRecord(record.version, record.fields, head, tuple(held.beside), record.lines)
    return ImportedCapture(
        url,
        said.get("warc-date", ""),
        status,
        restored_headers(headers) if kept is not None and own else headers,
        body,
        revisits,
        digest=said.get("warc-payload-digest", ""),
        record=kept,
        page=target if url != target and not made else "",
        request=asked if kept is None else None,
        shown=_shown(held) if kept is None else None,
        look=_look(record, made, own=own),
    )


def _shown(held: _HeldCapture) -> tuple[str, bytes] | None:
    return (held.shown.field("content-type"), held.shown.block) if held.shown is not None else None


def _look(record: SourceRecord, made: str, *, own: bool) -> LookFact | None:
    """What a record of others says of a look at a page; those of ours are listed beside their page."""
    ident = record.field(PAGE_ID.lower())
    if not made:
        return LookFact(ident) if ident and not own else None
    scheme, _, page = _target(record).partition(":http")
    if scheme not in _LOOK_PARTS:
        return None
    try:
        return LookFact(ident, normalize(f"http{page}"), scheme, record.block if scheme == INFO else b"")
    except BadUrl:
        return None


def _resource_headers(content_type: str) -> Headers:
    return (("Content-Type", content_type),)


def _answer(block: bytes) -> tuple[int, Headers, bytes]:
    """The message of a block; the blank line behind a head without a body may be missing."""
    status, headers, body = parse_response(block)
    if status or not block.startswith(b"HTTP/") or len(block) > MAX_HEAD:
        return status, headers, body
    return *parse_response(block + b"\r\n\r\n")[:2], b""


def _own_request(held: _HeldCapture) -> SentRequest | None:
    """The request of an answer of ours; None where it is that of somebody else."""
    if held.request is None or not _is_own(held.request) or not _is_no_member(held.record):
        return None
    return sent_request(held.request, held.record.field("warc-record-id"), held.record.field(PAGE_ID.lower()))


def _is_no_member(record: SourceRecord) -> bool:
    """Whether a record of ours belongs to no page, or is the one of the page itself."""
    ident = record.field(PAGE_ID.lower())
    return not ident or ident == page_id(record.field("warc-target-uri"), record.field("warc-date"))


def _is_own(record: SourceRecord) -> bool:
    name = record.field("warc-record-id")
    if name[_UUID_VERSION : _UUID_VERSION + 1] != "5":
        return False
    return name == record_id(record.field("warc-type"), record.field("warc-target-uri"), record.field("warc-date"))


# ARC

_ARC_TYPES = {"http": "application/http; msgtype=response"}


def arc_captures(stream: BinaryIO, report: ImportReport) -> Iterator[ImportedCapture]:
    """Captures of an ARC file; what it says of each is kept in the words of WARC."""
    for record in read_arc_records(stream):
        url = record.field("url")
        if record.fault != DAMAGED_MEMBER and not _WEB.match(url):
            report.refuse("no web address (http or https)", url)
            continue
        sound = _sound(record, report) if record.fault else record
        if sound is None:
            continue
        status, headers, body = parse_response(sound.block.lstrip(b"\r\n"))
        if not status:
            report.refuse("no readable status", url)
            continue
        block = sound.block.lstrip(b"\r\n")
        kept = KeptRecord("WARC/1.0", _arc_fields(record), block[: len(block) - len(body)])
        yield ImportedCapture(url, _iso_date(record.field("archive-date")), status, headers, body, record=kept)


def _arc_fields(record: SourceRecord) -> tuple[tuple[str, str], ...]:
    url, date = record.field("url"), _iso_date(record.field("archive-date"))
    fields = [
        ("WARC-Type", "response"),
        ("WARC-Record-ID", record_id("arc", url, date)),
        ("WARC-Date", date),
        ("WARC-Target-URI", url),
        ("WARC-IP-Address", record.field("ip-address")),
        ("Content-Type", _ARC_TYPES["http"]),
    ]
    return tuple((name, value) for name, value in fields if value.strip(".0"))


def _iso_date(stamp: str) -> str:
    digits = stamp[:14].ljust(14, "0")
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}Z"
