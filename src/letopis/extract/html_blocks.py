"""The blocks of an HTML page, and reading it from the events of one pass in C.

Where the package letopis-fast is installed, a page whose elements are nested as they should be is read without a tree.
All others give no events, and are read from the tree of the parser: with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from letopis.extract.html_elements import TAG_NUMBERS, is_frame_anywhere, is_frame_outside
from letopis.extract.html_links import ELEMENT_METHODS, LinkCollector
from letopis.extract.pages import MAX_BLOCKS, MAX_LINKS, MAX_TEXT, PageDraft
from letopis.model import Block, BlockKind, LinkType
from letopis.model.page import TEXT_CUT

Attributes = dict[str, str | None]
Event = tuple[str, Attributes | None, str, int]
"""An element (its name, attributes, text and number) or a block (its kind, None, its text, the element around it)."""
Frame = tuple[int, int, Attributes | None, int]
"""The number of an element, whether an article is around it, None or what may make it frame, its last descendant."""
PageEvents = tuple[str | None, list[Event], list[Frame], list[str], list[str | None]]

read_events: Callable[[bytes, bool], PageEvents | None] | None
try:
    from letopis_fast import pages as fast_pages

    # One of another release leaves all pages to the parser.
    read_events = fast_pages.events if getattr(fast_pages, "FORMAT", 0) == 2 else None
except ImportError:
    read_events = None

PART = "\x1e"
"""Stands in the text of a block where another begins."""
MOST_NAMED = 256
"""Elements of a page that are frame by their attributes."""
# Looking a member up in its enumeration is slow in Python 3.11: done once.
_PARAGRAPH = BlockKind.PARAGRAPH
_LINK = BlockKind.LINK
_ALT = BlockKind.ALT
_KINDS = {str(kind): kind for kind in BlockKind}
_new_block = tuple.__new__
"""Makes a named tuple somewhat faster than its constructor; a page has hundreds."""


class BlockCollector(LinkCollector):
    """Collects blocks, too. Used for one page. `framed` holds the numbers of elements whose text is frame."""

    def __init__(self, draft: PageDraft, *, base: str | None, alts: bool = True) -> None:
        super().__init__(draft, alts=alts, base=base)
        self.framed: set[int] = set()
        self._blocks = draft.blocks
        self._room = MAX_TEXT

    def add_block(self, number: int, kind: BlockKind, texts: Iterable[str]) -> None:
        """Adds the texts that one element holds, their white space folded."""
        for said in texts:
            if not said:
                continue
            self._room -= len(said)
            if self._room < 0 or len(self._blocks) >= MAX_BLOCKS:
                self._draft.warn(TEXT_CUT)
                return
            if number in self.framed:
                self._draft.frame.add(len(self._blocks))
            is_link = kind is _PARAGRAPH and said == self.anchor
            self._blocks.append(_new_block(Block, (_LINK if is_link else kind, said)))
        if self.alts:
            self.show_alts()

    def show_alts(self) -> None:
        """Texts of pictures follow the block in which the pictures stood."""
        for alt in self.alts:
            self._room -= len(alt)
            if self._room >= 0 and len(self._blocks) < MAX_BLOCKS:
                self._blocks.append(Block(_ALT, alt))
        self.alts.clear()


class _EventCollector(BlockCollector):
    """Takes events (`Event`) where others take nodes of a tree."""

    def _a(self, event: Any, attributes: Attributes) -> None:
        if attributes.get("href") is not None:
            self._anchor(attributes, event[2], LinkType.A, event[3])

    def _area(self, event: Any, attributes: Attributes) -> None:
        if attributes.get("href") is not None:
            self._anchor(attributes, "", LinkType.AREA, event[3])

    def _title(self, event: Any, attributes: Attributes) -> None:
        self._draft.head(title=event[2])

    def _row(self, event: Any, attributes: Attributes) -> None:
        self._draft.cell_starts.append(-1 - len(self._blocks))

    def _cell(self, event: Any, attributes: Attributes) -> None:
        self._draft.cell_starts.append(len(self._blocks))

    def _text_of(self, event: Any) -> str:
        return str(event[2])

    def _is_in_bare(self, event: Any) -> bool:
        return bool(event[3] == self._bare)


_EVENT_METHODS: dict[str, Callable[[Any, Any, Attributes], None]] = {
    **{name: ELEMENT_METHODS[tag] for name, tag in TAG_NUMBERS.items() if tag in ELEMENT_METHODS},
    "a": _EventCollector._a,
    "area": _EventCollector._area,
    "title": _EventCollector._title,
    "tr": _EventCollector._row,
    "td": _EventCollector._cell,
    "th": _EventCollector._cell,
}


def take_events(found: PageEvents, draft: PageDraft, *, full: bool) -> None:
    """Fills the draft from the events of a page, without its texts unless `full`."""
    base, events, frames, styles, backgrounds = found
    page = _EventCollector(draft, base=base, alts=full)
    page.framed = _framed_numbers(frames)
    for event in events:
        name, attributes, text, number = event
        if attributes is None:
            page.add_block(number, _KINDS[name], text.split(PART) if PART in text else (text,))
        else:
            _EVENT_METHODS[name](page, event, attributes)
    page.show_alts()
    page.styled([style for style in styles if "url(" in style])
    page.backgrounds([background or "" for background in backgrounds[:MAX_LINKS]])
    if full:
        page.settle()
    else:
        page.settle_basic()


def _framed_numbers(frames: Sequence[Frame]) -> set[int]:
    """The numbers of all elements in what is frame by name, or by attributes."""
    framed: set[int] = set()
    named = 0
    for first, in_content, attributes, last in frames:
        if attributes is not None:
            if named == MOST_NAMED or not _is_frame(attributes, in_content):
                continue
            named += 1
        if first not in framed:  # what stands in another frame is there already, however deep
            framed.update(range(first, last + 1))
    return framed


def _is_frame(attributes: Attributes, in_content: int) -> bool:
    return is_frame_anywhere(attributes) or (not in_content and is_frame_outside(attributes))
