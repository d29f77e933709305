"""The index of links: follows the log of versions; derived, can be deleted and is built again.

What a crawl has read of a page and cached is not read again; a cluster may read pages for it. Order of writes: texts of
links, then the columns that point to them, each on disk before the next. A crash leaves at most texts that nobody
points to and half a frame; both are cut off before the next frame is written.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

from xxhash import xxh3_64_intdigest

from letopis import extract
from letopis.archive import Archive, digest_text
from letopis.archive.archive import indexed_links, link_total_file
from letopis.archive.cluster import PieceRunner, pieces_of
from letopis.archive.index_facts import LoggedVersion, LogMark, VersionLog, url_rules
from letopis.archive.link_cache import (
    CachedLinks,
    LinkCacheReader,
    LinkCacheWriter,
    PageLinks,
    RecordedPage,
    links_of_page,
    pack_links,
)
from letopis.archive.queues import crawl_plans
from letopis.binary import atomic_file, locked_folder
from letopis.errors import LetopisError, NotReady
from letopis.index.link_graph import DROPPED, Graph, GraphHistory, good_checks
from letopis.index.link_storage import (
    JOURNAL_MAGIC,
    NOT_JUDGED,
    ROLE_DOCUMENT,
    ROLE_LIST,
    ROLE_REQUISITE,
    SAME_LINKS,
    Ints,
    LastLinks,
    LinkFrame,
    LinkJournal,
    LinkSegment,
    TextColumn,
    empty_segment,
    join_segments,
    unpack_segment,
)  # fmt: skip
from letopis.index.url_table import UrlTable, apply_url_rules, read_url_states
from letopis.lazy import np
from letopis.model import Page
from letopis.tuples import NamedTuple
from letopis.urls import url_key
from letopis.zstandard import zstd


def links_of_version(archive: Archive, version: int, final: str) -> PageLinks | None:
    """Where a version leads; `final` is the address it was found at after redirects, if another than its own."""
    page = page_of_version(archive, version, final)
    return None if page is None else links_of_page(page)


def page_of_version(archive: Archive, version: int, final: str) -> Page | None:
    """The page of a version as far as the index of links asks for it; None when its bytes are no more."""
    try:
        found = archive.answers.by_id(version)
    except LetopisError:
        # Dropped meanwhile, or its bytes are lost: there is nothing to say about it.
        return None
    return extract.read_page(found.body, final or found.url, found.headers, detect_language=False, mode="basic")


_LIST_TYPES = (
    "application/xml", "text/xml", "application/sitemap+xml", "application/rss+xml", "application/atom+xml",
    "application/feed+json",
)  # fmt: skip
_REQUISITE_TYPES = ("image/", "font/", "audio/", "video/", "text/css", "text/javascript", "application/javascript")


class _VersionRow(NamedTuple):
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


_ROW_TYPES = ("<i8", "<i4", "<i8", "<i2", "<i8", "<i8", "<i8", "<u1", "<u1", "<i4", "<i4")


class LinkBatch(NamedTuple):
    """A stretch of the log as columns; `texts` are those of its links, one line each."""

    segment: LinkSegment
    texts: bytes


class _SegmentBuilder:
    """Collects versions until they become a segment."""

    def __init__(self) -> None:
        self.rows: list[_VersionRow] = []
        self.types: list[str] = []
        self.titles: list[str] = []
        self.languages: list[str] = []
        self.targets: list[int] = []
        self.kinds = bytearray()
        self.lines: list[bytes] = []

    def segment(self, addresses: UrlTable, text_frame: int) -> LinkSegment:
        """The columns; addresses that are new go with them."""
        numbers = list(zip(*self.rows, strict=True)) if self.rows else [()] * len(_VersionRow._fields)
        columns: list[Any] = [
            *addresses.news(),
            *(np.array(column, kind) for column, kind in zip(numbers, _ROW_TYPES, strict=True)),
            *map(TextColumn.of, (self.types, self.titles, self.languages)),
            np.array(self.targets, np.int32),
            np.frombuffer(bytes(self.kinds), np.uint8),
            np.array([text_frame], np.int64),
            np.array([len(self.targets)], np.int64),
        ]
        return LinkSegment(*columns)


def collect_links(
    archive: Archive,
    rows: Sequence[LoggedVersion],
    cached: CachedLinks,
    addresses: UrlTable,
    last: LastLinks,
    text_frame: int,
) -> LinkBatch:
    """What versions say about links: as a crawl cached it, or read out of the archive."""
    draft = _SegmentBuilder()
    for row in rows:
        final = archive.answers.final_url(row.extra) if row.extra else ""
        page_links = cached.of(row.id, row.time, row.sha1) or links_of_version(archive, row.id, final)
        if page_links is not None:
            _add_version(row, final, page_links, draft, addresses, last)
    return LinkBatch(draft.segment(addresses, text_frame), b"\n".join(draft.lines))


def _add_version(
    row: LoggedVersion, final: str, page_links: PageLinks, draft: _SegmentBuilder, addresses: UrlTable, last: LastLinks
) -> None:
    number = addresses.number(row.url)
    targets = addresses.numbers(page_links.targets)
    key = _links_key(targets, page_links)
    count = SAME_LINKS
    if last.replaced(number, key):
        count = len(targets)
        draft.targets += targets
        draft.kinds += page_links.kinds
        if targets:
            draft.lines.append(page_links.lines)
    end = addresses.number(final) if final else -1
    draft.rows.append(_version_row(row, number, key, role_of(page_links.content_type), end, count))
    draft.types.append(page_links.content_type)
    draft.titles.append(page_links.title)
    draft.languages.append(page_links.language)


def _version_row(row: LoggedVersion, page: int, key: int, role: int, final: int, count: int) -> _VersionRow:
    judged = NOT_JUDGED if row.meaningful is None else int(row.meaningful)
    digest = url_key(digest_text(row.sha1))
    return _VersionRow(row.id, page, row.time, row.status, row.raw_bytes, digest, key, judged, role, final, count)


def role_of(kind: str) -> int:
    """What a document is for, by its type."""
    if kind in _LIST_TYPES:
        return ROLE_LIST
    return ROLE_REQUISITE if kind.startswith(_REQUISITE_TYPES) else ROLE_DOCUMENT


def _links_key(targets: list[int], page_links: PageLinks) -> int:
    """Never 0, which stands for "no links known"."""
    key = xxh3_64_intdigest(b"%b%b\n%b" % (array("i", targets).tobytes(), page_links.kinds, page_links.lines))
    return (key >> 1) | 1


BATCH = 1000
"""Versions of one frame."""
MAX_SMALL_FRAMES = 64
"""Frames that are not full, in a row at the end, that are joined into one."""
_REBUILD_SHARE = 0.2
"""Share of versions that may be dropped or moved in time before the index is rebuilt."""


class _GraphMark(NamedTuple):
    """What a graph was made of; it holds as long as this stays."""

    last: int
    versions: LogMark
    checks: LogMark
    rules: tuple[tuple[str, str], ...]


class LinkIndex:
    """Links of all versions of an archive, kept in `index/links` of its folder.

    Safe to use from several threads and processes: one of them indexes what is new, the others read what it wrote.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._log = VersionLog(archive)
        self._folder = archive.folder / "index" / "links"
        self._links = LinkJournal(self._folder / "links.log")
        self._texts = LinkJournal(self._folder / "texts.log")
        self._cache = LinkCacheReader(archive.folder)
        self._turn = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._segment = empty_segment()
        self._parts: list[LinkSegment] = []
        self._frames: list[LinkFrame] = []
        self._addresses = UrlTable.of(self._segment)
        self._last_links = LastLinks()
        self._made: tuple[_GraphMark, Graph] | None = None

    @property
    def last(self) -> int:
        """The id of the last indexed version."""
        return self._frames[-1].last if self._frames else 0

    def catch_up(
        self, progress: Callable[[int], None] = lambda done: None, stop: Callable[[], bool] = lambda: False
    ) -> int:
        """Indexes all versions recorded since; returns how many. Can be stopped between two frames."""
        done = 0
        with self._turn:
            self._read_new()
            while not stop() and self._log.has_since(self.last):
                with locked_folder(self._folder):
                    self._read_new()
                    done += self._take_batch()
                progress(done)
            if done:
                self._cache.drop(self.last)
                self._note_total()
        return done

    def _note_total(self) -> None:
        """Records how many links there are for readers of the totals that do not load this index."""
        total, file = len(self._joined().targets), link_total_file(self._archive.folder)
        if total != indexed_links(self._archive.folder):
            # A figure for people: where it cannot be written, an index that can be read is worth more.
            with suppress(NotReady), atomic_file(file) as out:
                out.write(b"%d" % total)

    def known(self) -> tuple[int, int]:
        """Links of all indexed versions, and how many versions were recorded since; indexes nothing."""
        with self._turn:
            behind = self.behind()
            self._note_total()
            return len(self._joined().targets), behind

    def behind(self) -> int:
        """How many versions were recorded since; takes nothing in."""
        with self._turn:
            self._read_new()
            return self._log.count_since(self.last)

    def graph(self) -> Graph:
        """Everything known about links now, as of any date; the same value until something is recorded."""
        with self._turn:
            try:
                self.catch_up()
            except NotReady:  # a full disk: what was taken in before can be read
                if not self._frames:
                    raise
            mark = self._mark()
            if self._made is None or self._made[0] != mark:
                times = self._times(mark.versions)
                if times is None:
                    self._start_over()
                    return self.graph()
                self._made = mark, self._make(self._segment, times, mark.rules)
            return self._made[1]

    def _mark(self) -> _GraphMark:
        return _GraphMark(self.last, self._log.mark(self.last), self._log.check_mark(), url_rules(self._archive))

    def _make(self, segment: LinkSegment, times: Ints, rules: tuple[tuple[str, str], ...]) -> Graph:
        addresses = UrlTable.of(segment)
        history = GraphHistory(segment, times)
        states = read_url_states(self._archive, addresses, lambda page: good_checks(segment, history, page))
        return Graph(
            segment, history, addresses, states, self._read_lines, apply_url_rules(addresses, rules) if rules else None,
            tuple(seed for plan in crawl_plans(self._archive) for seed in plan.seeds),
        )  # fmt: skip

    def _joined(self) -> LinkSegment:
        if self._parts:
            self._segment = join_segments([self._segment, *self._parts])
            self._parts = []
        return self._segment

    def _times(self, mark: LogMark) -> Ints | None:
        """When each version began, DROPPED for dropped ones; None when the log is not the one that was followed."""
        segment = self._joined()
        if mark == (len(segment.ids), int(segment.times.sum())):
            return segment.times
        pairs = np.array(list(self._log.times(self.last)), np.int64).reshape(-1, 2)
        times = np.full(len(segment.ids), DROPPED, np.int64)
        if len(pairs):
            at = np.searchsorted(pairs[:, 0], segment.ids).clip(max=len(pairs) - 1)
            found = pairs[at, 0] == segment.ids
            times[found] = pairs[at[found], 1]
        differing = float((times != segment.times).mean()) if len(times) else 0.0
        return times if differing <= _REBUILD_SHARE else None

    # Writing

    def _take_batch(self) -> int:
        self._join_small()
        rows = self._log.since(self.last, BATCH)
        if not rows:
            return 0
        cached = self._cache.between(rows[0].id, rows[-1].id)
        self._links.cut(self._frames[-1].end if self._frames else 0)
        self._texts.cut(self._texts_end())
        text_frame = max(self._texts.size(), len(JOURNAL_MAGIC))
        taken = collect_links(self._archive, rows, cached, self._addresses, self._last_links, text_frame)
        self._texts.append(zstd.compress(taken.texts, 6), len(rows), rows[-1].id)
        frame = self._links.append(taken.segment.pack(), len(rows), rows[-1].id)
        self._frames.append(frame)
        self._parts.append(taken.segment)
        return len(rows)

    def _texts_end(self) -> int:
        """Where the texts end that some frame points to."""
        segment = self._parts[-1] if self._parts else self._segment
        if not len(segment.text_frames):
            return 0
        for frame, _ in self._texts.frames(int(segment.text_frames[-1])):
            return frame.end
        return int(segment.text_frames[-1])

    def _join_small(self) -> None:
        """Many small frames at the end are removed and indexed again as one: bounded work, and rare."""
        small = 0
        while small < len(self._frames) and self._frames[-1 - small].versions < BATCH // 2:
            small += 1
        if small >= MAX_SMALL_FRAMES:
            self._links.cut(self._frames[-small].offset)
            self._forget()
            self._read_new()

    def _start_over(self) -> None:
        with locked_folder(self._folder):
            self._links.cut(0)
            self._texts.cut(0)
            self._forget()

    # Reading

    def _read_new(self) -> None:
        """Frames that are on disk and not yet in memory."""
        if self._frames and not self._still_there(self._frames[-1]):
            self._forget()
        start = self._frames[-1].end if self._frames else 0
        for frame, payload in self._links.frames(start):
            self._frames.append(frame)
            self._parts.append(unpack_segment(payload))
        if self._frames and self._frames[-1].end > start:
            segment = self._joined()
            self._addresses = UrlTable.of(segment)
            self._last_links = LastLinks()
            self._last_links.learn(segment)

    def _read_lines(self, segment: LinkSegment, number: int) -> list[str]:
        """The texts of the links of one frame; damaged ones are read out of the archive, and taken in again later."""
        packed = self._texts.read(int(segment.text_frames[number]))
        if packed is not None:
            return zstd.decompress(packed).decode("utf-8", "surrogatepass").split("\n")
        with suppress(NotReady):
            self._take_in_again(int(segment.text_frames[number]))
        own = np.where(segment.counts == SAME_LINKS, 0, segment.counts)
        ends, end = np.cumsum(own), int(segment.text_links[: number + 1].sum())
        rows = np.flatnonzero((own > 0) & (ends <= end) & (ends > end - segment.text_links[number]))
        return [line for row in rows.tolist() for line in self._lines_anew(segment, row)]

    def _lines_anew(self, segment: LinkSegment, row: int) -> list[str]:
        """As many as the version had; without texts where it can be read no more."""
        final = UrlTable.of(segment)[segment.finals[row]] if segment.finals[row] >= 0 else ""
        links, count = links_of_version(self._archive, int(segment.ids[row]), final), int(segment.counts[row])
        lines = [] if links is None else links.lines.decode("utf-8", "surrogatepass").split("\n")
        return lines if len(lines) == count else [""] * count

    def _take_in_again(self, text_frame: int) -> None:
        """Forgets the versions from a frame of texts on, or all where none of the texts can be read."""
        with self._turn, locked_folder(self._folder):
            self._read_new()
            places = self._joined().text_frames.tolist()
            if next(self._texts.frames(), None) is None:
                self._links.cut(0)
            elif text_frame in places:
                self._links.cut(self._frames[places.index(text_frame)].offset)
            self._forget()

    def _still_there(self, known: LinkFrame) -> bool:
        """Whether the last known frame is still at its place: another process may have joined small ones."""
        return next((frame == known for frame, _ in self._links.frames(known.offset)), False)


