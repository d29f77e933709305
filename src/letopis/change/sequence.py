"""The difference of two sequences of hashable tokens, always in bounded work.

Everything else in this unit (blocks, lines, words, tags) is split into tokens, numbered, and compared here. The exact
comparison costs `len(a) * len(b)` bit cells; a `Budget` limits them. What does not fit is split at runs that occur
once on both sides, and what still does not fit is reported as "replaced": coarser, but never wrong and never slow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal, cast

from letopis.lazy import lazy, np
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    import numpy.typing as npt
    from rapidfuzz import distance as rapidfuzz_distance
else:
    rapidfuzz_distance = lazy("rapidfuzz.distance")

Tag = Literal["equal", "replace", "insert", "delete"]
_WINDOWS = (1, 4, 16)
_ONE_CALL = 1 << 28  # cells of one exact comparison: 32 MiB of bits
_SMALL = 1 << 16


class Op(NamedTuple):
    """`old[a1:a2]` became `new[b1:b2]`."""

    tag: Tag
    a1: int
    a2: int
    b1: int
    b2: int


class Match(NamedTuple):
    """`old[a:a + size] == new[b:b + size]`."""

    a: int
    b: int
    size: int


class Budget:
    """Bit cells that may still be spent; shared by all parts of one difference."""

    def __init__(self, cells: int = 1 << 29) -> None:
        self.cells = cells
        self.coarse = False

    def take(self, cells: int) -> bool:
        """Whether `cells` fit; if so they are spent, if not the result is coarse."""
        if cells > self.cells or cells > _ONE_CALL:
            self.coarse = True
            return False
        self.cells -= cells
        return True


def opcodes(a: Sequence[Hashable], b: Sequence[Hashable], budget: Budget | None = None) -> list[Op]:
    """The operations that turn `a` into `b`, in order and without gaps.

    Applying them always gives `b` exactly. Deletions and insertions at one place are one "replace".
    """
    return from_matches(matches(a, b, budget), len(a), len(b))


def matches(a: Sequence[Hashable], b: Sequence[Hashable], budget: Budget | None = None) -> list[Match]:
    """The runs that both sides share, in order, as long as possible."""
    budget = budget or Budget()
    head, end_a, end_b = trim(a, b)
    found = [Match(0, 0, head)] if head else []
    if head < end_a and head < end_b:
        found += _middle(_number(a[head:end_a], b[head:end_b]), head, head, budget)
    if end_a < len(a):
        found.append(Match(end_a, end_b, len(a) - end_a))
    return _joined(found)


def trim(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[int, int, int]:
    """Length of the common head, and where the common tail begins in `a` and in `b`."""
    head = _common(a, b, min(len(a), len(b)), from_end=False)
    tail = _common(a, b, min(len(a), len(b)) - head, from_end=True)
    return head, len(a) - tail, len(b) - tail


def from_matches(found: Iterable[Match], len_a: int, len_b: int) -> list[Op]:
    """Operations with the gaps between matches told as replace, delete or insert."""
    ops: list[Op] = []
    a = b = 0
    for match in chain(found, (Match(len_a, len_b, 0),)):
        if a < match.a or b < match.b:
            tag: Tag = "replace" if a < match.a and b < match.b else "delete" if a < match.a else "insert"
            ops.append(Op(tag, a, match.a, b, match.b))
        a, b = match.a + match.size, match.b + match.size
        if match.size:
            ops.append(Op("equal", match.a, a, match.b, b))
    return ops


def _common(a: Sequence[Hashable], b: Sequence[Hashable], limit: int, *, from_end: bool) -> int:
    """Length of the common head or tail by slices that double, then halve: C speed, no Python loop."""
    done, step = 0, 64
    while done < limit:
        step = min(step, limit - done)
        if _slice(a, done, step, from_end) == _slice(b, done, step, from_end):
            done += step
            step *= 2
        elif step == 1:
            break
        else:
            step = max(1, step // 2)
            limit = min(limit, done + 2 * step)
    return done


def _slice(items: Sequence[Hashable], start: int, size: int, from_end: bool) -> Sequence[Hashable]:
    if from_end:
        stop = len(items) - start
        return items[stop - size : stop]
    return items[start : start + size]


def _number(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Small numbers for tokens, equal for equal tokens."""
    numbers: dict[Hashable, int] = {}
    give = numbers.setdefault
    return [give(x, len(numbers)) for x in a], [give(x, len(numbers)) for x in b]


