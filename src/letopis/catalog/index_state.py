"""What the indexes keep in the catalogue.

Pages known by their titles only, URL rules, base forms of words, hashes of near duplicates, and how often search
results were opened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from letopis.catalog.database import Cursor, Database
from letopis.catalog.schema import TopicTables, count_partitions, ensure_tables, has_table, partition_tables
from letopis.tuples import NamedTuple

_TITLES_TABLE, _RULES_TABLE = "titleonly", "urlrules"
INDEXING_TABLES = """
CREATE TABLE IF NOT EXISTS titleonly (resource BIGINT PRIMARY KEY) {clustered};
CREATE TABLE IF NOT EXISTS urlrules (host TEXT PRIMARY KEY, xml TEXT NOT NULL) {clustered};
"""


def prepare_indexing(database: Database) -> None:
    """Creates the tables; call it before a transaction that writes to them."""
    ensure_tables(database, _TITLES_TABLE, INDEXING_TABLES)


def mark_title_only(cursor: Cursor, resources: Iterable[int]) -> None:
    """From now on only the titles of these pages can be found."""
    cursor.run_many("INSERT INTO titleonly (resource) VALUES (?) ON CONFLICT DO NOTHING", [(one,) for one in resources])


def title_only(database: Database) -> frozenset[int]:
    """All pages of which only the titles are to be found."""
    if not has_table(database, _TITLES_TABLE):
        return frozenset()
    return frozenset(int(row[0]) for row in database.all("SELECT resource FROM titleonly"))


def release_titles(database: Database, hosts: Iterable[str]) -> list[int]:
    """Makes the whole text of the pages of these hosts searchable again; returns these pages."""
    if not has_table(database, _TITLES_TABLE):
        return []
    found: list[int] = []
    with database.transaction() as cursor:
        for name in hosts:
            rows = cursor.all(
                "SELECT t.resource FROM titleonly t JOIN resource r ON r.id = t.resource JOIN host h ON h.id = r.host "
                "WHERE h.name = ?",
                (name,),
            )
            found += [int(row[0]) for row in rows]
        cursor.run_many("DELETE FROM titleonly WHERE resource = ?", [(one,) for one in found])
    return found


def set_url_rules(database: Database, rules: dict[str, str]) -> None:
    """Replaces the rules (as XML) of each given host; an empty text removes them."""
    if not any(rules.values()) and not has_table(database, _RULES_TABLE):
        return
    prepare_indexing(database)
    with database.transaction() as cursor:
        for host, xml in rules.items():
            cursor.run("DELETE FROM urlrules WHERE host = ?", (host,))
            if xml:
                cursor.run("INSERT INTO urlrules (host, xml) VALUES (?, ?)", (host, xml))


def url_rules_by_host(database: Database) -> tuple[tuple[str, str], ...]:
    """All hosts with rules, and the rules as XML."""
    if not has_table(database, _RULES_TABLE):
        return ()
    return tuple((str(row[0]), str(row[1])) for row in database.all("SELECT host, xml FROM urlrules ORDER BY host"))


_WORDFORM_TABLE = "wordform"
WORDFORM_TABLES = """
CREATE TABLE IF NOT EXISTS wordform (
    form TEXT PRIMARY KEY, base TEXT NOT NULL, locked SMALLINT NOT NULL DEFAULT 0
) {clustered};
"""


class WordRow(NamedTuple):
    """A word with its base form. A locked word is its own base form, whatever rules and dictionaries say."""

    form: str
    base: str
    locked: bool


def word_rows(database: Database) -> list[WordRow]:
    """All settled words, in their order."""
    if not has_table(database, _WORDFORM_TABLE):
        return []
    rows = database.all("SELECT form, base, locked FROM wordform ORDER BY form")
    return [WordRow(str(row[0]), str(row[1]), bool(row[2])) for row in rows]


def settle_bases(database: Database, pairs: Iterable[tuple[str, str]]) -> None:
    """Gives words their base forms; those that are locked or settled keep what they have."""
    ensure_tables(database, _WORDFORM_TABLE, WORDFORM_TABLES)
    with database.transaction() as cursor:
        cursor.run_many("INSERT INTO wordform (form, base) VALUES (?, ?) ON CONFLICT DO NOTHING", pairs)


def lock_word(database: Database, form: str) -> None:
    """Makes the word its own base form."""
    ensure_tables(database, _WORDFORM_TABLE, WORDFORM_TABLES)
    with database.transaction() as cursor:
        cursor.run(
            "INSERT INTO wordform (form, base, locked) VALUES (?, ?, 1) "
            "ON CONFLICT (form) DO UPDATE SET base = excluded.base, locked = 1",
            (form, form),
        )


def release_word(database: Database, form: str) -> None:
    """Removes the base form of a word."""
    if has_table(database, _WORDFORM_TABLE):
        with database.transaction() as cursor:
            cursor.run("DELETE FROM wordform WHERE form = ?", (form,))


LIKENESS_TABLES = """
CREATE TABLE IF NOT EXISTS likeness (
    band BIGINT NOT NULL, resource BIGINT NOT NULL, PRIMARY KEY (band, resource)
) {clustered};
CREATE TABLE IF NOT EXISTS likeness_mark (id INTEGER PRIMARY KEY, last BIGINT NOT NULL);
"""
_MAKE_STAGING = "CREATE TEMPORARY TABLE IF NOT EXISTS likeness_new (band BIGINT NOT NULL, resource BIGINT NOT NULL)"
_KEEP_NEW_HASHES = (
    "INSERT INTO likeness SELECT DISTINCT band, resource FROM likeness_new WHERE true ON CONFLICT DO NOTHING"
)
_SET_LIKENESS_MARK = (
    "INSERT INTO likeness_mark (id, last) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET last = excluded.last "
    "WHERE likeness_mark.last < excluded.last"
)


class NearDuplicateHashes(TopicTables):
    """The hashes of one archive; they follow the log of versions."""

    topic, table, ddl = "likeness", "likeness", LIKENESS_TABLES

    def last(self) -> int:
        """The id of the last version whose hashes are known."""
        return self._count("SELECT last FROM likeness_mark WHERE id = 1")

    def learn(self, rows: Iterable[tuple[int, int]], last: int) -> None:
        """Adds (hash, page) for versions up to `last`; known ones stay."""
        self.ensure()
        with self._database.transaction() as cursor:
            cursor.run(_MAKE_STAGING)
            cursor.bulk("likeness_new", ("band", "resource"), rows)
            cursor.run(_KEEP_NEW_HASHES)
            cursor.run("DELETE FROM likeness_new")
            cursor.run(_SET_LIKENESS_MARK, (last,))

    def sharing(self, bands: Collection[int]) -> list[int]:
        """The pages that have one of the hashes."""
        if not bands:
            return []
        marks = ", ".join("?" * len(bands))
        rows = self._all(f"SELECT DISTINCT resource FROM likeness WHERE band IN ({marks})", tuple(bands))
        return sorted(int(row[0]) for row in rows)

    def ensure(self) -> None:
        """The table gets as many partitions as the others."""
        made = self._made()
        super().ensure()
        if not made and self._database.dialect.name == "postgresql":
            partition_tables(self._database, max(1, count_partitions(self._database, "capture")))


CHOICE_TABLES = """
CREATE TABLE IF NOT EXISTS search_choice (
    resource BIGINT PRIMARY KEY, shown BIGINT NOT NULL, chosen BIGINT NOT NULL
) {clustered};
"""
_ADD_CHOICES = (
    "INSERT INTO search_choice (resource, shown, chosen) VALUES (?, ?, ?) ON CONFLICT (resource) DO UPDATE "
    "SET shown = search_choice.shown + excluded.shown, chosen = search_choice.chosen + excluded.chosen"
)


class SearchChoices(TopicTables):
    """Counts by resource, never by person."""

    topic, table, ddl = "choices", "search_choice", CHOICE_TABLES

    def shown(self, pages: Sequence[int]) -> None:
        """Counts that these pages were in a result."""
        self._add([(page, 1, 0) for page in sorted(set(pages))])

    def chosen(self, page: int) -> None:
        """Counts that this page was opened from a result."""
        self._add([(page, 0, 1)])

    def often(self) -> dict[int, tuple[int, int]]:
        """How often pages were shown and opened, for those that were ever opened."""
        rows = self._all("SELECT resource, shown, chosen FROM search_choice WHERE chosen > 0")
        return {int(page): (int(shown), int(chosen)) for page, shown, chosen in rows}

    def _add(self, rows: list[tuple[int, int, int]]) -> None:
        self.ensure()
        with self._database.transaction() as cursor:
            cursor.run_many(_ADD_CHOICES, rows)
