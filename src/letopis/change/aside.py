"""What on a page stands aside of what it says: its own frame, and running banners."""

from __future__ import annotations

from itertools import groupby
from math import sqrt

from letopis.change.fingerprint import Fingerprint
from letopis.change.text_forms import is_fact

_LEAST_BODY = 12.0
_SHELL = 60  # blocks of frame from which a page without a body is the shell of one that scripts fill
_REPEATED, _BANNER = 4, 20  # the same text so often in a row, of so many letters, is a running banner


def framed(side: Fingerprint) -> frozenset[int]:
    """The blocks that the page itself marks as its frame, unless next to nothing else is there.

    A large frame around nothing is the shell of a page whose body is not in
    its bytes: its menu still is a menu.
    """
    if not side.frame or len(side.frame) >= _SHELL:
        return side.frame
    inside = sum(map(side.weight, side.frame))
    return side.frame if sum(map(sqrt, side.lengths)) - inside >= _LEAST_BODY else frozenset()


def aside(side: Fingerprint) -> frozenset[int]:
    """The blocks that say nothing of the page: its frame but for facts in it, and running banners."""
    frame = framed(side)
    facts = {i for i in frame if is_fact(side.text(i))} if side.blocks else frozenset[int]()
    return (frame - facts) | banners(side)


def banners(side: Fingerprint) -> frozenset[int]:
    """Blocks that repeat one sentence again and again, as a line that runs across the page does, and its label."""
    found: set[int] = set()
    at = 0
    for _, run in groupby(side.hashes):
        size = len(list(run))
        if size >= _REPEATED and side.lengths[at] >= _BANNER:
            labelled = at > 0 and side.lengths[at - 1] < _BANNER
            found.update(range(at - labelled, at + size))
        at += size
    return frozenset(found)
