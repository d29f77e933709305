"""WARC records as bytes: names of files, HTTP responses in their blocks, one compressed member a record.

Bodies are stored with their content codings undone. Headers that then no longer fit the bytes travel under
another name, and come back under their own.

The picture, the text and what a page loaded are `resource` records under the addresses that other tools use:
`urn:view:` for the picture, `urn:text:` for the text as shown, `urn:pageinfo:` for the resources of the page. The
records of the page and of what it loaded carry its `WARC-Page-ID`; what several looks used belongs to the first.
"""

from __future__ import annotations

import json
import re
import uuid
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, BinaryIO, Literal

from letopis.archive import Archive, identify
from letopis.archive.sets import CaptureSet
from letopis.model import Check, Headers, Outcome, SetMember, header, rfc3339
from letopis.tuples import NamedTuple
from letopis.zstandard import zstd

UsualHead = tuple[str, Headers, Mapping[str, str], bytes, int, int]
"""Version, fields, first values by name in lower case, lines, where the block begins, and its length."""
record_head: Callable[[bytes, int], UsualHead | None] | None
answer_head: Callable[[bytes, int], tuple[int, Headers, int] | None] | None
try:  # in C where letopis-fast is installed; None from them leaves an unusual head to Python
    from letopis_fast.heads import answer_head, record_head
except ImportError:
    record_head = answer_head = None

CHECK_TYPE = "application/vnd.letopis.check+json"
"""Of metadata records that hold what WARC has no field for."""
SOFTWARE_NAME = "software: Letopis/"
"""How the description of a file of ours begins."""
WARC_SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")


def is_warc_name(name: str) -> bool:
    """Whether a name says WARC or ARC."""
    return name.endswith(WARC_SUFFIXES)


def is_cdx_name(address: str) -> bool:
    """Whether a name says that it is an index."""
    return address.partition("?")[0].removesuffix(".gz").endswith((".cdxj", ".cdx", ".cdxj.txt"))


KEPT_PREFIX = "X-Letopis-Kept-"
MAX_HEAD = 1024 * 1024
_BLANK_LINE = re.compile(rb"\r*\n\r*\n")
_UNFIT = frozenset({"content-encoding", "transfer-encoding", "content-length"})


_NAMESPACE = uuid.UUID("5f1d2c0e-6d4b-5b1e-9f55-0a7c0c1e7a11")


def stable_id(*parts: str) -> str:
    """The same parts always have the same id."""
    return str(uuid.uuid5(_NAMESPACE, " ".join(parts)))


def record_id(kind: str, url: str, date: str) -> str:
    """The id of a record of ours."""
    return f"<urn:uuid:{stable_id(kind, url, date)}>"


def reason_phrase(status: int) -> str:
    """The usual words of a status; empty for unknown ones."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def response_head(status: int, headers: Headers, length: int | None) -> bytes:
    """Status line and headers; with a length, one that fits the body that follows."""
    lines = [f"HTTP/1.1 {status} {reason_phrase(status)}"]
    lines += [f"{KEPT_PREFIX if name.lower() in _UNFIT else ''}{name}: {value}" for name, value in headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def restored_headers(headers: Headers) -> Headers:
    """Headers of our own export as they were; those of others unchanged."""
    if any(name.startswith(KEPT_PREFIX) for name, _ in headers):
        return tuple(_restore(headers))
    if headers and headers[-1][0] == "Content-Length":
        return tuple((name, value) for name, value in headers if name.lower() != "content-length")
    return headers


def _restore(headers: Headers) -> list[tuple[str, str]]:
    result = []
    for index, (name, value) in enumerate(headers):
        if name.startswith(KEPT_PREFIX):
            result.append((name[len(KEPT_PREFIX) :], value))
        elif not (name == "Content-Length" and index == len(headers) - 1):
            result.append((name, value))
    return result


def parse_response(block: bytes) -> tuple[int, Headers, bytes]:
    """Status, headers and body of an answer; status 0 and everything as body when it does not begin like one.

    Lines may end without a carriage return, the words of the status may be
    missing, and a line that begins with a blank goes on with the one before.
    """
    if not block.startswith(b"HTTP/"):
        return 0, (), block
    if answer_head is not None and (usual := answer_head(block, MAX_HEAD)) is not None:
        return usual[0], usual[1], block[usual[2] :]
    end, start = head_end(block)
    first, fields = parse_head(_text(block[:end]))
    words = first.split(None, 2)
    if not start or len(words) < 2 or not (words[1].isascii() and words[1].isdigit() and len(words[1]) == 3):
        return 0, (), block
    return int(words[1]), fields, block[start:]


def head_end(block: bytes) -> tuple[int, int]:
    """Where the head of an HTTP message ends and where its body begins; the latter 0 when there is no end.

    Lines may end without a carriage return, or with two of them.
    """
    end = block.find(b"\r\n\r\n", 0, MAX_HEAD)
    if end >= 0 and block.find(b"\n\n", 0, end) < 0 and block.find(b"\r\r\n", 0, end) < 0:
        return end, end + 4
    found = _BLANK_LINE.search(block, 0, MAX_HEAD)
    return found.span() if found else (min(len(block), MAX_HEAD), 0)


def _text(head: bytes) -> str:
    try:
        return head.decode("utf-8")
    except UnicodeDecodeError:
        return head.decode("latin-1")


_BLANKS = (" ", "\t")


def parse_head(text: str) -> tuple[str, Headers]:
    """The first line of a head, and names and values of the others; one that begins with a blank goes on with the
    field before.
    """
    first, *lines = text.split("\n")
    if "\n " not in text and "\n\t" not in text:
        parts = [line.partition(":") for line in lines]
        return first, tuple([(name.strip(), value.strip()) for name, colon, value in parts if colon])
    return first, _folded_fields(lines)


def _folded_fields(lines: list[str]) -> Headers:
    found: list[tuple[str, str]] = []
    for line in lines:
        if line.startswith(_BLANKS) and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
            continue
        name, colon, value = line.partition(":")
        if colon:
            found.append((name.strip(), value.strip()))
    return tuple(found)


WarcCompression = Literal["gzip", "zstd", "none"]


class WarcRecord(NamedTuple):
    """One WARC record: its headers in order, and its block. The length is that of the block, whatever they say."""

    headers: tuple[tuple[str, str], ...]
    block: bytes
    version: str = "WARC/1.1"

    @property
    def kind(self) -> str:
        """`response`, `revisit`, `metadata`, `request` or `warcinfo`."""
        return header(self.headers, "warc-type")

    def to_bytes(self) -> bytes:
        """The record as it stands in a file."""
        length = str(len(self.block))
        fields = [(name, length if name.lower() == "content-length" else value) for name, value in self.headers]
        if not header(self.headers, "content-length"):
            fields.append(("Content-Length", length))
        lines = [self.version, *(f"{name}: {value}" for name, value in fields)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape") + self.block + b"\r\n\r\n"


class WarcPlace(NamedTuple):
    """Where a record lies in its file."""

    offset: int
    length: int


def gzip_member(data: bytes) -> bytes:
    """One member without a time of its own, so that the same record gives the same bytes."""
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    return press.compress(data) + press.flush()


_COMPRESSORS: dict[WarcCompression, Callable[[bytes], bytes]] = {
    "gzip": gzip_member,
    "zstd": lambda data: zstd.compress(data, 12),
    "none": lambda data: data,
}


def compressed_record(record: WarcRecord, compression: WarcCompression) -> bytes:
    """A record as it stands in a file."""
    return _COMPRESSORS[compression](record.to_bytes())


class WarcWriter:
    """Appends records to a stream and knows where each of them lies."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.size = 0

    def write(self, record: WarcRecord) -> WarcPlace:
        """Appends one record."""
        data = compressed_record(record, "gzip")
        self._out.write(data)
        place = WarcPlace(self.size, len(data))
        self.size += len(data)
        return place


