"""The index of links: follows the log of versions, a derived thing that can be deleted and is built again.

Order of writes: texts of links, then the columns that point to them, each on
disk before the next. A crash leaves at most texts that nobody points to and
half a frame; both are cut off before the next frame is written.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from backports import zstd

from letopis.archive import Archive
from letopis.archive.handover import Received
from letopis.catalog.indexing import rules_by_host
from letopis.catalog.log import logged_since
from letopis.catalog.spans import count_since
from letopis.catalog.troubles import LogMark, check_mark, log_mark, log_times
from letopis.errors import NotReady
from letopis.graph.addresses import Addresses
from letopis.graph.columns import Ints
from letopis.graph.graph import Graph, History, good_checks
from letopis.graph.journal import MAGIC, Frame, Journal
from letopis.graph.ruled import judge
from letopis.graph.segment import Segment, empty_segment, join_segments, unpack_segment
from letopis.graph.states import read_states
from letopis.graph.taking import LastLinks, take

BATCH = 1000
"""Versions of one frame."""
SMALL = 64
"""Frames that are not full, in a row at the end, that are joined into one."""
_REBUILD = 0.2
"""Share of versions that may be dropped or moved in time before the index is built anew."""


class _Mark(NamedTuple):
    """What a graph was made of; it holds as long as this stays."""

    last: int
    versions: LogMark
    checks: LogMark
    rules: tuple[tuple[str, str], ...]


class LinkIndex:
    """Links of all versions of an archive, kept in `index/links` of its folder.

    Safe to use from several threads and processes: one of them takes in what
    is new, the others read what it wrote.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._folder = archive.folder / "index" / "links"
        self._links = Journal(self._folder / "links.log")
        self._texts = Journal(self._folder / "texts.log")
        self._handed = Received(archive.folder)
        self._turn = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._segment = empty_segment()
        self._parts: list[Segment] = []
        self._frames: list[Frame] = []
        self._addresses = Addresses.of(self._segment)
        self._last_links = LastLinks()
        self._made: tuple[_Mark, Graph] | None = None

    @property
    def last(self) -> int:
        """The id of the last version that was taken in."""
        return self._frames[-1].last if self._frames else 0

    def catch_up(
        self, progress: Callable[[int], None] = lambda done: None, stop: Callable[[], bool] = lambda: False
    ) -> int:
        """Takes in all versions recorded since; answers how many. Can be stopped between two frames."""
        done = 0
        with self._turn:
            self._read_new()
            while not stop() and self._archive.catalog.versions.since(self.last, 1):
                with self._writing():
                    self._read_new()
                    done += self._take_batch()
                progress(done)
            if done:
                self._handed.drop(self.last)
        return done

    def known(self) -> tuple[int, int]:
        """Links of all versions taken in so far, and how many versions were recorded since; takes nothing in."""
        with self._turn:
            self._read_new()
            return len(self._joined().targets), count_since(self._archive.catalog.database, self.last)

    def graph(self) -> Graph:
        """Everything known about links now, as of any date; the same value until something is recorded."""
        with self._turn:
            self.catch_up()
            mark = self._mark()
            if self._made is None or self._made[0] != mark:
                times = self._times(mark.versions)
                if times is None:
                    self._start_over()
                    return self.graph()
                self._made = mark, self._make(self._segment, times, mark.rules)
            return self._made[1]

    def _mark(self) -> _Mark:
        database = self._archive.catalog.database
        return _Mark(self.last, log_mark(database, self.last), check_mark(database), rules_by_host(database))

    def _make(self, segment: Segment, times: Ints, rules: tuple[tuple[str, str], ...]) -> Graph:
        addresses = Addresses.of(segment)
        history = History(segment, times)
        states = read_states(self._archive, addresses, lambda page: good_checks(segment, history, page))
        return Graph(segment, history, addresses, states, self._texts, judge(addresses, rules) if rules else None)

    def _joined(self) -> Segment:
        if self._parts:
            self._segment = join_segments([self._segment, *self._parts])
            self._parts = []
        return self._segment

    def _times(self, mark: LogMark) -> Ints | None:
        """When each version began, -1 for dropped ones; None when the log is no longer the one that was followed."""
        segment = self._joined()
        if mark == (len(segment.ids), int(segment.times.sum())):
            return segment.times
        pairs = np.array(list(log_times(self._archive.catalog.database, self.last)), np.int64).reshape(-1, 2)
        times = np.full(len(segment.ids), -1, np.int64)
        if len(pairs):
            at = np.searchsorted(pairs[:, 0], segment.ids).clip(max=len(pairs) - 1)
            found = pairs[at, 0] == segment.ids
            times[found] = pairs[at[found], 1]
        differing = float((times != segment.times).mean()) if len(times) else 0.0
        return times if differing <= _REBUILD else None

    # Writing

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Keeps other processes from taking in the same versions."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / "lock").open("ab") as opened:
                fcntl.flock(opened, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise NotReady(f"cannot write to {self._folder}: {error.strerror}; check its permissions") from None

    def _take_batch(self) -> int:
        self._join_small()
        rows = logged_since(self._archive.catalog.database, self.last, BATCH)
        if not rows:
            return 0
        handed = self._handed.between(rows[0].id, rows[-1].id)
        self._links.cut(self._frames[-1].end if self._frames else 0)
        self._texts.cut(self._texts_end())
        text_frame = max(self._texts.size(), len(MAGIC))
        taken = take(self._archive, rows, handed, self._addresses, self._last_links, text_frame)
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
        """Many small frames at the end are forgotten and taken in anew as one: a bounded piece of work, seldom."""
        small = 0
        while small < len(self._frames) and self._frames[-1 - small].versions < BATCH // 2:
            small += 1
        if small >= SMALL:
            self._links.cut(self._frames[-small].offset)
            self._forget()
            self._read_new()

    def _start_over(self) -> None:
        with self._writing():
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
            self._addresses = Addresses.of(segment)
            self._last_links = LastLinks()
            self._last_links.learn(segment)

    def _still_there(self, known: Frame) -> bool:
        """Whether the last frame we know is what lies at its place: another process may have joined small ones."""
        return next((frame == known for frame, _ in self._links.frames(known.offset)), False)
