"""A difference of two texts, laid out for a page: one running text, or two columns. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from letopis.change import Piece

MOST_ROWS = 3000
_CONTEXT = 3
_FOLD = 700
_EDGE = 240


class Run(NamedTuple):
    """Text of one kind: `same`, `gone`, `came`, or `fold` for equal text that is hidden at first."""

    kind: str
    text: str


class Line(NamedTuple):
    """One line of one side."""

    number: int
    runs: tuple[Run, ...]


class Row(NamedTuple):
    """A line of the old text beside one of the new; `hidden` counts equal lines that are left out here."""

    old: Line | None
    new: Line | None
    changed: bool
    hidden: int = 0


class Counts(NamedTuple):
    """How many words went and came."""

    gone: int
    came: int


def counted(pieces: Sequence[Piece]) -> Counts:
    """Words that went and came."""
    changed = [piece for piece in pieces if piece.tag != "equal"]
    return Counts(sum(len(piece.old.split()) for piece in changed), sum(len(piece.new.split()) for piece in changed))


def running(pieces: Sequence[Piece]) -> list[Run]:
    """One text with what went and came inside it; long equal stretches become a fold."""
    runs: list[Run] = []
    last = len(pieces) - 1
    for at, piece in enumerate(pieces):
        if piece.tag == "equal":
            runs += _folded(piece.new, first=at == 0, last=at == last)
        else:
            runs += [Run(kind, text) for kind, text in (("gone", piece.old), ("came", piece.new)) if text]
    return runs


def _folded(text: str, first: bool, last: bool) -> Iterator[Run]:
    if len(text) <= _FOLD or (first and last):
        yield Run("same", text)
        return
    head = 0 if first else _break_after(text, _EDGE)
    tail = len(text) if last else _break_before(text, len(text) - _EDGE)
    yield from (Run(kind, part) for kind, part in (("same", text[:head]), ("fold", text[head:tail])) if part)
    if text[tail:]:
        yield Run("same", text[tail:])


def _break_after(text: str, at: int) -> int:
    return next((found + 1 for mark in "\n " if (found := text.find(mark, at, at + _EDGE)) >= 0), at)


def _break_before(text: str, at: int) -> int:
    return next((found + 1 for mark in "\n " if (found := text.rfind(mark, at - _EDGE, at)) >= 0), at)


def side_by_side(pieces: Sequence[Piece]) -> list[Row]:
    """Two columns, line by line, equal stretches left out but for a few lines around changes."""
    return list(_shortened(list(_rows(pieces))))


class _Side:
    """One column while it is laid out."""

    def __init__(self) -> None:
        self.number = 0
        self.done: list[Line] = []
        self.runs: list[Run] = []

    def write(self, kind: str, text: str) -> None:
        first, *others = text.split("\n")
        self._add(kind, first)
        for line in others:
            self.end()
            self._add(kind, line)

    def _add(self, kind: str, text: str) -> None:
        if text:
            self.runs.append(Run(kind, text))

    def end(self) -> None:
        self.number += 1
        self.done.append(Line(self.number, tuple(self.runs)))
        self.runs = []

    def take(self) -> list[Line]:
        taken, self.done = self.done, []
        return taken


def _rows(pieces: Sequence[Piece]) -> Iterator[Row]:
    """Both columns are level again wherever an equal line ends."""
    old, new = _Side(), _Side()
    changed = False
    for piece in pieces:
        if piece.tag != "equal":
            old.write("gone", piece.old)
            new.write("came", piece.new)
            changed = True
            continue
        for text in piece.new.splitlines(keepends=True):
            for side in (old, new):
                side.write("same", text)
            if text.endswith("\n"):
                yield from _level(old, new, changed)
                changed = False
    for side in (old, new):
        if side.runs:
            side.end()
    yield from _level(old, new, changed)


def _level(old: _Side, new: _Side, changed: bool) -> Iterator[Row]:
    for left, right in zip_longest(old.take(), new.take()):
        yield Row(left, right, changed)


def _shortened(rows: Sequence[Row]) -> Iterator[Row]:
    near = [False] * len(rows)
    for at, row in enumerate(rows):
        if row.changed:
            for other in range(max(0, at - _CONTEXT), min(len(rows), at + _CONTEXT + 1)):
                near[other] = True
    shown = hidden = 0
    for row, kept in zip(rows, near, strict=True):
        if not kept:
            hidden += 1
            continue
        if hidden:
            yield Row(None, None, False, hidden)
            hidden = 0
        if shown == MOST_ROWS:
            return
        shown += 1
        yield row
    if hidden:
        yield Row(None, None, False, hidden)
