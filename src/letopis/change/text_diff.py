"""Differences of texts at three levels: lines, words inside changed lines, characters inside changed words.

All work is bounded. Lines are compared first; changed runs of lines are
opened to words, and changed words to characters, only while budgets of size
and time last. What does not fit stays at the coarser level.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal, NamedTuple

from letopis.change.sequence import Budget, Op, Tag, opcodes

DiffLevel = Literal[1, 2, 3]
LINES: DiffLevel = 1
WORDS: DiffLevel = 2
CHARACTERS: DiffLevel = 3

_WORD = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")
_MOST_WORDS_TEXT = 1 << 20
_MOST_CHARACTERS = 1 << 14


class DiffPiece(NamedTuple):
    """A run of text that stayed, came, went or was replaced."""

    tag: Tag
    old: str
    new: str


@dataclass(slots=True)
class DiffBounds:
    """What one difference may cost; `clock` is passed in by tests."""

    seconds: float = 0.5
    cells: int = 1 << 28
    clock: Callable[[], float] = monotonic
    coarse: bool = field(default=False, init=False)
    _ends: float = field(default=0.0, init=False)

    def start(self) -> Budget:
        """Begin; the budget is for all comparisons of this difference."""
        self._ends = self.clock() + self.seconds
        return Budget(self.cells)

    def left(self) -> float:
        """Seconds that remain."""
        return self._ends - self.clock()

    def late(self) -> bool:
        """Whether the time is used up; from then on the result is coarse."""
        self.coarse = self.coarse or self.left() <= 0
        return self.coarse


def split_lines(text: str) -> list[str]:
    """Lines with their ends; only LF ends a line, so that joining gives the text again."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def split_words(text: str) -> list[str]:
    """Words, blanks and single marks; joining gives the text again."""
    return _WORD.findall(text)


def line_ops(old: Sequence[str], new: Sequence[str], bounds: DiffBounds | None = None) -> list[Op]:
    """Operations on whole lines."""
    bounds = bounds or DiffBounds()
    budget = bounds.start()
    ops = opcodes(old, new, budget)
    bounds.coarse = bounds.coarse or budget.coarse
    return ops


def diff_pieces(old: str, new: str, level: DiffLevel = WORDS, bounds: DiffBounds | None = None) -> list[DiffPiece]:
    """The two texts as one row of pieces, to the level asked for where the bounds allow.

    Joining the `old` sides gives the old text, joining the `new` sides the new one.
    """
    bounds = bounds or DiffBounds()
    budget = bounds.start()
    before, after = split_lines(old), split_lines(new)
    found: list[DiffPiece] = []
    for op in opcodes(before, after, budget):
        piece = DiffPiece(op.tag, "".join(before[op.a1 : op.a2]), "".join(after[op.b1 : op.b2]))
        found += _opened(piece, level, bounds, budget) if op.tag == "replace" and level > LINES else [piece]
    bounds.coarse = bounds.coarse or budget.coarse
    return list(_joined(found))


def _opened(piece: DiffPiece, level: DiffLevel, bounds: DiffBounds, budget: Budget) -> Iterator[DiffPiece]:
    """A changed run of lines by words, and its changed words by characters."""
    if len(piece.old) + len(piece.new) > _MOST_WORDS_TEXT or bounds.late():
        bounds.coarse = True
        yield piece
        return
    before, after = split_words(piece.old), split_words(piece.new)
    for op in opcodes(before, after, budget):
        inner = DiffPiece(op.tag, "".join(before[op.a1 : op.a2]), "".join(after[op.b1 : op.b2]))
        if op.tag == "replace" and level == CHARACTERS:
            yield from character_pieces(inner.old, inner.new, bounds)
        else:
            yield inner


def character_pieces(old: str, new: str, bounds: DiffBounds) -> list[DiffPiece]:
    """Two short texts by characters; as one replacement when they are long or time is up."""
    whole = [DiffPiece("replace", old, new)]
    if len(old) + len(new) > _MOST_CHARACTERS or bounds.late():
        bounds.coarse = True
        return whole
    found = [DiffPiece(op.tag, old[op.a1 : op.a2], new[op.b1 : op.b2]) for op in opcodes(old, new, bounds.start())]
    same = sum(len(piece.old) for piece in found if piece.tag == "equal")
    return found if 4 * same >= len(old) + len(new) - 2 * same or same >= 3 else whole


def _joined(found: Sequence[DiffPiece]) -> Iterator[DiffPiece]:
    """Neighbours of one kind as one; a deletion beside an insertion is a replacement."""
    old: list[str] = []
    new: list[str] = []
    equal = True
    for piece in found:
        if (piece.tag == "equal") != equal and (old or new):
            yield _piece(equal, old, new)
            old, new = [], []
        equal = piece.tag == "equal"
        old.append(piece.old)
        new.append(piece.new)
    if old or new:
        yield _piece(equal, old, new)


def _piece(equal: bool, old: list[str], new: list[str]) -> DiffPiece:
    before, after = "".join(old), "".join(new)
    tag: Tag = "equal" if equal else "replace" if before and after else "delete" if before else "insert"
    return DiffPiece(tag, before, after)
