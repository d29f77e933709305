"""URLs and their hosts, what is known about their noise, the rules set for them, and what each observer saw last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from letopis.catalog.database import Cursor, Database, storable_text
from letopis.catalog.schema import ResourceRow, RowReader, ensure_tables, has_table
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of
from letopis.urls import surt, url_key

_RESOURCE_COLUMNS = "id, url, host, versions, newest, checked"
_NEW_RESOURCE_COLUMNS = ("id", "url_key", "url", "host", "versions", "newest", "checked", "title")
_TOUCHED = ("integer", "bigint", "bigint", "text", "bigint")
_MAX_CACHED_HOSTS = 100_000
_AT_ONCE = 250
_QUALIFIED_COLUMNS = ", ".join(f"resource.{column}" for column in _RESOURCE_COLUMNS.split(", "))


class Resources:
    """Finds and registers URLs. Writes happen inside the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._hosts: dict[str, int] = {}

    def find(self, url: str, reader: RowReader | None = None) -> ResourceRow | None:
        """The row of the URL, or None if it was never seen."""
        rows = (reader or self._database).all(
            f"SELECT {_RESOURCE_COLUMNS} FROM resource WHERE url_key = ?", (url_key(url),)
        )
        # Two addresses may share a 64-bit key; the text decides.
        return next((ResourceRow(*row) for row in rows if row[1] == url), None)

    def last_checked(self) -> int | None:
        """When the last check of any URL was."""
        row = self._database.one("SELECT max(checked) FROM resource")
        return None if row is None or row[0] is None else int(row[0])

    def by_id(self, number: int) -> ResourceRow | None:
        """The row of a known id."""
        row = self._database.one(f"SELECT {_RESOURCE_COLUMNS} FROM resource WHERE id = ?", (number,))
        return ResourceRow(*row) if row else None

    def ensure(self, cursor: Cursor, url: str) -> ResourceRow:
        """The row of the URL, created if it is new."""
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
        names = [host_of(url) for url in urls]
        hosts = self.ensure_hosts(cursor, names)
        numbers = cursor.numbers("resource", len(urls)) if urls else ()
        return [
            ResourceRow(number, url, hosts[name], 0, None, None)
            for number, url, name in zip(numbers, urls, names, strict=True)
        ]

    def add_many(self, cursor: Cursor, rows: Sequence[tuple[ResourceRow, str | None]]) -> None:
        """Writes new URLs, each with its title."""
        if rows:
            filled = [(row.id, url_key(row.url), *row[1:], title) for row, title in rows]
            cursor.bulk("resource", _NEW_RESOURCE_COLUMNS, filled)

    def ensure_host(self, cursor: Cursor, name: str) -> int:
        """The id of the host, created if it is new."""
        return self.ensure_hosts(cursor, [name])[name]

    def ensure_hosts(self, cursor: Cursor | None, names: Iterable[str]) -> dict[str, int]:
        """Ids of hosts; new ones are created.

        If a statement can run during an open transaction, hosts are created at once and permanently, so that processes
        which link to a host do not wait for the first one; no cursor is needed then.
        """
        found = {name: self._hosts.get(name, 0) for name in names}
        missing = sorted(name for name, number in found.items() if not number)
        reader = self._database if cursor is None or self._database.dialect.beside else cursor
        for start in range(0, len(missing), _AT_ONCE):
            part = missing[start : start + _AT_ONCE]
            self._look_up(reader, part)
            if new := [name for name in part if name not in self._hosts]:
                values = ", ".join(["(?)"] * len(new))
                reader.all(f"INSERT INTO host (name) VALUES {values} ON CONFLICT (name) DO NOTHING RETURNING id", new)
                self._look_up(reader, new)
            found.update((name, self._hosts[name]) for name in part)
        return found

    def _look_up(self, reader: RowReader, names: Sequence[str]) -> None:
        if len(self._hosts) >= _MAX_CACHED_HOSTS:
            self._hosts.clear()
        kept = {storable_text(name): name for name in names}
        rows = reader.all(f"SELECT name, id FROM host WHERE name IN ({', '.join('?' * len(names))})", names)
        self._hosts.update((kept[str(name)], int(number)) for name, number in rows)

    def locks(self, hosts: Collection[int]) -> list[str]:
        """The statement that locks hosts; none if there is a single writer.

        All lock in the same order, so there are no deadlocks.
        """
        locked = self._database.dialect.locked
        if not hosts or not locked:
            return []
        wanted = ", ".join(str(int(host)) for host in sorted(hosts))
        return [f"SELECT id FROM host WHERE id IN ({wanted}) ORDER BY id {locked}"]

    def forget_hosts(self) -> None:
        """After a rolled back transaction, ids handed out inside it mean nothing."""
        self._hosts.clear()

    def list_captured(self, cursor: Cursor, row: ResourceRow) -> None:
        """Makes a URL findable by its sorted key, at its first capture."""
        cursor.run("INSERT INTO surt (name, resource) VALUES (?, ?) ON CONFLICT DO NOTHING", (surt(row.url), row.id))

    def of_host(self, name: str) -> Iterator[ResourceRow]:
        """All known URLs of a host that were checked, oldest first."""
        rows = self._database.stream(
            f"SELECT {_QUALIFIED_COLUMNS} FROM resource JOIN host ON host.id = resource.host "
            "WHERE host.name = ? AND resource.checked IS NOT NULL ORDER BY resource.id",
            (name,),
        )
        return (ResourceRow(*row) for row in rows)

    def all(self) -> Iterator[ResourceRow]:
        """Every URL that was checked, oldest first."""
        rows = self._database.stream(f"SELECT {_RESOURCE_COLUMNS} FROM resource WHERE checked IS NOT NULL ORDER BY id")
        return (ResourceRow(*row) for row in rows)

    def count(self) -> int:
        """How many these are."""
        row = self._database.one("SELECT count(*) FROM resource WHERE checked IS NOT NULL")
        return int(row[0]) if row else 0

    def ids(self) -> Iterator[tuple[int, str]]:
        """Ids and URLs, those that are only planned included."""
        return ((row[0], row[1]) for row in self._database.stream("SELECT id, url FROM resource", size=10_000))

    def with_versions(self, after: tuple[str, int], limit: int) -> list[tuple[str, ResourceRow]]:
        """The next URLs that have at least one version, each with its sorted key, so that a site stays together."""
        rows = self._database.all(
            f"SELECT surt.name, {_QUALIFIED_COLUMNS} FROM surt JOIN resource ON resource.id = surt.resource "
            "WHERE (surt.name, surt.resource) > (?, ?) AND resource.versions > 0 "
            "ORDER BY surt.name, surt.resource LIMIT ?",
            (*after, limit),
        )
        return [(row[0], ResourceRow(*row[1:])) for row in rows]

    def under(self, prefix: str, limit: int) -> list[ResourceRow]:
        """Some URLs that have a version and whose sorted keys begin alike."""
        rows = self._database.all(
            f"SELECT {_QUALIFIED_COLUMNS} FROM surt JOIN resource ON resource.id = surt.resource "
            "WHERE surt.name >= ? AND surt.name < ? AND resource.versions > 0 ORDER BY surt.name LIMIT ?",
            (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1), limit),
        )
        return [ResourceRow(*row) for row in rows]

    def with_error_bodies(self) -> Iterator[ResourceRow]:
        """URLs with checks that have a body which is no version."""
        rows = self._database.stream(
            f"SELECT {_RESOURCE_COLUMNS} FROM resource WHERE id IN "
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
            _TOUCHED,
        )


