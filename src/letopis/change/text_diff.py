"""Differences of texts at three levels: lines, words inside changed lines, characters inside changed words.

All work is bounded. Lines are compared first. In changed runs of lines, each line is compared by words with the line it
came from, and changed words by characters, while budgets of size and time last. What does not fit stays at the coarser
level. A line that shares little with its predecessor is shown as rewritten, not as the words that happen to be in both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from letopis.change.sequence import Budget, Op, Tag, opcodes
from letopis.tuples import NamedTuple

DiffLevel = Literal[1, 2, 3]
LINES: DiffLevel = 1
WORDS: DiffLevel = 2
CHARACTERS: DiffLevel = 3

_WORD = re.compile(r"\w+(?:[.,:/@'’\-]\w+)*|[^\S\n]+|\n|[^\w\s]")  # "19.90", "10:30", "don't" and "e-mail" are words
_NOT_LETTERS = re.compile(r"[\W_]+")
_MOST_WORDS_TEXT = 1 << 20
_MOST_CHARACTERS = 1 << 14
_MOST_LINE_PAIRS = 1 << 12
_REWRITTEN = 0.4  # what two lines must have in common not to be two others
_FEW_WORDS = 2


class DiffPiece(NamedTuple):
    """A run of text that was kept, added, removed or replaced."""

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
    """A changed run of lines: each beside the line that it came from, by words, and its changed words by characters."""
    if len(piece.old) + len(piece.new) > _MOST_WORDS_TEXT or bounds.late():
        bounds.coarse = True
        yield piece
        return
    for old, new in _paired_lines(split_lines(piece.old), split_lines(piece.new)):
        if not old or not new:
            yield DiffPiece("replace", old, new)
            continue
        found = list(_by_words(old, new, level, bounds, budget))
        if level == WORDS and _is_rewritten(found):
            yield DiffPiece("replace", old, new)
        else:
            yield from _without_confetti(found) if level == WORDS else found


def _by_words(old: str, new: str, level: DiffLevel, bounds: DiffBounds, budget: Budget) -> Iterator[DiffPiece]:
    before, after = split_words(old), split_words(new)
    for op in opcodes(before, after, budget):
        inner = DiffPiece(op.tag, "".join(before[op.a1 : op.a2]), "".join(after[op.b1 : op.b2]))
        if op.tag == "replace" and level == CHARACTERS:
            yield from character_pieces(inner.old, inner.new, bounds)
        else:
            yield inner


def _paired_lines(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    """Lines in their order, each beside the one that is like it, else with nothing beside it; long runs as one pair."""
    if len(old) == len(new) == 1 or len(old) * len(new) > _MOST_LINE_PAIRS:
        yield "".join(old), "".join(new)
        return
    i = j = 0
    for a, b in [*_best_pairs(_likenesses(old, new)), (len(old), len(new))]:
        if i < a or j < b:
            yield "".join(old[i:a]), ""
            yield "", "".join(new[j:b])
        if a < len(old):
            yield old[a], new[b]
        i, j = a + 1, b + 1


def _likenesses(old: list[str], new: list[str]) -> list[list[float]]:
    """How much each old line has in common with each new one; 0 for what is too little."""
    before, after = ([Counter(_NOT_LETTERS.sub(" ", line).split()) for line in lines] for lines in (old, new))
    sizes = [[sum(map(len, words.elements())) for words in side] for side in (before, after)]
    table = []
    for x, size in zip(before, sizes[0], strict=True):
        shared = [sum(map(len, (x & y).elements())) for y in after]
        row = [2 * same / max(1, size + other) for same, other in zip(shared, sizes[1], strict=True)]
        table.append([value if value >= _REWRITTEN else 0.0 for value in row])
    return table


def _best_pairs(likeness: list[list[float]]) -> list[tuple[int, int]]:
    """Pairs that rise on both sides and are most alike together."""
    rows, columns = len(likeness), len(likeness[0])
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            paired = likeness[i][j] + best[i + 1][j + 1] if likeness[i][j] else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs, i, j = list[tuple[int, int]](), 0, 0
    while i < rows and j < columns:
        if likeness[i][j] and best[i][j] == likeness[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        else:
            i, j = (i + 1, j) if best[i][j] == best[i + 1][j] else (i, j + 1)
    return pairs


def _is_rewritten(found: Sequence[DiffPiece]) -> bool:
    """Whether so few words of a line stayed that it says something else, and not in one place alone."""
    same = sum(_words_in(piece.new) for piece in found if piece.tag == "equal")
    both = sum(_words_in(piece.old) + _words_in(piece.new) for piece in found)
    changes = sum(piece.tag != "equal" for piece in found)
    return changes > 1 and 2 * same < _REWRITTEN * both


def _words_in(text: str) -> int:
    return sum(word[0].isalnum() for word in split_words(text))


def _without_confetti(found: Sequence[DiffPiece]) -> Iterator[DiffPiece]:
    """Blanks and marks between changes go with them, and then a word or two between changes of several words."""
    found = list(_joined(list(_swept(found, most_words=0))))
    return _swept(found, most_words=_FEW_WORDS)


def _swept(found: Sequence[DiffPiece], most_words: int) -> Iterator[DiffPiece]:
    """What stayed between two changes and is no more than a crumb beside them is told as changed with them."""
    for n, piece in enumerate(found):
        inside = piece.tag == "equal" and 0 < n < len(found) - 1 and "\n" not in piece.new
        words = _words_in(piece.new) if inside else 0
        if inside and words <= most_words and words < min(_size(found[n - 1]), _size(found[n + 1])):
            yield DiffPiece("replace", piece.old, piece.new)
        else:
            yield piece


def _size(piece: DiffPiece) -> int:
    return max(1, _words_in(piece.old), _words_in(piece.new))


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
