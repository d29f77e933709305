"""From versions to a segment: where their pages lead is numbered and written down.

What a crawl has read of a page and handed over is not read again.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from letopis.archive import Archive, digest_text
from letopis.archive.leads import Leads, Stretch
from letopis.catalog.log import Logged
from letopis.graph.addresses import Addresses
from letopis.graph.columns import Texts
from letopis.graph.segment import DOCUMENT, LIST, NOT_JUDGED, REQUISITE, SAME, Segment
from letopis.urls import url_key

_LISTS = (
    "application/xml", "text/xml", "application/sitemap+xml", "application/rss+xml", "application/atom+xml",
    "application/feed+json",
)  # fmt: skip
_REQUISITES = ("image/", "font/", "audio/", "video/", "text/css", "text/javascript", "application/javascript")


class LastLinks:
    """The key of the links of each page's last version: 8 bytes an address."""

    def __init__(self) -> None:
        self._keys = np.zeros(1024, np.int64)

    def learn(self, segment: Segment) -> None:
        """What a segment says, in its order."""
        if len(segment.pages):
            self._grow(int(segment.pages.max()))
            self._keys[segment.pages] = segment.link_keys

    def replaced(self, page: int, key: int) -> bool:
        """Notes a page's links; whether they differ from those noted before."""
        self._grow(page)
        if int(self._keys[page]) == key:
            return False
        self._keys[page] = key
        return True

    def _grow(self, page: int) -> None:
        if page >= len(self._keys):
            larger = np.zeros(max(page + 1, 2 * len(self._keys)), np.int64)
            larger[: len(self._keys)] = self._keys
            self._keys = larger


class _Row(NamedTuple):
    """One version as it goes into the columns."""

    id: int
    page: int
    time: int
    status: int
    size: int
    digest: int
    link_key: int
    judged: int
    role: int
    final: int
    links: int


_KINDS = (np.int64, np.int32, np.int64, np.int16, np.int64, np.int64, np.int64, np.uint8, np.uint8, np.int32, np.int32)


class Taken(NamedTuple):
    """A stretch of the log as columns; `texts` are those of its links, one line each."""

    segment: Segment
    texts: bytes


class _Draft:
    """Collects versions until they become a segment."""

    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self.types: list[str] = []
        self.titles: list[str] = []
        self.languages: list[str] = []
        self.targets: list[int] = []
        self.kinds = bytearray()
        self.lines: list[bytes] = []

    def segment(self, addresses: Addresses, text_frame: int) -> Segment:
        """The columns; addresses that are new go with them."""
        numbers = list(zip(*self.rows, strict=True)) if self.rows else [()] * len(_Row._fields)
        columns: list[Any] = [
            *addresses.news(),
            *(np.array(column, kind) for column, kind in zip(numbers, _KINDS, strict=True)),
            *map(Texts.of, (self.types, self.titles, self.languages)),
            np.array(self.targets, np.int32),
            np.frombuffer(bytes(self.kinds), np.uint8),
            np.array([text_frame], np.int64),
            np.array([len(self.targets)], np.int64),
        ]
        return Segment(*columns)


def take(
    archive: Archive, rows: Sequence[Logged], handed: Stretch, addresses: Addresses, last: LastLinks, text_frame: int
) -> Taken:
    """What versions say about links: as it was handed over, or read out of the archive."""
    draft = _Draft()
    for row in rows:
        final = archive.answers.final_url(row.extra) if row.extra else ""
        leads = handed.of(row.id, row.time, row.sha1) or _read(archive, row, final)
        if leads is not None:
            _take_one(row, final, leads, draft, addresses, last)
    return Taken(draft.segment(addresses, text_frame), b"\n".join(draft.lines))


def _read(archive: Archive, row: Logged, final: str) -> Leads | None:
    # Loaded late on purpose: parsers take longer to start than links to be taken in, and a crawl hands over nearly all.
    from letopis.graph.rereading import reread  # noqa: PLC0415

    return reread(archive, row.id, final)


def _take_one(row: Logged, final: str, leads: Leads, draft: _Draft, addresses: Addresses, last: LastLinks) -> None:
    number = addresses.number(row.url)
    targets = addresses.numbers(leads.targets)
    key = _links_key(targets, leads)
    count = SAME
    if last.replaced(number, key):
        count = len(targets)
        draft.targets += targets
        draft.kinds += leads.kinds
        if targets:
            draft.lines.append(leads.lines)
    end = addresses.number(final) if final else -1
    draft.rows.append(_row(row, number, key, role_of(leads.content_type), end, count))
    draft.types.append(leads.content_type)
    draft.titles.append(leads.title)
    draft.languages.append(leads.language)


def _row(row: Logged, page: int, key: int, role: int, final: int, count: int) -> _Row:
    judged = NOT_JUDGED if row.meaningful is None else int(row.meaningful)
    digest = url_key(digest_text(row.sha1))
    return _Row(row.id, page, row.time, row.status, row.raw_bytes, digest, key, judged, role, final, count)


def role_of(kind: str) -> int:
    """What a document is for, by its type."""
    if kind in _LISTS:
        return LIST
    return REQUISITE if kind.startswith(_REQUISITES) else DOCUMENT


def _links_key(targets: list[int], leads: Leads) -> int:
    """Never 0, which stands for "no links known"."""
    key = xxh3_64_intdigest(b"%b%b\n%b" % (array("i", targets).tobytes(), leads.kinds, leads.lines))
    return (key >> 1) | 1