def is_revisit(check: Check) -> bool:
    """Whether a check found again what was already there."""
    return check.outcome is Outcome.UNCHANGED and (check.status < 300 or check.status == 304)


VIEW, TEXT, PAGE_INFO = "urn:view:", "urn:text:", "urn:pageinfo:"
PAGE_ID = "WARC-Page-ID"


def page_id(url: str, moment: str) -> str:
    """The id of a page in a collection: of its line in the list of pages, and of its records."""
    return stable_id("page", url, moment)


def with_page_id(record: WarcRecord, url: str, time: datetime) -> WarcRecord:
    """A record of a page, or of a resource that it loaded, with the id of that look at the page."""
    field = (PAGE_ID, page_id(url, rfc3339(time)))
    return WarcRecord((*record.headers, field), record.block, record.version)


def set_records(archive: Archive, found: CaptureSet, written: Collection[str] = ()) -> Iterator[WarcRecord]:
    """The records of a set but for those of its page and its members, which are captures of their own.

    What is `written` in other records is left out.
    """
    if found.has_screenshot and VIEW not in written:
        picture = archive.sets.screenshot(found)
        yield _resource(found, VIEW, picture_type(picture), picture)
    if found.has_text and TEXT not in written:
        yield _resource(found, TEXT, "text/plain", archive.sets.text(found).encode())
    if PAGE_INFO not in written:
        facts = page_info(found, archive.sets.members(found))
        yield _resource(found, PAGE_INFO, "application/json", json.dumps(facts, ensure_ascii=False).encode())


def picture_type(body: bytes) -> str:
    """The media type of a picture that was kept of a page, by its first bytes."""
    if body.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    return "image/png" if body.startswith(b"\x89PNG") else "image/webp"


def page_info(found: CaptureSet, members: Iterable[SetMember]) -> dict[str, Any]:
    """What a look used, by URL with its time; with all its times where it was used several times or is the page."""
    moment = rfc3339(found.time)
    times: dict[str, list[str]] = {}
    for one in members:
        times.setdefault(one.url, []).append(rfc3339(one.time))
    urls: dict[str, dict[str, Any]] = {found.url: {"ts": moment}}
    for url, used in times.items():
        urls[url] = {"ts": moment if url == found.url else used[0]}
        urls[url] |= {"times": used} if url == found.url or len(used) > 1 else {}
    return {"pageid": page_id(found.url, moment), "url": found.url, "ts": moment, "urls": urls}


def _resource(found: CaptureSet, scheme: str, media_type: str, body: bytes) -> WarcRecord:
    moment, address = rfc3339(found.time), scheme + found.url
    digest = f"sha1:{identify(body).text}"
    headers = (
        ("WARC-Type", "resource"),
        ("WARC-Record-ID", record_id("resource", address, moment)),
        ("WARC-Date", moment),
        ("WARC-Target-URI", address),
        (PAGE_ID, page_id(found.url, moment)),
        ("WARC-Block-Digest", digest),
        ("WARC-Payload-Digest", digest),
        ("Content-Type", media_type),
    )
    return WarcRecord(headers, body)
