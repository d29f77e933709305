"""A focused crawl: a page's words and language decide whether its links are followed, and when."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+")
_TITLE_WEIGHT = 3.0
_ENOUGH = 5.0


@dataclass(frozen=True, slots=True)
class Focus:
    """What a crawl is about. Empty parts do not count.

    `keywords` are lower-case words, or phrases of words with blanks between.
    A page's links are followed when its score reaches `threshold`, and also
    `patience` links further on, since good pages lie behind poor ones.
    """

    keywords: tuple[str, ...] = ()
    languages: frozenset[str] = frozenset()
    threshold: float = 0.1
    patience: int = 1


@dataclass(frozen=True, slots=True)
class Interest:
    """What a page means for its links: whether to follow, with which priority, how far from a good page."""

    score: float
    follow: bool
    priority: float
    poor: int


def score(focus: Focus, title: str, text: str, language: str) -> float:
    """0 to 1: how much a page is about the key words, in a language that counts.

    Each key word adds at most once its worth, and long pages need more hits.
    """
    if focus.languages and language and language not in focus.languages:
        return 0.0
    if not focus.keywords:
        return 1.0
    in_title, in_text = _fold(title), _fold(text)
    scale = _ENOUGH * max(1.0, math.sqrt(len(in_text) / 4000.0))
    found = 0.0
    for word in focus.keywords:
        hits = _TITLE_WEIGHT * in_title.count(f" {word} ") + in_text.count(f" {word} ")
        found += min(1.0, hits / scale)
    return min(1.0, found / len(focus.keywords))


def interest(focus: Focus, page_score: float, poor: int, anchor: str = "") -> Interest:
    """What follows for a link of a page with this score, found `poor` pages after the last good one."""
    behind = 0 if page_score >= focus.threshold else poor + 1
    named = any(f" {word} " in _fold(anchor) for word in focus.keywords) if anchor else False
    follow = behind <= focus.patience or named
    priority = page_score / (1.0 + behind) + (0.5 if named else 0.0)
    return Interest(page_score, follow, priority, behind)


def _fold(text: str) -> str:
    return " " + " ".join(_WORD.findall(text.lower())) + " "
