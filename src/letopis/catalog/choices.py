"""Which answers of search people chose. Kept only where the owner switched it on; names of people are not."""

from __future__ import annotations

from collections.abc import Sequence

from letopis.catalog.database import Database
from letopis.catalog.extras import ensure, present

TABLES = """
CREATE TABLE IF NOT EXISTS search_choice (
    resource BIGINT PRIMARY KEY, shown BIGINT NOT NULL, chosen BIGINT NOT NULL
) {clustered};
"""
_ADD = (
    "INSERT INTO search_choice (resource, shown, chosen) VALUES (?, ?, ?) ON CONFLICT (resource) DO UPDATE "
    "SET shown = search_choice.shown + excluded.shown, chosen = search_choice.chosen + excluded.chosen"
)


class Choices:
    """Counts by resource, never by person."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def shown(self, pages: Sequence[int]) -> None:
        """These pages stood in an answer."""
        self._add([(page, 1, 0) for page in sorted(set(pages))])

    def chosen(self, page: int) -> None:
        """Somebody went from an answer to this page."""
        self._add([(page, 0, 1)])

    def often(self) -> dict[int, tuple[int, int]]:
        """How often pages were shown and chosen, those that ever were chosen."""
        if not present(self._database, "search_choice"):
            return {}
        rows = self._database.all("SELECT resource, shown, chosen FROM search_choice WHERE chosen > 0")
        return {int(page): (int(shown), int(chosen)) for page, shown, chosen in rows}

    def _add(self, rows: list[tuple[int, int, int]]) -> None:
        ensure(self._database, "choices", TABLES)
        with self._database.transaction() as cursor:
            cursor.run_many(_ADD, rows)
