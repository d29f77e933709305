"""(old, new) -> what changed: digests, blocks, near-duplicates, differences and how they are shown.

Pure functions of pages, texts and bytes; they read and write nothing, and take bounded time for any input. Near
duplicates are in `letopis.change.duplicates`: they need numpy, whose import takes longer than a check.
"""

from typing import TYPE_CHECKING

from letopis.change.fingerprints import Fingerprint, fingerprint
from letopis.change.profiles import HostProfile, PageHabits
from letopis.lazy import homes, public_names

if TYPE_CHECKING:
    from letopis.change.deltas import apply_binary_delta, make_binary_delta
    from letopis.change.diff_formats import (
        LinkChanges,
        char_diff,
        diff_as_json,
        link_changes,
        link_diff,
        side_by_side_html,
        unified_diff,
        word_diff,
    )
    from letopis.change.filters import ContentFilter, FilterKind, filter_page, filter_source, filter_text
    from letopis.change.fingerprints import known_share, known_share_of, long_paragraphs
    from letopis.change.noise import MuteRules
    from letopis.change.text_diff import DiffBounds, DiffLevel, DiffPiece, diff_pieces
    from letopis.change.verdict import PageState, compare, learn_habits
    from letopis.change.visual_diff import visual_html, visual_html_in_time

_HOMES = homes({
    "deltas": ("apply_binary_delta", "make_binary_delta"),
    "diff_formats": (
        "LinkChanges", "char_diff", "diff_as_json", "link_changes", "link_diff", "side_by_side_html",
        "unified_diff", "word_diff",
    ),
    "filters": ("ContentFilter", "FilterKind", "filter_page", "filter_source", "filter_text"),
    "fingerprints": ("known_share", "known_share_of", "long_paragraphs"),
    "noise": ("MuteRules",),
    "text_diff": ("DiffBounds", "DiffLevel", "DiffPiece", "diff_pieces"),
    "verdict": ("PageState", "compare", "learn_habits"),
    "visual_diff": ("visual_html", "visual_html_in_time"),
})  # fmt: skip

__all__ = [
    "ContentFilter", "DiffBounds", "DiffLevel", "DiffPiece", "FilterKind", "Fingerprint", "HostProfile",
    "LinkChanges", "MuteRules", "PageHabits", "PageState", "apply_binary_delta", "char_diff", "compare",
    "diff_as_json", "diff_pieces", "filter_page", "filter_source", "filter_text", "fingerprint", "known_share",
    "known_share_of", "learn_habits", "link_changes", "link_diff", "long_paragraphs", "make_binary_delta",
    "side_by_side_html", "unified_diff", "visual_html", "visual_html_in_time", "word_diff",
]  # fmt: skip

# What compares and shows is imported at its first use: a crawl that meets new pages does neither.
__getattr__ = public_names(__name__, _HOMES)
