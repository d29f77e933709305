"""Blocks of tables that are another cell of their row than before, beside empty cells, whose text is the same.

Only rows with as many cells as before are compared: a column more or less moves nothing.
"""

from __future__ import annotations

from itertools import count, pairwise

from letopis.change.fingerprints import Fingerprint
from letopis.model import BlockKind
from letopis.tuples import NamedTuple


class CellPlace(NamedTuple):
    """Which cell of a row a block is, of how many; of a block that is a row its filled cells as bits, of 0."""

    cell: int
    cells: int


class CellMoves:
    """The cells of two states of a page."""

    def __init__(self, old: Fingerprint, new: Fingerprint) -> None:
        self._old, self._new = old, new
        self._before, self._after = (_places(old), _places(new)) if old.cells != new.cells else ({}, {})

    def moved(self, i: int, j: int) -> bool:
        """Whether a block of the old state is another cell of its row in the new one; the days of a month never are."""
        before, after = self._before.get(i), self._after.get(j)
        if before is None or after is None or before.cells != after.cells or before.cell == after.cell:
            return False
        if not before.cells and _as_one(before.cell) == _as_one(after.cell) and before.cell.bit_count() > 1:
            return False
        return not _is_day(self._old, i)


def _as_one(filled: int) -> int:
    """The filled cells of a row without the empty ones before them: a column before a sheet moves no value in it."""
    return filled // (filled & -filled)


def _places(state: Fingerprint) -> dict[int, CellPlace]:
    """Blocks in rows with empty cells.

    A cell is empty where the next begins with no block between. Of the last one of a table that is not known: it is
    taken for filled with what follows, which is in no row of the other state.
    """
    found = {block: CellPlace(row, 0) for block, row in state.cells.filled}
    starts = state.cells.starts
    rows = [at for at, start in enumerate(starts) if start < 0]
    for at, following in pairwise((*rows, len(starts))):
        row = starts[at + 1 : following]
        end = -1 - starts[following] if following < len(starts) else len(state)
        if len(set(row)) < len(row) or (row and not _is_cell(state, row[-1], end)):
            found |= {block: CellPlace(cell, len(row)) for block, cell in dict(zip(row, count())).items()}
    return found


def _is_cell(state: Fingerprint, block: int, end: int) -> bool:
    return block < end and state.kinds[block] is BlockKind.CELL


def _is_day(state: Fingerprint, index: int) -> bool:
    """Whether a number counts on from the one beside it, as in a calendar, whose months begin on other days."""
    text = state.text(index)
    beside = {state.text(n) for n in (index - 1, index + 1) if 0 <= n < len(state)}
    return text.isascii() and text.isdecimal() and not beside.isdisjoint((str(int(text) - 1), str(int(text) + 1)))


def in_row(state: Fingerprint, index: int) -> str:
    """The text of a block, behind a mark for each cell of its row before it."""
    place = _places(state).get(index)
    if place is None:
        return state.text(index)
    return "| " * (place.cell if place.cells else (place.cell & -place.cell).bit_length() - 1) + state.text(index)
