"""The catalogue of one archive: its tables, each behind its own object, counted and checked as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from letopis.binary import make_private_file
from letopis.catalog.contents import Contents, HeaderRecords, Renderings
from letopis.catalog.database import Cursor, Database, DatabaseSnapshot
from letopis.catalog.dialect import Dialect, Sqlite
from letopis.catalog.imported import ImportedRecords
from letopis.catalog.queues import Queues
from letopis.catalog.resources import NoiseProfiles, Observers, Resources
from letopis.catalog.schema import SCHEMA_VERSION, TYPED_TABLES, damaged_json, mark_schema, misfits, prepare_schema
from letopis.catalog.sets import SetParts
from letopis.catalog.version_log import RecentChanges
from letopis.catalog.versions import Versions
from letopis.errors import Busy, NotReady
from letopis.lazy import lazy
from letopis.tuples import NamedTuple
from letopis.urls import url_key

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy("shutil")  # copies a catalogue before it is changed


class CatalogTotals(NamedTuple):
    """What `stats` shows of the catalogue."""

    documents: int
    versions: int
    checks: int
    contents: int
    raw_bytes: int
    hosts: int


def count_totals(database: Database | DatabaseSnapshot) -> CatalogTotals:
    """Counted at each call; seconds on very large catalogues."""
    versions = _count(database, "SELECT count(*) FROM version")
    return CatalogTotals(
        documents=_count(database, "SELECT count(*) FROM resource WHERE checked IS NOT NULL"),
        versions=versions,
        checks=versions + _count(database, "SELECT count(*) FROM capture"),
        contents=_count(database, "SELECT count(*) FROM content"),
        raw_bytes=_count(
            database,
            "SELECT coalesce(sum(content.raw_bytes), 0) FROM version JOIN content ON content.id = version.content",
        ),
        hosts=_count(database, "SELECT count(*) FROM host"),
    )


def _count(database: Database | DatabaseSnapshot, question: str) -> int:
    return int(database.all(question)[0][0])


_MOST_REWRITTEN = 64 << 20
"""Bytes of a catalogue that is rewritten after a compaction: about a second, in which writers wait."""
_CONTRADICTIONS = {
    "URLs whose newest version is not their last": (
        "SELECT count(*) FROM resource JOIN version ON version.id = resource.newest "
        "WHERE version.resource != resource.id OR version.number != resource.versions - 1"
    ),
    "versions or checks of URLs that are not there": (
        "SELECT (SELECT count(*) FROM version WHERE resource NOT IN (SELECT id FROM resource)) + "
        "(SELECT count(*) FROM capture WHERE resource NOT IN (SELECT id FROM resource))"
    ),
    "versions that are not in the order of their times": (
        "SELECT count(*) FROM version a JOIN version b ON b.resource = a.resource AND b.number = a.number + 1 "
        "WHERE b.time <= a.time"
    ),
    "versions without a content": (
        "SELECT count(*) FROM version LEFT JOIN content ON content.id = version.content WHERE content.id IS NULL"
    ),
    "URLs whose newest version is not there": (
        "SELECT count(*) FROM resource LEFT JOIN version ON version.id = resource.newest "
        "WHERE resource.newest IS NOT NULL AND version.id IS NULL"
    ),
    "URLs with a wrong count of versions": (
        "SELECT count(*) FROM resource LEFT JOIN "
        "(SELECT resource AS owner, count(*) AS total FROM version GROUP BY resource) counted "
        "ON counted.owner = resource.id WHERE resource.versions != coalesce(counted.total, 0)"
    ),
}


class Catalog:
    """Opens, creates or migrates the catalogue; safe to share between threads."""

    def __init__(self, dialect: Dialect, begins: Callable[[], None] = lambda: None) -> None:
        """`begins` is called before a new catalogue is created, and may refuse that."""
        self.database = Database(dialect)
        try:
            prepare_schema(self.database, self._backup, begins)
        except BaseException:
            self.database.close()
            raise
        self.resources = Resources(self.database)
        self.contents = Contents(self.database)
        self.heads = HeaderRecords(self.database)
        self.versions = Versions(self.database)
        self.renderings = Renderings(self.database)
        self.imported = ImportedRecords(self.database)
        self.sets = SetParts(self.database)
        self.noise_profiles = NoiseProfiles(self.database)
        self.recent = RecentChanges(self.database)
        self.queues = Queues(self.database)
        self.observers = Observers(self.database)

    @contextmanager
    def transaction(
        self, *, beside: bool = False, hosts: Collection[int] = (), first: Sequence[str] = ()
    ) -> Iterator[Cursor]:
        """One durable change, see `Database.transaction`; ids cached inside a failed one are forgotten.

        Until it ends no other changes the rows of these hosts or adds to their URLs.
        """
        try:
            locks = self.resources.locks(hosts)
            with self.database.transaction(beside=beside, first=[*first, *locks]) as cursor:
                yield cursor
        except BaseException:
            self.heads.forget()
            self.resources.forget_hosts()
            raise

    @contextmanager
    def rebuilding(self) -> Iterator[None]:
        """A kill or failure inside leaves a catalogue that is marked as incomplete."""
        with self.transaction() as cursor:
            mark_schema(cursor, whole=False)
        yield
        with self.transaction() as cursor:
            mark_schema(cursor, whole=True)

    def totals(self) -> CatalogTotals:
        """Counts over everything."""
        return count_totals(self.database)

    def bytes(self) -> int:
        """What the catalogue takes on disk."""
        return self.database.dialect.size(self.database.one)

    def tidy(self) -> None:
        """Folds the write-ahead log into the file, so that its size is the catalogue's size."""
        if self.database.dialect.name == "sqlite":
            self.database.all("PRAGMA wal_checkpoint(TRUNCATE)")

    def defragment(self) -> None:
        """Frees the space that moved rows left in half-filled pages; skipped if that would take long.

        One transaction: a crash leaves the previous state.
        """
        if self.database.dialect.name == "sqlite" and self.bytes() <= _MOST_REWRITTEN:
            with suppress(Busy, NotReady):
                self.database.all("VACUUM")
                self.tidy()

    def integrity(self) -> Iterator[str]:
        """Sentences about tables that are inconsistent; none if there are no problems."""
        if self.database.dialect.name == "sqlite":
            for row in self.database.all("PRAGMA integrity_check(20)"):
                if row[0] != "ok":
                    yield str(row[0])
        misfits = list(self.misfits())
        yield from misfits
        if misfits:
            return  # such rows cannot be followed
        for sentence, question in _CONTRADICTIONS.items():
            if count := self.database.count(question):
                yield f"{count} {sentence}"
        misnamed = sum(url_key(url) != key for url, key in self.database.stream("SELECT url, url_key FROM resource"))
        if misnamed:
            yield f"{misnamed} URLs that are not found by their names"

    def misfits(self) -> Iterator[str]:
        """Sentences about rows with a value of another type than its column, which only SQLite can have."""
        for table in TYPED_TABLES if self.database.dialect.name == "sqlite" else ():
            if count := self.database.count(f"SELECT count(*) FROM {table} WHERE {misfits(self.database, table)}"):
                yield f"{count} rows of {table} with a value of another type"
        if self.database.dialect.name == "sqlite":
            for one in damaged_json(self.database):
                yield f"{one.rows} rows of {one.table} with damaged JSON"

    def _backup(self) -> None:
        """A copy of a SQLite file before its first migration; servers have their own backups."""
        dialect = self.database.dialect
        if isinstance(dialect, Sqlite):
            self.tidy()
            copy = _free_name(dialect.file)
            make_private_file(copy)
            shutil.copy2(dialect.file, copy)

    def close(self) -> None:
        """Ends all connections."""
        self.database.close()


def _free_name(file: Path) -> Path:
    return file.with_name(f"{file.name}.before-v{SCHEMA_VERSION}")
