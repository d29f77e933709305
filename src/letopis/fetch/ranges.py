"""Parts of a remote file by HTTP ranges, one or several at once, never mixing two versions of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from letopis.errors import LetopisError, NotFound, Refused, RemoteChanged, Unavailable
from letopis.fetch.client import Client
from letopis.model.web import FailureKind, Headers, Limits, Request, Response
from letopis.tuples import NamedTuple

_CONTENT_RANGE = re.compile(r"bytes\s+(\d{1,19})-(\d{1,19})/(\d{1,19}|\*)", re.ASCII | re.IGNORECASE)
_BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,200})"?', re.IGNORECASE)
_MAX_PARTS = 10_000
_SPARE_BYTES = 64 * 1024
"""What an answer may have beyond a requested range: the head of a part, or a small file as a whole."""


class RangesIgnored(Unavailable):
    """A server sends the whole file instead of a part; it was cut off."""


class CutShort(Unavailable):
    """The connection ended within a range; `data` is what came from the start of it on."""

    def __init__(self, message: str, data: bytes) -> None:
        super().__init__(message)
        self.data = data


class RangePart(NamedTuple):
    """Bytes of a file from `start` on; `total` is its whole size, None when the server did not say."""

    start: int
    data: bytes
    total: int | None


def parse_content_range(value: str) -> tuple[int, int, int | None] | None:
    """Start, end (exclusive) and total of a Content-Range; None for anything else."""
    match = _CONTENT_RANGE.fullmatch(value.strip())
    if match is None:
        return None
    start, end = int(match[1]), int(match[2]) + 1
    total = None if match[3] == "*" else int(match[3])
    return (start, end, total) if start < end and (total is None or end <= total) else None


def multipart_boundary(content_type: str) -> bytes:
    """The separator of a multipart answer; empty when it is none."""
    if not content_type.lower().startswith("multipart/byteranges"):
        return b""
    match = _BOUNDARY.search(content_type)
    return match[1].encode("latin-1") if match else b""


def multipart_parts(body: bytes, separator: bytes) -> list[RangePart]:
    """The ranges in the body; those that contradict their own header are left out."""
    found: list[RangePart] = []
    at = body.find(b"--" + separator)
    while at >= 0 and len(found) < _MAX_PARTS:
        head_end = body.find(b"\r\n\r\n", at)
        place = _range_of(body[at:head_end]) if head_end >= 0 else None
        if place is None:
            break
        start, end, total = place
        begin = head_end + 4
        data = body[begin : begin + end - start]
        if len(data) == end - start:
            found.append(RangePart(start, data, total))
        at = body.find(b"--" + separator, begin + end - start)
    return found


def _range_of(head: bytes) -> tuple[int, int, int | None] | None:
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-range":
            return parse_content_range(value)
    return None


ByteSpan = tuple[int, int]
"""Start and end of a range, the end exclusive."""


@dataclass(slots=True)
class RangeReader:
    """Reads ranges of files and counts every transferred byte, headers included.

    All parts of a URL belong to one version: when the server has another one meanwhile, RemoteChanged is raised and the
    reader must be asked from the beginning after `forget`. For the fewest bytes give it a client made with
    `default_headers=()`.
    """

    client: Client
    limits: Limits = field(default_factory=lambda: Limits(max_bytes=1 << 40, total_seconds=3600.0))
    private_ok: bool = True
    requests: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    _validators: dict[str, str] = field(default_factory=dict)

    async def read_ranges(self, url: str, spans: Sequence[ByteSpan]) -> list[RangePart]:
        """Parts that cover the spans, asked for in one request.

        They may be fewer and larger than asked: servers join ranges, and
        those without ranges send one part that is the whole file.
        """
        asked = [(start, end) for start, end in spans if end > start]
        if not asked:
            return []
        most = sum(end - start for start, end in asked) + _SPARE_BYTES * len(asked)
        response = await self._fetch(url, _range_field(asked), most)
        self._notice_change(url, response)
        if response.failure is not None and response.status == 200:
            raise RangesIgnored(f"{url} is served only as a whole; fetch the whole file instead")
        found = _parts_of(response)
        if response.failure is not None:
            raise CutShort(f"{url} was cut off: {response.failure.message}; try again", _begun(found, asked))
        if not all(_covered(found, start, end) for start, end in asked):
            raise Unavailable(f"{url} answered with other ranges than requested; fetch the whole file instead")
        return found

    async def read_whole(self, url: str, most: int | None = None) -> bytes:
        """The whole file, of so many bytes at most."""
        response = await self._fetch(url, (), most)
        self._notice_change(url, response)
        problem = error_of_response(response)
        if problem is not None:
            raise problem
        return response.body

    async def stream_whole(self, url: str, sink: Callable[[bytes], object]) -> None:
        """The whole file, handed on piece by piece as it comes; what was handed on before an error is no file."""
        response = await self._fetch(url, (), sink=sink)
        self._notice_change(url, response)
        problem = error_of_response(response)
        if problem is not None:
            raise problem

    def forget(self, url: str) -> None:
        """Lets the next part be of whatever version the server has then."""
        self._validators.pop(url, None)

    async def _fetch(
        self, url: str, fields: Headers, most: int | None = None, sink: Callable[[bytes], object] | None = None
    ) -> Response:
        """An answer; where it was cut off or is longer than `most`, what had come of it, with its failure."""
        known = self._validators.get(url, "")
        condition = (("If-Range", known),) if known and fields else ()
        headers = (*fields, *condition, ("Accept-Encoding", "identity"))
        limits = self.limits if most is None else self.limits._replace(max_bytes=min(most, self.limits.max_bytes))
        response = await self.client.fetch(
            Request(url, headers=headers, limits=limits, private_ok=self.private_ok, keep_partial=True, sink=sink)
        )
        self.requests += 1 + len(response.hops)
        self.received_bytes += response.wire_bytes
        self.sent_bytes += response.sent_bytes
        problem = error_of_response(response)
        if problem is not None and response.status not in (200, 206, 416):
            raise problem
        return response

    def _notice_change(self, url: str, response: Response) -> None:
        validator = _validator(response)
        known = self._validators.setdefault(url, validator) if validator else self._validators.get(url, "")
        if known and validator and known != validator:
            raise RemoteChanged(f"{url} changed on the server while it was read; start again")


def error_of_response(response: Response) -> LetopisError | None:
    """The error for an answer without the wanted content."""
    failure = response.failure
    if failure is not None:
        kind = Refused if failure.kind is FailureKind.FORBIDDEN_ADDRESS else Unavailable
        return kind(f"{response.url} cannot be read: {failure.message}")
    if response.status in (404, 410):
        return NotFound(f"there is no {response.url}; check the address")
    if response.status >= 300:
        return Unavailable(f"{response.url} answered with status {response.status}; try again later")
    return None


def _range_field(spans: Sequence[ByteSpan]) -> Headers:
    return (("Range", "bytes=" + ",".join(f"{start}-{end - 1}" for start, end in spans)),)


def _validator(response: Response) -> str:
    """What identifies the version for If-Range: a strong ETag, else the time of change."""
    etag = response.header("etag")
    return etag if etag and not etag.startswith("W/") else response.header("last-modified")


def _parts_of(response: Response) -> list[RangePart]:
    if response.status == 200:
        return [RangePart(0, response.body, len(response.body))]
    if response.status == 416:
        size = response.header("content-range").rpartition("/")[2]
        return [RangePart(int(size), b"", int(size))] if size.isdecimal() else []
    separator = multipart_boundary(response.header("content-type"))
    if separator:
        return multipart_parts(response.body, separator)
    found = parse_content_range(response.header("content-range"))
    missing = 0 if found is None else found[1] - found[0] - len(response.body)
    if found is None or missing < 0 or (missing and response.failure is None):
        return []
    return [RangePart(found[0], response.body, found[2])]


def _covered(found: Sequence[RangePart], start: int, end: int) -> bool:
    """Whether one part has the span, or all of it that the file has."""
    return any(
        part.start <= start and part.start + len(part.data) >= min(end, part.total if part.total is not None else end)
        for part in found
    ) or any(part.total is not None and part.total <= start for part in found)


def _begun(found: Sequence[RangePart], asked: Sequence[ByteSpan]) -> bytes:
    """The bytes of the first span that came."""
    start, end = asked[0]
    holding = (part for part in found if part.start <= start < part.start + len(part.data))
    return next((part.data[start - part.start : end - part.start] for part in holding), b"")
