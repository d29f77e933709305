"""The main content of a page without its boilerplate, as Markdown or as plain text.

The frame of a page (menus, side columns, notices, lists of links) is taken out of the tree by element, role and name;
the main part is then found by following the element that holds most of the prose; of what is left there, blocks that
are mostly links are passed over. Documents of other formats are shown block by block.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from selectolax.lexbor import LexborHTMLParser, LexborNode

from letopis.extract.extraction import needs_own_process
from letopis.extract.html import parse_html, with_open_shadow_trees, with_open_templates
from letopis.extract.html_elements import ANCHOR, ELEMENT_KINDS, FRAME_SELECTOR, TEXT, is_marked_frame
from letopis.extract.metadata import says_little
from letopis.extract.pages import Source, fold_whitespace
from letopis.model import Block, BlockKind, Headers, Page, rfc3339
from letopis.tuples import NamedTuple
from letopis.urls import join

ContentForm = Literal["markdown", "text"]
# fmt: off
_STRIPPED = (
    "script", "style", "noscript", "template", "svg", "math", "canvas", "iframe", "object", "embed", "audio", "video",
    "nav", "footer", "aside", "menu", "button", "select", "input", "textarea", "label", "dialog", "head",
)
# fmt: on
_FRAME_WORDS = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|igation)?|menu|sidebar|side-?bar|footer|breadcrumbs?|cookies?|consent|banner|ads?|adsense"
    r"|advert\w*|sponsor\w*|promo\w*|related\w*|recommend\w*|share|sharing|sharedaddy|social\w*|comments?|comment-?list"
    r"|disqus\w*|respond|newsletter|subscribe|subscription|signup|login|popup|modal|widgets?|pagination|pager|toolbar"
    r"|skip-?link|screen-reader\w*|visually-hidden|hidden|print-only|tags?|tag-?list|meta|byline|author-?box|rating"
    r"|toc|masthead|topbar|top-bar|header-?menu|site-?header|page-?header|search\w*|copyright|outbrain|taboola"
    r"|forum-(?:message|fil|chapo|titre|texte)|jp-relatedposts|post-?nav\w*|nav-?links|read-?more|more-?links|mw-editsection|catlinks|noprint)(?:$|[\s_-])",
    re.IGNORECASE,
)
_MAIN_SELECTOR = (
    "article,main,[role=main],[itemprop=articleBody],[class*=entry-content],[class*=post-content],[class*=article-body],"
    "[class*=article-content],[class*=post-body],[class*=story-body],[class*=post_content],[class*=article__body],"
    "[id=content],[id=main],[id=main-content],[class~=content],[class~=post],[class~=entry]"
)
_MARKED = f"[class],[id],[hidden],[style*='display'],{FRAME_SELECTOR}"
_BLOCK_KINDS = {name: kind for name, kind in ELEMENT_KINDS.items() if name not in ("td", "th")} | {
    "figcaption": BlockKind.PARAGRAPH,
    "address": BlockKind.PARAGRAPH,
}
_CONTAINERS = frozenset((
    "html", "body", "div", "section", "article", "main", "header", "figure", "center", "table", "tbody", "thead",
    "tfoot", "fieldset", "form", "details", "dl", "ul", "ol", "tr", "td", "th", "hgroup", "summary", "blockquote",
))  # fmt: skip
_HEADINGS = frozenset(BlockKind(f"h{level}") for level in range(1, 7))
_HEADING_SELECTOR = ",".join(_HEADINGS)
_MAY_BE_LINKS = _HEADINGS | {BlockKind.ITEM}
_NOT_SAID = (BlockKind.TITLE, BlockKind.KEYWORDS, BlockKind.DESCRIPTION, BlockKind.ALT, BlockKind.LINK)
_LISTS = frozenset(("ul", "ol", "dl", "table"))
_INLINE_MARKS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "tt": "`", "kbd": "`"}
_MOST_LINKED = 0.6
_MOST_LINKED_BLOCK = 0.9
_NAMED_SHARE = 0.3
"""The share of a page's prose from which on an element that calls itself its content is believed."""
_FOLLOWED_SHARE = 0.72
"""The share of prose with which a part is followed down."""
_NEVER_FRAME = 0.5
"""The share of a page's prose from which on no name makes an element frame."""
_LEAST_LEFT = 0.08
_LEAST_FOUND = 0.1
_LEAST_RUN = 2
_LEAST_TEASERS = 3
_MOST_TEASERS = 0.5
"""The share of a part's prose from which on announcements of other pages are what it says."""
_LEAST_COPY = 400
_LEAST_COPIED = 0.15
"""Characters, and the share of a page's text, of a run of blocks that is left out where it stands there before."""
_DEEPEST = 120
_ESCAPED = re.compile(r"([\\`*_\[\]<>])")
_LINE_START = re.compile(r"^(#{1,6}\s|[-+]\s|\d+[.)]\s|>|~~~|={3,}$|-{3,}$)")


