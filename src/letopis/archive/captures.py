"""Captures as they are listed and replayed: by sorted key and time, near a moment, one as the server sent it.

A capture is a check that got an HTTP answer. Its row here says whether it was redirected, created a version or found
an earlier one again; other units never derive that from columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from letopis.archive.archive import Archive, of_archive
from letopis.archive.details import own_headers, redirects_of
from letopis.archive.records import BASE32_PAIRS
from letopis.catalog import CaptureRow, ResourceRow
from letopis.catalog.activity import Activity
from letopis.catalog.captures import (
    ALL_TIMES,
    OTHER,
    REPEAT,
    TOO_LARGE,
    VERSION,
    CaptureNeighbours,
    Captures,
    CaptureTuple,
    KeyRange,
    Timeline,
    TimelineCapture,
    TimeRange,
)
from letopis.errors import UnknownVersion
from letopis.lazy import np
from letopis.model import Headers, Hop, from_millis, header
from letopis.urls import join, surt

__all__ = [
    "ALL_TIMES", "OTHER", "REPEAT", "TOO_LARGE", "UNKNOWN_TYPE", "VERSION", "ArchivedResponse", "CaptureList",
    "CaptureNeighbours", "KeyRange", "ListedCapture", "ResourceRow", "TimeRange", "TimelineCapture", "checked_urls",
    "count_checked", "count_checks", "digest_texts", "last_check_time", "load_as_sent", "load_capture", "reads_at_once",
    "timeline_of", "timeline_of_key", "version_time",
]  # fmt: skip

ListedCapture = tuple[str, str, int, int, int | None, bytes | None, int | None, Hop | None, int]
"""Key, URL, time, status, id of the headers, SHA-1, bytes, first redirect of a redirected one, kind.

