"""The elements of HTML by the parser's own numbers, and which of them are the frame of a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

from selectolax.lexbor import LexborHTMLParser, LexborNode

from letopis.model import BlockKind

ELEMENT_KINDS = {
    **{f"h{level}": BlockKind(f"h{level}") for level in range(1, 7)},
    "p": BlockKind.PARAGRAPH,
    "li": BlockKind.ITEM,
    "dt": BlockKind.CELL,
    "dd": BlockKind.CELL,
    "td": BlockKind.CELL,
    "th": BlockKind.CELL,
    "caption": BlockKind.CELL,
    "blockquote": BlockKind.QUOTE,
    "pre": BlockKind.CODE,
}
"""Elements that say what their text is."""

# fmt: off
_PLAIN_BLOCKS = (
    "address", "article", "aside", "body", "center", "details", "dialog", "dir", "div", "dl", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend", "main", "menu",
    "nav", "ol", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul", "button", "marquee",
    "label", "frameset",
)
# fmt: on
_HIDDEN_ELEMENTS = ["select", "textarea", "datalist", "svg", "math", "noscript", "noframes", "noembed", "template"]
_ELEMENT_ACTIONS = {
    "a": "a",
    "area": "a",
    "img": "img",
    "link": "link",
    "script": "script",
    "iframe": "frame",
    "frame": "frame",
    "form": "form",
    "source": "media",
    "video": "media",
    "audio": "media",
    "embed": "media",
    "track": "media",
    "input": "input",
    "meta": "meta",
    "title": "title",
    "style": "style",
    "time": "time",
    "br": "br",
    "html": "root",
    "nav": "framing",
    "header": "framing",
    "footer": "framing",
    "aside": "framing",
    "menu": "framing",
    "blockquote": "cited",
    "q": "cited",
    "ins": "cited",
    "del": "cited",
    "button": "button",
    "object": "object",
}


class ElementAction(IntEnum):
    """What the walk does at an element."""

    BLOCK = 0
    A = 1
    IMG = 2
    LINK = 3
    SCRIPT = 4
    FRAME = 5
    FORM = 6
    MEDIA = 7
    INPUT = 8
    META = 9
    TITLE = 10
    STYLE = 11
    TIME = 12
    BR = 13
    ROOT = 14
    HIDE = 15
    FRAMING = 16
    CITED = 17
    BUTTON = 18
    OBJECT = 19


_TABLE_MARKUP = (
    "<table><caption></caption><thead><tr><th></th></tr></thead><tbody><tr><td>x</td></tr></tbody><tfoot></table>"
)
_FRAMES_MARKUP = "<frameset><frame></frameset>"
_TEXT = "-text"


def _tag_numbers() -> dict[str, int]:
    """The parser's numbers of all elements named here, and of text, found by parsing each where it may stand."""
    names = dict.fromkeys((*ELEMENT_KINDS, *_PLAIN_BLOCKS, *_HIDDEN_ELEMENTS, *_ELEMENT_ACTIONS, "base"))
    flow = "".join([f"<{name}></{name}>" for name in names])
    found: dict[str, int] = {}
    for page in (_TABLE_MARKUP + flow, _FRAMES_MARKUP):
        root = LexborHTMLParser(page).root
        found |= {str(node.tag): node.tag_id for node in root.traverse(include_text=True)} if root else {}
    unknown = [name for name in (*names, _TEXT) if name not in found]
    if unknown:
        raise RuntimeError(f"the HTML parser does not know <{unknown[0]}>")
    return found


TAG_NUMBERS = _tag_numbers()
TEXT: int = TAG_NUMBERS[_TEXT]
KIND_OF: dict[int, BlockKind] = {TAG_NUMBERS[name]: kind for name, kind in ELEMENT_KINDS.items()}
BLOCKS: frozenset[int] = frozenset(TAG_NUMBERS[name] for name in (*ELEMENT_KINDS, *_PLAIN_BLOCKS))
PARAGRAPH: int = TAG_NUMBERS["p"]
ROW: int = TAG_NUMBERS["tr"]
CELLS: frozenset[int] = frozenset((ROW, TAG_NUMBERS["td"], TAG_NUMBERS["th"]))
"""Rows of tables and what they hold."""
ANCHOR: int = TAG_NUMBERS["a"]
AREA: int = TAG_NUMBERS["area"]
BREAK: int = TAG_NUMBERS["br"]
BASE: int = TAG_NUMBERS["base"]
CONTENT: frozenset[int] = frozenset(TAG_NUMBERS[name] for name in ("article", "main"))
"""Elements whose own header and footer belong to what a page says."""
MENUS: frozenset[int] = frozenset(TAG_NUMBERS[name] for name in ("nav", "menu"))
"""Elements that hold nothing but ways to other places."""
ACTIONS: dict[int, ElementAction] = {
    **dict.fromkeys(BLOCKS, ElementAction.BLOCK),
    **{TAG_NUMBERS[name]: ElementAction.HIDE for name in _HIDDEN_ELEMENTS},
    **{TAG_NUMBERS[name]: ElementAction[action.upper()] for name, action in _ELEMENT_ACTIONS.items()},
}


def tags_of(action: ElementAction) -> tuple[int, ...]:
    """The elements at which the walk does something."""
    return tuple(tag for tag, done in ACTIONS.items() if done is action)


_MOST_CLIMBED = 64
FRAME_SELECTOR = '[role],[class*="footer"],[class*="navbar"],[class*="cookie"],[id*="cookie"]'
"""Selects what may be frame by its attributes."""
_FRAME_ROLES = frozenset(("navigation", "banner", "contentinfo", "complementary", "search", "menu", "menubar"))
_NAVIGATION = frozenset(("navigation", "menu", "menubar", "search"))
_OVERLAYS = frozenset(("dialog", "alertdialog"))
_FRAME_NAMES = re.compile(
    r"(?:^|[\s_-])navbar(?:$|[\s_-])"
    r"|(?<!card)(?<!post)(?<!entry)(?<!panel)(?<!article)(?<!comment)(?:^|[\s_-])footer(?:$|[\s_-])"
)
_COOKIES = re.compile(r"cookies?[\s_-]?(?:notice|banner|bar|consent|law|popup|message|overlay|hint|info|dialog|layer)")


def is_frame(node: LexborNode) -> bool:
    """Whether an element that is frame by its name is so here: the header of an article is not."""
    return node.tag_id in MENUS or not is_in_content(node)


def is_marked_frame(node: LexborNode, attributes: Mapping[str, str | None]) -> bool:
    """Whether an element that `FRAME_SELECTOR` chose is frame by its role, its class or its id."""
    return is_frame_anywhere(attributes) or (is_frame_outside(attributes) and not is_in_content(node))


def is_frame_anywhere(attributes: Mapping[str, str | None]) -> bool:
    """Whether the role of an element makes it frame even inside of an article."""
    role = attributes.get("role")
    return role in _NAVIGATION or role in _OVERLAYS


def is_frame_outside(attributes: Mapping[str, str | None]) -> bool:
    """Whether role, class or id make an element frame outside of articles."""
    names = attributes.get("class") or ""
    if attributes.get("role") in _FRAME_ROLES or _FRAME_NAMES.search(names):
        return True
    return bool(_COOKIES.search(names) or _COOKIES.search(attributes.get("id") or ""))


def is_in_content(node: LexborNode) -> bool:
    """Whether an element belongs to an article or to the main part of the page."""
    above = node.parent
    for _ in range(_MOST_CLIMBED):
        if above is None:
            break
        if above.tag_id in CONTENT:
            return True
        above = above.parent
    return False