class ContentBlock(NamedTuple):
    """One block of the main content; `level` is that of a heading, or how deep an item stands."""

    kind: BlockKind
    text: str
    level: int = 0


def main_content(page: Page, body: bytes, headers: Headers, form: ContentForm) -> list[ContentBlock]:
    """The blocks of a document that are not its frame, in their order; `page` is the same document, read before."""
    whole = [ContentBlock(block.kind, block.text, _level(block.kind)) for block in _content_blocks(page)]
    if page.content_type not in ("text/html", "application/xhtml+xml") or needs_own_process(body):
        return whole
    decoded, _ = Source(body, page.url, page.content_type, headers).utf8()
    decoded = with_open_shadow_trees(decoded)
    found = _main_blocks(decoded, page.url, form)
    if says_little([Block(block.kind, block.text) for block in found]) and b"<template" in decoded:
        found = _main_blocks(with_open_templates(decoded), page.url, form)
    return found if _length(found) >= _LEAST_FOUND * _length(whole) else whole


def _main_blocks(body: bytes, url: str, form: ContentForm) -> list[ContentBlock]:
    prose = _main_prose(body)
    return _said_once(list(_Writer(url, form, prose).blocks(prose.main_part()))) if prose else []


def _said_once(blocks: list[ContentBlock]) -> list[ContentBlock]:
    """Without long repeated runs, as in pages with one article for wide and one for narrow screens."""
    least = max(_LEAST_COPY, _LEAST_COPIED * _length(blocks))
    first: dict[ContentBlock, int] = {}
    found: list[ContentBlock] = []
    at = 0
    while at < len(blocks):
        run = blocks[at : at + max(1, _copied(blocks, first.setdefault(blocks[at], at), at))]
        if _length(run) < least or first[blocks[at]] == at:
            found += run
        at += len(run)
    return found


def _copied(blocks: list[ContentBlock], before: int, at: int) -> int:
    """How many blocks from a place on are those from an earlier place on."""
    length = 0
    while before + length < at and at + length < len(blocks) and blocks[before + length] == blocks[at + length]:
        length += 1
    return length


def _length(blocks: list[ContentBlock]) -> int:
    return sum(len(block.text) for block in blocks)


def _content_blocks(page: Page) -> Iterator[Block]:
    for at, block in enumerate(page.blocks):
        if at not in page.frame and block.kind not in _NOT_SAID:
            yield block


def _level(kind: BlockKind) -> int:
    return int(kind[1]) if kind in _HEADINGS else 0


def _main_prose(body: bytes) -> _Prose | None:
    """A page without its frame. Where nearly everything calls itself frame, only what is so by its element is."""
    for named_too in (True, False):
        tree = parse_html(body)
        tree.strip_tags(list(_STRIPPED), recursive=True)
        if tree.body is None:
            return None
        whole = _Prose(tree, tree.body)
        if named_too:
            _strip_frame(tree, whole)
            left = _Prose(tree, tree.body)
            if left.of(left.body) >= _LEAST_LEFT * whole.of(whole.body):
                return left
    return whole


def _strip_frame(tree: LexborHTMLParser, prose: _Prose) -> None:
    """Takes out what is frame by its role or its names, but never what holds much of the page's prose.

    Inline elements of the same names are judged together: what a note in each cell of a table is called is no frame.
    """
    most = _NEVER_FRAME * prose.of(prose.body)
    held: dict[str, int] = defaultdict(int)
    frame: list[tuple[LexborNode, str]] = []
    for node in tree.css(_MARKED):
        if node.tag not in ("html", "body", "article", "main") and prose.of(node) < most:
            attributes = node.attributes
            names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
            if _is_frame(node, attributes, names):
                is_block = node.tag in _CONTAINERS or node.tag in _BLOCK_KINDS
                held[names] += 0 if is_block else prose.of(node)
                frame.append((node, names))
    for node, names in reversed(frame):  # what is inside goes before what is around it
        if held[names] < most:
            node.decompose()


def _is_frame(node: LexborNode, attributes: dict[str, str | None], names: str) -> bool:
    if "hidden" in attributes or "display:none" in (attributes.get("style") or "").replace(" ", ""):
        return True
    return bool(_FRAME_WORDS.search(names)) or is_marked_frame(node, attributes)


