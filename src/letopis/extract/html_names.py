"""The elements of HTML as the walk needs them, by the parser's own numbers."""

from __future__ import annotations

from enum import IntEnum

from selectolax.lexbor import LexborHTMLParser

from letopis.model import BlockKind

KINDS = {
    **{f"h{level}": BlockKind(f"h{level}") for level in range(1, 7)},
    "p": BlockKind.PARAGRAPH,
    "li": BlockKind.ITEM,
    "dt": BlockKind.ITEM,
    "dd": BlockKind.ITEM,
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
_HIDDEN = ["select", "textarea", "datalist", "svg", "math", "noscript", "noframes", "noembed", "template", "object"]
_LINKING = {
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
}


class Do(IntEnum):
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


def _number(name: str) -> int:
    """The parser's number of an element, found by parsing one where it may stand."""
    wrapped = {"html": "", "body": "", "frameset": "<frameset>", "frame": "<frameset><frame>"}
    table = (
        "<table><caption></caption><thead><tr><th></th></tr></thead><tbody><tr><td></td></tr></tbody><tfoot></table>"
    )
    tree = LexborHTMLParser(wrapped.get(name, f"{table}<{name}>"))
    found = tree.css_first(name)
    if found is None:
        raise RuntimeError(f"the HTML parser does not know <{name}>")
    return found.tag_id


def _number_of_text() -> int:
    found = LexborHTMLParser("<p>x").css_first("p")
    if found is None or found.child is None:
        raise RuntimeError("the HTML parser shows no text")
    return found.child.tag_id


TEXT: int = _number_of_text()
KIND_OF: dict[int, BlockKind] = {_number(name): kind for name, kind in KINDS.items()}
BLOCKS: frozenset[int] = frozenset(map(_number, (*KINDS, *_PLAIN_BLOCKS)))
PARAGRAPH: int = _number("p")
ANCHOR: int = _number("a")
AREA: int = _number("area")
BASE: int = _number("base")
CONTENT: frozenset[int] = frozenset(map(_number, ("article", "main")))
"""Elements whose own header and footer belong to what a page says."""
MENUS: frozenset[int] = frozenset(map(_number, ("nav", "menu")))
"""Elements that hold nothing but ways to other places."""
ACTIONS: dict[int, Do] = {
    **dict.fromkeys(BLOCKS, Do.BLOCK),
    **{_number(name): Do.HIDE for name in _HIDDEN},
    **{_number(name): Do[action.upper()] for name, action in _LINKING.items()},
}


def tags_of(action: Do) -> tuple[int, ...]:
    """The elements at which the walk does something."""
    return tuple(tag for tag, done in ACTIONS.items() if done is action)
