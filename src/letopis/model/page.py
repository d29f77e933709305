"""The common form of a document of any format: metadata, blocks, links; and how two states of it differ."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Literal

from letopis.tuples import NamedTuple


class BlockKind(StrEnum):
    """What a run of text is on its page."""

    TITLE = "title"
    KEYWORDS = "keywords"
    DESCRIPTION = "description"
    H1 = "h1"
    H2 = "h2"
    H3 = "h3"
    H4 = "h4"
    H5 = "h5"
    H6 = "h6"
    PARAGRAPH = "paragraph"
    ITEM = "item"
    CELL = "cell"
    QUOTE = "quote"
    CODE = "code"
    LINK = "link"
    ALT = "alt"


class LinkType(StrEnum):
    """Which element or relation carries a link."""

    A = "a"
    IMG = "img"
    LINK = "link"
    SCRIPT = "script"
    IFRAME = "iframe"
    FORM = "form"
    AREA = "area"
    CSS = "css"
    REDIRECT = "redirect"
    MEDIA = "media"
    FEED = "feed"
    SITEMAP = "sitemap"


class Block(NamedTuple):
    """A run of text with white space folded. A tuple, since pages have hundreds."""

    kind: BlockKind
    text: str


class Link(NamedTuple):
    """One link; `target` is absolute and normalised. A tuple, since pages have hundreds."""

    target: str
    type: LinkType
    text: str = ""
    rel: str = ""
    title: str = ""


class TableCells(NamedTuple):
    """Where blocks stand in tables.

    `starts` has for each cell the number of the next block, for each row before its cells that number less than -1.
    `filled` has blocks that are rows, each with its filled cells as bits.
    """

    starts: tuple[int, ...] = ()
    filled: tuple[tuple[int, int], ...] = ()

    def among(self, kept: Sequence[int]) -> TableCells:
        """The same where only some blocks are kept, in their order."""
        starts = (-1 - bisect_left(kept, -1 - n) if n < 0 else bisect_left(kept, n) for n in self.starts)
        places = {block: place for place, block in enumerate(kept)}
        return TableCells(tuple(starts), tuple((places[block], row) for block, row in self.filled if block in places))


class Page(NamedTuple):
    """Everything Letopis knows of one document after reading it.

    `content_type` is the type found by looking, not the one claimed. `robots` holds the lower-case directives of meta
    robots and X-Robots-Tag. Blocks and links stand in document order. `frame` holds the indices of blocks in menus,
    headers, footers and side columns, where a format tells. `cells` tells where blocks stand in tables.
    """

    url: str
    content_type: str
    charset: str = ""
    title: str = ""
    description: str = ""
    keywords: str = ""
    language: str = ""
    declared_language: str = ""
    canonical: str = ""
    robots: frozenset[str] = frozenset()
    published: datetime | None = None
    modified: datetime | None = None
    refresh: str = ""
    blocks: tuple[Block, ...] = ()
    links: tuple[Link, ...] = ()
    warnings: tuple[str, ...] = ()
    frame: frozenset[int] = frozenset()
    cells: TableCells = TableCells()

    @property
    def text(self) -> str:
        """The readable text, one block a line; metadata aside."""
        hidden = (BlockKind.KEYWORDS, BlockKind.DESCRIPTION, BlockKind.ALT)
        return "\n".join(block.text for block in self.blocks if block.kind not in hidden)


class BlockChange(NamedTuple):
    """One block that came or went; of a document that is too large to be read, a field of its header."""

    action: Literal["added", "removed"]
    kind: BlockKind | Literal["header"]
    text: str


SAME_TEXT = "same text"
"""The reason of a verdict on versions that differ only in their bytes."""
SAME_LINKS = "same links"
"""The reason of a verdict on versions that have links and no text."""
TEXT_CUT = "the text is longer than the limit; the rest was omitted"
"""The warning of a page that was only partly read: the rest is compared by its bytes."""
NOT_JUDGED = "not judged yet"
"""In place of a reason while there is no verdict; comparing the two versions reaches one."""


class MutedBlock(NamedTuple):
    """One block that came or went and does not count, and why."""

    why: str
    action: Literal["added", "removed"]
    kind: BlockKind
    text: str


class Change(NamedTuple):
    """How a new version differs from the one before.

    `same_bytes` implies `same_text`. `meaningful` says whether a person would call it a change (None: not judged, as
    for the first version); `score` is 0 for nothing and 1 for everything; `reason` says in a few words why. `muted` is
    what does not count because it changes so often, or because somebody said so.
    """

    same_bytes: bool
    same_text: bool
    meaningful: bool | None
    score: float = 0.0
    blocks: tuple[BlockChange, ...] = ()
    reason: str = ""
    muted: tuple[MutedBlock, ...] = ()

    @property
    def verdict(self) -> str:
        """In one word: unchanged, noise or changed; empty where nobody judged."""
        if self.same_bytes:
            return "unchanged"
        return {None: "", False: "noise", True: "changed"}[self.meaningful]


class FilterKind(StrEnum):
    """What a filter does; the words are those of settings and the command line."""

    CSS = "css"
    XPATH = "xpath"
    REMOVE = "remove"
    JSONPATH = "jsonpath"
    INCLUDE = "include"
    EXCLUDE = "exclude"
    IGNORE = "ignore"
    PRICE = "price"
    STOCK = "stock"
