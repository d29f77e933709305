"""The text around a hit, rebuilt from the stored blocks, with the hit marked."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from itertools import islice
from typing import NamedTuple

from letopis.search.stored import BODY, FRAME, LEAD
from letopis.search.words import lowered

_AROUND = 90
"""Characters shown on each side of a hit."""
_LONGEST = 240
_HEAD = frozenset("tkd")
_OWN = re.compile(f"^.{BODY}", re.MULTILINE)
_LOOKED_AT = 40
"""Hits of one page that are weighed against each other."""


class Snippet(NamedTuple):
    """A piece of one block and where in it the hits stand."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    @property
    def hits(self) -> tuple[str, ...]:
        """The words that were found, each once, as they stand."""
        return tuple(dict.fromkeys([self.text[start:end] for start, end in self.marks]))

    @property
    def html(self) -> str:
        """Safe to put into a page: everything escaped, hits in `<mark>`."""
        return self.marked("<mark>", "</mark>", escape)

    def marked(self, before: str, after: str, change: Callable[[str], str] = str) -> str:
        """The text with something around each hit, all of it passed through `change`."""
        parts, at = [], 0
        for start, end in self.marks:
            parts += [change(self.text[at:start]), before, change(self.text[start:end]), after]
            at = end
        return "".join([*parts, change(self.text[at:])])


def snippet(text: str, pattern: re.Pattern[str] | None) -> Snippet:
    """The best place of a page: most different words of the question together, and of equal places the first.

    The page's own text comes before its frame (menus, footers), which comes
    before its head. Without a hit the first words of the body.
    """
    body = _body(text)
    if pattern is None:
        return _opening(text, body)
    low = lowered(text)
    hit = _chosen(low, body, pattern)
    return _opening(text, body) if hit is None else _around(text, low, hit, pattern)


def _chosen(low: str, body: int, pattern: re.Pattern[str]) -> re.Match[str] | None:
    hit = pattern.search(low, body)
    if hit is None:
        return pattern.search(low)
    if pattern.groups == 1 and not _framed(low, hit):
        return hit
    hits = list(islice(pattern.finditer(low, body), _LOOKED_AT))
    return max(hits, key=lambda hit: (_variety(low, hit, hits), not _framed(low, hit), -hit.start()))


def _framed(text: str, hit: re.Match[str]) -> bool:
    return text[text.rfind("\n", 0, hit.start()) + 2] == FRAME


def _body(text: str) -> int:
    """Where the first block begins that is neither title, keywords nor description."""
    at = 0
    while text[at : at + 1] in _HEAD and at < len(text):
        end = text.find("\n", at)
        if end < 0:
            return 0
        at = end + 1
    return at


def _opening(text: str, body: int) -> Snippet:
    """The first block of the page's own text."""
    own = _OWN.search(text, body)
    start = own.start() if own else body
    end = text.find("\n", start)
    block = text[start + LEAD : end if end >= 0 else len(text)]
    if len(block) <= _LONGEST:
        return Snippet(block)
    blank = block.rfind(" ", 0, _LONGEST)
    return Snippet(block[: blank if blank > 0 else _LONGEST] + " …")


def _variety(text: str, hit: re.Match[str], hits: list[re.Match[str]]) -> int:
    end = text.find("\n", hit.start())
    limit = min(hit.start() + _LONGEST - _AROUND, end if end >= 0 else len(text))
    return len({other.lastindex for other in hits if hit.start() <= other.start() < limit})


def _around(text: str, low: str, hit: re.Match[str], pattern: re.Pattern[str]) -> Snippet:
    """The surroundings of a hit within its block, cut between words, with all hits in them marked."""
    start, end = hit.span()
    first = text.rfind("\n", 0, start) + 1 + LEAD
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    begin = first if start - first <= _AROUND else text.find(" ", start - _AROUND, start) + 1 or start - _AROUND
    until = max(end + _AROUND, begin + _LONGEST)
    stop = last if until >= last else max(end, text.rfind(" ", end, until))
    lead = "… " if begin > first else ""
    shift = len(lead) - begin
    marks = [(m.start() + shift, m.end() + shift) for m in pattern.finditer(low, begin, stop)]
    return Snippet(f"{lead}{text[begin:stop]}{' …' if stop < last else ''}", tuple(marks))
