"""Which URLs were met before: a set while they are few, a sieve when they are many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from letopis.frontier.sieve import Sieve

_FEW = 50_000


class Seen:
    """The keys of all URLs met so far; each passes once.

    Up to `few` keys stand in a set, which is quicker for the links of a page
    and starts at once; with more, all go over to a `Sieve`, which takes a
    fifth of the memory. Both answer the same. Not shared between threads.
    """

    def __init__(self, few: int = _FEW) -> None:
        self._few = few
        self._keys: set[int] = set()
        self._sieve: Sieve | None = None

    @classmethod
    def rebuilt(cls, parts: Iterable[Sequence[int]]) -> Seen:
        """One that has met all keys of a store."""
        seen = cls()
        for part in parts:
            seen.unseen(part)
        return seen

    def __len__(self) -> int:
        return len(self._keys) if self._sieve is None else len(self._sieve)

    def unseen(self, keys: Sequence[int]) -> list[int]:
        """The places of the keys that pass; they count as seen from now on.

        Of equal keys the first passes. Keys that differ in their lowest bit alone count as equal.
        """
        if self._sieve is None and len(self._keys) + len(keys) > self._few:
            self._sieve = self._handed_over()
        return self._unseen_of_few(keys) if self._sieve is None else self._sieve.places(keys)

    def _unseen_of_few(self, keys: Sequence[int]) -> list[int]:
        seen, passing = self._keys, []
        for place, key in enumerate(keys):
            odd = key | 1
            if odd not in seen:
                seen.add(odd)
                passing.append(place)
        return passing

    def _handed_over(self) -> Sieve:
        """A sieve that has seen the keys of the set, which is emptied."""
        # Loaded late on purpose: it needs numpy, which takes longer to load than a small site takes to crawl.
        from letopis.frontier.sieve import Sieve  # noqa: PLC0415

        sieve = Sieve(expected=len(self._keys))
        sieve.places(list(self._keys))
        self._keys = set()
        return sieve
