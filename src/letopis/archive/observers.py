"""What each observer has seen: one mark per page, the version seen last.

An observer is a name given with a check, or a person in the web interface. This module is loaded with every check, so
it knows nothing about watches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from letopis.archive.archive import Archive, of_archive
from letopis.archive.page_memory import RecordExtension
from letopis.archive.records import RecordedCapture
from letopis.catalog import Cursor, ObserverState, ResourceRow
from letopis.catalog.versions import LastCheck, last_checks
from letopis.model import Observation, to_millis

__all__ = ["LastCheck", "ObserverMarks", "ObserverState", "UnreadMarks", "last_checks_of"]

last_checks_of = of_archive(last_checks)
"""The last checks and newest versions of those of many URLs that are known."""


class ObserverMarks:
    """What one observer has seen of each page; an empty name is no observer and keeps no marks."""

    def __init__(self, archive: Archive, observer: str) -> None:
        self._archive = archive
        self._observer = observer

    def known(self) -> bool:
        """Whether this observer has checked anything yet."""
        return self._archive.catalog.observers.known(self._observer)

    def seen(self, resources: Sequence[int]) -> dict[int, ObserverState]:
        """The last checks of pages, by their ids; only pages that were checked."""
        return self._archive.catalog.observers.looks(self._observer, resources) if self._observer else {}

    def last_seen(self, url: str) -> ObserverState | None:
        """The last check of a page."""
        row = self._archive.catalog.resources.find(url)
        return self.seen([row.id]).get(row.id) if row is not None else None

    def moving_with(self, looks: Sequence[Observation]) -> RecordExtension:
        """For `Archive.record`: the marks move to the results of a batch of checks, in the same transaction."""

        def move(cursor: Cursor, done: list[RecordedCapture]) -> None:
            there = [row for look, row in zip(looks, done, strict=True) if look.response.available]
            moved = ((row.resource, ObserverState(row.version, row.time)) for row in there)
            if self._observer:
                self._archive.catalog.observers.set_many(cursor, self._observer, moved)

        return move

    def move_to_newest(self, urls: Iterable[str]) -> None:
        """The observer has seen the newest versions of pages."""
        if rows := self._known(urls):
            now = to_millis(self._archive.clock())
            self._set((row.id, ObserverState(row.newest, now)) for row in rows)

    def _known(self, urls: Iterable[str]) -> list[ResourceRow]:
        if not self._observer:
            return []
        return [row for row in map(self._archive.catalog.resources.find, dict.fromkeys(urls)) if row is not None]

    def _set(self, marks: Iterable[tuple[int, ObserverState]]) -> None:
        with self._archive.catalog.transaction() as cursor:
            self._archive.catalog.observers.set_many(cursor, self._observer, marks)


class UnreadMarks(ObserverMarks):
    """What is new to one person in the web interface; without a sign-in there is no name, and nothing is new."""

    def unread(self, urls: Iterable[str]) -> set[str]:
        """Pages with a newer version than the person has seen, or that changed before the person's first look."""
        rows = self._known(urls)
        looks = self.seen([row.id for row in rows])
        return {row.url for row in rows if _is_unread(row, looks.get(row.id))}

    def read_at(self, urls: Iterable[str]) -> dict[str, int]:
        """When the person last read the known ones of these pages, 0 for never; empty for nobody."""
        rows = self._known(urls)
        looks = self.seen([row.id for row in rows])
        return {row.url: looks[row.id].looked if row.id in looks else 0 for row in rows}

    def move_up_to(self, url: str, time: int) -> bool:
        """The person has read the alerts of a page up to a time, not its newest version; False if they had before."""
        rows, look = self._known([url]), self.last_seen(url)
        if not rows or (look is not None and look.looked >= time):
            return False
        self._set((row.id, ObserverState(look.version if look is not None else None, time)) for row in rows)
        return True

    def keep_unread(self, urls: Iterable[str], since: int = 0) -> None:
        """Makes pages new to the person again, as if never seen, or not since a time."""
        self._set([(row.id, ObserverState(None, since)) for row in self._known(urls)])


def _is_unread(row: ResourceRow, look: ObserverState | None) -> bool:
    if row.newest is None:
        return False
    return row.versions > 1 if look is None else (look.version or 0) < row.newest
