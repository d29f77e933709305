"""Blocks that only stand elsewhere: they say nothing new, unless they are figures that a table tells of another row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from letopis.change.fingerprints import Fingerprint
from letopis.change.noise import ChangedBlocks, take_one
from letopis.change.profiles import ChangedRegion
from letopis.change.values import names_state
from letopis.model import BlockKind


class MovedBlocks:
    """The blocks that two states of a page have in other places; regions are to be asked in their order, each once."""

    def __init__(self, old: Fingerprint, new: Fingerprint, found: list[ChangedRegion]) -> None:
        self._old, self._new = old, new
        gone = Counter(old.hashes[i] for r in found for i in range(r.op.a1, r.op.a2))
        came = Counter(new.hashes[j] for r in found for j in range(r.op.b1, r.op.b2))
        moved = gone & came
        for block in self._rehung(found, moved):
            del moved[block]
        self._moved_old, self._moved_new = moved.copy(), moved

    def left_of(self, side: ChangedBlocks) -> ChangedBlocks:
        """A region without what only stands elsewhere."""
        old = [i for i in side.old if not take_one(self._moved_old, self._old.hashes[i])]
        new = [j for j in side.new if not take_one(self._moved_new, self._new.hashes[j])]
        return ChangedBlocks(side.region, old, new)

    def _rehung(self, found: list[ChangedRegion], moved: Counter[int]) -> list[int]:
        """Of moved blocks the figures of tables that now stand beside other cells on both sides."""
        old, new = self._old, self._new
        if not moved or not old.blocks or not new.blocks:
            return []
        gone = (i for r in found for i in range(r.op.a1, r.op.a2))
        before = {(old.hashes[i], neighbour) for i in gone for neighbour in _neighbours(old, i)}
        came = (j for r in found for j in range(r.op.b1, r.op.b2) if new.hashes[j] in moved and is_figure(new, j))
        return [
            new.hashes[j]
            for j in came
            if not any((new.hashes[j], neighbour) in before for neighbour in _neighbours(new, j))
        ]


def is_figure(state: Fingerprint, index: int) -> bool:
    """Whether a cell holds a number or a state, which say something of the cells beside it alone."""
    text = state.text(index)
    return state.kinds[index] is BlockKind.CELL and (any(map(str.isdigit, text)) or names_state(text))


def _neighbours(state: Fingerprint, index: int) -> Iterator[tuple[int, int]]:
    """The blocks beside one, with the side on which they stand."""
    for step in (-1, 1):
        if 0 <= index + step < len(state):
            yield step, state.hashes[index + step]
