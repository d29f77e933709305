"""(old, new) -> what changed: digests, blocks, near-duplicates, differences and how they are shown.

Pure functions over pages, texts and bytes; nothing here reads or writes
anything, and no input makes any of it run without bound. Near duplicates
stand apart in `letopis.change.duplicates`: they need numpy, which costs more
start-up than a check takes.
"""

from letopis.change.as_json import as_json
from letopis.change.binary import apply_delta, make_delta
from letopis.change.boilerplate import HostProfile
from letopis.change.compare import State, compare, learned
from letopis.change.filters import Filter, FilterKind, filter_page, filter_source, filter_text
from letopis.change.fingerprint import Fingerprint, fingerprint
from letopis.change.habits import PageHabits
from letopis.change.links import LinkChanges, link_changes, links
from letopis.change.paragraphs import known_share, known_share_of, long_paragraphs
from letopis.change.plain import chars, unified, words
from letopis.change.side_by_side import side_by_side_html
from letopis.change.text_diff import Bounds, Level, Piece, pieces
from letopis.change.visual import visual

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
