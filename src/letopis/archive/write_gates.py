"""The right to write, held as briefly as possible so that several processes can share an archive; a clone has none.

The lease of the store is taken first, the transaction of the catalogue inside it; all that need both take them in this
order, so there are no deadlocks.

On read-only media (a disc, a snapshot, a share) packs are read in place. Even readers open catalogue and indexes for
writing (SQLite recovers its log, an index follows the record), so there a reader uses temporary copies of them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from letopis.binary import exclusive_lock
from letopis.catalog import Catalog, Cursor
from letopis.catalog.dialect import Sqlite
from letopis.catalog.leases import HeldLogs
from letopis.config import Settings, StoreSettings
from letopis.errors import Busy, LetopisError, NotReady, Refused, Remedy, UsageError
from letopis.lazy import lazy
from letopis.store import HEADER_BYTES, Backend, HighWaterMark, Store

if TYPE_CHECKING:
    import shutil
    import tempfile

    from letopis.archive import pack_facts
    from letopis.archive.shared_gate import LeasedUpkeepGate
else:
    pack_facts = lazy("letopis.archive.pack_facts")
    shutil, tempfile = lazy("shutil"), lazy("tempfile")  # most archives can be written to

T = TypeVar("T")

CLONE_MARKER = Path("replica") / "clone.json"
"""Present in the folder of every clone; names its origin."""


def holds_archive(folder: Path) -> bool:
    """Whether a folder is an archive, and not one of other files in which reading would create a catalogue."""
    return Sqlite.file_in(folder).exists() or (folder / "packs").is_dir()


def is_clone(folder: Path) -> bool:
    """Whether the archive follows another one."""
    return (folder / CLONE_MARKER).exists()


def refuse_clone(folder: Path) -> None:
    """`Refused` when the archive is a clone."""
    if is_clone(folder):
        raise Refused(
            f"this archive is a clone of {_origin(folder)} and accepts only what a pull transfers",
            Remedy(f"pull {folder} --detach", "letopis.exchange.replica.detach()", "make it independent with"),
        )


def _origin(folder: Path) -> str:
    try:
        return str(json.loads((folder / CLONE_MARKER).read_bytes())["origin"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another archive"


def is_shared(settings: Settings) -> bool:
    """Whether the archive can be seen from other machines."""
    return bool(settings.database.url and settings.store.url)


def require_shared(settings: Settings) -> None:
    """UsageError for an archive that workers on other machines cannot see."""
    if not is_shared(settings):
        raise UsageError("a cluster works on PostgreSQL and an object store; set database.url and store.url")


WAIT_SECONDS = 60.0
"""How long a writer waits for another one."""
PAUSE_SECONDS = 0.02
MOST_TAKEN_IN = 64 << 20
"""Bytes of packs that are read when an archive is opened for reading: about a second."""


def when_free(take: Callable[[], T], deadline: float) -> T:
    """What `take` returns, as soon as no other process holds it; Busy after the deadline."""
    while True:
        try:
            return take()
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_SECONDS)


class LocalGate:
    """Opens the store for one transaction at a time."""

    def __init__(
        self, catalog: Catalog, folder: Path, backend: Callable[[], Backend], settings: StoreSettings, *, takes_in: bool
    ) -> None:
        """`takes_in`: what the packs hold beyond the catalogue's mark is recorded before anything else is done."""
        self._catalog = catalog
        self._turn = folder / "turn.lock"
        self._backend = backend
        self._settings = settings
        self._takes_in = takes_in
        self._held: Store | None = None
        self._has_place = False
        """Whether a process that waited has its turn and is about to write."""

    @contextmanager
    def transaction(self, *, beside: bool = False, hosts: Collection[int] = ()) -> Iterator[tuple[Cursor, Store]]:
        """A transaction of the catalogue with the store open for writing inside it; there is one writer at a time."""
        if self._held is not None:
            with self._catalog.transaction(hosts=hosts) as cursor:
                yield cursor, self._held
                self.settle(cursor, self._held)
        else:
            with self.open() as store, self._catalog.transaction(hosts=hosts) as cursor:
                yield cursor, store
                self.settle(cursor, store)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps the store open over many transactions: faster, and keeps other writers out."""
        self._held = self.open()
        try:
            yield
        finally:
            store, self._held = self._held, None
            store.close()

    def open(self) -> Store:
        """The store for writing; waits a minute for another writer to finish.

        A waiting process is next: a compaction or import that returns for its next part finds the turn taken.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        with ExitStack() as turn:
            if not self._has_place:
                when_free(lambda: turn.enter_context(self._place()), deadline)
            return when_free(self._open, deadline)

    @contextmanager
    def waiting(self) -> Iterator[Callable[[], bool]]:
        """A place among the waiting writers, for callers that must not block: whether no other process writes now.

        The place is kept to the end of the block, so that no other writer comes between the answer and the write.
        """
        with ExitStack() as turn:

            def is_next() -> bool:
                try:
                    if not self._has_place:
                        turn.enter_context(self._place())
                        turn.callback(self._leave_place)
                        self._has_place = True
                    self._backend().lease().release()
                except Busy:
                    return False
                return True

            yield (lambda: True) if self._held is not None else is_next

    def _leave_place(self) -> None:
        self._has_place = False

    def _place(self) -> AbstractContextManager[None]:
        return exclusive_lock(self._turn, "waits to write to this archive")

    def _open(self) -> Store:
        """The store for writing, and a catalogue that knows all of it."""
        mark = HighWaterMark()

        def written() -> HighWaterMark:
            nonlocal mark
            mark = pack_facts.known_mark(self._catalog)
            return mark

        store = Store.open(self._backend(), self._settings, write=True, written=written)
        try:
            beyond = store.beyond(mark) if self._takes_in else {}
            back = pack_facts.returned_packs(self._catalog, store) if self._takes_in else ()
            if beyond or back:
                # Facts in other packs may name a content that is only in one that came back.
                pack_facts.take_in_facts(self._catalog, store, None if back else beyond)
                with self._catalog.transaction() as cursor:
                    self.settle(cursor, store)
                    pack_facts.expect_packs(self._catalog, cursor, (), here=back)
        except BaseException:
            store.close()
            raise
        return store

    def catch_up(self, store: Store, most: int | None = MOST_TAKEN_IN) -> None:
        """Reads what the packs hold beyond the mark.

        With a bound in bytes only if no process writes now and the disk allows it: an older restored copy of the
        catalogue is then complete at the next opening, and what takes longer is left to the next writer or to a repair.
        """
        if not self._takes_in:
            return
        if most is None:
            self.open().close()
            return
        contents, sizes = self._catalog.contents, store.sizes()
        # A rebuilt catalogue has no mark before the first write; its contents decide.
        judged = contents.mark() is not None or contents.last() is not None
        beyond = self.beyond(store) if judged else {}
        if beyond and sum(sizes.get(pack, 0) - start for pack, start in beyond.items()) <= most:
            with suppress(LetopisError):
                self._open().close()

    def beyond(self, store: Store) -> dict[int, int]:
        """What the packs hold beyond the catalogue's mark, and packs that came back."""
        back = pack_facts.returned_packs(self._catalog, store)
        return store.beyond(pack_facts.known_mark(self._catalog)) | dict.fromkeys(back, HEADER_BYTES)

    def settle(self, cursor: Cursor, store: Store) -> None:
        """Marks that the catalogue knows the packs up to here."""
        self._catalog.contents.set_mark(cursor, store.mark())

    def fence(self, cursor: Cursor) -> None:
        """The right to upkeep is still held: a lock of the system ends with its process."""

    def others(self, cursor: Cursor) -> HeldLogs | None:
        """There is no other writer."""
        return None

    def lent(self, fence: int | None = None) -> LeasedUpkeepGate:
        """Refused: other machines cannot see this archive."""
        raise UsageError("several machines compact only what they share; set database.url and store.url")

    def close(self) -> None:
        """Nothing is held between transactions."""


_PACKS = "packs"
_SPARE = 16 << 20


def copy_if_read_only(folder: Path) -> tempfile.TemporaryDirectory[str] | None:
    """A temporary copy of an archive that this process cannot write to, its packs linked; None where it can.

    NotReady if there is no space for it.
    """
    if not Sqlite.file_in(folder).is_file() or os.access(folder, os.W_OK):
        return None
    files = [path for path in folder.rglob("*") if path.is_file() and _PACKS not in path.relative_to(folder).parts[:1]]
    needed = sum(path.stat().st_size for path in files) + _SPARE
    scratch = tempfile.TemporaryDirectory(prefix="letopis-", ignore_cleanup_errors=True)
    if shutil.disk_usage(scratch.name).free < needed:
        scratch.cleanup()
        raise NotReady(
            f"{folder} is on a read-only medium, and its catalogue needs {needed >> 20} MiB of temporary space; "
            "set TMPDIR to a folder with room for it"
        )
    for path in files:
        target = Path(scratch.name) / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    (Path(scratch.name) / _PACKS).symlink_to((folder / _PACKS).absolute(), target_is_directory=True)
    return scratch
