"""What a person has not read yet: an observer of their own for each signed-in reader."""

from __future__ import annotations

from collections.abc import Iterable

from letopis.archive import Archive
from letopis.catalog.observers import Look
from letopis.catalog.rows import ResourceRow
from letopis.model import to_millis
from letopis.serve.access import Principal


class Marks:
    """Unread marks of one person; whoever is not signed in has none."""

    def __init__(self, archive: Archive, principal: Principal) -> None:
        self._archive = archive
        self._uid = f"web:{principal.name}" if principal.session is not None else ""

    def unread(self, resources: Iterable[ResourceRow]) -> set[int]:
        """Ids of the pages that have a newer version than the person has seen, or changed before they ever looked."""
        rows = list(resources)
        if not self._uid:
            return set()
        looks = self._archive.catalog.observers.looks(self._uid, [row.id for row in rows])
        return {row.id for row in rows if _is_unread(row, looks.get(row.id))}

    def read(self, resources: Iterable[ResourceRow]) -> None:
        """The person has seen the newest versions of these pages."""
        rows = list(resources)
        unread = self.unread(rows)
        if not unread:
            return
        now = to_millis(self._archive.clock())
        looks = [(row.id, Look(row.newest, now)) for row in rows if row.id in unread]
        with self._archive.catalog.transaction() as cursor:
            self._archive.catalog.observers.set_many(cursor, self._uid, looks)


def _is_unread(row: ResourceRow, look: Look | None) -> bool:
    if row.newest is None:
        return False
    return row.versions > 1 if look is None else (look.version or 0) < row.newest
