"""The tokens of a document's versions as numbers, and which earlier version an old one is written against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from letopis.store.solid import tokens

Ids = NDArray[np.int32]

# Weights found on real pages: a superfluous token costs an operation's share,
# and a base further back breaks the rhythm of the residue a little.
_SUPERFLUOUS = 4
_FAR = 8


class Texts:
    """All versions of a document as token numbers; equal tokens have equal numbers."""

    def __init__(self, forms: Iterable[bytes], ends: bytes) -> None:
        self._numbers: dict[bytes, int] = {}
        self.ids: list[Ids] = [self._numbered(tokens.cut(form, ends)) for form in forms]
        self._counts: dict[int, NDArray[np.int64]] = {}

    def _numbered(self, cut: list[bytes]) -> Ids:
        known = self._numbers
        return np.fromiter((known.setdefault(token, len(known)) for token in cut), dtype=np.int32, count=len(cut))

    @cached_property
    def words(self) -> list[bytes]:
        """The distinct tokens by number."""
        return list(self._numbers)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Bytes of each distinct token."""
        return np.fromiter(map(len, self.words), dtype=np.int64, count=len(self.words))

    def literal(self, version: int) -> list[bytes]:
        """The tokens of a version."""
        words = self.words
        return [words[number] for number in self.ids[version].tolist()]

    def offsets(self, version: int) -> list[int]:
        """Where each token of a version begins in its form, and where the last one ends."""
        return list(accumulate(self.lengths[self.ids[version]].tolist(), initial=0))

    def counts(self, version: int) -> NDArray[np.int64]:
        """How often each distinct token occurs in a version; the last few are remembered."""
        if version not in self._counts:
            if len(self._counts) > 16:
                self._counts.pop(next(iter(self._counts)))
            self._counts[version] = np.bincount(self.ids[version], minlength=len(self.words))
        return self._counts[version]

    def cheapest(self, version: int, candidates: Sequence[int], weights: Mapping[int, float]) -> int:
        """The candidate that leaves least to write, its own weight counted in; the last one counts as adjacent."""
        adjacent = candidates[-1]
        costs = {base: self._cost(version, base) + weights[base] + _FAR * (base != adjacent) for base in candidates}
        return min(candidates, key=lambda base: (costs[base], base != adjacent))

    def _cost(self, version: int, base: int) -> int:
        surplus = self.counts(version) - self.counts(base)
        missing = int(self.lengths @ np.maximum(surplus, 0))
        return missing - _SUPERFLUOUS * int(np.minimum(surplus, 0).sum())
