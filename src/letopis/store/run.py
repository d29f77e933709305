"""The quick way to keep many versions of a document in one frame: the newest alone, the others joined behind it.

The others are one zstd stream with the newest as raw prefix. It costs about
as much as writing the versions once more, so it can run beside ingest;
`solid` is far smaller and far slower to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from backports.zstd import (
    CompressionParameter,
    ZstdCompressor,
    ZstdDecompressor,
    ZstdDict,
    ZstdError,
    compress,
    decompress,
)

from letopis.errors import Damaged
from letopis.store.values import Decoded
from letopis.store.varint import Cursor, text, varint

_FIRST, _BEHIND, _ALONE = range(3)
_LEVEL = 6
_BEST_LEVEL = 20
_LARGEST_WINDOW = 27
_SHORTEST_PREFIX = 8
WORK = 8
"""Reading a content may cost this many times its size."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Coded contents, newest first."""

    data: bytes
    count: int


class _Parts(NamedTuple):
    """A frame taken apart."""

    kind: int
    lengths: list[int]
    first: bytes
    rest: bytes


def encode(bodies: Sequence[bytes], *, bound: int) -> list[Frame]:
    """Frames of a document's contents. Reading any one decodes at most max(bound, 8 x its size) bytes."""
    frames = []
    for plan in _planned([len(body) for body in bodies], bound):
        chosen = [bodies[index] for index in plan]
        if plan[0] == 0:
            data = _joined(_FIRST, chosen, text(compress(chosen[0], _LEVEL)), chosen[1:], bodies[0])
        elif len(plan) == 1 and not _affordable(len(bodies[0]), len(chosen[0]), bound):
            data = _joined(_ALONE, chosen, text(compress(chosen[0], _LEVEL)), [], b"")
        else:
            data = _joined(_BEHIND, chosen, text(b""), chosen, bodies[0])
        frames.append(Frame(data, len(plan)))
    return frames


def alone(body: bytes) -> bytes:
    """A first frame of the newest content only, as small as a form gets that is read so fast."""
    return _joined(_FIRST, [body], text(compress(body, _BEST_LEVEL)), [], b"")


def decode(data: bytes, slot: int, newest: bytes | None) -> Decoded:
    """One content of a frame; Damaged when the frame is not sound."""
    if slot == 0 and not needs_newest(data):
        with _sound():
            whole = decompress(_first(data))
        return Decoded(whole, len(whole), "run")
    parts = _split(data)
    if not 0 <= slot < len(parts.lengths):
        raise Damaged(f"a frame of {len(parts.lengths)} contents has no slot {slot}; run verify")
    with _sound():
        if parts.kind == _BEHIND:
            start, end = _ends(parts.lengths, slot)
            return Decoded(_output(parts.rest, newest, end)[start:end], end, "run")
        whole = decompress(parts.first)
        start, end = _ends(parts.lengths[1:], slot - 1)
        return Decoded(_output(parts.rest, whole, end)[start:end], len(whole) + end, "run")


def decode_all(data: bytes, newest: bytes | None) -> list[bytes]:
    """All contents of a frame, newest first."""
    parts = _split(data)
    with _sound():
        own = [] if parts.kind == _BEHIND else [decompress(parts.first)]
        lengths = parts.lengths[len(own) :]
        joined = _output(parts.rest, own[0] if own else newest, sum(lengths))
    spans = [_ends(lengths, slot) for slot in range(len(lengths))]
    return own + [joined[start:end] for start, end in spans]


def needs_newest(data: bytes) -> bool:
    """Whether reading the frame takes the newest content of the group."""
    return data[:1] == bytes((_BEHIND,))


def newest_span(data: bytes) -> int:
    """How many bytes of a first frame belong to its newest content."""
    fields = Cursor(data, 1)
    fields.text()
    return fields.at


def _planned(lengths: list[int], bound: int) -> Iterator[list[int]]:
    """Which contents share a frame, so that none costs more than it may."""
    plan, output = [0], lengths[0]
    for index, length in enumerate(lengths[1:], start=1):
        if plan and not _affordable(output, length, bound):
            yield plan
            plan, output = [], lengths[0]
        plan.append(index)
        output += length
        if not _affordable(lengths[0], length, bound):
            yield plan
            plan, output = [], lengths[0]
    if plan:
        yield plan


def _affordable(output: int, length: int, bound: int) -> bool:
    return output + length <= max(bound, WORK * length)


def _joined(kind: int, chosen: list[bytes], first: bytes, rest: list[bytes], newest: bytes) -> bytes:
    lengths = b"".join(varint(len(body)) for body in chosen)
    return varint(kind) + first + varint(len(chosen)) + lengths + _squeezed(b"".join(rest), newest)


def _squeezed(body: bytes, newest: bytes) -> bytes:
    if not body:
        return b""
    window = min(_LARGEST_WINDOW, max(18, (len(body) + len(newest)).bit_length()))
    options: dict[int, int] = {CompressionParameter.compression_level: _LEVEL, CompressionParameter.window_log: window}
    return ZstdCompressor(options=options, zstd_dict=_prefix(newest)).compress(body, ZstdCompressor.FLUSH_FRAME)


def _split(data: bytes) -> _Parts:
    fields = Cursor(data)
    kind, first, count = fields.varint(), fields.text(), fields.varint()
    if kind > _ALONE or not 0 < count <= fields.left:
        raise Damaged("a frame does not begin like one; run verify")
    lengths = [fields.varint() for _ in range(count)]
    return _Parts(kind, lengths, first, fields.take(fields.left))


def _first(data: bytes) -> bytes:
    fields = Cursor(data, 1)
    return fields.text()


def _ends(lengths: list[int], slot: int) -> tuple[int, int]:
    start = sum(lengths[:slot])
    return start, start + lengths[slot]


def _output(rest: bytes, newest: bytes | None, end: int) -> bytes:
    """The first `end` bytes of the joined contents."""
    if newest is None:
        raise Damaged("a frame needs the newest content of its group, which is not there; run verify")
    if not end:
        return b""
    output = ZstdDecompressor(zstd_dict=_prefix(newest)).decompress(rest, end)
    if len(output) < end:
        raise Damaged("a frame ends before its last content; run verify")
    return output


def _prefix(newest: bytes) -> tuple[ZstdDict, int] | None:
    """The newest content as what came before, unless it is shorter than zstd takes."""
    return ZstdDict(newest, is_raw=True).as_prefix if len(newest) >= _SHORTEST_PREFIX else None


@contextmanager
def _sound() -> Iterator[None]:
    try:
        yield
    except ZstdError as error:
        raise Damaged(f"a frame cannot be decompressed ({error}); run verify") from error
