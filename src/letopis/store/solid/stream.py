"""The entropy coder of frames: one brotli stream whose parts can be read apart, with a text known beforehand.

Each part ends with a flush, so it is whole bytes; a reader appends the empty
last block and decodes the parts it has. Output is limited while it is made:
a hostile stream costs what its frame declares, not what it could unfold to.

The binding takes no dictionary, so the known text goes in front of the stream
as stored blocks, which the decoder merely copies. The encoder, though, has
compressed that text, and what follows may lean on the last four distances it
used. The knot brings both sides to the same four: blocks of noise repeated in
one order and then in another leave an encoder no choice but to copy them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

import brotli

from letopis.errors import Damaged

_LAST = b"\x03"
_STEP = 1 << 17
_STORED = 1 << 24
_PLAINER = (9, 5)

_NOISE = [hashlib.sha256(b"letopis solid %d" % number).digest() for number in range(4)]
_SPACER = hashlib.sha512(b"letopis solid").digest()[:41]
_KNOT = b"".join((*_NOISE, _NOISE[2], _NOISE[0], _NOISE[3], _NOISE[1], _SPACER))
_TIE = b"".join((_NOISE[1], _NOISE[3], _NOISE[0], _NOISE[2]))
_TIE_PART = bytes.fromhex("f803807f02208a692c2001051542526a1b")
_KNOT_LENGTH = len(_KNOT) + len(_TIE)


def parts(texts: Sequence[bytes], known: bytes = b"", quality: int = 11) -> list[bytes]:
    """The texts as consecutive parts of one stream; each needs those before it and the known text to be read."""
    if not known:
        return _coded(texts, quality, _window(sum(map(len, texts))))
    # The knot was tried with brotli 1.2.1 only; should another untie it, a plainer encoding still reads.
    for tried in (quality, *_PLAINER):
        made = _coded((known + _KNOT, _TIE, *texts), tried, 24)[2:]
        if _reads_back(made, texts, known):
            return made
    return [_stored(text, first=False) for text in texts]


def _coded(texts: Sequence[bytes], quality: int, window: int) -> list[bytes]:
    coder = brotli.Compressor(quality=quality, lgwin=window)
    return [_part(coder, text) for text in texts]


def _reads_back(made: Sequence[bytes], texts: Sequence[bytes], known: bytes) -> bool:
    whole = b"".join(texts)
    try:
        return text_of(b"".join(made), len(whole), known) == whole
    except Damaged:
        return False


def _part(coder: brotli.Compressor, text: bytes) -> bytes:
    begun: bytes = coder.process(text)
    flushed: bytes = coder.flush()
    return begun + flushed


def _window(size: int) -> int:
    return min(24, max(16, size.bit_length()))


def pieces(stream: bytes | memoryview, length: int, known: bytes = b"", newest: bytes = b"") -> Iterator[bytes]:
    """What leading parts of a stream decode to, piece by piece; the known text may be given in two parts.

    Raises Damaged when the stream does not decode, or not to `length` bytes.
    """
    coder, skip = _begun(known, newest)
    left = length + skip
    try:
        piece = coder.process(b"".join((stream, _LAST)), output_buffer_limit=_STEP)
        while piece and left >= 0:
            left -= len(piece)
            yield piece[skip:]
            skip = max(0, skip - len(piece))
            piece = coder.process(b"", output_buffer_limit=_STEP)
    except brotli.error as error:
        raise _broken() from error
    if left:
        raise _misfit()


def _begun(known: bytes, newest: bytes = b"") -> tuple[brotli.Decompressor, int]:
    """A decoder behind the known text, and how many bytes of that it has still to put out.

    The text is taken off before the stream comes: a page with it in front would be copied twice more, and the
    memory for that is asked from the system anew at each read.
    """
    coder, left = brotli.Decompressor(), overhead(known, newest)
    if newest:
        for part in chain(_blocks(known, first=True), _blocks(newest, first=not known), (_END_OF_KNOWN,)):
            left -= len(coder.process(part))
    elif known:
        left -= len(coder.process(_front(known)))
    while left and (piece := coder.process(b"")):
        left -= len(piece)
    return coder, left


def _broken() -> Damaged:
    return Damaged("a solid frame does not decode; restore this pack from a copy")


def _misfit() -> Damaged:
    return Damaged("a solid frame decodes to another length than it declares; restore this pack from a copy")


def overhead(known: bytes, newest: bytes = b"") -> int:
    """Coder output that a known text causes in each read."""
    return len(known) + len(newest) + _KNOT_LENGTH if known or newest else 0


def text_of(stream: bytes | memoryview, length: int, known: bytes = b"") -> bytes:
    """All that leading parts of a stream decode to, which must be `length` bytes, or Damaged is raised."""
    if length > _STEP:
        return b"".join(pieces(stream, length, known))
    # One call for a page of usual size: each read of a newest version comes through here.
    coder, skip = _begun(known)
    try:
        text: bytes = coder.process(b"".join((stream, _LAST)), output_buffer_limit=length + skip + 1)
    except brotli.error as error:
        raise _broken() from error
    if len(text) != length + skip or not coder.is_finished():
        raise _misfit()
    return text[skip:]


@lru_cache(maxsize=8)
def _front(known: bytes) -> bytes:
    """The beginning of a stream with a window of 2^24 that has just put out the known text.

    A few are remembered: pages of one site, which lean on one text, are read together.
    """
    return _stored(known, first=True) + _END_OF_KNOWN


def _stored(text: bytes, first: bool) -> bytes:
    """A text as blocks that a decoder merely copies; `first` in a stream or after others."""
    return b"".join(_blocks(text, first))


def _blocks(text: bytes, first: bool) -> Iterator[bytes]:
    """The head of each block and what it holds."""
    for start in range(0, len(text), _STORED):
        block = text[start : start + _STORED]
        yield _stored_head(len(block), first and not start)
        yield block


def _stored_head(size: int, first: bool) -> bytes:
    """The head of a stored block, padded to whole bytes; the first one carries the window size in four bits."""
    nibbles = max(4, ((size - 1).bit_length() + 3) // 4)
    head = (nibbles - 4) << 1 | (size - 1) << 3 | 1 << (3 + 4 * nibbles)
    width = 4 + 4 * nibbles
    if first:
        head, width = head << 4 | 0b1111, width + 4
    return head.to_bytes((width + 7) // 8, "little")


_END_OF_KNOWN = _stored(_KNOT, first=False) + _TIE_PART
