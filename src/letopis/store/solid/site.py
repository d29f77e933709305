"""Documents of one site together: frames that lean on one known text, where that pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from letopis.store.solid import layout, stream
from letopis.store.solid.known import shared_text
from letopis.store.solid.layout import Flags
from letopis.store.solid.writing import Frame, encode, size_of


@dataclass(frozen=True, slots=True)
class Site:
    """Frames of several documents, and the known text, as a frame too, that those which ask for it need.

    `known` is empty when no document gained by it.
    """

    known: bytes
    frames: list[list[Frame]]


def encode_site(documents: Sequence[Sequence[bytes]], *, bound: int = 2_000_000) -> Site:
    """The documents of a site, each as its versions, newest first."""
    alone = [encode(bodies, bound=bound) for bodies in documents]
    text = shared_text(documents) if len(documents) > 1 else b""
    if not text:
        return Site(b"", alone)
    leaning = [encode(bodies, bound=bound, known=text) for bodies in documents]
    chosen = [min(pair, key=size_of) for pair in zip(alone, leaning, strict=True)]
    known = encode_known(text)
    gain = sum(map(size_of, alone)) - sum(map(size_of, chosen))
    return Site(known, chosen) if gain > len(known) else Site(b"", alone)


def encode_known(text: bytes) -> bytes:
    """A known text as it is stored."""
    part = stream.parts([text])[0]
    return layout.written(layout.Head(Flags.HOLDS_NEWEST, 0, len(part), len(text), 0)) + part
