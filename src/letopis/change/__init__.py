"""(old, new) -> what changed: digests, blocks, near-duplicates, differences and how they are shown.

Pure functions over pages, texts and bytes; nothing here reads or writes
anything, and no input makes any of it run without bound. Near duplicates
stand apart in `letopis.change.duplicates`: they need numpy, which costs more
start-up than a check takes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from letopis.change.boilerplate import HostProfile
from letopis.change.fingerprint import Fingerprint, fingerprint
from letopis.change.habits import PageHabits

if TYPE_CHECKING:
    from letopis.change.binary import apply_delta, make_delta
    from letopis.change.comparing import State, compare, learned
    from letopis.change.filters import Filter, FilterKind, filter_page, filter_source, filter_text
    from letopis.change.json_form import as_json
    from letopis.change.link_lists import LinkChanges, link_changes, links
    from letopis.change.paragraphs import known_share, known_share_of, long_paragraphs
    from letopis.change.plain import chars, unified, words
    from letopis.change.side_by_side import side_by_side_html
    from letopis.change.text_diff import Bounds, Level, Piece, pieces
    from letopis.change.visual_html import visual

# No module here is called like a name of this table: once loaded, it would stand in the place of that name.
_HOMES = {
    **dict.fromkeys(("apply_delta", "make_delta"), "binary"),
    **dict.fromkeys(("State", "compare", "learned"), "comparing"),
    **dict.fromkeys(("Filter", "FilterKind", "filter_page", "filter_source", "filter_text"), "filters"),
    "as_json": "json_form",
    **dict.fromkeys(("LinkChanges", "link_changes", "links"), "link_lists"),
    **dict.fromkeys(("known_share", "known_share_of", "long_paragraphs"), "paragraphs"),
    **dict.fromkeys(("chars", "unified", "words"), "plain"),
    "side_by_side_html": "side_by_side",
    **dict.fromkeys(("Bounds", "Level", "Piece", "pieces"), "text_diff"),
    "visual": "visual_html",
}

__all__ = [
    "Bounds",
    "Filter",
    "FilterKind",
    "Fingerprint",
    "HostProfile",
    "Level",
    "LinkChanges",
    "PageHabits",
    "Piece",
    "State",
    "apply_delta",
    "as_json",
    "chars",
    "compare",
    "filter_page",
    "filter_source",
    "filter_text",
    "fingerprint",
    "known_share",
    "known_share_of",
    "learned",
    "link_changes",
    "links",
    "long_paragraphs",
    "make_delta",
    "pieces",
    "side_by_side_html",
    "unified",
    "visual",
    "words",
]


def __getattr__(name: str) -> Any:
    """What compares and shows is imported at its first use: a crawl that meets new pages does neither."""
    if name not in _HOMES:
        raise AttributeError(f"module 'letopis.change' has no attribute {name!r}")
    return getattr(import_module(f"letopis.change.{_HOMES[name]}"), name)
