"""Texts for the pages of a site to lean on, and which of several serves a page best."""

from __future__ import annotations

from collections.abc import Sequence

from letopis.store.solid import layout, marks, stream
from letopis.store.solid.known import check_of, shared_text
from letopis.store.solid.layout import Flags

# Good enough to tell whether a text pays, at a tenth of the time.
_TRIAL = 9
_BEST = 11


def site_text(pages: Sequence[bytes], texts: Sequence[bytes]) -> bytes:
    """A text by which the newest pages of a site shrink more than it takes to store; empty when there is none.

    `texts` are those that they could lean on anyway.
    """
    text = shared_text([[page] for page in pages]) if len(pages) > 1 else b""
    if not text:
        return b""
    gain = 0
    for page in pages:
        form = marks.opened(page)
        before = min(_size(form, known, _TRIAL) for known in (b"", *texts))
        gain += max(0, before - _size(form, text, _TRIAL))
    return text if gain > len(encode_known(text, texts[0] if texts else b"")) else b""


def best_text(page: bytes, texts: Sequence[bytes]) -> tuple[int, int]:
    """Which of the texts makes a page smallest, of equal ones the first; and how small."""
    form = marks.opened(page)
    size, index = min((_size(form, text, _BEST), index) for index, text in enumerate(texts))
    return index, size


def encode_known(text: bytes, known: bytes = b"") -> bytes:
    """A known text as it is stored; it may lean on another one itself."""
    part = stream.parts([text], known)[0]
    flags = Flags.HOLDS_NEWEST | Flags.KNOWN * bool(known)
    return layout.written(layout.Head(flags, 0, len(part), len(text), 0, check_of(known))) + part


def _size(form: bytes, known: bytes, quality: int) -> int:
    return len(stream.parts([form], known, quality)[0])