class NoiseProfiles:
    """One profile per host, the habits of each page."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def profile(self, host: str) -> bytes:
        """The host's profile, empty when there is none."""
        return self.profiles([host]).get(host, b"")

    def profiles(self, hosts: Sequence[str]) -> dict[str, bytes]:
        """The profiles of those of the hosts that are known, empty where there is none; one query for some hundred."""
        found: dict[str, bytes] = {}
        for start in range(0, len(hosts), _AT_ONCE):
            part = hosts[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(part))
            rows = self._database.all(f"SELECT name, profile FROM host WHERE name IN ({marks})", part)
            found.update((str(name), bytes(profile or b"")) for name, profile in rows)
        return found

    def set_profiles(self, cursor: Cursor, profiles: Iterable[tuple[bytes, str]]) -> None:
        """Replaces the profiles of known hosts; the host is after its profile."""
        cursor.run_many("UPDATE host SET profile = ? WHERE name = ?", profiles, ("bytea", "text"))

    def distrusted(self, host: str) -> frozenset[str]:
        """Digest fields (lower case) that the host once sent wrongly."""
        row = self._database.one("SELECT distrusted FROM host WHERE name = ?", (host,))
        return frozenset(row[0].split()) if row and row[0] else frozenset()

    def distrust(self, cursor: Cursor, host: str, fields: frozenset[str]) -> None:
        """These fields of the host are not used again to skip a download."""
        cursor.run("UPDATE host SET distrusted = ? WHERE name = ?", (" ".join(sorted(fields)), host))

    def habits(self, resource: int) -> bytes:
        """The page's habits, empty when there are none."""
        row = self._database.one("SELECT habits FROM resource WHERE id = ?", (resource,))
        return bytes(row[0]) if row and row[0] else b""

    def set_habits(self, cursor: Cursor, resource: int, data: bytes) -> None:
        """Replaces the habits of a page."""
        cursor.run("UPDATE resource SET habits = ? WHERE id = ?", (data, resource))

    def quiet_visits(self, resource: int, number: int) -> int:
        """Checks that found version `number` unchanged."""
        row = self._database.one(
            "SELECT count(*) FROM capture WHERE resource = ? AND number = ? AND outcome = 2", (resource, number)
        )
        return int(row[0]) if row else 0


