r"""Texts of older versions, kept as their differences from a whole one of the same page.

Most older versions differ from their neighbours in a few lines. One of them is kept whole, and those that follow keep
what they copy from it and what they have of their own: so reading one takes the whole one and a few slices, however
many versions there are. When the differences have grown as long as the text itself, the next one is kept whole again.
The newest version of a page is whole in itself, and no other text refers to it.

    whole         "\x01", then the text
    differences   "\x02", then numbers in decimal digits with blanks between and a line end: the id of the document
                  with the whole text, characters of differences up to here, and for each piece: characters of its own,
                  characters passed over in the whole text (back when negative), characters copied from it; then all
                  characters of their own
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from letopis.tuples import NamedTuple

_WHOLE, _DIFFERENCES = "\x01", "\x02"
_APART = frozenset((_WHOLE, _DIFFERENCES))
_MOST_PIECES = 1000
"""Pieces of one text: reading it back takes that many slices at most."""


class TextPiece(NamedTuple):
    """New characters, then a part of the whole text."""

    own: str
    start: int
    end: int


class TextGroup(NamedTuple):
    """The whole text that others of its page differ from: the id of its document, and how long they are by now."""

    page: int
    id: int
    text: str
    spent: int = 0


class KeptText(NamedTuple):
    """What is kept of a text, and the id of the document with the whole one."""

    whole: int
    data: str


class OldTextWriter:
    """Makes what is kept of texts that come page by page in the order of versions.

    `group_before` tells the group that a page has before a number, where it has one.
    """

    def __init__(self, group_before: Callable[[int, int], TextGroup | None]) -> None:
        self._group_before = group_before
        self._group: TextGroup | None = None

    def keep(self, page: int, number: int, document: int, text: str) -> KeptText:
        """The text of a version, in the document of that id."""
        group = self._group
        if group is None or group.page != page:
            group = self._group_before(page, number)
        if group is not None and (found := _differences(group, text)) is not None:
            self._group, data = found
            return KeptText(group.id, data)
        self._group = TextGroup(page, document, text)
        return KeptText(document, _WHOLE + text)


def _differences(group: TextGroup, text: str) -> tuple[TextGroup, str] | None:
    """The differences from the whole text of a group; None where they are not worth it any more."""
    pieces = text_pieces(group.text, text)
    own = "".join([piece.own for piece in pieces])
    numbers, at = [], 0
    for piece in pieces:
        numbers += [len(piece.own), piece.start - at, piece.end - piece.start]
        at = piece.end
    written = f"{' '.join(map(str, numbers))}\n{own}"
    spent = group.spent + len(written)
    if spent > len(group.text) or len(pieces) > _MOST_PIECES:
        return None
    return group._replace(spent=spent), f"{_DIFFERENCES}{group.id} {spent} {written}"


def is_kept_apart(data: str) -> bool:
    """Whether what is kept is that of an older version."""
    return data[:1] in _APART


def spent_by(data: str) -> int:
    """Characters of differences of a group up to this text."""
    return int(data.split(" ", 2)[1]) if data.startswith(_DIFFERENCES) else 0


def kept_text(data: str, whole: Callable[[int], str]) -> str:
    """The text that was kept; `whole` finds what is kept in the document of an id."""
    if data.startswith(_WHOLE):
        return data[1:]
    head, _, own = data[1:].partition("\n")
    document, _, *numbers = map(int, head.split())
    base = whole(document)[1:]
    parts: list[str] = []
    taken = at = 0
    steps = iter(numbers)
    for length, passed, copied in zip(steps, steps, steps, strict=True):
        parts += (own[taken : taken + length], base[at + passed : at + passed + copied])
        taken, at = taken + length, at + passed + copied
    return "".join(parts)


def text_pieces(base: str, text: str) -> list[TextPiece]:
    """A text as new pieces and pieces of another one: lines that both have, and what is equal between them."""
    return list(_trimmed(base, _line_pieces(base, text)))


def _line_pieces(base: str, text: str) -> Iterator[TextPiece]:
    lines, others = base.splitlines(keepends=True), text.splitlines(keepends=True)
    places: dict[str, list[int]] = {}
    starts = [0]
    for at, line in enumerate(lines):
        places.setdefault(line, []).append(at)
        starts.append(starts[-1] + len(line))
    own: list[str] = []
    at = expected = 0
    while at < len(others):
        same = places.get(others[at])
        if same is None:
            own.append(others[at])
            at += 1
            continue
        # Of equal lines the next one that follows goes on longest.
        first = same[min(bisect_left(same, expected), len(same) - 1)]
        expected = first
        while at < len(others) and expected < len(lines) and lines[expected] == others[at]:
            expected, at = expected + 1, at + 1
        yield TextPiece("".join(own), starts[first], starts[expected])
        own = []
    yield TextPiece("".join(own), len(base), len(base))


def _trimmed(base: str, pieces: Iterator[TextPiece]) -> Iterator[TextPiece]:
    """The new part of a piece replaces a part of the other text; often both begin and end with the same characters."""
    at = 0
    for piece in pieces:
        own, gap = piece.own, base[at : piece.start]
        head = _common(own, gap)
        own, gap = own[head:], gap[head:]
        tail = _common(own[::-1], gap[::-1])
        if head:
            yield TextPiece("", at, at + head)
        if len(own) > tail or piece.end > piece.start - tail:
            yield TextPiece(own[: len(own) - tail], piece.start - tail, piece.end)
        at = piece.end


def _common(first: str, second: str) -> int:
    """How many characters two texts have in common at their beginning."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
