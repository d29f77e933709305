"""Solid frames as bytes: the head of a frame, the marked form of bodies, and the brotli stream.

Bodies are coded free of NUL and with base64 text opened. Each part of the stream ends with a flush, so a reader
decodes the parts it has; output is limited while it is made. The binding takes no dictionary, so the known text goes
in front as stored blocks, and a knot of repeated noise brings encoder and decoder to the same last four distances.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

import brotli

from letopis.errors import Damaged, NewerFormat
from letopis.store.solid import frame_format
from letopis.store.solid.frame_format import TOKEN_END_SETS
from letopis.tuples import NamedTuple

_FRAME_FORMAT = 0x20
_ENDS_SHIFT = 3
_CHECK_BYTES = 2
_FIRST_BYTES = range(_FRAME_FORMAT, _FRAME_FORMAT | len(TOKEN_END_SETS) << _ENDS_SHIFT)
"""How frames of this format begin, whatever their flags and token ends."""
MAX_BODY_BYTES = 1 << 30


class SolidFlags:
    """What kind of frame it is, as bits of a number: every read asks, and members of an IntFlag are slow to ask."""

    HOLDS_NEWEST: Final = 1
    OPENED: Final = 2
    KNOWN: Final = 4


class SolidHead(NamedTuple):
    """What a frame declares about itself; `start` is where its stream begins.

    `ends` numbers the set of token ends; `check` are two bytes of the digest
    of the known text that the stream leans on.
    """

    flags: int
    ends: int
    newest_part: int
    newest_length: int
    residue_length: int
    check: bytes = b""
    start: int = 0

    @property
    def holds_newest(self) -> bool:
        """Whether the newest version of the document is the first of this frame."""
        return bool(self.flags & SolidFlags.HOLDS_NEWEST)


def encode_head(head: SolidHead) -> bytes:
    """The bytes that begin a frame."""
    first = bytes((_FRAME_FORMAT | head.ends << _ENDS_SHIFT | head.flags,))
    own = (head.newest_part, head.newest_length) if head.holds_newest else ()
    return first + head.check + b"".join(map(frame_format.encode_number, (*own, head.residue_length)))


def frame_flags(data: bytes) -> int:
    """The flags of a frame; raises Damaged when it is none, NewerFormat when its format is unknown."""
    if not data:
        raise Damaged("a solid frame is empty; restore this pack from a copy")
    first = data[0]
    if first not in _FIRST_BYTES:
        raise NewerFormat(f"a solid frame has format {first:#04x}; read it with a later release of Letopis")
    return first & 7


def parse_head(data: bytes) -> SolidHead:
    """The head of a frame; raises what `frame_flags` does, and Damaged for impossible lengths."""
    flags = frame_flags(data)
    ends = data[0] >> _ENDS_SHIFT & 3
    at = 1 + _CHECK_BYTES if flags & SolidFlags.KNOWN else 1
    check = data[1:at]
    part = length = 0
    if flags & SolidFlags.HOLDS_NEWEST:
        part, at = frame_format.read_number(data, at)
        length, at = frame_format.read_number(data, at)
    rest, at = frame_format.read_number(data, at)
    if length + rest > MAX_BODY_BYTES:
        raise Damaged("a solid frame declares impossible lengths; restore this pack from a copy")
    return tuple.__new__(SolidHead, (flags, ends, part, length, rest, check, at))


_MARK = b"\x01"
_NUL = b"\x01\x02"
_ONE = b"\x01\x03"
_OPEN = b"\x01\x04"
_SHUT = b"\x01\x05"
_MEANT = {_NUL: b"\0", _ONE: _MARK}
_MANY_PARTS, _BEGINNING = 1000, 1 << 16

_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/]{64,}={0,2}")
# Runs are found in a copy that tells only which bytes may stand in one: ten times as fast as the expression.
_BASE64_BYTES = bytes(1 if _BASE64_RUN.fullmatch(bytes((value,)) * 64) else 0 for value in range(256))
_LONG_RUN = b"\x01" * 64
_TEXT_BYTES = bytes(range(32, 127)) + b"\t\n\r"


def escape_marks(body: bytes) -> bytes:
    """The body with NUL and byte 1 marked and nothing opened."""
    if b"\0" not in body and _MARK not in body:
        return body
    return body.replace(_MARK, _ONE).replace(b"\0", _NUL)


def opened_form(body: bytes) -> bytes:
    """The body in coded form; `restored_body` gives the body back exactly."""
    form = escape_marks(body)
    return b"".join(_opened_parts(form, form.translate(_BASE64_BYTES)))


def _opened_parts(form: bytes, kinds: bytes) -> Iterator[bytes | memoryview]:
    view, start = memoryview(form), 0
    while (at := kinds.find(_LONG_RUN, start)) >= 0:
        yield view[start:at]
        found = _BASE64_RUN.match(form, at)
        assert found is not None
        yield _open_run(found)
        start = found.end()
    yield view[start:]


def restored_body(form: bytes) -> bytes:
    """The body whose form this is; raises Damaged for what no body gives."""
    at = form.find(_MARK)
    if at < 0:
        return form
    # Mark by mark: what stands between few marks is never looked at, nor copied twice.
    view, start, parts = memoryview(form), 0, list[bytes | memoryview]()
    while at >= 0:
        if len(parts) > _MANY_PARTS and at < _BEGINNING:
            return _restored_binary(form)
        parts.append(view[start:at])
        mark, start = form[at : at + 2], at + 2
        if mark == _OPEN:
            end = _end_of_run(form, start)
            parts.append(binascii.b2a_base64(_without_marks(form[start:end]), newline=False))
            start = end + 2
        elif mark in _MEANT:
            parts.append(_MEANT[mark])
        else:
            raise Damaged("a mark in a solid frame is invalid; restore this pack from a copy")
        at = form.find(_MARK, start)
    parts.append(view[start:])
    return b"".join(parts)


def _restored_binary(form: bytes) -> bytes:
    """The same of a body that is no text: such bodies have marks everywhere, from their beginning on."""
    first, *runs = form.split(_OPEN)
    return _without_marks(first) + b"".join(map(_shut_run, runs))


def _end_of_run(form: bytes, start: int) -> int:
    """Where an opened run ends. Single bytes are found ten times as fast as pairs, and runs hold few marks."""
    end = form.find(_MARK, start)
    while end >= 0 and form[end + 1 : end + 2] != _SHUT[1:]:
        end = form.find(_MARK, end + 1)
    if end < 0:
        raise _endless_run()
    return end


def _open_run(found: re.Match[bytes]) -> bytes:
    run = found.group()
    try:
        inner = binascii.a2b_base64(run, strict_mode=True)
    except binascii.Error:
        return run
    # Pictures and keys gain nothing from being opened: only text is.
    legible = len(inner) - len(inner.translate(None, _TEXT_BYTES))
    if legible * 10 < len(inner) * 9 or binascii.b2a_base64(inner, newline=False) != run:
        return run
    return _OPEN + escape_marks(inner) + _SHUT


def _shut_run(part: bytes) -> bytes:
    inner, shut, after = part.partition(_SHUT)
    if not shut:
        raise _endless_run()
    return binascii.b2a_base64(_without_marks(inner), newline=False) + _without_marks(after)


def _endless_run() -> Damaged:
    return Damaged("an opened base64 run has no end; restore this pack from a copy")


def _without_marks(form: bytes) -> bytes:
    if _MARK not in form:
        return form
    return form.replace(_NUL, b"\0").replace(_ONE, _MARK)


_LAST = b"\x03"
_STEP = 1 << 15
"""The binding makes its output in one block of this size; what is longer it would copy once more."""
_STORED_BLOCK_BYTES = 1 << 24
_PLAINER = (9, 5)

_NOISE = [hashlib.sha256(b"letopis solid %d" % number).digest() for number in range(4)]
_SPACER = hashlib.sha512(b"letopis solid").digest()[:41]
_KNOT = b"".join((*_NOISE, _NOISE[2], _NOISE[0], _NOISE[3], _NOISE[1], _SPACER))
_TIE = b"".join((_NOISE[1], _NOISE[3], _NOISE[0], _NOISE[2]))
_TIE_PART = bytes.fromhex("f803807f02208a692c2001051542526a1b")
_KNOT_LENGTH = len(_KNOT) + len(_TIE)


def encode_stream(texts: Sequence[bytes], known: bytes = b"", quality: int = 11) -> list[bytes]:
    """The texts as consecutive parts of one stream; each needs those before it and the known text to be read."""
    if not known:
        return _brotli_parts(texts, quality, _window_bits(sum(map(len, texts))))
    # The knot was tried with brotli 1.2.1 only; should another untie it, a plainer encoding still reads.
    for tried in (quality, *_PLAINER):
        made = _brotli_parts((known + _KNOT, _TIE, *texts), tried, 24)[2:]
        if _reads_back(made, texts, known):
            return made
    return [_stored_blocks(text, first=False) for text in texts]


def _brotli_parts(texts: Sequence[bytes], quality: int, window: int) -> list[bytes]:
    coder = brotli.Compressor(quality=quality, lgwin=window)
    return [_brotli_part(coder, text) for text in texts]


def _reads_back(made: Sequence[bytes], texts: Sequence[bytes], known: bytes) -> bool:
    whole = b"".join(texts)
    try:
        return decode_whole_stream(b"".join(made), len(whole), known) == whole
    except Damaged:
        return False


def _brotli_part(coder: brotli.Compressor, text: bytes) -> bytes:
    begun: bytes = coder.process(text)
    flushed: bytes = coder.flush()
    return begun + flushed


def _window_bits(size: int) -> int:
    return min(24, max(16, size.bit_length()))


def decode_stream(stream: bytes | memoryview, length: int, known: bytes = b"", newest: bytes = b"") -> Iterator[bytes]:
    """What leading parts of a stream decode to, piece by piece; the known text may be given in two parts.

    Raises Damaged when the stream does not decode, or not to `length` bytes.
    """
    coder, skip = _decoder_behind(known, newest)
    left = length + skip
    try:
        piece = coder.process(b"".join((stream, _LAST)), output_buffer_limit=_STEP)
        while piece and left >= 0:
            left -= len(piece)
            yield piece[skip:]
            skip = max(0, skip - len(piece))
            piece = b"" if coder.is_finished() else coder.process(b"", output_buffer_limit=_STEP)
    except brotli.error as error:
        raise _broken_stream() from error
    if left or not coder.is_finished():
        raise _wrong_length()


def _decoder_behind(known: bytes, newest: bytes = b"") -> tuple[brotli.Decompressor, int]:
    """A decoder behind the known text, and how many bytes of that it has still to put out.

    The text is taken off before the stream comes: a page with it in front would be copied twice more, and the
    memory for that is asked from the system anew at each read.
    """
    coder, left = brotli.Decompressor(), stream_overhead(known, newest)
    if newest:
        parts: Iterable[bytes] = chain(_blocks(known, first=True), _blocks(newest, first=not known), (_END_OF_KNOWN,))
    else:
        parts = (_known_front(known),) if known else ()
    for part in parts:
        piece = coder.process(part, output_buffer_limit=_STEP)
        while piece:
            left -= len(piece)
            piece = coder.process(b"", output_buffer_limit=_STEP)
    return coder, left


def _broken_stream() -> Damaged:
    return Damaged("a solid frame does not decode; restore this pack from a copy")


def _wrong_length() -> Damaged:
    return Damaged("a solid frame decodes to another length than it declares; restore this pack from a copy")


def stream_overhead(known: bytes, newest: bytes = b"") -> int:
    """Coder output that a known text causes in each read."""
    return len(known) + len(newest) + _KNOT_LENGTH if known or newest else 0


def decode_whole_stream(stream: bytes | memoryview, length: int, known: bytes = b"") -> bytes:
    """All that leading parts of a stream decode to, which must be `length` bytes, or Damaged is raised."""
    return b"".join(decode_stream(stream, length, known))


@lru_cache(maxsize=8)
def _known_front(known: bytes) -> bytes:
    """The beginning of a stream with a window of 2^24 that has just put out the known text.

    A few are remembered: pages of one site, which lean on one text, are read together.
    """
    return _stored_blocks(known, first=True) + _END_OF_KNOWN


def _stored_blocks(text: bytes, first: bool) -> bytes:
    """A text as blocks that a decoder merely copies; `first` in a stream or after others."""
    return b"".join(_blocks(text, first))


def _blocks(text: bytes, first: bool) -> Iterator[bytes]:
    """The head of each block and what it holds."""
    for start in range(0, len(text), _STORED_BLOCK_BYTES):
        block = text[start : start + _STORED_BLOCK_BYTES]
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


_END_OF_KNOWN = _stored_blocks(_KNOT, first=False) + _TIE_PART


@lru_cache(32)
def known_text_check(known: bytes) -> bytes:
    """Two bytes by which a frame recognises its known text; none without one."""
    return hashlib.sha256(known).digest()[:2] if known else b""
