"""HTML as broken as it comes: one walk over the parsed tree gives title, blocks and links.

The walk sees elements and text in document order but no ends. A block therefore ends where the next block element
starts, or where a text hangs under another block element than the text before it. A crawl that meets a page for the
first time only skims it: where it leads to, and nothing else.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Mapping

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from letopis.extract.html_blocks import MOST_NAMED, PART, BlockCollector, read_events, take_events
from letopis.extract.html_elements import (
    ANCHOR,
    AREA,
    BASE,
    BLOCKS,
    CELLS,
    FRAME_SELECTOR,
    KIND_OF,
    PARAGRAPH,
    ROW,
    TEXT,
    ElementAction,
    is_frame,
    is_marked_frame,
    tags_of,
)
from letopis.extract.html_links import ELEMENT_METHODS, ElementMethod, LinkCollector, leads_to_feed
from letopis.extract.metadata import says_little
from letopis.extract.pages import MAX_LINKS, PageDraft, Source, charset_of, fold_whitespace
from letopis.model import BlockKind, Link, LinkType

_LINK_TAGS = frozenset((ANCHOR, AREA))
_SKIM_ACTIONS = (ElementAction.LINK, ElementAction.META, ElementAction.FRAME)
_SKIM_TAGS = _LINK_TAGS | {BASE} | {tag for action in _SKIM_ACTIONS for tag in tags_of(action)}
_SKIM_HEAD = frozenset((*tags_of(ElementAction.LINK), *tags_of(ElementAction.META)))
_WITHOUT_EVENTS = int(LexborDocumentOptions.WO_EVENTS)
_A, _AREA = LinkType.A, LinkType.AREA
_UNLIKE_ASCII = ("utf-16", "utf-7", "iso-2022", "hz")
"""Charsets in which the bytes of plain letters mean something else."""
_TEMPLATE_TAG = re.compile(rb"<(/?)template\b", re.IGNORECASE)
_WHOLE_TEMPLATE_TAG = re.compile(rb"<(/?)template\b[^>]*", re.IGNORECASE)
_SHADOW = b"shadowrootmode"
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
    # Events are for menus of forms that mirror the selection in them, which is not read here.
    return LexborHTMLParser(body.removeprefix(BOM_UTF8), options=_WITHOUT_EVENTS)


def _is_unlike_ascii(source: Source) -> bool:
    body = source.body
    marked = b"\x1b" in body or body.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    return marked or charset_of(source.header("content-type")).startswith(_UNLIKE_ASCII)


def _read_links(tree: LexborHTMLParser, draft: PageDraft) -> bool:
    """Whether all that was found is ASCII."""
    root = tree.root
    if root is None:
        return True
    nodes = [(tag, node) for node in root.traverse() if (tag := node.tag_id) in _SKIM_TAGS]
    finder = LinkCollector(draft, alts=False, base=_base_of(nodes))
    links, join = draft.links, finder.join
    plain = True
    for tag, node in nodes[: MAX_LINKS + 1]:
        attributes = node.attributes
        if tag in _LINK_TAGS:
            href = attributes.get("href")
            if href is None:
                continue
            plain = plain and href.isascii()
            target = join(href)
            if target is not None:
                kind = _AREA if tag == AREA else _A
                links.append(_new_link(Link, (target, kind, "", attributes.get("rel") or "", "")))
        elif tag not in _SKIM_HEAD or _is_leading(attributes):
            plain = plain and _is_ascii(attributes)
            if tag != BASE:
                ELEMENT_METHODS[tag](finder, node, attributes)
    finder.settle_leading()
    return plain


def _is_leading(attributes: Mapping[str, str | None]) -> bool:
    """Whether a `<link>` or a `<meta>` says where the page leads, or what robots may do."""
    rel = attributes.get("rel")
    if rel:
        rel = rel.lower()
        return rel in ("canonical", "sitemap") or leads_to_feed(rel, attributes)
    return "http-equiv" in attributes or (attributes.get("name") or "").strip().lower() == "robots"


def _is_ascii(attributes: Mapping[str, str | None]) -> bool:
    """Whether what a base, another element of the head or a frame leads to is ASCII."""
    content = attributes.get("content") if "http-equiv" in attributes else None
    return all((ref or "").isascii() for ref in (attributes.get("href"), attributes.get("src"), content))


def _base_of(nodes: Iterable[tuple[int, LexborNode]]) -> str | None:
    """The first `<base>` applies to all links, wherever it is."""
    found = (attributes for tag, node in nodes if tag == BASE and "href" in (attributes := node.attributes))
    return next((attributes["href"] or "" for attributes in found), None)


# The block element that holds some text: its number in memory, and what kind of text that is.
_Holder = tuple[int, BlockKind]
_NOWHERE = -1
"""Elements with text that is not read: menus of forms, drawings, data for other programs."""
# Looking a member up in its enumeration is slow in Python 3.11: done once.
_PARAGRAPH = BlockKind.PARAGRAPH
_CELL = BlockKind.CELL
_BREAK = "\n"
_MOST_CLIMBED = 64
_SHOWN_SELECTOR = '[style*="url("],[background]'
_MARKED_SELECTOR = f"base[href],{_SHOWN_SELECTOR},{FRAME_SELECTOR}"
_RAW_TAGS = (*tags_of(ElementAction.SCRIPT), *tags_of(ElementAction.STYLE), *tags_of(ElementAction.TITLE))
_BASIC_TAGS = frozenset(ELEMENT_METHODS) | {BASE}
_HEAD = (BlockKind.TITLE, BlockKind.DESCRIPTION, BlockKind.KEYWORDS)
_KNOWN_KINDS = {tag: kind for tag, kind in KIND_OF.items() if tag != PARAGRAPH}


def read_html(source: Source, draft: PageDraft) -> None:
    """Reads an HTML page into the draft."""
    if source.mode == "skim":
        skim_html(source, draft)
        return
    body, draft.charset = source.utf8()
    body = with_open_shadow_trees(body)
    is_full = source.mode == "full"
    found = read_events(body.removeprefix(BOM_UTF8), is_full) if read_events else None
    if found is not None:
        take_events(found, draft, full=is_full)
    else:
        _read_with_tree(body, draft, full=is_full)
    if is_full and says_little(draft.blocks) and b"<template" in body:
        _read_templates(body, source, draft)


def _read_with_tree(body: bytes, draft: PageDraft, *, full: bool) -> None:
    tree = parse_html(body)
    if tree.root is not None:
        (_read_full if full else _read_basic)(tree, tree.root, draft)


def with_open_templates(body: bytes) -> bytes:
    """The page as its script would show it: the content of its templates is in the page."""
    return _TEMPLATE_TAG.sub(rb"<\1div", body)


def with_open_shadow_trees(body: bytes) -> bytes:
    """The page as browsers show it: the content of its shadow trees is in the page; that of other templates is not."""
    shown: list[bool] = []

    def opened(tag: re.Match[bytes]) -> bytes:
        if not tag[1]:
            shown.append(_SHADOW in tag[0])
            return b"<div" if shown[-1] else tag[0]
        return b"</div" if shown and shown.pop() else tag[0]

    return _WHOLE_TEMPLATE_TAG.sub(opened, body) if _SHADOW in body else body


def _read_templates(body: bytes, source: Source, draft: PageDraft) -> None:
    """Takes the text of a page without text from its templates, which a script fills in."""
    shown = PageDraft(source)
    shown.charset = draft.charset
    _read_with_tree(with_open_templates(body), shown, full=True)
    draft.blocks, draft.frame, draft.cell_starts = shown.blocks, shown.frame, shown.cell_starts


def read_embedded_html(body: bytes, url: str, draft: PageDraft, content_type: str, *, inside: str) -> None:
    """Adds the text of a page that is part of another document, and those of its links that lead out of `inside`."""
    source = Source(body, url, "text/html", (("Content-Type", content_type),))
    page = PageDraft(source)
    read_html(source, page)
    for kind, text in page.blocks:
        if kind not in _HEAD:
            draft.block(kind, text)
    for link in page.links:
        if not link.target.startswith(inside):
            draft.link(*link)
    draft.declared_language = draft.declared_language or page.declared_language


def _read_full(tree: LexborHTMLParser, root: LexborNode, draft: PageDraft) -> None:
    """Everything. What attributes single out is chosen by the parser in one go, as every choice costs a walk."""
    base: str | None = None
    styled: list[str] = []
    frames: list[LexborNode] = []
    backgrounds: list[str] = []
    last = 0
    for node in tree.css(_MARKED_SELECTOR):
        if node.mem_id == last:  # chosen by several of the selectors
            continue
        last = node.mem_id
        attributes = node.attributes
        if "url(" in (attributes.get("style") or ""):
            styled.append(attributes["style"] or "")
        if "background" in attributes and len(backgrounds) < MAX_LINKS:
            backgrounds.append(attributes["background"] or "")
        if base is None and node.tag_id == BASE and "href" in attributes:
            base = attributes["href"] or ""
        elif len(frames) < MOST_NAMED and is_marked_frame(node, attributes):
            frames.append(node)
    walk = _Walk(draft, root, base)
    walk.frame(frames)
    walk.run()
    walk.styled(styled)
    walk.backgrounds(backgrounds)
    walk.settle()


def _read_basic(tree: LexborHTMLParser, root: LexborNode, draft: PageDraft) -> None:
    """Title and links. The parser chooses what attributes show: to look through the bytes for them takes far longer."""
    nodes = [(tag, node) for node in root.traverse() if (tag := node.tag_id) in _BASIC_TAGS]
    finder = LinkCollector(draft, alts=False, base=_base_of(nodes))
    for tag, node in nodes:
        if tag != BASE:
            ELEMENT_METHODS[tag](finder, node, node.attributes)
    if shown := tree.css(_SHOWN_SELECTOR):
        marked = {node.mem_id: node.attributes for node in shown}.values()
        finder.styled([style for one in marked if "url(" in (style := one.get("style") or "")])
        finder.backgrounds([one["background"] or "" for one in marked if "background" in one][:MAX_LINKS])
    finder.settle_basic()


class _Walk(BlockCollector):
    """The blocks and links of one page. Used once."""

    def __init__(self, draft: PageDraft, root: LexborNode, base: str | None) -> None:
        super().__init__(draft, base=base)
        self._nodes = root.traverse(include_text=True, skip_empty=True)
        self._pieces: list[str] = []
        self._holders: dict[int, _Holder] = {}
        self._hidden: set[int] = set()

    def frame(self, nodes: Iterable[LexborNode]) -> None:
        """All text in these elements is part of the page's frame."""
        for node in nodes:
            if node.mem_id not in self.framed:
                self.framed.update([inner.mem_id for inner in node.traverse()])

    def run(self) -> None:
        """The hot loop: every node of the page passes here once."""
        pieces, holders, hidden, flush = self._pieces, self._holders, self._hidden, self._flush
        blocks, kinds, methods, cells, made = BLOCKS, _KNOWN_KINDS, _WALK_METHODS, CELLS, self._blocks
        starts = self._draft.cell_starts
        current, kind = _NOWHERE, _PARAGRAPH
        for node in self._nodes:
            tag = node.tag_id
            if tag == TEXT:
                text = node.text_content or " "
                parent = node.parent or node
                number, tag = parent.mem_id, parent.tag_id
                if number in hidden:
                    number, around = _NOWHERE, _PARAGRAPH
                elif tag in kinds:
                    around = kinds[tag]
                elif number in holders:
                    number, around = holders[number]
                else:
                    number, around = self._holder(parent, number, tag)
                if number != current:
                    if pieces:
                        flush(current, kind)
                    current, kind = number, around
                elif pieces and not (text[0].isspace() or pieces[-1][-1].isspace()) and _has_blank_before(node):
                    pieces.append(" ")
                pieces.append(text)
            else:
                if pieces and tag in blocks:
                    flush(current, kind)
                if tag in cells:
                    starts.append(-1 - len(made) if tag == ROW else len(made))
                if tag in methods:
                    methods[tag](self, node, node.attributes)
        flush(current, kind)
        self.show_alts()

    def _pass_raw(self, node: LexborNode) -> None:
        """Passes over the text of a script, a style sheet, a title: it is not text of the page."""
        text = node.child
        if text is not None and text.tag_id == TEXT and not text.is_empty_text_node:
            next(self._nodes, None)

    def _hide(self, node: LexborNode, attributes: object) -> None:
        if node.mem_id not in self._hidden:
            self._hidden.update([inner.mem_id for inner in node.traverse()])

    def _framing(self, node: LexborNode, attributes: object) -> None:
        """All menus; side columns, header and footer of the page, but not of an article."""
        if is_frame(node):
            self.frame((node,))

    def _break(self, node: LexborNode, attributes: object) -> None:
        """One line break is a blank; two in a row end a paragraph, as old pages write them."""
        if self._pieces:
            self._pieces.append(PART if self._pieces[-1] == _BREAK else _BREAK)

    def _flush(self, number: int, kind: BlockKind) -> None:
        """Ends the block that the pieces make, all of which one element holds."""
        pieces = self._pieces
        text = pieces[0] if len(pieces) == 1 else "".join(pieces)
        pieces.clear()
        if number == _NOWHERE:
            return
        self.add_block(
            number, kind, map(fold_whitespace, text.split(PART)) if PART in text else (fold_whitespace(text),)
        )

    def _holder(self, node: LexborNode, number: int, tag: int) -> _Holder:
        """The block with the text under an element that has no kind of its own."""
        above = node.parent
        if above is None:
            found = (number, _PARAGRAPH) if tag in BLOCKS else (0, _PARAGRAPH)
        else:
            upper, around = above.mem_id, above.tag_id
            if around in _KNOWN_KINDS:
                # A link or a word in bold right inside an item, a heading, a cell: most of all that is climbed.
                found = (upper, _KNOWN_KINDS[around])
            elif upper in self._holders:
                found = self._holders[upper]
            else:
                found = self._climbed(above)
            if tag in BLOCKS:
                found = (number, _kind(tag, found[1]))
        self._holders[number] = found
        return found

    def _climbed(self, node: LexborNode) -> _Holder:
        """The same for any depth; every element on the way is settled, too."""
        path: list[tuple[int, int]] = []
        found: _Holder = (0, _PARAGRAPH)
        climbed: LexborNode | None = node
        while climbed is not None:
            number, tag = climbed.mem_id, climbed.tag_id
            if number in self._holders:
                found = self._holders[number]
                break
            path.append((number, tag))
            if tag in _KNOWN_KINDS:
                break
            climbed = climbed.parent
        for number, tag in reversed(path):
            if tag in BLOCKS:
                found = (number, _kind(tag, found[1]))
            self._holders[number] = found
        return found


def _hidden_object(walk: _Walk, node: LexborNode, attributes: dict[str, str | None]) -> None:
    walk._object(node, attributes)
    walk._hide(node, attributes)


def _raw(method: ElementMethod) -> ElementMethod:
    def take(walk: _Walk, node: LexborNode, attributes: dict[str, str | None]) -> None:
        method(walk, node, attributes)
        walk._pass_raw(node)

    return take


_WALK_METHODS: dict[int, ElementMethod] = {
    **ELEMENT_METHODS,
    **{tag: _raw(ELEMENT_METHODS[tag]) for tag in _RAW_TAGS},
    **dict.fromkeys(tags_of(ElementAction.BR), _Walk._break),
    **dict.fromkeys(tags_of(ElementAction.HIDE), _Walk._hide),
    **dict.fromkeys(tags_of(ElementAction.OBJECT), _hidden_object),
    **dict.fromkeys(tags_of(ElementAction.FRAMING), _Walk._framing),
}
"""What the walk does at an element: what the collector of links does, and more."""


def _has_blank_before(node: LexborNode) -> bool:
    """Whether there is only white space between a text and the text before it.

    The walk passes over white space between elements; here, between two words that nothing else parts, it matters.
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
