"""The known text of a site: what its documents share, stored once and needed to read each of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from letopis.store.solid import marks, tokens

_ENDS = tokens.END_SETS[0]
_WINDOW = 4
_SAMPLES = 6
_LEAST_BYTES = 64
_MOST_BYTES = 1 << 17

Window = tuple[bytes, ...]


@lru_cache(32)
def check_of(known: bytes) -> bytes:
    """Two bytes by which a frame recognises its known text; none without one."""
    return hashlib.sha256(known).digest()[:2] if known else b""


def shared_text(documents: Sequence[Sequence[bytes]]) -> bytes:
    """A known text for the documents of a site, each given as its versions, newest first.

    The newest page that has most in common with other documents, whole, then
    whatever else occurs in several of them. Empty when they share nothing.
    """
    samples = [[tokens.cut(marks.opened(body), _ENDS) for body in _sampled(bodies)] for bodies in documents]
    counts: Counter[Window] = Counter()
    for document in samples:
        counts.update({window for sample in document for window in _windows(sample)})
    shared = {window for window, count in counts.items() if count > 1}
    page = max((document[0] for document in samples), key=lambda sample: _in_common(sample, shared))
    if _in_common(page, shared) < _LEAST_BYTES:
        return b""
    parts = [tokens.joined(page)]
    shared.difference_update(_windows(page))
    for document in samples:
        for sample in document:
            parts += _runs(sample, shared)
    return b"".join(parts)[:_MOST_BYTES]


def _sampled(bodies: Sequence[bytes]) -> list[bytes]:
    step = max(1, -(-len(bodies) // _SAMPLES))
    return list(bodies[::step])


def _windows(sample: list[bytes]) -> Iterator[Window]:
    return zip(*(sample[shift:] for shift in range(_WINDOW)), strict=False)


def _in_common(sample: list[bytes], shared: set[Window]) -> int:
    return sum(len(window[0]) for window in _windows(sample) if window in shared)


def _runs(sample: list[bytes], shared: set[Window]) -> list[bytes]:
    """The stretches of shared windows in a sample; they count as taken from then on."""
    out = []
    start = end = 0
    taken = []
    for place, window in enumerate(_windows(sample)):
        if window not in shared:
            continue
        if place > end:
            out.append(b"".join(sample[start:end]))
            start = place
        end = place + _WINDOW
        taken.append(window)
    out.append(b"".join(sample[start:end]))
    shared.difference_update(taken)
    return [run for run in out if len(run) >= _LEAST_BYTES]
