"""What several tests of this unit share: ways to build pages, and a plain reader of HTML for real pairs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from letopis.model import Block, BlockKind, Page

MakePage = Callable[..., Page]

_KINDS = {"li": BlockKind.ITEM, "td": BlockKind.CELL, "th": BlockKind.CELL, "pre": BlockKind.CODE, "dt": BlockKind.ITEM}
_KINDS |= {f"h{n}": BlockKind(f"h{n}") for n in range(1, 7)}
_BLOCKS = frozenset(("p", "div", "section", "article", "aside", "header", "footer", "nav", "main", "ul", "ol", "li"))
_BLOCKS |= {"dl", "dt", "dd", "table", "thead", "tbody", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "pre"}
_BLOCKS |= {"blockquote", "form", "fieldset", "figure", "figcaption", "br", "hr", "address", "option", "select"}
_BLOCKS |= {"button", "details", "summary"}
_SKIPPED = frozenset(("script", "style", "noscript", "template", "svg", "head", "iframe"))
_FRAME = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|menu|footer|header|sidebar|breadcrumbs?|cookies?|consent|contentinfo|banner)"
    r"(?:$|[\s_-])",
    re.IGNORECASE,
)


@pytest.fixture
def page() -> MakePage:
    """A page of the given paragraphs; `frame` names blocks by index."""

    def make(*texts: str, kind: BlockKind = BlockKind.PARAGRAPH, frame: tuple[int, ...] = ()) -> Page:
        blocks = tuple(Block(kind, text) for text in texts)
        return Page("http://example.test/", "text/html", blocks=blocks, frame=frozenset(frame))

    return make


class _Reader:
    """Blocks of an HTML page, with menus and the like marked as frame."""

    def __init__(self, data: bytes) -> None:
        self.blocks: list[Block] = []
        self.frame: set[int] = set()
        self._text: list[str] = []
        document = LexborHTMLParser(data.decode("utf-8", "replace"))
        title = document.css_first("title")
        if title is not None and title.text().strip():
            self.blocks.append(Block(BlockKind.TITLE, " ".join(title.text().split())))
        if document.body is not None:
            self._walk(document.body, BlockKind.PARAGRAPH, False, False)
        self._flush(BlockKind.PARAGRAPH, False)

    def _flush(self, kind: BlockKind, framed: bool) -> None:
        text = " ".join("".join(self._text).split())
        self._text.clear()
        if text:
            if framed:
                self.frame.add(len(self.blocks))
            self.blocks.append(Block(kind, text))

    def _walk(self, node: LexborNode, kind: BlockKind, framed: bool, inside: bool) -> None:
        child = node.child
        while child is not None:
            tag = child.tag or "-"
            if tag == "-text":
                self._text.append(child.text_content or "")
            elif tag in _BLOCKS:
                self._flush(kind, framed)
                body = tag in ("main", "article")
                deeper = not body and (framed or _is_frame(child, tag, inside))
                inner = _KINDS.get(tag, kind)
                self._walk(child, inner, deeper, inside or body)
                self._flush(inner, deeper)
            elif tag not in _SKIPPED and tag[0] not in "-!":
                self._walk(child, kind, framed, inside)
            child = child.next


def _is_frame(node: LexborNode, tag: str, inside: bool) -> bool:
    if tag == "nav" or (tag in ("header", "footer", "aside") and not inside):
        return True
    names = " ".join(filter(None, (node.attributes.get(name) for name in ("class", "id", "role"))))
    return bool(_FRAME.search(names))


@pytest.fixture
def read_html() -> Callable[[bytes], Page]:
    """A page read from HTML by the plainest means, so that real pairs can be judged."""

    def read(data: bytes) -> Page:
        reader = _Reader(data)
        return Page("http://example.test/", "text/html", blocks=tuple(reader.blocks), frame=frozenset(reader.frame))

    return read