PIECE = 250
"""Versions that a worker reads at once."""
_STRETCH = 20_000
"""Versions whose links are cached before they are indexed: far fewer than are stored."""


class VersionRange(NamedTuple):
    """Versions of the log with an id above `after`, up to `last`."""

    after: int
    last: int


def catch_up_on_cluster(
    spread: PieceRunner, archive: Archive, index: LinkIndex, progress: Callable[[int], None] = lambda done: None
) -> int:
    """As `LinkIndex.catch_up`, with the pages read elsewhere; returns how many versions it indexed.

    Less than a piece is read here: that takes less time than to ask others.
    """
    writer, done = LinkCacheWriter(archive.folder), 0
    while index.known()[1] >= PIECE:
        reaches = _version_ranges(archive, index.last)
        for versions, payload in spread.each(pack_range, reaches):
            writer.put(versions, payload)
        done += index.catch_up(
            partial(_forward_progress, progress, done), partial(_has_reached, index, reaches[-1].last)
        )
    return done + index.catch_up(partial(_forward_progress, progress, done))


def _version_ranges(archive: Archive, after: int) -> list[VersionRange]:
    """The next stretch of the log, cut by what is there: numbers of versions have gaps."""
    rows = VersionLog(archive).since(after, _STRETCH)
    ends = [piece[-1].id for piece in pieces_of(rows, PIECE)]
    return [VersionRange(*pair) for pair in pairwise([after, *ends])]


def _has_reached(index: LinkIndex, last: int) -> bool:
    return index.last >= last


def _forward_progress(progress: Callable[[int], None], before: int, count: int) -> None:
    progress(before + count)


def pack_range(archive: Archive, reach: VersionRange) -> tuple[list[int], bytes]:
    """What some versions say about links, as the cache holds it."""
    rows = VersionLog(archive).since(reach.after, PIECE)
    found = (_read_page(archive, row) for row in rows if row.id <= reach.last)
    return pack_links(page for page in found if page is not None)


def _read_page(archive: Archive, row: LoggedVersion) -> RecordedPage | None:
    page = page_of_version(archive, row.id, archive.answers.final_url(row.extra) if row.extra else "")
    return None if page is None else RecordedPage(row.id, row.time, row.sha1, page)