class _Prose:
    """How much running text, and how much text of links, each element of a page holds."""

    def __init__(self, tree: LexborHTMLParser, body: LexborNode) -> None:
        self.body = body
        self._tree = tree  # its nodes live as long as it does
        self.text: dict[int, int] = defaultdict(int)
        self.linked: dict[int, int] = defaultdict(int)
        self._count()

    def _count(self) -> None:
        last = self.body.mem_id
        for node in self.body.traverse(include_text=True, skip_empty=True):
            if node.tag_id != TEXT:
                continue
            length = len((node.text_content or "").strip())
            linked, above, climbed = False, node.parent, 0
            while above is not None and climbed < _DEEPEST:
                linked = linked or above.tag_id == ANCHOR
                number = above.mem_id
                self.text[number] += length
                if linked:
                    self.linked[number] += length
                if number == last:
                    break
                above, climbed = above.parent, climbed + 1

    def of(self, node: LexborNode) -> int:
        """Characters that are no link."""
        return self.text[node.mem_id] - self.linked[node.mem_id]

    def linked_share(self, node: LexborNode) -> float:
        """How much of its text is links."""
        return self.linked[node.mem_id] / max(1, self.text[node.mem_id])

    def main_part(self) -> LexborNode:
        """The smallest element that holds most of the prose: one that says so first, then down from there."""
        whole = self.of(self.body)
        named = max(self.body.css(_MAIN_SELECTOR), key=self.of, default=None)
        here = named if named is not None and self.of(named) >= _NAMED_SHARE * whole else self.body
        while True:
            below = max((one for one in here.iter() if one.tag in _CONTAINERS), key=self.of, default=None)
            if below is None or self.of(below) < _FOLLOWED_SHARE * self.of(here):
                return here
            here = below


def _teasers(part: LexborNode, prose: _Prose) -> frozenset[int]:
    """Elements that announce other pages, each under a heading that is a link, where more is said beside them."""
    headings = part.css(_HEADING_SELECTOR)
    linked = [node for node in headings if _leads_elsewhere(node, prose)]
    if len(linked) < _LEAST_TEASERS:
        return frozenset()
    headed = Counter(above.mem_id for node in headings for above in _around(node, part))
    found = {}
    for node in linked:
        alone = [above for above in _around(node, part) if headed[above.mem_id] == 1]
        found[alone[-1].mem_id] = prose.of(alone[-1])
    return frozenset(found) if sum(found.values()) < _MOST_TEASERS * prose.of(part) else frozenset()


def _around(node: LexborNode, part: LexborNode) -> Iterator[LexborNode]:
    """An element and those around it, from inside out, up to a part of the page."""
    here: LexborNode | None = node
    for _ in range(_DEEPEST):
        if here is None or here.mem_id == part.mem_id:
            break
        yield here
        here = here.parent


def _leads_elsewhere(heading: LexborNode, prose: _Prose) -> bool:
    """Whether a heading is a link to another page."""
    link: LexborNode | None = None
    if prose.linked_share(heading) > _MOST_LINKED_BLOCK:
        link = heading.css_first("a[href]")
    elif prose.text[heading.mem_id]:
        above = [heading.parent, heading.parent.parent if heading.parent else None]
        link = next((node for node in above if node is not None and node.tag_id == ANCHOR), None)
    return link is not None and "#" not in (link.attributes.get("href") or "#")


