"""Parts of a remote file by HTTP ranges, never mixing two versions of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from letopis.errors import LetopisError, NotFound, Refused, RemoteChanged, Unavailable
from letopis.fetch import multipart
from letopis.fetch.client import Client
from letopis.fetch.multipart import Part
from letopis.model.web import FailureKind, Headers, Limits, Request, Response

Span = tuple[int, int]
"""Start and end of a range, the end exclusive."""


@dataclass(slots=True)
class RangeReader:
    """Reads ranges of files and counts every byte that travelled for them, headers included.

    All parts of a URL belong to one version: when the server has another
    one meanwhile, RemoteChanged is raised and the reader must be asked from
    the beginning after `forget`. For the fewest bytes give it a client made
    with `default_headers=()`.
    """

    client: Client
    limits: Limits = field(default_factory=lambda: Limits(max_bytes=1 << 40, total_seconds=3600.0))
    private_ok: bool = True
    requests: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    _validators: dict[str, str] = field(default_factory=dict)

    async def read_range(self, url: str, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`; fewer only where the file ends before.

        A server without ranges sends the whole file, of which the part is
        cut. Raises Unavailable, NotFound, Refused or RemoteChanged.
        """
        return _cut(await self.read_ranges(url, [(start, end)]), start, end)

    async def read_ranges(self, url: str, spans: Sequence[Span]) -> list[Part]:
        """Parts that cover the spans, asked for in one request.

        They may be fewer and larger than asked: servers join ranges, and
        those without ranges send one part that is the whole file.
        """
        asked = [(start, end) for start, end in spans if end > start]
        if not asked:
            return []
        response = await self._fetch(url, _range_field(asked))
        self._notice_change(url, response)
        found = _parts_of(response)
        if not all(_covered(found, start, end) for start, end in asked):
            raise Unavailable(f"{url} answered with other ranges than asked for; fetch the whole file instead")
        return found

    async def read_whole(self, url: str) -> bytes:
        """The whole file."""
        response = await self._fetch(url, ())
        self._notice_change(url, response)
        return response.body

    def forget(self, url: str) -> None:
        """Lets the next part be of whatever version the server has then."""
        self._validators.pop(url, None)

    async def _fetch(self, url: str, fields: Headers) -> Response:
        known = self._validators.get(url, "")
        condition = (("If-Range", known),) if known and fields else ()
        headers = (*fields, *condition, ("Accept-Encoding", "identity"))
        response = await self.client.fetch(
            Request(url, headers=headers, limits=self.limits, private_ok=self.private_ok)
        )
        self.requests += 1 + len(response.hops)
        self.received_bytes += response.wire_bytes
        self.sent_bytes += response.sent_bytes
        problem = problem_of(response)
        if problem is not None and response.status != 416:
            raise problem
        return response

    def _notice_change(self, url: str, response: Response) -> None:
        told = _validator(response)
        known = self._validators.setdefault(url, told) if told else self._validators.get(url, "")
        if known and told and known != told:
            raise RemoteChanged(f"{url} changed on the server while it was read; start again")


def problem_of(response: Response) -> LetopisError | None:
    """The error that an answer without the wanted content stands for."""
    failure = response.failure
    if failure is not None:
        kind = Refused if failure.kind is FailureKind.FORBIDDEN_ADDRESS else Unavailable
        return kind(f"{response.url} cannot be read: {failure.message}")
    if response.status in (404, 410):
        return NotFound(f"there is no {response.url}; check the address")
    if response.status >= 300:
        return Unavailable(f"{response.url} answered with status {response.status}; try again later")
    return None


def _range_field(spans: Sequence[Span]) -> Headers:
    return (("Range", "bytes=" + ",".join(f"{start}-{end - 1}" for start, end in spans)),)


def _validator(response: Response) -> str:
    """What identifies the version for If-Range: a strong ETag, else the time of change."""
    etag = response.header("etag")
    return etag if etag and not etag.startswith("W/") else response.header("last-modified")


def _parts_of(response: Response) -> list[Part]:
    if response.status == 200:
        return [Part(0, response.body, len(response.body))]
    if response.status == 416:
        size = response.header("content-range").rpartition("/")[2]
        return [Part(int(size), b"", int(size))] if size.isdecimal() else []
    separator = multipart.boundary(response.header("content-type"))
    if separator:
        return multipart.parts(response.body, separator)
    told = multipart.content_range(response.header("content-range"))
    if told is None or len(response.body) != told[1] - told[0]:
        return []
    return [Part(told[0], response.body, told[2])]


def _covered(found: Sequence[Part], start: int, end: int) -> bool:
    """Whether one part has the span, or all of it that the file has."""
    return any(
        part.start <= start and part.start + len(part.data) >= min(end, part.total if part.total is not None else end)
        for part in found
    ) or any(part.total is not None and part.total <= start for part in found)


def _cut(found: Sequence[Part], start: int, end: int) -> bytes:
    for part in found:
        if part.start <= start < part.start + len(part.data):
            return part.data[start - part.start : end - part.start]
    return b""
