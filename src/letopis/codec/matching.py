"""Finding words of a dictionary in a document: leftmost first, then the longest, at the speed of `re`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_END = b""


def _group(words: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """The tails of the words by their first byte; a word that ends here is under the empty key."""
    tails: dict[bytes, list[bytes]] = {}
    for word in words:
        tails.setdefault(word[:1], []).append(word[1:])
    return tails


def _tree(words: Iterable[bytes]) -> bytes:
    """A pattern that shares common beginnings. Greedy options make the longest word win."""
    tails = _group(set(words))
    ends = tails.pop(_END, None) is not None
    branches = [re.escape(first) + _tree(rest) for first, rest in sorted(tails.items())]
    if not branches:
        return b""
    body = b"(?:" + b"|".join(branches) + b")"
    return body + b"?" if ends else body


def matcher(words: Collection[bytes]) -> re.Pattern[bytes]:
    """A pattern for any of the words, in one capturing group, so that `split` keeps what it found.

    The words must not be empty. A tree of branches is what a trie would be:
    the engine skips by the set of first bytes and never compares a byte twice.
    """
    return re.compile(b"(" + _tree(words) + b")", re.DOTALL)
