r"""Texts of older versions, kept as their differences from an earlier text of the same page.

Most older versions differ from their neighbours in a few lines. The first of a group is kept whole, and those that
follow keep what they copy from an earlier one and what they have of their own. Text 6 of a group differs from text 4,
which differs from text 0: from the place of a text the lowest bit that is set is taken away. So differences stay short,
and reading one of a thousand takes ten texts at most. When the differences of a group have grown as long as its whole
text, the next text begins a new group. The newest version of a page is whole in itself, and no other text refers to it.

    whole         "\x01", then the text
    differences   "\x02", then numbers in decimal digits with blanks between and a line end: the id of the document
                  with the text that this one differs from, its own place in the group, characters of differences up to
                  here, and for each piece: characters of its own, characters passed over in the other text (back when
                  negative), characters copied from it; then all characters of their own
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


class EarlierText(NamedTuple):
    """A text that others may differ from: its place in the group, and the id of its document."""

    place: int
    id: int
    text: str


class TextGroup(NamedTuple):
    """The last text of a page after the chain of those that it refers to, the whole one first, and how long all
    differences are.
    """

    page: int
    chain: tuple[EarlierText, ...]
    spent: int = 0


class OldTextWriter:
    """Makes what is kept of texts that come page by page in the order of versions.

    `group_before` tells the group that a page has before a number, where it has one.
    """

    def __init__(self, group_before: Callable[[int, int], TextGroup | None]) -> None:
        self._group_before = group_before
        self._group: TextGroup | None = None

    def keep(self, page: int, number: int, document: int, text: str) -> str:
        """What is kept of the text of a version, in the document of that id."""
        group = self._group
        if group is None or group.page != page:
            group = self._group_before(page, number)
        if group is not None and (found := _differences(group, document, text)) is not None:
            self._group, data = found
            return data
        self._group = TextGroup(page, (EarlierText(0, document, text),))
        return _WHOLE + text


def _differences(group: TextGroup, document: int, text: str) -> tuple[TextGroup, str] | None:
    """The differences from an earlier text of a group; None where they are not worth it any more."""
    place = group.chain[-1].place + 1
    chain = tuple(earlier for earlier in group.chain if earlier.place <= place & (place - 1))
    pieces = text_pieces(chain[-1].text, text)
    own = "".join([piece.own for piece in pieces])
    numbers, at = [], 0
    for piece in pieces:
        numbers += [len(piece.own), piece.start - at, piece.end - piece.start]
        at = piece.end
    written = f"{' '.join(map(str, numbers))}\n{own}"
    spent = group.spent + len(written)
    if spent > len(chain[0].text) or len(pieces) > _MOST_PIECES:
        return None
    made = TextGroup(group.page, (*chain, EarlierText(place, document, text)), spent)
    return made, f"{_DIFFERENCES}{chain[-1].id} {place} {spent} {written}"


def text_group(page: int, document: int, kept: Callable[[int], str]) -> TextGroup:
    """The group of a page that ends with the text of a document; `kept` finds what is kept of one."""
    data = kept(document)
    if data.startswith(_WHOLE):
        return TextGroup(page, (EarlierText(0, document, data[1:]),))
    base, place, spent = map(int, data[1:].split(" ", 3)[:3])
    chain = text_group(page, base, kept).chain
    text = kept_text(data, lambda _: chain[-1].text)
    return TextGroup(page, (*chain, EarlierText(place, document, text)), spent)


def is_kept_apart(data: str) -> bool:
    """Whether what is kept is that of an older version."""
    return data[:1] in _APART


def kept_text(data: str, text: Callable[[int], str]) -> str:
    """The text of which something is kept; `text` finds that of the document with an id."""
    if data.startswith(_WHOLE):
        return data[1:]
    head, _, own = data[1:].partition("\n")
    document, _, _, *numbers = map(int, head.split())
    base = text(document)
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
