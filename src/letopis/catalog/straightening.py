"""A catalogue whose rows were saved one by one, made to agree with itself again.

What contradicts itself goes: a version without its content or its URL, a URL
that is not found by its name. Numbers of versions follow their times, and
the list of sorted keys is made anew. The packs tell the rest again.
"""

from __future__ import annotations

from letopis.catalog.catalog import Catalog
from letopis.catalog.database import Cursor
from letopis.catalog.schema import TYPED_TABLES, misfits
from letopis.catalog.table_copy import known_tables
from letopis.urls import host as host_of
from letopis.urls import surt, url_key

_WITHOUT_OWNER = (
    "DELETE FROM version WHERE content NOT IN (SELECT id FROM content) OR resource NOT IN (SELECT id FROM resource)",
    "DELETE FROM capture WHERE resource NOT IN (SELECT id FROM resource)",
    "UPDATE capture SET content = NULL WHERE content NOT IN (SELECT id FROM content)",
    "DELETE FROM surt",
)
_COUNTED = (
    "UPDATE resource SET versions = coalesce((SELECT count(*) FROM version v WHERE v.resource = resource.id), 0), "
    "newest = (SELECT v.id FROM version v WHERE v.resource = resource.id ORDER BY v.number DESC LIMIT 1)"
)
_LAST_CHECKED = (
    "UPDATE resource SET checked = (SELECT max(t) FROM (SELECT max(time) AS t FROM version v WHERE v.resource = "
    "resource.id UNION ALL SELECT max(time) FROM capture c WHERE c.resource = resource.id))"
)


def straighten(catalog: Catalog) -> None:
    """Makes the rows of a catalogue agree with each other, in one transaction."""
    known_tables(catalog.database, catalog.database)  # of the tables of a topic damage may have left a part
    with catalog.transaction() as cursor:
        for table in TYPED_TABLES if catalog.database.dialect.name == "sqlite" else ():
            cursor.run(f"DELETE FROM {table} WHERE {misfits(cursor, table)}")
        _drop_misnamed(catalog, cursor)
        for statement in _WITHOUT_OWNER:
            cursor.run(statement)
        catalog.imported.drop_dangling(cursor)
        catalog.sets.drop_dangling(cursor)
        _renumber(cursor)
        cursor.run(_COUNTED)
        cursor.run(_LAST_CHECKED)
        names = cursor.all("SELECT url, id FROM resource WHERE checked IS NOT NULL")
        cursor.run_many(
            "INSERT INTO surt (name, resource) VALUES (?, ?) ON CONFLICT DO NOTHING",
            ((surt(url), number) for url, number in names),
        )


def _drop_misnamed(catalog: Catalog, cursor: Cursor) -> None:
    """URLs that no question finds, and of several rows of one URL all but the first; hosts that are gone come back."""
    hosts = {row[0] for row in cursor.all("SELECT id FROM host")}
    seen: set[str] = set()
    for number, url, key, host in cursor.all("SELECT id, url, url_key, host FROM resource ORDER BY id"):
        if url_key(url) != key or url in seen:
            cursor.run("DELETE FROM resource WHERE id = ?", (number,))
        elif host not in hosts:
            found = catalog.resources.ensure_host(cursor, host_of(url))
            cursor.run("UPDATE resource SET host = ? WHERE id = ?", (found, number))
        seen.add(url)


def _renumber(cursor: Cursor) -> None:
    """Versions of each URL in the order of their times, from 0; of two at one moment the later row goes."""
    last: tuple[int, int] | None = None
    expected = 0
    for number, resource, found, time in cursor.all("SELECT id, resource, number, time FROM version ORDER BY 2, 4, 1"):
        if last == (resource, time):
            cursor.run("DELETE FROM version WHERE id = ?", (number,))
            continue
        expected = expected + 1 if last is not None and last[0] == resource else 0
        last = (resource, time)
        if found != expected:
            cursor.run("UPDATE version SET number = ? WHERE id = ?", (expected, number))
