"""The archive: contents and catalogue joined, and the only commit point of both.

Packs without a catalogue are an archive that lost its catalogue, never a new one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from letopis.archive.reader import RecordReader
from letopis.archive.recording import Recorder
from letopis.archive.records import NewCapture, RecordedCapture, capture_of, capture_of_put
from letopis.archive.sets import CaptureSets, members_recorded, pages_with_members, write_sets
from letopis.archive.write_gates import LocalGate, copy_if_read_only, is_clone, refuse_clone
from letopis.binary import disk_usage, make_private_folder
from letopis.catalog import Catalog, Cursor, Database, Sqlite, dialect_for
from letopis.catalog.schema import has_table
from letopis.config import ArchiveSettings, Settings
from letopis.errors import REPAIR, Damaged, NewerFormat, NotReady, Refused, UsageError
from letopis.lazy import lazy
from letopis.model import (
    Check,
    Moment,
    Observation,
    Outcome,
    Put,
    PutResult,
    Stats,
    Version,
    as_moment,
    from_millis,
    to_millis,
)
from letopis.store import HEADER_BYTES, Backend, LocalBackend, Misnamed, Store
from letopis.urls import host as host_of
from letopis.urls import parse_user_url

if TYPE_CHECKING:
    from letopis.archive import compaction, differences, edited_settings, integrity, shared_gate, verdicts
    from letopis.archive.compaction import CompactReport
    from letopis.archive.integrity import IntegrityProblem, RepairReport
    from letopis.archive.shared_gate import LeasedUpkeepGate, StoreGate
    from letopis.store import bucket as buckets
    from letopis.store import object_backend
else:
    compaction = lazy("letopis.archive.compaction")
    differences = lazy("letopis.archive.differences")
    edited_settings = lazy("letopis.archive.edited_settings")
    integrity = lazy("letopis.archive.integrity")
    shared_gate = lazy("letopis.archive.shared_gate")
    verdicts = lazy("letopis.archive.verdicts")
    buckets, object_backend = lazy("letopis.store.bucket"), lazy("letopis.store.object_backend")


class NoCatalogue(Damaged):
    """There are packs but no catalogue."""


def refuse_packs(backend: Backend, begun: Callable[[], bool] = lambda: False) -> None:
    """NoCatalogue if there are already packs where a catalogue is about to be created.

    `begun` is asked after the packs: whether a catalogue has come meanwhile.
    """
    if any(size > HEADER_BYTES for size in backend.list().values()) and not begun():
        raise NoCatalogue(
            f"{backend.where} holds packs but their catalogue is gone; put its file back",
            REPAIR._replace(lead="or rebuild it from the packs with"),
        )


P = ParamSpec("P")
T = TypeVar("T")
PUT_BATCH = 256
_MOST_VERSIONS = 1 << 31
"""More than any page has, and as far as a catalogue counts."""
"""Puts that share one durable commit."""


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


def _machine_millis() -> int:
    """Leases use the clock of the machine, even if the archive uses another time."""
    return time.time_ns() // 1_000_000


class Archive:
    """Opens or creates an archive; can be used by several threads and processes at once.

    Readers never wait. Writers take turns, one transaction each. When a method has returned, its changes are durable.
    """

    def __init__(
        self,
        where: str | Path | None = None,
        *,
        settings: Settings | None = None,
        clock: Callable[[], datetime] = utc_now,
        following: bool = False,
        rebuilding: bool = False,
        draft: Path | None = None,
    ) -> None:
        """`following` lets the process that updates a clone write to it; all others are refused.

        Packs without a catalogue are NoCatalogue, unless it is being rebuilt (`rebuilding`); a file is rebuilt under
        the name of a `draft`.
        """
        self._draft = draft
        self._following = following
        self._rebuilding = rebuilding
        self.settings = _placed(settings or Settings(), where)
        self.folder = Path(self.settings.archive.path)
        self._read_only_copy = copy_if_read_only(self.folder)
        if self._read_only_copy is not None:
            self.folder = Path(self._read_only_copy.name)
        self.clock = clock
        self.followers: list[Callable[[list[RecordedCapture]], None]] = []
        self.closers: list[Callable[[], None]] = []
        self._attached: dict[Callable[[Archive], Any], Any] = {}
        self._attaching = threading.Lock()
        _make_folder(self.folder, self.folder if self.settings.store.url else self.folder / "packs")
        self._open()

    def _open(self) -> None:
        self.backend, gate = self._shared() if self.settings.store.url else self._alone()
        if not self.settings.database.url:
            self._look_for_file(Sqlite.file_in(self.folder))
        dialect = dialect_for(self.settings.database.url, self.folder) if self._draft is None else Sqlite(self._draft)
        self.catalog = Catalog(dialect, self._begin)
        if has_table(self.catalog.database, "edited_setting"):
            self.settings = edited_settings.with_edited_settings(self.settings, self.catalog)
        self._gate = gate(self.catalog)
        self._store = Store.open(self.backend, self.settings.store, write=False)
        self.answers = RecordReader(self.catalog, self._store)
        self.sets = CaptureSets(self.catalog, self.answers)
        self._gate.catch_up(self._store)

    def _look_for_file(self, file: Path) -> None:
        """Called before a connection creates the file, so that a refusal leaves nothing behind."""
        if not file.exists() and not self._rebuilding:
            # The file is created before its packs: another process may have created it since the first test.
            refuse_packs(self.backend, file.exists)

    def _begin(self) -> None:
        if not self._rebuilding:
            refuse_packs(self.backend)

    def _alone(self) -> tuple[Backend, Callable[[Catalog], StoreGate]]:
        """Packs in the folder of the archive."""
        backend: Callable[[], Backend] = partial(LocalBackend, self.folder / "packs")
        takes_in = self._takes_in()
        return backend(), lambda catalog: LocalGate(
            catalog, self.folder, backend, self.settings.store, takes_in=takes_in
        )

    def _shared(self) -> tuple[Backend, Callable[[Catalog], StoreGate]]:
        """Packs in an object store, shared with other machines."""
        bucket = buckets.Bucket(self.settings.store)
        cache = buckets.BlockCache(self.folder / "cache", self.settings.store.cache_bytes)

        def backend(sharing: object_backend.WriterCoordination) -> Backend:
            return object_backend.ObjectBackend(bucket, cache, sharing)

        def gate(catalog: Catalog) -> StoreGate:
            return shared_gate.SharedGate(
                catalog, backend, self.settings.store, _machine_millis, takes_in=self._takes_in()
            )

        return backend(object_backend.WriterCoordination(shared_gate.NoLease, lambda last: last + 1)), gate

    def _takes_in(self) -> bool:
        """Whether facts in the packs are recorded: those of a clone contain more than the clone shows."""
        return not (self._following or self._rebuilding or self.is_clone)

    @classmethod
    def open(cls, settings: Settings) -> Archive:
        """The archive that the settings name."""
        return cls(settings=settings)

    def require_writable(self) -> None:
        """`Refused` on a read-only medium, and for a clone, which accepts only what its origin publishes."""
        self.refuse_read_only()
        if not self._following:
            refuse_clone(self.folder)

    def refuse_read_only(self) -> None:
        """`Refused` on a read-only medium, where changes would be lost."""
        if self.is_read_only:
            raise Refused(
                f"{self.settings.archive.path} is on a read-only medium; copy it to a disk that can be written to"
            )

    @property
    def is_read_only(self) -> bool:
        """Whether the archive is on a read-only medium."""
        return self._read_only_copy is not None

    @property
    def is_clone(self) -> bool:
        """Whether the archive follows another one and records nothing of its own."""
        return is_clone(self.folder)

    @property
    def store(self) -> Store:
        """The packs, open for reading."""
        return self._store

    @property
    def reads_locally(self) -> bool:
        """Whether a point read takes only microseconds, so that short answers need no separate thread."""
        return self.catalog.database.dialect.name == "sqlite"

    def ping(self) -> None:
        """Returns when the catalogue answers; raises when it does not."""
        self.catalog.database.one("SELECT 1")

    def attached(self, make: Callable[[Archive], T]) -> T:
        """The result of `make` for this archive, created once: an index or a cache that all threads share."""
        with self._attaching:
            if make not in self._attached:
                self._attached[make] = make(self)
            found: T = self._attached[make]
            return found

    def close(self) -> None:
        """Closes files and connections."""
        while self.closers:
            self.closers.pop()()
        self._gate.close()
        self._store.close()
        self.catalog.close()
        if self._read_only_copy is not None:
            self._read_only_copy.cleanup()

    def __enter__(self) -> Archive:
        """For use in a with statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the archive."""
        self.close()

    # Writing

    def record(
        self,
        looks: Sequence[Observation],
        extend: Callable[[Cursor, list[RecordedCapture]], None] | None = None,
        hosts: Collection[int] | None = None,
    ) -> list[RecordedCapture]:
        """Commits a batch of looks, all or nothing; durable when it returns.

        `extend` writes related rows (queues, observers) in the same transaction. Whole pages become capture sets; the
        results are those of the pages. `hosts`: see `commit`.
        """
        return self.commit([capture_of(look) for look in looks], extend, hosts)

    def commit(
        self,
        arrivals: Sequence[NewCapture],
        extend: Callable[[Cursor, list[RecordedCapture]], None] | None = None,
        hosts: Collection[int] | None = None,
    ) -> list[RecordedCapture]:
        """Commits captures that are already reduced to what is stored.

        If `extend` changes only rows of these hosts and of those of the captures, `hosts` names them, and commits to
        other hosts run in parallel. Followers are notified of a batch after it is durable and before it is
        acknowledged.
        """
        self.require_writable()
        record_same = self.settings.store.same == "record"
        if any(arrival.as_sent for arrival in arrivals):
            self.catalog.renderings.ensure()
        if any(arrival.source for arrival in arrivals):
            self.catalog.imported.ensure()
        captured_whole = any(arrival.whole for arrival in arrivals)
        if captured_whole:
            self.catalog.sets.ensure()
        flat = pages_with_members(arrivals) if captured_whole else arrivals
        beside = (extend is None or hosts is not None) and not any(arrival.source for arrival in arrivals)
        locked = self._hosts_of(flat, hosts or ()) if beside else ()
        with self._gate.transaction(beside=beside, hosts=locked) as (cursor, store):
            now = to_millis(self.clock())
            everything = Recorder(self.catalog, store, record_same=record_same, now=now).record(cursor, flat)
            done = everything
            if captured_whole:
                done = members_recorded(arrivals, everything)
                write_sets(self.catalog, store, cursor, list(zip(arrivals, done, strict=True)))
            if extend is not None:
                extend(cursor, done)
        for follow in self.followers:
            follow(everything)
        return done

    def _hosts_of(self, arrivals: Sequence[NewCapture], more: Collection[int]) -> set[int]:
        """The hosts that a commit locks; none if there is a single writer."""
        if not self.catalog.database.dialect.beside:
            return set()
        names = {host_of(arrival.url) for arrival in arrivals}
        return {*self.catalog.resources.ensure_hosts(None, names).values(), *more}

    def put(self, url: str, body: bytes, at: Moment | None = None, content_type: str = "text/html") -> PutResult:
        """Stores one version by hand; a body equal to the newest version is reported and not stored."""
        return next(iter(self.put_many([Put(url, body, at, content_type)])))

    def put_many(self, puts: Iterable[Put]) -> Iterator[PutResult]:
        """Stores versions in batches, with one durable commit each, while its results are read: not before.

        A result is returned after its commit. `list(archive.put_many(puts))` stores all.
        """
        pending = iter(puts)
        while batch := list(islice(pending, PUT_BATCH)):
            arrivals = [capture_of_put(put, parse_user_url(put.url), self.clock()) for put in batch]
            yield from map(_put_result, self.commit(arrivals))

    def transaction(self) -> AbstractContextManager[tuple[Cursor, Store]]:
        """One durable change of rows and bytes together; sync the store before the block ends."""
        self.require_writable()
        return self._gate.transaction()

    def waiting_to_write(self) -> AbstractContextManager[Callable[[], bool]]:
        """A place among the waiting writers, for callers that must not block; True if no process writes now."""
        return self._gate.waiting()

    def hold_writer(self) -> AbstractContextManager[None]:
        """Keeps other writers out during many commits, which makes each of them cheaper."""
        self.require_writable()
        return self._gate.held()

    # Upkeep

    def compact(
        self,
        *,
        effort: Literal["quick", "full"] = "full",
        progress: Callable[[int], None] = lambda done: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> CompactReport:
        """Applies retention, recompresses, and frees space; can be stopped at any time."""
        self.require_writable()
        run = compaction.Compaction(self.catalog, self._gate, self.settings.store, to_millis(self.clock()))
        return run.run(effort, progress, stop)

    def joint_upkeep_gate(self, fence: int | None = None) -> LeasedUpkeepGate:
        """The right to upkeep that machines share: a new one, or the one with this `fence`."""
        return self._gate.lent(fence)

    def verify(self, progress: Callable[[int], None] = lambda done: None) -> Iterator[IntegrityProblem]:
        """Checks every byte and every reference; yields nothing for an archive without problems."""
        beyond = {} if self.is_clone else self._gate.beyond(self._store)
        return integrity.find_problems(self.catalog, self._store, beyond, progress)

    @classmethod
    def repair(cls, settings: Settings) -> RepairReport:
        """Drops only what is lost; rebuilds a damaged or missing catalogue from its readable rows and the packs.

        Works on an archive whose catalogue cannot be opened. The new catalogue replaces the old one when it is
        complete; the damaged file is kept under another name. Files written by a later release are not changed. What
        can be read in a damaged pack is written to another pack.
        """
        report = cls._repair_catalog(settings)
        with cls.open(settings) as archive:
            archive._store.refuse_misnamed()
            damaged = {finding.pack for finding in archive._store.verify()}
            if damaged and not archive.is_clone:
                everything = replace(settings.store, keep_versions=0, keep_for=0.0, thin_after=0.0)
                run = compaction.Compaction(archive.catalog, archive._gate, everything, to_millis(archive.clock()))
                run.empty(frozenset(damaged))
            # Once more: what was damaged was still there when the archive was opened.
            integrity.note_given_up(archive.catalog, report)
        return report

    @classmethod
    def _repair_catalog(cls, settings: Settings) -> RepairReport:
        try:
            with cls.open(settings) as archive:
                archive._store.refuse_misnamed()
                if not list(archive.catalog.integrity()):
                    archive._gate.catch_up(archive._store, most=None)
                    return integrity.drop_lost_versions(archive.catalog, archive._store, clone=archive.is_clone)
        except (NewerFormat, Misnamed):
            raise
        except Damaged as error:
            if settings.database.url and not isinstance(error, NoCatalogue):
                raise Damaged(
                    f"{error.message}; a database cannot be set aside: name an empty one in database.url"
                ) from error
        if settings.database.url:
            with cls(settings=settings, rebuilding=True) as archive:
                return integrity.rebuild_catalog(archive.catalog, archive._store, archive.folder / "index")
        return integrity.rebuild_file(settings, Sqlite.file_in(Path(settings.archive.path)))

    # Reading

    def get(self, url: str, *, version: int | None = None, at: Moment | None = None) -> Version:
        """The newest version, version `version`, or the one valid at a time; a day means its end."""
        address = parse_user_url(url)
        moment = None if at is None else as_moment(at, self.clock(), ends_day=True)
        try:
            if version is not None:
                return self.answers.numbered(address, min(max(version, -_MOST_VERSIONS), _MOST_VERSIONS))
            return self.answers.newest(address) if moment is None else self.answers.at(address, moment)
        except (TypeError, ValueError, OverflowError) as error:
            # A flipped bit may turn a number of a row into a text, or into one beyond all bounds.
            raise Damaged(f"what the catalogue says of {url} makes no sense", REPAIR) from error

    def as_sent(self, version: Version) -> Version:
        """A version as the server sent it; differs from the version only if a browser rendered it."""
        return self.answers.as_sent(version)

    def versions(self, url: str) -> list[Version]:
        """All versions without their bodies, oldest first."""
        return self.answers.versions(parse_user_url(url))

    def history(self, url: str) -> list[Check]:
        """Every check, oldest first."""
        return list(verdicts.judged(self, self.answers.history(parse_user_url(url))))

    def diff(self, url: str, t1: Moment, t2: Moment, format: str = "unified") -> str | bytes:
        """The difference between the versions valid at two times, of days from a beginning to an end; may be empty."""
        return self.difference(self.get(url, at=as_moment(t1, self.clock())), self.get(url, at=t2), format)

    def difference(self, old: Version, new: Version, format: str = "unified") -> str | bytes:
        """The difference of two versions in one of the formats of `letopis diff`."""
        return differences.render_difference(
            old, new, format, lambda before, after, pages: verdicts.verdict_between(self, before, after, pages)
        )

    def stats(self) -> Stats:
        """Totals, counted at each call."""
        return Stats(
            **self.catalog.totals()._asdict(),
            pack_bytes=self._store.stats().pack_bytes,
            catalog_bytes=self.catalog.bytes(),
            links=indexed_links(self.folder),
            index_bytes=disk_usage(self.folder / "index").bytes,
        )


def of_archive(ask: Callable[Concatenate[Database, P], T]) -> Callable[Concatenate[Archive, P], T]:
    """An object that answers from the database of the catalogue, for one topic of an archive."""

    def answer(archive: Archive, /, *values: P.args, **named: P.kwargs) -> T:
        return ask(archive.catalog.database, *values, **named)

    return answer


def link_total_file(folder: Path) -> Path:
    """Where the index of links records how many it holds, for readers that do not load it."""
    return folder / "index" / "links" / "total"


def indexed_links(folder: Path) -> int:
    """How many links the index of an archive holds; 0 where there is none."""
    try:
        return int(link_total_file(folder).read_text())
    except (OSError, ValueError):
        return 0


def _placed(settings: Settings, where: str | Path | None) -> Settings:
    if where is not None and not (isinstance(where, str | os.PathLike) and str(where)):
        raise UsageError(f"{where!r} is not the folder of an archive; give a path")
    return settings if where is None else replace(settings, archive=ArchiveSettings(path=str(where)))


def _make_folder(archive: Path, folder: Path) -> None:
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        make_private_folder(folder)
    except OSError as error:
        raise NotReady(f"cannot make {folder}: {error.strerror}; choose another one") from None


def _put_result(done: RecordedCapture) -> PutResult:
    stored = done.outcome in (Outcome.NEW, Outcome.CHANGED)
    digest = done.identity.text if done.identity else ""
    return PutResult(done.url, done.number or 0, stored, from_millis(done.time), digest)
