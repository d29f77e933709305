"""The right to write, held as briefly as possible so that several processes can share an archive.

SQLite's own writer lock (or the database server) orders the writers; the
store's lease is taken inside it and given back after the commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from letopis.catalog import Catalog, Cursor
from letopis.config import StoreSettings
from letopis.errors import Busy
from letopis.store import Backend, Store

PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.02


class WriteGate:
    """Opens the store for one transaction at a time."""

    def __init__(self, catalog: Catalog, backend: Callable[[], Backend], settings: StoreSettings) -> None:
        self._catalog = catalog
        self._backend = backend
        self._settings = settings
        self._held: Store | None = None

    @contextmanager
    def transaction(self) -> Iterator[tuple[Cursor, Store]]:
        """A transaction of the catalogue with the store open for writing inside it."""
        with self._catalog.transaction() as cursor:
            store = self._held or self.open()
            try:
                yield cursor, store
            except BaseException:
                if self._held is None:
                    store.close()
                raise
        # Only after the commit: whoever writes next must find the catalogue up to date.
        if self._held is None:
            store.close()

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
        """The store for writing; waits a minute for another writer to finish."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return Store.open(self._backend(), self._settings, write=True)
            except Busy:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)
