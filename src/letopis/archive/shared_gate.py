"""The right to write to packs that many machines share: rows of the catalogue instead of a lock file.

Storing needs no lease: each process extends its own logs, and declares the log in the same transaction as its contents.
This claim keeps the log from being removed before its contents are moved. A process that was paused finds its claim
withdrawn when it resumes, and starts a new log; one that was paused inside a transaction finds the transaction ended.
Only compaction must run alone, and takes a lease with a fence.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from letopis.archive.write_gates import MOST_TAKEN_IN, WAIT_SECONDS, LocalGate, when_free
from letopis.catalog import Catalog, Cursor
from letopis.catalog.leases import UPKEEP, HeldLogs, PackClaims
from letopis.config import StoreSettings
from letopis.errors import Busy, LetopisError
from letopis.lazy import lazy
from letopis.store import HEADER_BYTES, Backend, HighWaterMark, Store, WriteLease
from letopis.store.object_backend import WriterCoordination
from letopis.store.packs import pack_number

if TYPE_CHECKING:
    from letopis.archive import pack_facts
else:
    pack_facts = lazy("letopis.archive.pack_facts")

_CLAIM_MILLIS = 600_000
_LEASE_MILLIS = 600_000


class NoLease:
    """The lease of a writer with its own logs, which needs no lock."""

    def release(self) -> None:
        """There is nothing to release."""


class SharedGate:
    """Opens the store for one transaction at a time, in parallel with other processes."""

    def __init__(
        self,
        catalog: Catalog,
        backend: Callable[[WriterCoordination], Backend],
        settings: StoreSettings,
        now: Callable[[], int],
        *,
        takes_in: bool = True,
    ) -> None:
        """`takes_in`: what an older catalogue does not know is recorded before any pack is removed."""
        self._catalog = catalog
        self._takes_in = takes_in
        self._claims = PackClaims(catalog.database)
        self._backend = backend
        self._settings = settings
        self._now = now
        self._guard = threading.RLock()
        self._store: Store | None = None
        self._token: int | None = None
        self._claimed = 0
        self._cursor: Cursor | None = None
        self._fence = 0

    @contextmanager
    def waiting(self) -> Iterator[Callable[[], bool]]:
        """Writers of many machines take turns by their transactions, each of which is short."""
        yield lambda: True

    @contextmanager
    def transaction(self, *, beside: bool = False, hosts: Collection[int] = ()) -> Iterator[tuple[Cursor, Store]]:
        """A transaction of the catalogue, in which no other changes these hosts, with this process's own log open."""
        with self._guard:
            try:
                until = self._now() + _CLAIM_MILLIS
                renewal = [] if self._token is None else [self._claims.renewal(self._token, until)]
                first = [*renewal, *self._catalog.database.dialect.by_keys]
                with self._catalog.transaction(beside=beside, hosts=hosts, first=first) as cursor:
                    self._cursor = cursor
                    store = self._ready(withdrawn=bool(renewal) and not cursor.begun[0])
                    yield cursor, store
                    self._claim(cursor, store)
            except BaseException:
                # Whether the log is referred to is unknown: it is left to the next compaction.
                self._store = self._token = None
                raise
            finally:
                self._cursor = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Commits cost the same without it: the log stays open anyway."""
        yield

    def open(self) -> Store:
        """The store for upkeep, alone, and a catalogue that knows all of it; waits a minute for another process."""
        deadline = time.monotonic() + WAIT_SECONDS
        store = when_free(lambda: self._opened(self._upkeep), deadline)
        try:
            self._take_in(store)
        except BaseException:
            store.close()
            raise
        return store

    def fence(self, cursor: Cursor) -> None:
        """Busy if the lease for upkeep was lost: the rest of this transaction must not happen."""
        self._claims.check(cursor, UPKEEP, self._fence, self._now() + _LEASE_MILLIS)

    def settle(self, cursor: Cursor, store: Store) -> None:
        """Numbers come from the catalogue here, so there is no separate mark."""

    def beyond(self, store: Store) -> dict[int, int]:
        """What the packs contain and the catalogue cannot know, because an older copy of it was restored.

        Packs above the last number that it gave out, and what follows in a log after its mark. Logs of active writers
        are left to them, and are not removed meanwhile.
        """
        with self._catalog.transaction() as cursor:
            held = self.others(cursor).held
        return {pack: start for pack, start in self._above(store).items() if pack not in held}

    def _is_older(self, store: Store) -> bool:
        """Whether the packs hold more than the catalogue knows, found out without listing them all.

        Only claimed logs grow, so no others can have grown since a copy of the catalogue was made.
        """
        known = self._claims.known_up_to()
        return known is not None and store.has_beyond(known, self._claims.outdated_marks(self._now()))

    def _above(self, store: Store) -> dict[int, int]:
        known = self._claims.known_up_to()
        return store.beyond(HighWaterMark(known), self._claims.marks(self._now())) if known is not None else {}

    def _take_in(self, store: Store) -> None:
        """Before anything is moved or removed: the catalogue knows all that the packs hold."""
        if not self._takes_in:
            return
        unmarked = self._unmarked(store)
        sizes, marked = store.sizes(), self._claims.marks(self._now())
        back = pack_facts.returned_packs(self._catalog, store)
        if (beyond := self.beyond(store) | unmarked) or back:
            pack_facts.take_in_facts(self._catalog, store, None if back else beyond)
        with self._catalog.transaction() as cursor:
            pack_facts.expect_packs(self._catalog, cursor, (), here=back)
            self._claims.knows_all(cursor, sizes, marked.keys() | unmarked.keys())

    def _unmarked(self, store: Store) -> dict[int, int]:
        """Logs that no commit named: their writer was killed at its first commit, or the catalogue was copied when a
        log had only a number.
        """
        with self._catalog.transaction() as cursor:
            held = self.others(cursor).held
        return dict.fromkeys(store.logs() - self._claims.marked() - held, HEADER_BYTES)

    def catch_up(self, store: Store, most: int | None = MOST_TAKEN_IN) -> None:
        """Reads what an older catalogue does not know; with a bound in bytes only if no upkeep runs now."""
        if most is None:
            self.open().close()
        elif self._takes_in and self._is_older(store):
            above, sizes = self._above(store), store.sizes()
            if sum(sizes.get(pack, 0) for pack in above) <= most:
                with suppress(LetopisError):
                    self.lent().give_back()

    def others(self, cursor: Cursor) -> HeldLogs:
        """Logs that must stay whatever the catalogue has about them."""
        return self._claims.standing(cursor, self._now())

    def lent(self, fence: int | None = None) -> LeasedUpkeepGate:
        """Upkeep that several machines do together: under a new lease, or under the fence of one that another holds."""
        gate = LeasedUpkeepGate(self, self._claims, self._now, self._lease() if fence is None else fence)
        if fence is None:
            try:
                with self.beside() as store:
                    self._take_in(store)
            except BaseException:
                gate.give_back()
                raise
        return gate

    def beside(self) -> Store:
        """The store for upkeep together with other processes: no lease is taken."""
        return self._opened(NoLease)

    def _opened(self, lease: Callable[[], WriteLease]) -> Store:
        backend = self._backend(WriterCoordination(lease, self._number))

        def newest() -> HighWaterMark:
            """Packs whose numbers this catalogue did not give out, because it is an older copy."""
            above = backend.list(self._claims.known_up_to() or 0)
            return HighWaterMark(max((pack_number(name) for name in above), default=0))

        return Store.open(backend, self._settings, write=True, written=newest)

    def close(self) -> None:
        """Releases the claim, so that the log can be emptied and removed."""
        with self._guard, suppress(LetopisError):
            token, self._token, self._store = self._token, None, None
            if token is not None:
                with self._catalog.transaction(beside=True) as cursor:
                    self._claims.give_up(cursor, token)

    def _ready(self, *, withdrawn: bool) -> Store:
        """The store with its log; a new one if the claim on the old log was withdrawn."""
        if withdrawn:
            self._store = self._token = None
        if self._store is None:
            self._store = self._opened(NoLease)
        return self._store

    def _claim(self, cursor: Cursor, store: Store) -> None:
        """Declares which log was extended, and up to where; its claim was renewed when the transaction began."""
        if not store.log:
            return
        if self._token is None or store.log != self._claimed:
            self._token = self._claims.claim(cursor, self._token, store.log, self._now() + _CLAIM_MILLIS)
            self._claimed = store.log
        self._claims.mark(cursor, store.log, store.mark().end)

    def _number(self, last: int) -> int:
        return self._claims.number(last, self._cursor)

    def _upkeep(self) -> WriteLease:
        self._fence = self._lease()
        return UpkeepLease(self._claims, self._fence)

    def _lease(self) -> int:
        """The fence of a new lease; Busy while another process has it."""
        now = self._now()
        fence = self._claims.take(UPKEEP, now, now + _LEASE_MILLIS)
        if fence is None:
            raise Busy(f"another process compacts {self._settings.url}; wait until it is done or stop it")
        return fence


class LeasedUpkeepGate:
    """The right to upkeep, shared by all that know its fence; nothing is moved or removed once it is released.

    The process that took the lease releases it; a machine that was paused in the meantime finds its fence outdated
    when it commits.
    """

    def __init__(self, gate: SharedGate, claims: PackClaims, now: Callable[[], int], fence: int) -> None:
        self._gate = gate
        self._claims = claims
        self._now = now
        self.number = fence

    def open(self) -> Store:
        """The store for upkeep, together with others under the same lease."""
        return self._gate.beside()

    def fence(self, cursor: Cursor) -> None:
        """Busy if the lease has ended; otherwise it is extended."""
        self._claims.check(cursor, UPKEEP, self.number, self._now() + _LEASE_MILLIS)

    def raise_fence(self) -> None:
        """From now on only the caller may commit under this lease."""
        self.number = self._claims.raised(UPKEEP, self.number, self._now() + _LEASE_MILLIS)

    def settle(self, cursor: Cursor, store: Store) -> None:
        """See `SharedGate.settle`."""

    def others(self, cursor: Cursor) -> HeldLogs:
        """See `SharedGate.others`."""
        return self._gate.others(cursor)

    def close(self) -> None:
        """Closes the log of this process, which can then be emptied like any other."""
        self._gate.close()

    def give_back(self) -> None:
        """Ends the lease for all who work under it."""
        self._claims.drop(UPKEEP, self.number)


class UpkeepLease:
    """The right to move and remove packs, until it is released or expires."""

    def __init__(self, claims: PackClaims, fence: int) -> None:
        self._claims = claims
        self._fence = fence

    def release(self) -> None:
        """Releases it."""
        self._claims.drop(UPKEEP, self._fence)


StoreGate = LocalGate | SharedGate
"""The right to write, for all kinds of storage."""
UpkeepGate = StoreGate | LeasedUpkeepGate
"""The right to move and remove packs."""
