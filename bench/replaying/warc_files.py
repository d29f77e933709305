"""What a WARC file holds, read without Letopis: the answers a browser got when the file was made, by their requests."""

from __future__ import annotations

import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import brotli
from warcio.archiveiterator import ArchiveIterator

from letopis.errors import BadUrl
from letopis.replay.captures import fuzzy_key
from letopis.urls import surt
from letopis.urls.request_keys import HttpRequest, request_url

_PAGES = ("text/html", "application/xhtml+xml")
_LEAST_PAGE = 300
_TIES = ("WARC-Concurrent-To", "WARC-Record-ID")


def key_of(url: str) -> str:
    """Under which name a request counts: what only gets past caches is no part of it."""
    try:
        return fuzzy_key(surt(url.partition("#")[0]))
    except BadUrl:
        return url


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """One response record."""

    url: str
    time: datetime
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def is_page(self) -> bool:
        """Whether it may be one that people open."""
        kind = next((value for name, value in self.headers if name.lower() == "content-type"), "")
        whole = self.status == 200 and len(self.body) >= _LEAST_PAGE
        return whole and kind.partition(";")[0].strip().lower() in _PAGES


class KeptWeb:
    """The web as far as a file has it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._answers: defaultdict[str, list[KeptAnswer]] = defaultdict(list)
        for answer in _answers(file):
            self._answers[key_of(answer.url)].append(answer)

    def pages(self) -> list[KeptAnswer]:
        """Whatever may be a page that people open, in the order of the file."""
        found = [answer for answers in self._answers.values() for answer in answers[:1]]
        return [answer for answer in found if answer.is_page]

    def nearest(
        self, url: str, time: datetime, method: str = "GET", sent: bytes = b"", kind: str = ""
    ) -> KeptAnswer | None:
        """The answer to a request, nearest to a time."""
        asked = url if method == "GET" else request_url(url, HttpRequest(method, kind, sent))
        found = self._answers.get(key_of(asked), [])
        return min(found, key=lambda one: abs(one.time - time), default=None)


def _answers(file: Path) -> Iterator[KeptAnswer]:
    sent: dict[str, HttpRequest] = {}
    for record in _records(file):
        if record.rec_type == "request" and record.http_headers is not None:
            kind = record.http_headers.get_header("content-type") or ""
            asked = HttpRequest(record.http_headers.protocol, kind, record.content_stream().read())
            sent |= {record.rec_headers.get_header(name) or "": asked for name in _TIES}
    bodies: dict[str, bytes] = {}
    for record in _records(file):
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        if record.rec_type not in ("response", "revisit") or record.http_headers is None or not url.startswith("http"):
            continue
        digest = (record.rec_headers.get_header("WARC-Payload-Digest") or "").replace("-", "")
        body = _body(record) if record.rec_type == "response" else bodies.get(digest, b"")
        bodies.setdefault(digest, body)
        tied = (sent.get(record.rec_headers.get_header(name) or " ") for name in _TIES)
        request = next((one for one in tied if one is not None), None)
        if request is not None and request.method != "HEAD":
            url = request_url(url, request)
        status = record.http_headers.get_statuscode()
        time = datetime.fromisoformat(record.rec_headers.get_header("WARC-Date")).astimezone(UTC)
        if status.isdecimal():
            yield KeptAnswer(url, time, int(status), tuple(record.http_headers.headers), body)


def _body(record: Any) -> bytes:
    try:
        return bytes(record.content_stream().read())
    except AttributeError:  # what warcio expects of an older brotli
        return bytes(brotli.decompress(record.raw_stream.read()))


def _records(file: Path) -> Iterator[Any]:
    if file.suffix != ".wacz":
        with file.open("rb") as stream:
            yield from ArchiveIterator(stream)
        return
    with zipfile.ZipFile(file) as packed:
        for name in packed.namelist():
            if name.startswith("archive/"):
                yield from ArchiveIterator(BytesIO(packed.read(name)))
