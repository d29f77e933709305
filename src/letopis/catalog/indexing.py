"""What jobs have settled about the indexes: rules of addresses by host, and pages that only their titles stand for."""

from __future__ import annotations

from collections.abc import Iterable

from letopis.catalog.database import Cursor, Database
from letopis.catalog.extras import ensure, present

_TITLES, _RULES = "titleonly", "urlrules"
TABLES = """
CREATE TABLE IF NOT EXISTS titleonly (resource BIGINT PRIMARY KEY) {clustered};
CREATE TABLE IF NOT EXISTS urlrules (host TEXT PRIMARY KEY, xml TEXT NOT NULL) {clustered};
"""


def prepare_indexing(database: Database) -> None:
    """Makes the tables; to be called before a transaction that writes to them."""
    ensure(database, _TITLES, TABLES)


def mark_title_only(cursor: Cursor, resources: Iterable[int]) -> None:
    """From now on only the titles of these pages can be found."""
    cursor.run_many("INSERT INTO titleonly (resource) VALUES (?) ON CONFLICT DO NOTHING", [(one,) for one in resources])


def title_only(database: Database) -> frozenset[int]:
    """All pages of which only the titles are to be found."""
    if not present(database, _TITLES):
        return frozenset()
    return frozenset(int(row[0]) for row in database.all("SELECT resource FROM titleonly"))


def release_titles(database: Database, hosts: Iterable[str]) -> list[int]:
    """Lets the whole text of the pages of these hosts be found again; answers which pages that concerns."""
    if not present(database, _TITLES):
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


def set_rules(database: Database, rules: dict[str, str]) -> None:
    """Puts the rules (as XML) of each host named in place of those before; an empty text removes them."""
    if not any(rules.values()) and not present(database, _RULES):
        return
    prepare_indexing(database)
    with database.transaction() as cursor:
        for host, xml in rules.items():
            cursor.run("DELETE FROM urlrules WHERE host = ?", (host,))
            if xml:
                cursor.run("INSERT INTO urlrules (host, xml) VALUES (?, ?)", (host, xml))


def rules_by_host(database: Database) -> tuple[tuple[str, str], ...]:
    """All hosts with rules, and the rules as XML."""
    if not present(database, _RULES):
        return ()
    return tuple((str(row[0]), str(row[1])) for row in database.all("SELECT host, xml FROM urlrules ORDER BY host"))
