"""The cutting rule: groups of 2 to 4 neighbours from the order of their hashes.

Borders depend only on hashes nearby, so that an insertion or a deletion moves
only borders nearby and the cutting falls into step again.
"""

from __future__ import annotations

from collections.abc import Sequence


def cut(hashes: Sequence[int]) -> list[int]:
    """Sizes of the groups, in order. The last group may hold a single element."""
    sizes = []
    at, count = 0, len(hashes)
    while at < count:
        size = _group(hashes, at, count)
        sizes.append(size)
        at += size
    return sizes


def _group(hashes: Sequence[int], at: int, count: int) -> int:
    left = count - at
    if left <= 2 or hashes[at + 1] > hashes[at + 2]:
        return min(left, 2)
    if left == 3 or hashes[at + 2] > hashes[at + 3]:
        return 3
    return 4