class _Writer:
    """Writes the blocks of one part of a page."""

    def __init__(self, url: str, form: ContentForm, prose: _Prose) -> None:
        self._url, self._marked, self._prose = url, form == "markdown", prose
        self._teasers: frozenset[int] = frozenset()

    def blocks(self, part: LexborNode) -> Iterator[ContentBlock]:
        """All blocks of an element that say something."""
        self._teasers = _teasers(part, self._prose)
        yield from self._children(part, BlockKind.PARAGRAPH, 0, 0)

    def _children(self, node: LexborNode, around: BlockKind, depth: int, items: int) -> Iterator[ContentBlock]:
        """Blocks of an element; text and inline elements between blocks are blocks of the same kind."""
        run: list[LexborNode] = []
        for child in node.iter(include_text=True):
            tag = str(child.tag)
            if depth < _DEEPEST and (tag in _CONTAINERS or tag in _BLOCK_KINDS):
                yield from self._paragraph(run, around, items)
                run = []
                if child.mem_id not in self._teasers:
                    yield from self._element(child, tag, around, depth + 1, items)
            else:
                run.append(child)
        yield from self._paragraph(run, around, items)

    def _element(self, node: LexborNode, tag: str, around: BlockKind, depth: int, items: int) -> Iterator[ContentBlock]:
        if tag in _LISTS and self._prose.linked_share(node) > _MOST_LINKED:
            return
        kind = _BLOCK_KINDS.get(tag, around)
        kind = around if kind is BlockKind.PARAGRAPH else kind
        if tag == "tr":
            yield from self._row(node)
        elif kind is BlockKind.CODE:
            text = node.text(deep=True).strip("\n")
            if text.strip():
                yield ContentBlock(kind, text)
        elif tag not in _BLOCK_KINDS or self._has_blocks(node):
            yield from self._children(node, kind, depth, items + (tag in ("ul", "ol")))
        else:
            yield from self._paragraph(list(node.iter(include_text=True)), kind, _level(kind) or items, node)

    def _has_blocks(self, node: LexborNode) -> bool:
        return any(str(child.tag) in _CONTAINERS or str(child.tag) in _BLOCK_KINDS for child in node.iter())

    def _row(self, row: LexborNode) -> Iterator[ContentBlock]:
        cells = [fold_whitespace(self._inline(list(cell.iter(include_text=True)))) for cell in row.iter()]
        if any(cells):
            yield ContentBlock(BlockKind.CELL, " | ".join(cells))

    def _paragraph(
        self, run: list[LexborNode], kind: BlockKind, level: int = 0, node: LexborNode | None = None
    ) -> Iterator[ContentBlock]:
        if not run:
            return
        text = fold_whitespace(self._inline(run))
        if not text or (node is None and self._is_mostly_links(run, text)):
            return
        if node is not None and kind not in _MAY_BE_LINKS and self._prose.linked_share(node) > _MOST_LINKED_BLOCK:
            return
        yield ContentBlock(kind, text, level)

    def _is_mostly_links(self, run: list[LexborNode], text: str) -> bool:
        linked = sum(self._prose.text[node.mem_id] for node in run if node.tag_id == ANCHOR)
        return linked > _MOST_LINKED * len(text) or len(text) < _LEAST_RUN

    def _inline(self, run: list[LexborNode], depth: int = 0) -> str:
        return "".join(self._inline_parts(run, depth))

    def _inline_parts(self, run: list[LexborNode], depth: int) -> Iterator[str]:
        for node in run:
            if node.tag_id == TEXT:
                yield self._escaped(node.text_content or "")
                continue
            tag = str(node.tag)
            if tag == "br":
                yield " "
                continue
            inside = list(node.iter(include_text=True))
            is_plain = depth >= _DEEPEST or (self._marked and _INLINE_MARKS.get(tag) == "`")
            inner = node.text(deep=True) if is_plain else self._inline(inside, depth + 1)
            shown = self._marked_up(node, tag, inner) if self._marked and inner.strip() else inner
            # A block in a cell, in a link: its text is not joined with the text around it.
            yield f" {shown} " if tag in _CONTAINERS or tag in _BLOCK_KINDS else shown

    def _escaped(self, text: str) -> str:
        return _ESCAPED.sub(r"\\\1", text) if self._marked else text

    def _marked_up(self, node: LexborNode, tag: str, inner: str) -> str:
        """Text with the mark of its element outside of its blanks."""
        around = inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :]
        text = inner.strip()
        if tag == "a":
            target = join(self._url, node.attributes.get("href") or "") or ""
            text = f"[{text}]({target.replace('(', '%28').replace(')', '%29')})" if target else text
        elif tag in _INLINE_MARKS and "`" not in text:
            text = f"{_INLINE_MARKS[tag]}{text}{_INLINE_MARKS[tag]}"
        return around[0] + text + around[1]


def content_text(page: Page, body: bytes, headers: Headers, form: ContentForm, time: datetime | None = None) -> str:
    """The main content of a document as a text: Markdown begins with where, when and in which language it was said."""
    blocks = main_content(page, body, headers, form)
    if form == "text":
        return "\n".join(block.text for block in blocks) + "\n"
    facts = {"url": page.url, "time": rfc3339(time) if time else "", "title": page.title, "language": page.language}
    front = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in facts.items() if value)
    return f"---\n{front}---\n\n" + "\n".join(_markdown_lines(blocks)) + "\n"


def _markdown_lines(blocks: list[ContentBlock]) -> Iterator[str]:
    """Blocks with a blank line between them, but for items of a list and rows of a table."""
    before: BlockKind | None = None
    for block in blocks:
        together = block.kind is before and block.kind in (BlockKind.ITEM, BlockKind.CELL)
        if before is not None and not together:
            yield ""
        yield from _markdown_block(block)
        if block.kind is BlockKind.CELL and not together:
            yield "| " + " | ".join(["---"] * (block.text.count(" | ") + 1)) + " |"
        before = block.kind


def _markdown_block(block: ContentBlock) -> Iterator[str]:
    if block.kind in _HEADINGS:
        yield f"{'#' * max(1, block.level)} {block.text}"
    elif block.kind is BlockKind.ITEM:
        yield f"{'  ' * max(0, block.level - 1)}- {block.text}"
    elif block.kind is BlockKind.QUOTE:
        yield f"> {block.text}"
    elif block.kind is BlockKind.CELL:
        yield f"| {block.text} |"
    elif block.kind is BlockKind.CODE:
        fence = "`" * (3 + max((len(run) for run in re.findall("`{3,}", block.text)), default=0))
        yield from (fence, block.text, fence)
    else:
        yield _LINE_START.sub(r"\\\1", block.text)
