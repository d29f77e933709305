"""What on an HTML page is frame: menus, headers, footers, side columns, notices about cookies.

Elements that say so by their name are met by the walk. Others say so by
their role or by what their makers called them; the parser finds those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from selectolax.lexbor import LexborNode

from letopis.extract.html_names import CONTENT, MENUS

_MOST_CLIMBED = 64
NAMED = '[role],[class*="footer"],[class*="navbar"],[class*="cookie"],[id*="cookie"]'
"""Selects what may be frame by its attributes."""
_ROLES = frozenset(("navigation", "banner", "contentinfo", "complementary", "search", "menu", "menubar"))
_NAVIGATION = frozenset(("navigation", "menu", "menubar", "search"))
_OVERLAYS = frozenset(("dialog", "alertdialog"))
_NAMES = re.compile(
    r"(?:^|[\s_-])navbar(?:$|[\s_-])"
    r"|(?<!card)(?<!post)(?<!entry)(?<!panel)(?<!article)(?<!comment)(?:^|[\s_-])footer(?:$|[\s_-])"
)
_COOKIES = re.compile(r"cookies?[\s_-]?(?:notice|banner|bar|consent|law|popup|message|overlay|hint|info|dialog|layer)")


def is_frame(node: LexborNode) -> bool:
    """Whether an element that is frame by its name is so here: the header of an article is not."""
    return node.tag_id in MENUS or not in_content(node)


def is_named_frame(node: LexborNode, attributes: Mapping[str, str | None]) -> bool:
    """Whether an element that `NAMED` chose is frame by its role, its class or its id."""
    role = attributes.get("role")
    if role in _NAVIGATION or role in _OVERLAYS:
        return True
    return _is_named(attributes.get("class") or "", attributes.get("id") or "", role) and not in_content(node)


def in_content(node: LexborNode) -> bool:
    """Whether an element belongs to an article or to the main part of the page."""
    above = node.parent
    for _ in range(_MOST_CLIMBED):
        if above is None:
            break
        if above.tag_id in CONTENT:
            return True
        above = above.parent
    return False


def _is_named(names: str, identifier: str, role: str | None) -> bool:
    if role in _ROLES or _NAMES.search(names):
        return True
    return bool(_COOKIES.search(names) or _COOKIES.search(identifier))
