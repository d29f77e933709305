"""Which HTML pages could keep the parser busy for minutes.

The parser's work grows with the square of the nesting and of the number of
attributes of one tag. Small pages cannot hurt; large ones are looked at
before they are parsed, and doubtful ones are read in a process of their own.
"""

from __future__ import annotations

import re

_SMALL = 64 * 1024
_LARGE = 256 * 1024
_FEW_TAGS = 8192
_MOST_DEPTH = 512
_MOST_ATTRIBUTES = 256
_LONG_TAG = re.compile(rb"<[a-zA-Z][^>]{4096}")
_TAG = re.compile(rb"""<(/?)([a-zA-Z][^\s/>]*)([^>"']*+(?:"[^"]*+"[^>"']*+|'[^']*+'[^>"']*+)*+)""")
_BLANKS = re.compile(rb"[\s/]+")
# Never open for long: without content, or closed by the next of their kind.
_FLAT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dt dd tr td th option".split()
)


def needs_guard(body: bytes) -> bool:
    """Whether a page could take more than about a second to parse."""
    if len(body) <= _SMALL:
        return False
    many = body.count(b"<") > _FEW_TAGS
    return (many or len(body) > _LARGE or _LONG_TAG.search(body) is not None) and _is_deep_or_wide(body)


def _is_deep_or_wide(body: bytes) -> bool:
    """Counts open elements and attributes as far as plain looks can tell; doubt counts as danger."""
    opened: dict[bytes, int] = {}
    depth = 0
    for slash, name, rest in _TAG.findall(body):
        if len(rest) > 2 * _MOST_ATTRIBUTES and len(_BLANKS.findall(rest)) > _MOST_ATTRIBUTES and _is_wide(rest):
            return True
        name = name.lower()
        if name in _FLAT:
            continue
        if not slash:
            opened[name] = opened.get(name, 0) + 1
            depth += 1
            if depth > _MOST_DEPTH:
                return True
        elif opened.get(name):
            opened[name] -= 1
            depth -= 1
    return False


def _is_wide(attributes: bytes) -> bool:
    """More attributes than any honest tag has; blanks and slashes inside quotes do not count."""
    bare = re.sub(rb"""=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'>]++)""", b" ", attributes)
    return len(bare.split()) > _MOST_ATTRIBUTES
