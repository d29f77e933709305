"""HTML as broken as it comes: one walk over the parsed tree gives title, blocks and links.

The walk sees elements and text in document order but no ends. A block
therefore ends where the next block element starts, or where a text hangs
under another block element than the text before it. A crawl that meets a page
for the first time only skims it: where it leads to, and nothing else.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from letopis.extract.html_elements import (
    ANCHOR,
    AREA,
    BASE,
    BLOCKS,
    FRAME_SELECTOR,
    KIND_OF,
    PARAGRAPH,
    TEXT,
    ElementAction,
    is_frame,
    is_marked_frame,
    tags_of,
)
from letopis.extract.html_links import ELEMENT_METHODS, REFERRING, REFERRING_SELECTOR, LinkCollector
from letopis.extract.pages import MAX_BLOCKS, MAX_LINKS, MAX_TEXT, PageDraft, Source, charset_of, fold_whitespace
from letopis.model import Block, BlockKind, Link, LinkType

_LINK_TAGS = frozenset((ANCHOR, AREA))
_SKIM_ACTIONS = (ElementAction.LINK, ElementAction.META, ElementAction.FRAME)
_SKIM_TAGS = _LINK_TAGS | {BASE} | {tag for action in _SKIM_ACTIONS for tag in tags_of(action)}
_A, _AREA = LinkType.A, LinkType.AREA
_UNLIKE_ASCII = ("utf-16", "utf-7", "iso-2022", "hz")
"""Charsets in which the bytes of plain letters mean something else."""
_new_link = tuple.__new__


def skim_html(source: Source, draft: PageDraft) -> None:
    """Links that lead to other documents, with `rel` but without their texts, and what is said to robots.

    References are nearly always ASCII, and then the charset of the page does
    not matter; it is found out only where one is not.
    """
    draft.charset = "utf-8"
    if _is_unlike_ascii(source):
        body, draft.charset = source.utf8()
        _read_links(parse_html(body), draft)
    elif not _read_links(parse_html(source.body), draft):
        body, draft.charset = source.utf8()
        if body is not source.body:
            draft.links.clear()
            _read_links(parse_html(body), draft)


def parse_html(body: bytes) -> LexborHTMLParser:
    """The tree of a page in UTF-8."""
    return LexborHTMLParser(body.removeprefix(BOM_UTF8))


def _is_unlike_ascii(source: Source) -> bool:
    body = source.body
    marked = b"\x1b" in body or body.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    return marked or charset_of(source.header("content-type")).startswith(_UNLIKE_ASCII)


def _read_links(tree: LexborHTMLParser, draft: PageDraft) -> bool:
    """Whether all that was found is ASCII."""
    root = tree.root
    if root is None:
        return True
    nodes = list(islice((node for node in root.traverse() if node.tag_id in _SKIM_TAGS), MAX_LINKS + 1))
    finder = LinkCollector(tree, draft, alts=False, base=_base_element(nodes))
    links, join = draft.links, finder.join
    plain = True
    for node in nodes:
        tag = node.tag_id
        if tag in _LINK_TAGS:
            attributes = node.attributes
            href = attributes.get("href")
            if href is None:
                continue
            plain = plain and href.isascii()
            target = join(href)
            if target is not None:
                kind = _AREA if tag == AREA else _A
                links.append(_new_link(Link, (target, kind, "", attributes.get("rel") or "", "")))
        else:
            plain = plain and _is_ascii(node)
            if tag != BASE:
                ELEMENT_METHODS[tag](finder, node)
    finder.settle_leading()
    return plain


def _is_ascii(node: LexborNode) -> bool:
    """Whether what a base, another element of the head or a frame leads to is ASCII."""
    attributes = node.attributes
    content = attributes.get("content") if "http-equiv" in attributes else None
    return all((ref or "").isascii() for ref in (attributes.get("href"), attributes.get("src"), content))


def _base_element(nodes: Iterable[LexborNode]) -> LexborNode | None:
    return next((node for node in nodes if node.tag_id == BASE and "href" in node.attributes), None)


# The block element that holds some text: what kind of text that is, and whether it is part of the page's frame.
# Places are told apart by identity: no two elements share one.
_Place = tuple[BlockKind, bool]
_HIDDEN: _Place = (BlockKind.PARAGRAPH, False)
"""Where text stands that nobody reads: menus of forms, drawings, what is meant for other programs."""
# Looking a member up in its enumeration is slow in Python 3.11: done once.
_PARAGRAPH = BlockKind.PARAGRAPH
_LINK = BlockKind.LINK
_ALT = BlockKind.ALT
_CELL = BlockKind.CELL
_BREAK = "\n"
_PART = "\x1e"
_MOST_CLIMBED = 64
_MOST_NAMED = 256
_MARKED_SELECTOR = f'base[href],[style*="url("],{REFERRING_SELECTOR},{FRAME_SELECTOR}'
_RAW_TAGS = (*tags_of(ElementAction.SCRIPT), *tags_of(ElementAction.STYLE), *tags_of(ElementAction.TITLE))
_REFERS = re.compile(rb"\s(?:data|background|cite|formaction|longdesc)\s*=", re.IGNORECASE)
_HIDING_TAGS = tags_of(ElementAction.HIDE)
_FRAMING_TAGS = tags_of(ElementAction.FRAMING)
_BASIC_TAGS = frozenset(ELEMENT_METHODS) | {BASE}
_KNOWN_KINDS = frozenset(KIND_OF) - {PARAGRAPH}
_new_block = tuple.__new__
"""Makes a named tuple somewhat faster than its constructor; a page has hundreds."""


def read_html(source: Source, draft: PageDraft) -> None:
    """Reads an HTML page into the draft."""
    if source.mode == "skim":
        skim_html(source, draft)
        return
    body, draft.charset = source.utf8()
    tree = parse_html(body)
    root = tree.root
    if root is None:
        return
    if source.mode == "full":
        _read_full(tree, root, draft)
        return
    _read_basic(body, tree, root, draft)


def _read_full(tree: LexborHTMLParser, root: LexborNode, draft: PageDraft) -> None:
    """Everything. What attributes single out is chosen by the parser in one go, as every choice costs a walk."""
    base: LexborNode | None = None
    styled: list[str] = []
    frames: list[LexborNode] = []
    referring: list[Mapping[str, str | None]] = []
    last = 0
    for node in tree.css(_MARKED_SELECTOR):
        if node.mem_id == last:  # chosen by several of the selectors
            continue
        last = node.mem_id
        attributes = node.attributes
        if "url(" in (attributes.get("style") or ""):
            styled.append(attributes["style"] or "")
        if not REFERRING.isdisjoint(attributes) and len(referring) < MAX_LINKS:
            referring.append(attributes)
        if base is None and node.tag_id == BASE and "href" in attributes:
            base = node
        elif len(frames) < _MOST_NAMED and is_marked_frame(node, attributes):
            frames.append(node)
    finder = LinkCollector(tree, draft, alts=True, base=base)
    walk = _Walk(draft, finder, root)
    walk.frame(frames)
    walk.run()
    finder.styled(styled)
    finder.referring(referring)
    finder.settle()


def _read_basic(body: bytes, tree: LexborHTMLParser, root: LexborNode, draft: PageDraft) -> None:
    """Title and links. The parser is asked to choose only what the page may have, as every choice costs a walk."""
    nodes = [(tag, node) for node in root.traverse() if (tag := node.tag_id) in _BASIC_TAGS]
    base = next((node for tag, node in nodes if tag == BASE and "href" in node.attributes), None)
    finder = LinkCollector(tree, draft, alts=False, base=base)
    for tag, node in nodes:
        if tag != BASE:
            ELEMENT_METHODS[tag](finder, node)
    if b"url(" in body:
        finder.style_attributes()
    if _REFERS.search(body):
        finder.referring([node.attributes for node in tree.css(REFERRING_SELECTOR)[:MAX_LINKS]])
    finder.settle_basic()


class _Walk:
    """The blocks of one page. Used once."""

    def __init__(self, draft: PageDraft, finder: LinkCollector, root: LexborNode) -> None:
        self._draft = draft
        self._finder = finder
        self._blocks = draft.blocks
        self._nodes = root.traverse(include_text=True, skip_empty=True)
        self._pieces: list[str] = []
        self._places: dict[int, _Place] = {}
        self._framed: set[int] = set()
        self._room = MAX_TEXT

    def frame(self, nodes: Iterable[LexborNode]) -> None:
        """All text in these elements is part of the page's frame."""
        for node in nodes:
            if node.mem_id not in self._framed:
                self._framed.update(inner.mem_id for inner in node.traverse())

    def run(self) -> None:
        """The hot loop: every node of the page passes here once."""
        pieces, places, blocks = self._pieces, self._places, BLOCKS
        handlers = self._handlers()
        current = _HIDDEN
        for node in self._nodes:
            tag = node.tag_id
            if tag == TEXT:
                text = node.text_content or " "
                parent = node.parent or node
                place = places.get(parent.mem_id) or self._place(parent)
                if place is not current:
                    if pieces:
                        self._flush(current)
                    current = place
                elif pieces and not (text[0].isspace() or pieces[-1][-1].isspace()) and _has_blank_before(node):
                    pieces.append(" ")
                pieces.append(text)
            elif tag in handlers:
                handlers[tag](node)
            elif pieces and tag in blocks:
                self._flush(current)
        self._flush(current)
        self._show_alts()

    def _handlers(self) -> dict[int, Callable[[LexborNode], None]]:
        """Those of the finder, and what the walk itself does at an element."""
        found = self._finder.handlers()
        found.update((tag, self._raw(found[tag])) for tag in _RAW_TAGS)
        found.update((tag, self._break) for tag in tags_of(ElementAction.BR))
        found.update((tag, self._hide) for tag in _HIDING_TAGS)
        found.update((tag, self._frame) for tag in _FRAMING_TAGS)
        return found

    def _raw(self, handler: Callable[[LexborNode], None]) -> Callable[[LexborNode], None]:
        """Passes over the text of a script, a style sheet, a title: it is not text of the page."""

        def handle(node: LexborNode) -> None:
            handler(node)
            text = node.child
            if text is not None and text.tag_id == TEXT and not text.is_empty_text_node:
                next(self._nodes, None)

        return handle

    def _hide(self, node: LexborNode) -> None:
        if self._places.get(node.mem_id) is not _HIDDEN:
            self._places.update((inner.mem_id, _HIDDEN) for inner in node.traverse())

    def _frame(self, node: LexborNode) -> None:
        """Menus wherever they stand; side columns, header and footer of the page, though not of an article."""
        if is_frame(node):
            self.frame((node,))

    def _break(self, node: LexborNode) -> None:
        """One line break is a blank; two in a row end a paragraph, as old pages write them."""
        if self._pieces:
            self._pieces.append(_PART if self._pieces[-1] == _BREAK else _BREAK)

    def _flush(self, place: _Place) -> None:
        """Ends the block that the pieces make."""
        pieces = self._pieces
        joined = pieces[0] if len(pieces) == 1 else "".join(pieces)
        pieces.clear()
        if place is _HIDDEN:
            return
        blocks, finder = self._blocks, self._finder
        kind, framed = place
        for part in joined.split(_PART) if _PART in joined else (joined,):
            text = fold_whitespace(part)
            if not text:
                continue
            count = len(blocks)
            self._room -= len(text)
            if self._room < 0 or count >= MAX_BLOCKS:
                self._draft.warn("the text is longer than what is kept; the rest was left out")
                return
            if framed:
                self._draft.frame.add(count)
            is_link = kind is _PARAGRAPH and text == finder.anchor
            blocks.append(_new_block(Block, (_LINK if is_link else kind, text)))
        if finder.alts:
            self._show_alts()

    def _show_alts(self) -> None:
        """Texts of pictures follow the block in which the pictures stood."""
        for alt in self._finder.alts:
            self._room -= len(alt)
            if self._room >= 0 and len(self._blocks) < MAX_BLOCKS:
                self._blocks.append(Block(_ALT, alt))
        self._finder.alts.clear()

    def _place(self, node: LexborNode) -> _Place:
        """The block that holds the text under `node`. Each element is climbed once a page."""
        places = self._places
        tag = node.tag_id
        if tag in _KNOWN_KINDS:
            number = node.mem_id
            found = places[number] = (KIND_OF[tag], number in self._framed)
            return found
        above = node.parent
        if above is not None and tag not in BLOCKS and (around := above.tag_id) in _KNOWN_KINDS:
            # A link or a word in bold right inside an item, a heading, a cell: most of all that is climbed.
            number = above.mem_id
            place = places.get(number)
            if place is None:
                place = places[number] = (KIND_OF[around], number in self._framed)
            places[node.mem_id] = place
            return place
        return self._climbed(node)

    def _climbed(self, node: LexborNode) -> _Place:
        """The same for any depth; every element on the way is settled, too."""
        path: list[tuple[int, int]] = []
        place: _Place | None = None
        climbed: LexborNode | None = node
        while climbed is not None:
            number, tag = climbed.mem_id, climbed.tag_id
            place = self._places.get(number)
            if place is not None:
                break
            path.append((number, tag))
            if tag in _KNOWN_KINDS:
                break
            climbed = climbed.parent
        place = place or (_PARAGRAPH, False)
        for number, tag in reversed(path):
            if tag in BLOCKS and place is not _HIDDEN:
                place = (_kind(tag, place[0]), number in self._framed)
            self._places[number] = place
        return place


def _has_blank_before(node: LexborNode) -> bool:
    """Whether white space alone stands between a text and the text before it.

    The walk passes over white space between elements; here, between two
    words that nothing else parts, it matters.
    """
    here: LexborNode | None = node
    for _ in range(_MOST_CLIMBED):
        before = here.prev if here is not None else None
        if before is None:
            here = here.parent if here is not None else None
            if here is None or here.tag_id in BLOCKS:
                return False
            continue
        last = before
        while last.last_child is not None:
            last = last.last_child
        if last.tag_id == TEXT:
            return last.is_empty_text_node
        here = last
    return False


def _kind(tag: int, around: BlockKind) -> BlockKind:
    """The kind of a block element inside a block of another kind.

    An element without meaning of its own takes that of its surroundings; a
    paragraph does so in items and quotations, while in a cell it stays one.
    """
    own = KIND_OF.get(tag)
    if own is None or (tag == PARAGRAPH and around is not _CELL):
        return around
    return own
