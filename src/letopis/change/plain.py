"""Differences as plain text: unified, by words, by characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from letopis.change.sequence import Op
from letopis.change.text_diff import CHARACTERS, WORDS, Bounds, Level, Piece, line_ops, lines_of, pieces

Marks = Literal["plain", "ansi"]
_MARKS: dict[Marks, tuple[str, str, str, str]] = {
    "plain": ("[-", "-]", "{+", "+}"),
    "ansi": ("\x1b[31;9m", "\x1b[0m", "\x1b[32;4m", "\x1b[0m"),
}
_GAP = 160


def unified(
    old: str, new: str, old_name: str = "old", new_name: str = "new", context: int = 3, bounds: Bounds | None = None
) -> str:
    """The difference as `patch` reads it; empty when there is none."""
    before, after = lines_of(old), lines_of(new)
    ops = line_ops(before, after, bounds)
    if all(op.tag == "equal" for op in ops):
        return ""
    out = [f"--- {_one_line(old_name)}\n", f"+++ {_one_line(new_name)}\n"]
    for hunk in hunks(ops, context):
        out += _hunk(hunk, before, after)
    return "".join(out)


def hunks(ops: Sequence[Op], context: int) -> Iterator[list[Op]]:
    """Changes in groups with `context` equal lines around; groups that would touch are one."""
    group: list[Op] = []
    for n, op in enumerate(ops):
        if op.tag != "equal":
            group.append(op)
            continue
        size = op.a2 - op.a1
        last = n == len(ops) - 1
        if group and (size > 2 * context or last):
            yield [*group, _head(op, min(size, context))]
            group = []
        if not last:
            group.append(_tail(op, min(size, context)) if not group else op)
    if any(op.tag != "equal" for op in group):
        yield group


def _head(op: Op, size: int) -> Op:
    return Op("equal", op.a1, op.a1 + size, op.b1, op.b1 + size)


def _tail(op: Op, size: int) -> Op:
    return Op("equal", op.a2 - size, op.a2, op.b2 - size, op.b2)


def _hunk(group: list[Op], before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_range(first.a1, last.a2)} +{_range(first.b1, last.b2)} @@\n"
    for op in group:
        if op.tag == "equal":
            yield from (_line(" ", line) for line in before[op.a1 : op.a2])
        else:
            yield from (_line("-", line) for line in before[op.a1 : op.a2])
            yield from (_line("+", line) for line in after[op.b1 : op.b2])


def _line(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _range(start: int, stop: int) -> str:
    size = stop - start
    if size == 1:
        return str(start + 1)
    return f"{start + 1 if size else start},{size}"


def _one_line(name: str) -> str:
    return " ".join(name.split())


def words(old: str, new: str, marks: Marks = "plain", bounds: Bounds | None = None) -> str:
    """The new text with removed words as `[-...-]` and added ones as `{+...+}`; long equal parts cut."""
    return _inline(old, new, WORDS, marks, bounds)


def chars(old: str, new: str, marks: Marks = "plain", bounds: Bounds | None = None) -> str:
    """The same, marked to the character."""
    return _inline(old, new, CHARACTERS, marks, bounds)


def _inline(old: str, new: str, level: Level, marks: Marks, bounds: Bounds | None) -> str:
    found = pieces(old, new, level, bounds)
    if all(piece.tag == "equal" for piece in found):
        return ""
    last = len(found) - 1
    text = "".join(_marked(piece, marks, n == 0, n == last) for n, piece in enumerate(found))
    return text if text.endswith("\n") else text + "\n"


def _marked(piece: Piece, marks: Marks, first: bool, last: bool) -> str:
    if piece.tag == "equal":
        return _cut(piece.new, first, last)
    gone, gone_end, came, came_end = _MARKS[marks]
    return (gone + piece.old + gone_end if piece.old else "") + (came + piece.new + came_end if piece.new else "")


def _cut(text: str, first: bool, last: bool) -> str:
    """Equal text shortened to what stands near a change, at line ends."""
    if len(text) <= 2 * _GAP:
        return text
    head = "" if first else text[:_GAP].rsplit("\n", 1)[0]
    tail = "" if last else text[-_GAP:].split("\n", 1)[-1]
    return f"{head}\n...\n{tail}" if not first else f"...\n{tail}"
