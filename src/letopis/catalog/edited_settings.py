"""Settings that owners changed while the archive was running; they apply the next time it is opened."""

from __future__ import annotations

from letopis.catalog.schema import TopicTables
from letopis.tuples import NamedTuple

EDITED_TABLES = """
CREATE TABLE IF NOT EXISTS edited_setting (
    name TEXT PRIMARY KEY, value TEXT NOT NULL, who TEXT NOT NULL, time BIGINT NOT NULL
) {clustered};
"""


class EditedSetting(NamedTuple):
    """A setting with its text, who set it, and when."""

    name: str
    value: str
    who: str
    time: int


class EditedSettings(TopicTables):
    """Reads return nothing until the first change; every change is one transaction."""

    topic, table, ddl = "edited settings", "edited_setting", EDITED_TABLES

    def all(self) -> dict[str, EditedSetting]:
        """Those that were changed, by name."""
        rows = self._all("SELECT name, value, who, time FROM edited_setting ORDER BY name")
        return {str(row[0]): EditedSetting(*row) for row in rows}

    def set(self, edited: EditedSetting) -> None:
        """Stores a value, replacing the previous one."""
        self.ensure()
        with self._database.transaction() as cursor:
            cursor.run("DELETE FROM edited_setting WHERE name = ?", (edited.name,))
            cursor.run("INSERT INTO edited_setting (name, value, who, time) VALUES (?, ?, ?, ?)", edited)

    def reset(self, name: str) -> bool:
        """Removes a value; False if there was none."""
        if name not in self.all():
            return False
        with self._database.transaction() as cursor:
            return cursor.run("DELETE FROM edited_setting WHERE name = ?", (name,)) > 0