MUTE_TABLES = (
    "CREATE TABLE IF NOT EXISTS mute_rule (place TEXT NOT NULL, form TEXT NOT NULL, kind TEXT NOT NULL, "
    "example TEXT NOT NULL, added BIGINT NOT NULL, PRIMARY KEY (place, form)) {clustered};"
)


class MuteRuleRow(NamedTuple):
    """A rule for changes of a text at a place: a URL, or a host."""

    place: str
    form: str
    kind: str
    example: str
    added: int


class MuteRuleRows:
    """The rules of all places."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, *places: str) -> list[MuteRuleRow]:
        """The rules of some places, or all if none is named, in the order of adding."""
        if not has_table(self._database, "mute_rule"):
            return []
        where = f"WHERE place IN ({', '.join('?' * len(places))}) " if places else ""
        rows = self._database.all(
            f"SELECT place, form, kind, example, added FROM mute_rule {where}ORDER BY added, form", places
        )
        return [MuteRuleRow(*row) for row in rows]

    def add(self, row: MuteRuleRow) -> None:
        """Stores a rule; it replaces that of the same text at the same place."""
        ensure_tables(self._database, "mutes", MUTE_TABLES)
        with self._database.transaction() as cursor:
            cursor.run(
                "INSERT INTO mute_rule (place, form, kind, example, added) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (place, form) DO UPDATE SET kind = excluded.kind, example = excluded.example, "
                "added = excluded.added",
                row,
            )

    def remove(self, place: str, form: str) -> bool:
        """Removes a rule; returns whether there was one."""
        if not has_table(self._database, "mute_rule"):
            return False
        with self._database.transaction() as cursor:
            return cursor.run("DELETE FROM mute_rule WHERE place = ? AND form = ?", (place, form)) > 0


_SET_OBSERVER = (
    "INSERT INTO observer (uid, resource, version, looked) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (uid, resource) DO UPDATE SET version = excluded.version, looked = excluded.looked"
)


class ObserverState(NamedTuple):
    """The last look of an observer at a URL; `version` is the id seen, None if there was none."""

    version: int | None
    looked: int


class Observers:
    """One cursor per uid and URL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def looks(self, uid: str, resources: Sequence[int]) -> dict[int, ObserverState]:
        """The last looks at many URLs, by their ids; only those that were seen."""
        found: dict[int, ObserverState] = {}
        for start in range(0, len(resources), _AT_ONCE):
            part = resources[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(part))
            rows = self._database.all(
                f"SELECT resource, version, looked FROM observer WHERE uid = ? AND resource IN ({marks})", (uid, *part)
            )
            found.update((int(row[0]), ObserverState(row[1], row[2])) for row in rows)
        return found

    def set_many(self, cursor: Cursor, uid: str, looks: Iterable[tuple[int, ObserverState]]) -> None:
        """Moves the cursors of many URLs forward."""
        cursor.run_many(_SET_OBSERVER, [(uid, resource, *look) for resource, look in looks])

    def known(self, uid: str) -> bool:
        """Whether the uid has ever been used."""
        return self._database.one("SELECT 1 FROM observer WHERE uid = ? LIMIT 1", (uid,)) is not None