The kind is VERSION, REPEAT, TOO_LARGE or OTHER. Lists run to millions, so this is a plain tuple.
"""

UNKNOWN_TYPE = "unk"
"""The media type of an answer that names none."""

_MOST_MEDIA_TYPES = 200_000
_LETTER_PAIRS = "".join(BASE32_PAIRS).encode()


def digest_texts(hashes: Sequence[bytes]) -> list[str]:
    """Base32 of many SHA-1 at once, ten bits a step."""
    groups = np.zeros((len(hashes) * 4, 8), np.uint8)
    groups[:, 3:] = np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 5)
    numbers = groups.view(">i8").astype(np.int64)
    pairs = np.frombuffer(_LETTER_PAIRS, np.uint16)
    text = pairs[(numbers >> np.array([30, 20, 10, 0])) & 1023].tobytes().decode("ascii")
    return [text[start : start + 32] for start in range(0, len(text), 32)]


class CaptureList:
    """All captures by sorted key and time; media types are cached across queries."""

    def __init__(self, archive: Archive) -> None:
        self._captures = Captures(archive.catalog.database)
        self._heads = archive.catalog.heads
        self._types: dict[int | None, str] = {None: UNKNOWN_TYPE}

    def batches(self, keys: KeyRange, span: TimeRange = ALL_TIMES) -> Iterator[list[ListedCapture]]:
        """The captures of a range of keys in the order of key and time, some ten thousand at once."""
        for rows in self._captures.batches(keys, span):
            yield [row if row[7] is None else _with_redirect(row) for row in rows]  # type: ignore[misc]

    def of_url(self, url: str, span: TimeRange = ALL_TIMES) -> Iterator[ListedCapture]:
        """The captures of one URL, oldest first; those of others with the same key are left out."""
        for rows in self.batches(KeyRange.exactly(surt(url)), span):
            yield from (row for row in rows if row[1] == url)

    def blocks(self, keys: KeyRange) -> int:
        """How many URLs a range of keys holds."""
        return self._captures.blocks(keys)

    def block(self, keys: KeyRange, offset: int, count: int) -> KeyRange | None:
        """The part of a range that begins at its `offset`-th URL; a key is never split."""
        return self._captures.block(keys, offset, count)

    def media_types(self, batch: Sequence[ListedCapture]) -> dict[int | None, str]:
        """The media types of all headers in a batch, by the ids of the headers."""
        missing = {capture[4] for capture in batch} - self._types.keys()
        if missing:
            if len(self._types) > _MOST_MEDIA_TYPES:
                self._types = {None: UNKNOWN_TYPE}
                missing |= {capture[4] for capture in batch if capture[4] is not None}
            found = self._heads.types({number for number in missing if number is not None})
            self._types.update((number, found.get(number or 0) or UNKNOWN_TYPE) for number in missing)
        return self._types


def _with_redirect(row: CaptureTuple) -> ListedCapture:
    """The row with its first redirect instead of the details that name it."""
    hops = redirects_of(row[7])
    return *row[:7], hops[0] if hops and not _comes_back(row[1], hops) else None, row[8]


def _comes_back(url: str, hops: tuple[Hop, ...]) -> bool:
    """Whether redirects led to the key they began at: from http to https, to `www`, through a login."""
    target = join(hops[-1].url, hops[-1].location)
    return target is not None and surt(target) == surt(url)


def timeline_of(archive: Archive, url: str) -> Timeline:
    """The captures of a URL, and of those that share its sorted key."""
    return timeline_of_key(archive, surt(url))


timeline_of_key = of_archive(Timeline)
"""The captures of all URLs of a sorted key."""


@dataclass(frozen=True, slots=True)
class ArchivedResponse:
    """A response of a server. `location` is the absolute target of a redirect."""

    status: int
    headers: Headers
    body: bytes
    location: str = ""

    @property
    def content_type(self) -> str:
        """As the server named it."""
        return header(self.headers, "content-type")


def load_capture(archive: Archive, capture: TimelineCapture) -> ArchivedResponse:
    """Reads a capture. A redirected one is a redirect if its target is known, otherwise what it led to."""
    row = capture.row
    redirect = _known_redirect(archive, capture.url, redirects_of(row.extra))
    if redirect is not None:
        return redirect
    if not isinstance(row, CaptureRow):
        return ArchivedResponse(row.status, *archive.answers.answer(row.id))
    if row.status < 300 or row.status == 304:
        return _repeated_version(archive, capture.url, row)
    headers = _answer_headers(archive, row)
    body = archive.answers.content(row.content) if row.content is not None else b""
    location = join(capture.url, header(headers, "location")) if 300 <= row.status < 400 else None
    return ArchivedResponse(row.status, headers, body, location or "")


def load_as_sent(archive: Archive, capture: TimelineCapture, shown: ArchivedResponse) -> ArchivedResponse:
    """What the server sent if a browser made the version that a capture shows; otherwise what is `shown`."""
    number, answers = capture.number, archive.answers
    if number is None or shown.status >= 300 or not answers.sent_digest(capture.url, number):
        return shown
    sent = answers.as_sent(answers.numbered(capture.url, number))
    return replace(shown, headers=sent.headers, body=sent.body)


def reads_at_once(archive: Archive, capture: TimelineCapture, most: int) -> bool:
    """Whether the bytes of a capture, at most so many, are in a local file: no network, no long decoding."""
    if capture.row.content is None or archive.settings.store.url:
        return False
    return archive.catalog.contents.is_here(capture.row.content, most)


def _repeated_version(archive: Archive, url: str, row: CaptureRow) -> ArchivedResponse:
    if row.number is None:
        raise UnknownVersion(f"the version of {url} that this check saw is no longer kept")
    version = archive.answers.numbered(url, row.number)
    if row.status == 304:
        current = archive.catalog.versions.number(row.resource, row.number)
        return ArchivedResponse(current.status if current is not None else 200, version.headers, version.body)
    headers = version.headers if row.head is None else _answer_headers(archive, row)
    return ArchivedResponse(row.status, headers, version.body)


def _answer_headers(archive: Archive, row: CaptureRow) -> Headers:
    shared = archive.catalog.heads.get(row.head) if row.head is not None else ()
    return own_headers(shared, row.extra, row.time)


def _known_redirect(archive: Archive, url: str, hops: tuple[Hop, ...]) -> ArchivedResponse | None:
    """The first hop, to the first of the following URLs that has captures.

    URLs of the same key belong to this capture, which contains what they answered.
    """
    if not hops or _comes_back(url, hops):
        return None
    own = surt(url)
    targets = (join(hop.url, hop.location) for hop in hops)
    others = (target for target in targets if target and surt(target) != own)
    known = next((target for target in others if timeline_of(archive, target).first()), None)
    return ArchivedResponse(hops[0].status, hops[0].headers, b"", known) if known else None


def checked_urls(archive: Archive, host: str = "") -> Iterator[ResourceRow]:
    """Every URL that was ever checked, or those of a host, in the order in which they were first seen."""
    return archive.catalog.resources.of_host(host) if host else archive.catalog.resources.all()


def count_checked(archive: Archive, host: str = "") -> int:
    """How many these are."""
    return Activity(archive.catalog.database).count_pages(host) if host else archive.catalog.resources.count()


def count_checks(archive: Archive, span: TimeRange, host: str = "", pages: Iterable[int] | None = None) -> int:
    """How many checks of all pages, of a host or of some pages were in a span of time, without reading them."""
    activity = Activity(archive.catalog.database)
    return activity.count_checks(span, host) if pages is None else activity.count_checks_of(pages, span)


def last_check_time(archive: Archive) -> datetime:
    """When the last check of the archive was; the beginning of times in an empty one."""
    return from_millis(archive.catalog.resources.last_checked() or 0)


def version_time(archive: Archive, resource: int, number: int) -> datetime | None:
    """When a version of a URL began; None if it is no longer kept."""
    row = archive.catalog.versions.number(resource, number)
    return from_millis(row.time) if row is not None else None
