"""From versions to a segment: pages are read, their addresses numbered, their links written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from letopis import extract
from letopis.archive import Archive
from letopis.catalog import VersionRow
from letopis.errors import LetopisError
from letopis.graph.addresses import Addresses
from letopis.graph.columns import Texts
from letopis.graph.segment import DOCUMENT, LIST, NOT_JUDGED, REQUISITE, SAME, TYPE_CODES, Segment
from letopis.model import Link, Page, Version
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
        self.lines: list[str] = []

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


def take(archive: Archive, rows: Sequence[VersionRow], addresses: Addresses, last: LastLinks, text_frame: int) -> Taken:
    """Reads versions and answers with what they say about links."""
    draft = _Draft()
    for row in rows:
        _take_one(archive, row, draft, addresses, last)
    texts = "\n".join(draft.lines).encode("utf-8", "surrogatepass")
    return Taken(draft.segment(addresses, text_frame), texts)


def _take_one(archive: Archive, row: VersionRow, draft: _Draft, addresses: Addresses, last: LastLinks) -> None:
    try:
        version = archive.answers.by_id(row.id)
    except LetopisError:
        # Dropped meanwhile, or its bytes are lost: there is nothing to say about it.
        return
    final = archive.answers.final_url(row.extra)
    page = extract.page(version.body, final or version.url, version.headers, detect_language=False, mode="basic")
    number = addresses.number(version.url)
    targets = addresses.numbers([link.target for link in page.links])
    kinds = bytes(TYPE_CODES[link.type] for link in page.links)
    lines = [_line(link) for link in page.links]
    key = _links_key(targets, kinds, lines)
    count = SAME
    if last.replaced(number, key):
        count = len(targets)
        draft.targets += targets
        draft.kinds += kinds
        draft.lines += lines
    end = addresses.number(final) if final else -1
    draft.rows.append(_row(row, version, number, key, role_of(page), end, count))
    _describe(draft, page)


def _row(row: VersionRow, version: Version, page: int, key: int, role: int, final: int, count: int) -> _Row:
    judged = NOT_JUDGED if row.meaningful is None else int(row.meaningful)
    digest = url_key(version.digest)
    return _Row(row.id, page, row.time, row.status, version.raw_bytes, digest, key, judged, role, final, count)


def role_of(page: Page) -> int:
    """What a document is for, by its type."""
    kind = page.content_type
    if kind in _LISTS:
        return LIST
    return REQUISITE if kind.startswith(_REQUISITES) else DOCUMENT


def _describe(draft: _Draft, page: Page) -> None:
    draft.types.append(page.content_type)
    draft.titles.append(page.title)
    draft.languages.append(page.language)


def _line(link: Link) -> str:
    if link.rel or link.title:
        return f"{link.text}\t{' '.join(link.rel.split())}\t{' '.join(link.title.split())}"
    return link.text


def _links_key(targets: list[int], kinds: bytes, lines: list[str]) -> int:
    """Never 0, which stands for "no links known"."""
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    key = xxh3_64_intdigest(np.array(targets, np.int32).tobytes() + kinds + b"\n" + text)
    return (key >> 1) | 1
