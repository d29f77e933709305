"""The links of pages that a crawl recorded, kept in small files until the index of links reads them.

Only a cache: anything missing, half written or about another version is read from the archive again, with the same
result. No failure here ever stops a crawl.

    file    = MAGIC frame*
    frame   = size u32, versions u32, first u64, last u64, checksum u64, payload[size]
    payload = zstd of: entry[versions], record[versions]
    entry   = version u64, time i64, sha1 20 bytes, links u32, head size u32, lines size u32
    record  = kinds[links], head, lines

The checksum is XXH3-64 over the payload, seeded with XXH3-64 of the four numbers before it. The head is UTF-8 with one
line for the type, the language, the title and each target. All numbers are little-endian.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import BinaryIO

from xxhash import xxh3_64_intdigest

from letopis.archive.records import RecordedCapture
from letopis.binary import make_private_folder
from letopis.model import LinkType, Observation, Outcome, Page
from letopis.tuples import NamedTuple
from letopis.zstandard import zstd

LINK_TYPES = (
    LinkType.A, LinkType.IMG, LinkType.LINK, LinkType.SCRIPT, LinkType.IFRAME, LinkType.FORM, LinkType.AREA,
    LinkType.CSS, LinkType.REDIRECT, LinkType.MEDIA, LinkType.FEED, LinkType.SITEMAP,
)  # fmt: skip
"""Types of links by the number that is stored; only ever appended to."""
TYPE_CODES = {kind: code for code, kind in enumerate(LINK_TYPES)}

_ENTRY = Struct("<Qq20sIII")
_ZSTD_LEVEL = 1
_SURROGATES = "surrogatepass"


class PageLinks(NamedTuple):
    """What the index of links needs to know about a page.

    One byte, one target and one line per link: its type, where it leads, and its text, followed by `rel` and `title`
    after tabs if the link has them.
    """

    content_type: str
    language: str
    title: str
    kinds: bytes
    targets: Sequence[str]
    lines: bytes


class RecordedPage(NamedTuple):
    """A recorded page: its version, time and content."""

    version: int
    time: int
    sha1: bytes
    page: Page


def links_of_page(page: Page) -> PageLinks:
    """Equal for all readings of one page, as long as its links are the same."""
    if not page.links:
        return PageLinks(page.content_type, page.language, page.title, b"", (), b"")
    targets, types, *said = zip(*page.links, strict=True)
    kinds = bytes(map(TYPE_CODES.__getitem__, types))
    lines = _lines(*said).encode("utf-8", _SURROGATES)
    return PageLinks(page.content_type, page.language, page.title, kinds, targets, lines)


def _lines(texts: Sequence[str], rels: Sequence[str], titles: Sequence[str]) -> str:
    lines = "\n".join(texts)
    if "\t" in lines or lines.count("\n") >= len(texts):
        # Folded by nearly every format, but perhaps not by plugins.
        texts = [" ".join(text.split()) for text in texts]
        lines = "\n".join(texts)
    if not any(rels) and not any(titles):
        return lines
    return "\n".join(
        [
            f"{text}\t{' '.join(rel.split())}\t{' '.join(title.split())}" if rel or title else text
            for text, rel, title in zip(texts, rels, titles, strict=True)
        ]
    )


def pack_links(pages: Iterable[RecordedPage]) -> tuple[list[int], bytes]:
    """Versions and the frame of their links; pages that do not fit the format are left out."""
    versions: list[int] = []
    entries: list[bytes] = []
    records: list[bytes] = []
    for version, time, sha1, page in pages:
        leads = links_of_page(page)
        head = "\n".join((*leads[:3], *leads.targets))
        if head.count("\n") == len(leads.targets) + 2:
            head_bytes = head.encode("utf-8", _SURROGATES)
            versions.append(version)
            entries.append(_ENTRY.pack(version, time, sha1, len(leads.kinds), len(head_bytes), len(leads.lines)))
            records += leads.kinds, head_bytes, leads.lines
    return versions, zstd.compress(b"".join(entries + records), _ZSTD_LEVEL)


class _LinkRecord(NamedTuple):
    """Where a record is."""

    time: int
    sha1: bytes
    data: bytes
    kinds: int
    head: int
    lines: int
    end: int


class CachedLinks:
    """The links in the frames, decoded only when they are requested."""

    def __init__(self) -> None:
        self._places: dict[int, _LinkRecord] = {}

    def add(self, frame: bytes, versions: int) -> None:
        """Adds a frame of `pack_links`."""
        data = zstd.decompress(frame)
        at = _ENTRY.size * versions
        for version, time, sha1, links, head, lines in _ENTRY.iter_unpack(data[:at]):
            end = at + links + head + lines
            self._places[version] = _LinkRecord(time, sha1, data, at, at + links, at + links + head, end)
            at = end

    def of(self, version: int, time: int, sha1: bytes) -> PageLinks | None:
        """The links of a version; None unless they were read of exactly this one."""
        place = self._places.get(version)
        if place is None or place.time != time or place.sha1 != sha1:
            return None
        data = place.data
        head = data[place.head : place.lines].decode("utf-8", _SURROGATES)
        content_type, language, title, *targets = head.split("\n")
        kinds, lines = data[place.kinds : place.head], data[place.lines : place.end]
        return PageLinks(content_type, language, title, kinds, tuple(targets), lines)


MAGIC = b"letopis leads 2\n"
"""Files of another number were made by other rules, and are skipped."""
FILE_BYTES = 8 << 20
"""The size from which on a new file is begun."""
MAX_CACHE_BYTES = 128 << 20
"""What all files together may take: the links of about half a million pages."""
_HEAD = Struct("<IIQQ")
_CHECKSUM = Struct("<Q")
_FILE_PATTERN = "*.leads"
_HTML = ("text/html", "application/xhtml+xml")
_NEW_VERSION = (Outcome.NEW, Outcome.CHANGED)


def link_cache_folder(archive: Path) -> Path:
    """Where an archive keeps the files; can be deleted at any time."""
    return archive / "index" / "leads"


class LinkCacheWriter:
    """Stores the links of recorded pages. Each crawling process has its own, which never waits for others."""

    def __init__(self, archive: Path, file_bytes: int = FILE_BYTES, most_bytes: int = MAX_CACHE_BYTES) -> None:
        self._folder = link_cache_folder(archive)
        self._file_bytes = file_bytes
        self._most_bytes = most_bytes
        self._file: Path | None = None

    def add(self, looks: Sequence[Observation], done: Sequence[RecordedCapture]) -> None:
        """Writes one frame after checks were recorded; not synced, since what a crash loses is only read again."""
        self.put(*pack_links(_recorded_pages(looks, done)))

    def put(self, versions: Sequence[int], payload: bytes) -> None:
        """Writes what was packed before."""
        if not versions:
            return
        head = _HEAD.pack(len(payload), len(versions), min(versions), max(versions))
        try:
            self._write(b"".join((head, _CHECKSUM.pack(_checksum(head, payload)), payload)))
        except OSError:
            # Readers stop at half a frame.
            self._file = None

    def _write(self, frame: bytes) -> None:
        if self._file is None:
            self._make_room()
            self._file = self._folder / f"{os.urandom(8).hex()}.leads"
        with self._file.open("ab") as opened:
            # The index has read and removed the file: then this begins another one of the same name.
            opened.write(frame if opened.tell() else MAGIC + frame)
            if opened.tell() >= self._file_bytes:
                self._file = None

    def _make_room(self) -> None:
        """Removes the oldest files if no index has read them for too long."""
        make_private_folder(self._folder)
        facts = sorted((found.st_mtime_ns, found.st_size, file) for file, found in _cache_files(self._folder))
        total = sum(size for _, size, _ in facts)
        for _, size, file in facts:
            if total + self._file_bytes <= self._most_bytes:
                break
            file.unlink(missing_ok=True)
            total -= size


def _recorded_pages(looks: Sequence[Observation], done: Sequence[RecordedCapture]) -> Iterator[RecordedPage]:
    """Pages that became versions, and that give the same result whenever they are parsed again."""
    for look, row in zip(looks, done, strict=True):
        page = look.page
        if page is None or page.warnings or page.content_type not in _HTML or row.outcome not in _NEW_VERSION:
            continue
        if row.version is not None and row.identity is not None:
            yield RecordedPage(row.version, row.time, row.identity.sha1, page)


class LinkCacheReader:
    """The links that crawls stored, for the index."""

    def __init__(self, archive: Path) -> None:
        self._folder = link_cache_folder(archive)

    def between(self, first: int, last: int) -> CachedLinks:
        """The links of versions in this range, as far as they are there and complete."""
        found = CachedLinks()
        for file, _ in _cache_files(self._folder):
            with suppress(OSError), file.open("rb") as opened:
                for frame in _frames(opened):
                    if frame.first <= last and first <= frame.last:
                        _add_frame(found, frame, opened.read(frame.size))
        return found

    def drop(self, last: int) -> None:
        """Removes files that hold nothing beyond a version."""
        for file, _ in _cache_files(self._folder):
            with suppress(OSError):
                with file.open("rb") as opened:
                    is_taken = all(frame.last <= last for frame in _frames(opened))
                if is_taken:
                    file.unlink()


class _Frame(NamedTuple):
    size: int
    versions: int
    first: int
    last: int
    checksum: int


def _checksum(fields: bytes, payload: bytes) -> int:
    return xxh3_64_intdigest(payload, seed=xxh3_64_intdigest(fields))


def _frames(opened: BinaryIO) -> Iterator[_Frame]:
    """Heads of frames, as far as they go; the payload of each is read next."""
    if opened.read(len(MAGIC)) != MAGIC:
        return
    at = len(MAGIC)
    while len(head := opened.read(_HEAD.size + _CHECKSUM.size)) == _HEAD.size + _CHECKSUM.size:
        frame = _Frame(*_HEAD.unpack_from(head), *_CHECKSUM.unpack_from(head, _HEAD.size))
        yield frame
        at += len(head) + frame.size
        opened.seek(at)


def _add_frame(found: CachedLinks, frame: _Frame, payload: bytes) -> None:
    if _checksum(_HEAD.pack(*frame[:4]), payload) == frame.checksum:
        found.add(payload, frame.versions)


def _cache_files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    """The existing files of links."""
    found = []
    for file in folder.glob(_FILE_PATTERN):
        with suppress(OSError):
            found.append((file, file.stat()))
    return found
