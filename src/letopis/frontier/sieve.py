"""The sieve: each URL passes once.

An open-addressing table of 64-bit keys in one numpy array of rows of 16 slots, asked in batches, since links come by
the page. A key is in its home row, or in the next one with a free slot. There are no pointers and no objects: 8 bytes
per slot, 10.7 to 16 bytes per URL at loads of 0.75 to 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_WIDTH = 16
_LOAD = 0.75
_GROWTH = 1.5
_FEWEST_ROWS = 256
_PART = 1 << 14
_HALF = np.uint64(32)
_FEW = 8


class Sieve:
    """The set of seen keys. Exact until `most_bytes` are used, then it forgets.

    A key reported as seen was seen. Beyond the bound, new keys overwrite old ones and only home rows are searched, so a
    key may be reported as unseen again: then the unique index of the store decides. Keys that differ in their lowest
    bit alone count as equal. Not shared between threads.
    """

    def __init__(self, most_bytes: int = 1 << 30, expected: int = 0) -> None:
        """`expected` keys fit without growing."""
        self._most_rows = max(_FEWEST_ROWS, most_bytes // (8 * _WIDTH))
        self._make(min(self._most_rows, max(_FEWEST_ROWS, _rows_for(expected))))
        self._random = np.random.default_rng(0)
        self.exact = True

    def _make(self, rows: int) -> None:
        self._rows = rows
        self._factor = np.uint64(rows)
        self._table = np.zeros((rows, _WIDTH), dtype=np.int64)
        self._room = int(rows * _WIDTH * _LOAD)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        return int(self._table.nbytes)

    def places(self, keys: Sequence[int]) -> list[int]:
        """`unseen` for plain numbers: the places of those that pass."""
        return self.unseen(np.fromiter(keys, dtype=np.int64, count=len(keys))).nonzero()[0].tolist()

    def missing(self, keys: Sequence[int]) -> list[int]:
        """The places of the keys that were not seen, changing nothing."""
        return (~self.contains(np.fromiter(keys, dtype=np.int64, count=len(keys)))).nonzero()[0].tolist()

    def unseen(self, keys: Keys) -> Mask:
        """Which keys pass; they count as seen from now on. Of equal keys the first passes."""
        if len(keys) > _PART:
            return np.concatenate([self.unseen(keys[at : at + _PART]) for at in range(0, len(keys), _PART)])
        keys = keys | 1  # zero marks an empty slot
        homes = self._homes(keys)
        passes: Mask = ~(self._table.take(homes, axis=0) == keys[:, None]).any(axis=1)
        missing = passes.nonzero()[0]
        if len(missing) <= _FEW and self._count + _FEW <= self._room:
            for place in missing.tolist():
                passes[place] = self._insert_one(int(keys[place]), int(homes[place]))
            return passes
        return self._many_unseen(keys, missing[~self._found(keys[missing], homes[missing])])

    def _many_unseen(self, keys: Keys, missing: Keys) -> Mask:
        """The mask for many keys that are not in the table, though some may be equal."""
        fresh, first = np.unique(keys[missing].view(np.uint64), return_index=True)
        passes = np.zeros(len(keys), dtype=np.bool_)
        passes[missing[first]] = True
        if len(fresh):
            self._insert(fresh.view(np.int64))
        return passes

    def contains(self, keys: Keys) -> Mask:
        """Which keys were seen, changing nothing."""
        keys = keys | 1
        return self._found(keys, self._homes(keys))

    def _homes(self, keys: Keys) -> Keys:
        """A row for each key from the upper half of its bits, evenly over any number of rows."""
        return ((keys.view(np.uint64) >> _HALF) * self._factor >> _HALF).view(np.int64)

    def _found(self, keys: Keys, homes: Keys) -> Mask:
        rows = self._table.take(homes, axis=0)
        found: Mask = (rows == keys[:, None]).any(axis=1)
        if found.all():
            return found
        open_ = found | (rows[:, -1] == 0)  # rows fill up from the left
        if self.exact and not open_.all():
            rest = (~open_).nonzero()[0]
            found[rest] = self._found(keys[rest], self._next(homes[rest]))
        return found

    def _next(self, rows: Keys) -> Keys:
        rows = rows + 1
        rows[rows == self._rows] = 0
        return rows

    def _insert(self, keys: Keys) -> None:
        """Put in distinct keys that are not there, given in unsigned order (equal rows side by side)."""
        if self._count + len(keys) > self._room:
            self._grow(len(keys))
        if self._count + len(keys) > self._room:
            self._overwrite(keys)
            return
        self._count += len(keys)
        homes = self._homes(keys)
        while len(keys):
            filled = np.count_nonzero(self._table.take(homes, axis=0), axis=1)
            slot = filled + _rank(homes)
            fits = slot < _WIDTH
            if fits.all():
                self._table[homes, slot] = keys
                return
            self._table[homes[fits], slot[fits]] = keys[fits]
            keys, homes = keys[~fits], self._next(homes[~fits])

    def _insert_one(self, key: int, row: int) -> bool:
        """Put in one key unless it is there: for a handful this is faster than arrays."""
        while True:
            slots = self._table[row].tolist()
            if key in slots:
                return False
            if slots[-1] == 0:
                self._table[row, slots.index(0)] = key
                self._count += 1
                return True
            row = (row + 1) % self._rows

    def _overwrite(self, keys: Keys) -> None:
        """At the bound: a random slot of the home row is replaced, or a free one is used."""
        self.exact = False
        homes = self._homes(keys)
        empty = self._table.take(homes, axis=0) == 0
        slot = np.where(empty[:, -1], empty.argmax(axis=1), self._random.integers(0, _WIDTH, len(keys)))
        self._table[homes, slot] = keys

    def _grow(self, more: int) -> None:
        rows = min(self._most_rows, max(int(self._rows * _GROWTH), _rows_for(self._count + more)))
        if rows <= self._rows:
            return
        old = self._table.reshape(-1)
        self._make(rows)
        for at in range(0, len(old), _PART):
            part = old[at : at + _PART]
            kept = np.sort(part[part != 0].view(np.uint64)).view(np.int64)
            if len(kept):
                self._insert(kept)


def _rank(homes: Keys) -> Keys:
    """The position of each key among those of the same row."""
    if len(homes) == 1:
        return np.zeros(1, dtype=np.int64)
    place = np.arange(len(homes))
    begins = np.zeros_like(place)
    np.copyto(begins[1:], place[1:], where=homes[1:] != homes[:-1])
    return place - np.maximum.accumulate(begins)


def _rows_for(keys: int) -> int:
    return int(keys / (_WIDTH * _LOAD)) + 1
