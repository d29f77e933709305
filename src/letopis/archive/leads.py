"""Where a page leads, in the form in which the index of links takes it in and in which a crawl hands it over.

    frame  = zstd of: entry[versions], record[versions]
    entry  = version u64, time i64, sha1 20 bytes, links u32, head size u32, lines size u32
    record = kinds[links], head, lines

The head is UTF-8 with one line for the type, the language, the title and each
target. All numbers are little-endian.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from backports import zstd

from letopis.model import LinkType, Page

LINK_TYPES = (
    LinkType.A, LinkType.IMG, LinkType.LINK, LinkType.SCRIPT, LinkType.IFRAME, LinkType.FORM, LinkType.AREA,
    LinkType.CSS, LinkType.REDIRECT, LinkType.MEDIA, LinkType.FEED, LinkType.SITEMAP,
)  # fmt: skip
"""Types of links by the number that is stored; only ever appended to."""
TYPE_CODES = {kind: code for code, kind in enumerate(LINK_TYPES)}

_ENTRY = Struct("<Qq20sIII")
_LEVEL = 1
_SURROGATES = "surrogatepass"


class Leads(NamedTuple):
    """What the index of links wants to know of a page.

    One byte, one target and one line a link: its type, where it leads, and
    its text, with `rel` and `title` after tabs where it has any.
    """

    content_type: str
    language: str
    title: str
    kinds: bytes
    targets: Sequence[str]
    lines: bytes


class Handed(NamedTuple):
    """A page that was recorded: as which version, when, and with which content."""

    version: int
    time: int
    sha1: bytes
    page: Page


def leads_of(page: Page) -> Leads:
    """The same for one page however it was read, as long as its links are the same."""
    if not page.links:
        return Leads(page.content_type, page.language, page.title, b"", (), b"")
    targets, types, *said = zip(*page.links, strict=True)
    kinds = bytes(map(TYPE_CODES.__getitem__, types))
    lines = _lines(*said).encode("utf-8", _SURROGATES)
    return Leads(page.content_type, page.language, page.title, kinds, targets, lines)


def _lines(texts: Sequence[str], rels: Sequence[str], titles: Sequence[str]) -> str:
    if not any(rels) and not any(titles):
        lines = "\n".join(texts)
        if "\t" not in lines and lines.count("\n") == len(texts) - 1:
            return lines
    return "\n".join(
        [
            text if not (rel or title) and text.isprintable() else _line(text, rel, title)
            for text, rel, title in zip(texts, rels, titles, strict=True)
        ]
    )


def _line(text: str, rel: str, title: str) -> str:
    # Folded by nearly every format, though not by what others may install.
    text = text if text.isprintable() else " ".join(text.split())
    return f"{text}\t{' '.join(rel.split())}\t{' '.join(title.split())}" if rel or title else text


def pack_leads(pages: Iterable[Handed]) -> tuple[list[int], bytes]:
    """Versions and the frame of their leads; pages that do not fit the form are left out."""
    versions: list[int] = []
    entries: list[bytes] = []
    records: list[bytes] = []
    for version, time, sha1, page in pages:
        leads = leads_of(page)
        head = "\n".join((*leads[:3], *leads.targets))
        if head.count("\n") == len(leads.targets) + 2:
            told = head.encode("utf-8", _SURROGATES)
            versions.append(version)
            entries.append(_ENTRY.pack(version, time, sha1, len(leads.kinds), len(told), len(leads.lines)))
            records += leads.kinds, told, leads.lines
    return versions, zstd.compress(b"".join(entries + records), _LEVEL)


class _Place(NamedTuple):
    """Where a record lies."""

    time: int
    sha1: bytes
    data: bytes
    kinds: int
    head: int
    lines: int
    end: int


class Stretch:
    """The leads that frames hold, each made only when it is asked for."""

    def __init__(self) -> None:
        self._places: dict[int, _Place] = {}

    def add(self, frame: bytes, versions: int) -> None:
        """Learns what a frame of `pack_leads` holds."""
        data = zstd.decompress(frame)
        at = _ENTRY.size * versions
        for version, time, sha1, links, head, lines in _ENTRY.iter_unpack(data[:at]):
            end = at + links + head + lines
            self._places[version] = _Place(time, sha1, data, at, at + links, at + links + head, end)
            at = end

    def of(self, version: int, time: int, sha1: bytes) -> Leads | None:
        """The leads of a version; None unless they were read of exactly this one."""
        place = self._places.get(version)
        if place is None or place.time != time or place.sha1 != sha1:
            return None
        data = place.data
        told = data[place.head : place.lines].decode("utf-8", _SURROGATES)
        content_type, language, title, *targets = told.split("\n")
        kinds, lines = data[place.kinds : place.head], data[place.lines : place.end]
        return Leads(content_type, language, title, kinds, tuple(targets), lines)
