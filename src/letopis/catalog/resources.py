"""URLs we know, their hosts, and the sorted keys under which captures are listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from letopis.catalog.database import Cursor, Database
from letopis.catalog.rows import Reader, ResourceRow
from letopis.urls import host as host_of
from letopis.urls import surt, url_key

_COLUMNS = "id, url, host, versions, newest, checked"
_ADDED = ("id", "url_key", "url", "host", "versions", "newest", "checked", "title")
_PREFIXED = ", ".join(f"resource.{column}" for column in _COLUMNS.split(", "))


class Resources:
    """Finds and registers URLs. Writes happen inside the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._hosts: dict[str, int] = {}

    def find(self, url: str, reader: Reader | None = None) -> ResourceRow | None:
        """The URL's row, or None when it was never seen."""
        rows = (reader or self._database).all(f"SELECT {_COLUMNS} FROM resource WHERE url_key = ?", (url_key(url),))
        # Two addresses may share a 64-bit key; the text decides.
        return next((ResourceRow(*row) for row in rows if row[1] == url), None)

    def by_id(self, number: int) -> ResourceRow | None:
        """The row of a known id."""
        row = self._database.one(f"SELECT {_COLUMNS} FROM resource WHERE id = ?", (number,))
        return ResourceRow(*row) if row else None

    def ensure(self, cursor: Cursor, url: str) -> ResourceRow:
        """The URL's row, made when it is new."""
        found = self.find(url, cursor)
        if found is not None:
            return found
        host = self.ensure_host(cursor, host_of(url))
        row = cursor.one(
            "INSERT INTO resource (url_key, url, host) VALUES (?, ?, ?) RETURNING id", (url_key(url), url, host)
        )
        assert row is not None
        return ResourceRow(int(row[0]), url, host, 0, None, None)

    def numbered(self, cursor: Cursor, urls: Sequence[str]) -> list[ResourceRow]:
        """Rows for URLs that are not known, with the ids under which `add_many` writes them in this transaction."""
        numbers = cursor.numbers("resource", len(urls)) if urls else ()
        return [
            ResourceRow(number, url, self.ensure_host(cursor, host_of(url)), 0, None, None)
            for number, url in zip(numbers, urls, strict=True)
        ]

    def add_many(self, cursor: Cursor, rows: Sequence[tuple[ResourceRow, str | None]]) -> None:
        """Writes new URLs, each with its title."""
        if rows:
            filled = [(row.id, url_key(row.url), *row[1:], title) for row, title in rows]
            cursor.bulk("resource", _ADDED, filled)

    def ensure_host(self, cursor: Cursor, name: str) -> int:
        """The host's id, made when it is new."""
        if name not in self._hosts:
            row = cursor.one(
                "INSERT INTO host (name) VALUES (?) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id",
                (name,),
            )
            assert row is not None
            self._remember(name, int(row[0]))
        return self._hosts[name]

    def _remember(self, name: str, number: int) -> None:
        if len(self._hosts) >= 100_000:
            self._hosts.clear()
        self._hosts[name] = number

    def forget_hosts(self) -> None:
        """After a rolled back transaction, ids handed out inside it mean nothing."""
        self._hosts.clear()

    def list_captured(self, cursor: Cursor, row: ResourceRow) -> None:
        """Makes a URL findable by its sorted key, at its first capture."""
        cursor.run("INSERT INTO surt (name, resource) VALUES (?, ?) ON CONFLICT DO NOTHING", (surt(row.url), row.id))

    def of_host(self, name: str) -> Iterator[ResourceRow]:
        """All known URLs of a host that have been looked at, oldest first."""
        rows = self._database.stream(
            f"SELECT {_PREFIXED} FROM resource JOIN host ON host.id = resource.host "
            "WHERE host.name = ? AND resource.checked IS NOT NULL ORDER BY resource.id",
            (name,),
        )
        return (ResourceRow(*row) for row in rows)

    def all(self) -> Iterator[ResourceRow]:
        """Every URL that has been looked at, oldest first."""
        rows = self._database.stream(f"SELECT {_COLUMNS} FROM resource WHERE checked IS NOT NULL ORDER BY id")
        return (ResourceRow(*row) for row in rows)

    def with_versions(self, after: tuple[str, int], limit: int) -> list[tuple[str, ResourceRow]]:
        """The next URLs that have at least one version, each behind its sorted key, so that a site stays together."""
        rows = self._database.all(
            f"SELECT surt.name, {_PREFIXED} FROM surt JOIN resource ON resource.id = surt.resource "
            "WHERE (surt.name, surt.resource) > (?, ?) AND resource.versions > 0 "
            "ORDER BY surt.name, surt.resource LIMIT ?",
            (*after, limit),
        )
        return [(row[0], ResourceRow(*row[1:])) for row in rows]

    def under(self, prefix: str, limit: int) -> list[ResourceRow]:
        """Some URLs that have a version and whose sorted keys begin alike."""
        rows = self._database.all(
            f"SELECT {_PREFIXED} FROM surt JOIN resource ON resource.id = surt.resource "
            "WHERE surt.name >= ? AND surt.name < ? AND resource.versions > 0 ORDER BY surt.name LIMIT ?",
            (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), limit),
        )
        return [ResourceRow(*row) for row in rows]

    def with_error_bodies(self) -> Iterator[ResourceRow]:
        """URLs with checks that kept a body which is no version."""
        rows = self._database.stream(
            f"SELECT {_COLUMNS} FROM resource WHERE id IN "
            "(SELECT resource FROM capture WHERE content IS NOT NULL) ORDER BY id"
        )
        return (ResourceRow(*row) for row in rows)

    def set_count(self, cursor: Cursor, number: int, versions: int) -> None:
        """How many versions are left after some were dropped; the newest never is."""
        cursor.run("UPDATE resource SET versions = ? WHERE id = ?", (versions, number))

    def touch(self, cursor: Cursor, changes: Iterable[tuple[int, int | None, int, str | None, int]]) -> None:
        """Sets what a check changed: rows (versions, newest, checked, title or None to keep it, id)."""
        cursor.run_many(
            "UPDATE resource SET versions = ?, newest = ?, checked = ?, title = coalesce(?, title) WHERE id = ?",
            changes,
        )