def _middle(pair: tuple[list[int], list[int]], at_a: int, at_b: int, budget: Budget) -> list[Match]:
    """Matches of the parts that remain after trimming, shifted to where they stand."""
    a, b = pair
    if len(a) * len(b) <= _SMALL:
        return _exact(a, b, at_a, at_b) if budget.take(len(a) * len(b)) else []
    common = set(a) & set(b)
    kept_a = [i for i, x in enumerate(a) if x in common]
    kept_b = [i for i, x in enumerate(b) if x in common]
    short = [a[i] for i in kept_a], [b[i] for i in kept_b]
    if not short[0]:
        return []
    found = _exact_or_split(short[0], short[1], budget, 0)
    return [placed for match in found for placed in _placed(match, kept_a, kept_b, at_a, at_b)]


def _placed(match: Match, kept_a: list[int], kept_b: list[int], at_a: int, at_b: int) -> list[Match]:
    """A match of shortened sequences where it stands in the whole ones, in pieces if tokens were left out."""
    i, j, n = match
    a, b = kept_a[i], kept_b[j]
    if kept_a[i + n - 1] - a == n - 1 and kept_b[j + n - 1] - b == n - 1:
        return [Match(a + at_a, b + at_b, n)]
    return [Match(kept_a[i + k] + at_a, kept_b[j + k] + at_b, 1) for k in range(n)]


def _exact(a: list[int], b: list[int], at_a: int, at_b: int) -> list[Match]:
    table = cast("list[tuple[str, int, int, int, int]]", rapidfuzz_distance.Indel.opcodes(a, b).as_list())
    return [Match(a1 + at_a, b1 + at_b, a2 - a1) for tag, a1, a2, b1, _ in table if tag == "equal"]


def _exact_or_split(a: list[int], b: list[int], budget: Budget, level: int) -> list[Match]:
    """Exact where the budget allows, else anchored at unique runs of growing length."""
    affordable = len(a) * len(b) <= max(_SMALL, budget.cells >> 3)
    if affordable and budget.take(len(a) * len(b)):
        return _exact(a, b, 0, 0)
    if level == len(_WINDOWS):
        budget.coarse = True
        return []
    found = [Match(i, j, _WINDOWS[level]) for i, j in _anchors(a, b, _WINDOWS[level])]
    return _between(a, b, found, budget, level + 1) if found else _exact_or_split(a, b, budget, level + 1)


def _between(a: list[int], b: list[int], anchors: list[Match], budget: Budget, level: int) -> list[Match]:
    """The anchors and the matches of the gaps between them."""
    found: list[Match] = []
    at_a = at_b = 0
    for anchor in chain(anchors, (Match(len(a), len(b), 0),)):
        if at_a < anchor.a and at_b < anchor.b:
            inner = _exact_or_split(a[at_a : anchor.a], b[at_b : anchor.b], budget, level)
            found += [Match(m.a + at_a, m.b + at_b, m.size) for m in inner]
        if anchor.size:
            found.append(anchor)
        at_a, at_b = anchor.a + anchor.size, anchor.b + anchor.size
    return found


def _joined(found: list[Match]) -> list[Match]:
    """Neighbouring matches as one."""
    joined: list[Match] = []
    for match in found:
        last = joined[-1] if joined else None
        if last and last.a + last.size == match.a and last.b + last.size == match.b:
            joined[-1] = Match(last.a, last.b, last.size + match.size)
        else:
            joined.append(match)
    return joined


_MIX = 0x9E3779B97F4A7C15


def _anchors(a: list[int], b: list[int], width: int) -> list[tuple[int, int]]:
    """Where runs of `width` tokens begin that occur once in `a` and once in `b`, in an order both share."""
    keys_a, at_a = _once(a, width)
    keys_b, at_b = _once(b, width)
    _, in_a, in_b = np.intersect1d(keys_a, keys_b, assume_unique=True, return_indices=True)
    pairs = sorted(zip(at_a[in_a].tolist(), at_b[in_b].tolist(), strict=True))
    found: list[tuple[int, int]] = []
    end_a = end_b = 0
    for i, j in _rising(pairs):
        if i >= end_a and j >= end_b and a[i : i + width] == b[j : j + width]:
            found.append((i, j))
            end_a, end_b = i + width, j + width
    return found


def _once(items: list[int], width: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Hashes of the runs that occur exactly once, and where they begin; equal hashes are only a hint."""
    size = len(items) - width + 1
    if size <= 0:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    tokens = np.array(items, dtype=np.uint64)
    hashes = np.zeros(size, dtype=np.uint64)
    for k in range(width):
        hashes = hashes * np.uint64(_MIX) + tokens[k : k + size]
    keys, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    return keys[counts == 1], first[counts == 1].astype(np.int64)


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest chain of pairs that rises on both sides (patience sorting)."""
    tops: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(at[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        at[pile : pile + 1] = [n]
    best: list[tuple[int, int]] = []
    n = at[-1] if at else -1
    while n >= 0:
        best.append(pairs[n])
        n = before[n]
    return best[::-1]
