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


_TABLE = "<table><caption></caption><thead><tr><th></th></tr></thead><tbody><tr><td>x</td></tr></tbody><tfoot></table>"
_FRAMES = "<frameset><frame></frameset>"
_TEXT = "-text"


def _numbers() -> dict[str, int]:
    """The parser's numbers of all elements named here, and of text, found by parsing each where it may stand."""
    names = dict.fromkeys((*KINDS, *_PLAIN_BLOCKS, *_HIDDEN, *_LINKING, "base"))
    flow = "".join([f"<{name}></{name}>" for name in names])
    found: dict[str, int] = {}
    for page in (_TABLE + flow, _FRAMES):
        root = LexborHTMLParser(page).root
        found |= {str(node.tag): node.tag_id for node in root.traverse(include_text=True)} if root else {}
    unknown = [name for name in (*names, _TEXT) if name not in found]
    if unknown:
        raise RuntimeError(f"the HTML parser does not know <{unknown[0]}>")
    return found


_NUMBER = _numbers()
TEXT: int = _NUMBER[_TEXT]
KIND_OF: dict[int, BlockKind] = {_NUMBER[name]: kind for name, kind in KINDS.items()}
BLOCKS: frozenset[int] = frozenset(_NUMBER[name] for name in (*KINDS, *_PLAIN_BLOCKS))
PARAGRAPH: int = _NUMBER["p"]
ANCHOR: int = _NUMBER["a"]
AREA: int = _NUMBER["area"]
BASE: int = _NUMBER["base"]
CONTENT: frozenset[int] = frozenset(_NUMBER[name] for name in ("article", "main"))
"""Elements whose own header and footer belong to what a page says."""
MENUS: frozenset[int] = frozenset(_NUMBER[name] for name in ("nav", "menu"))
"""Elements that hold nothing but ways to other places."""
ACTIONS: dict[int, Do] = {
    **dict.fromkeys(BLOCKS, Do.BLOCK),
    **{_NUMBER[name]: Do.HIDE for name in _HIDDEN},
    **{_NUMBER[name]: Do[action.upper()] for name, action in _LINKING.items()},
}


def tags_of(action: Do) -> tuple[int, ...]:
    """The elements at which the walk does something."""
    return tuple(tag for tag, done in ACTIONS.items() if done is action)
