"""Bodies of records by their method: one content compressed quickly, or many versions of a document in one frame.

A run is the quick frame: the newest version alone, the others as one zstd stream after it. It costs about as much as
writing the versions once more; solid frames are far smaller and far slower to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import brotli

from letopis.binary import ByteReader, encode_varint, length_prefixed
from letopis.errors import VERIFY, Damaged, UsageError
from letopis.lazy import lazy
from letopis.store.pack_format import RecordMethod
from letopis.store.values import DecodedContent
from letopis.tuples import NamedTuple
from letopis.zstandard import (
    ZstdCompressor,
    ZstdDecompressor,
    ZstdError,
    as_prefix,
    compress,
    compress_behind,
    decompress,
)

if TYPE_CHECKING:
    from letopis import codec as codecs
    from letopis.store import solid as solid_frames
else:
    codecs = lazy("letopis.codec")
    solid_frames = lazy("letopis.store.solid")

LARGE_CONTENT = 4 << 20
"""Contents above this size are kept in pieces."""
PIECE_BYTES = 1 << 20
_KEPT_BYTES = 4 << 20
_CONTENT_LEVEL = 3
_WHOLE_FRAME: Final = ZstdCompressor.FLUSH_FRAME
# Looking a member up in its enumeration is slow in Python 3.11: done once.
_STORED, _ZSTD, _BROTLI, _CODEC = RecordMethod.STORED, RecordMethod.ZSTD, RecordMethod.BROTLI, RecordMethod.CODEC
_LABELS = {int(method): method.label for method in RecordMethod}
_OWN = ("stored", "zstd", "brotli")


class CompressedContent(NamedTuple):
    """A body as it is stored, and the name of its method."""

    method: RecordMethod
    body: bytes
    label: str


class ContentCompressor:
    """Compresses single contents; keeps one zstd context, since making one costs as much as a small page.

    Of the given methods, brotli is left to compaction; lossy ones are refused: contents are read back unchanged. All
    others slow down storing by the time that they take.
    """

    def __init__(self, methods: Sequence[str] = ("zstd",)) -> None:
        self._zstd = ZstdCompressor(_CONTENT_LEVEL) if "zstd" in methods else None
        self._others = [name for name in methods if name not in _OWN]
        for name in self._others:
            if codecs.get(name).lossy:
                raise UsageError(
                    f"store.methods names {name}, which changes the case of tags, and what is stored is read back byte "
                    f"for byte; take {name.removesuffix('i')} instead"
                )

    def compress_content(self, body: bytes) -> CompressedContent:
        """The smallest form; the uncompressed one is always tried."""
        best = CompressedContent(_STORED, body, "stored")
        if self._zstd is not None:
            self._zstd.set_pledged_input_size(len(body))
            packed = self._zstd.compress(body, _WHOLE_FRAME)
            best = CompressedContent(_ZSTD, packed, "zstd") if len(packed) < len(body) else best
        if self._others:
            won = codecs.contest(body, self._others)
            form = CompressedContent(RecordMethod.CODEC, bytes((won.codec.id,)) + won.encoded, won.codec.name)
            best = form if len(form.body) < len(best.body) else best
        return best


def body_label(method: int, body: bytes) -> str:
    """The displayed name of the method of a body."""
    return str(codecs.by_id(body[0]).name) if method == _CODEC and body else _LABELS[method]


def expand_body(method: int, body: bytes) -> bytes:
    """The content of a body that needs no other."""
    if method == _STORED:
        return body
    if method == _CODEC:
        return bytes(codecs.by_id(body[0] if body else 0).decode(body[1:]))
    if method not in (_ZSTD, _BROTLI):
        raise Damaged(f"a record names the method {method}, which is not self-contained; run verify")
    try:
        return decompress(body) if method == _ZSTD else bytes(brotli.decompress(body))
    except (ZstdError, brotli.error) as error:
        raise Damaged(f"a record cannot be decompressed ({error})", VERIFY) from error


def smallest_body(body: bytes) -> tuple[RecordMethod, bytes]:
    """The shortest form that needs no other, whatever it costs to make."""
    forms = [
        (RecordMethod.STORED, body),
        (RecordMethod.ZSTD, compress(body, 19)),
        (RecordMethod.BROTLI, brotli.compress(body)),
    ]
    return min(forms, key=lambda form: len(form[1]))


_FIRST, _BEHIND, _ALONE = range(3)
_RUN_LEVEL = 6
_BEST_RUN_LEVEL = 20
RUN_READ_FACTOR = 8
"""Reading a content may cost this many times its size."""


class RunFrame(NamedTuple):
    """Coded contents, newest first."""

    data: bytes
    size: int
    """How many."""


class _RunParts(NamedTuple):
    """The parts of a frame."""

    kind: int
    lengths: list[int]
    first: bytes
    rest: bytes


def encode_runs(bodies: Sequence[bytes], *, bound: int) -> list[RunFrame]:
    """Frames of a document's contents. Reading any one decodes at most max(bound, 8 x its size) bytes."""
    frames = []
    for plan in _planned_runs([len(body) for body in bodies], bound):
        chosen = [bodies[index] for index in plan]
        if plan[0] == 0:
            data = _joined_run(_FIRST, chosen, length_prefixed(compress(chosen[0], _RUN_LEVEL)), chosen[1:], bodies[0])
        elif len(plan) == 1 and not _affordable_run(len(bodies[0]), len(chosen[0]), bound):
            data = _joined_run(_ALONE, chosen, length_prefixed(compress(chosen[0], _RUN_LEVEL)), [], b"")
        else:
            data = _joined_run(_BEHIND, chosen, length_prefixed(b""), chosen, bodies[0])
        frames.append(RunFrame(data, len(plan)))
    return frames


def encode_newest_run(body: bytes) -> bytes:
    """A first frame of the newest content only, as small as possible for a form that is read so fast."""
    return _joined_run(_FIRST, [body], length_prefixed(compress(body, _BEST_RUN_LEVEL)), [], b"")


def decode_run(data: bytes, slot: int, newest: bytes | None) -> DecodedContent:
    """One content of a frame; Damaged when the frame is not sound."""
    if slot == 0 and not run_needs_newest(data):
        with _zstd_errors():
            whole = decompress(_newest_part(data))
        return DecodedContent(whole, len(whole), "run")
    parts = _split_run(data)
    if not 0 <= slot < len(parts.lengths):
        raise Damaged(f"a frame of {len(parts.lengths)} contents has no slot {slot}; run verify")
    with _zstd_errors():
        if parts.kind == _BEHIND:
            start, end = _content_span(parts.lengths, slot)
            return DecodedContent(_decoded_behind(parts.rest, newest, end)[start:end], end, "run")
        whole = decompress(parts.first)
        start, end = _content_span(parts.lengths[1:], slot - 1)
        return DecodedContent(_decoded_behind(parts.rest, whole, end)[start:end], len(whole) + end, "run")


def decode_whole_run(data: bytes, newest: bytes | None) -> list[bytes]:
    """All contents of a frame, newest first."""
    parts = _split_run(data)
    with _zstd_errors():
        own = [] if parts.kind == _BEHIND else [decompress(parts.first)]
        lengths = parts.lengths[len(own) :]
        joined = _decoded_behind(parts.rest, own[0] if own else newest, sum(lengths))
    spans = [_content_span(lengths, slot) for slot in range(len(lengths))]
    return own + [joined[start:end] for start, end in spans]


def run_needs_newest(data: bytes) -> bool:
    """Whether reading the frame takes the newest content of the group."""
    return data[:1] == bytes((_BEHIND,))


def run_newest_span(data: bytes) -> int:
    """How many bytes of a first frame belong to its newest content."""
    fields = ByteReader(data, 1)
    fields.text()
    return fields.at


def _planned_runs(lengths: list[int], bound: int) -> Iterator[list[int]]:
    """Which contents share a frame, so that none exceeds the bound."""
    plan, output = [0], lengths[0]
    for index, length in enumerate(lengths[1:], start=1):
        if plan and not _affordable_run(output, length, bound):
            yield plan
            plan, output = [], lengths[0]
        plan.append(index)
        output += length
        if not _affordable_run(lengths[0], length, bound):
            yield plan
            plan, output = [], lengths[0]
    if plan:
        yield plan


def _affordable_run(output: int, length: int, bound: int) -> bool:
    return output + length <= max(bound, RUN_READ_FACTOR * length)


def _joined_run(kind: int, chosen: list[bytes], first: bytes, rest: list[bytes], newest: bytes) -> bytes:
    lengths = b"".join(encode_varint(len(body)) for body in chosen)
    behind = compress_behind(b"".join(rest), newest, _RUN_LEVEL) if any(rest) else b""
    return encode_varint(kind) + first + encode_varint(len(chosen)) + lengths + behind


def _split_run(data: bytes) -> _RunParts:
    fields = ByteReader(data)
    kind, first, count = fields.varint(), fields.text(), fields.varint()
    if kind > _ALONE or not 0 < count <= fields.left:
        raise Damaged("invalid frame header", VERIFY)
    lengths = [fields.varint() for _ in range(count)]
    return _RunParts(kind, lengths, first, fields.take(fields.left))


def _newest_part(data: bytes) -> bytes:
    fields = ByteReader(data, 1)
    return fields.text()


def _content_span(lengths: list[int], slot: int) -> tuple[int, int]:
    start = sum(lengths[:slot])
    return start, start + lengths[slot]


def _decoded_behind(rest: bytes, newest: bytes | None, end: int) -> bytes:
    """The first `end` bytes of the joined contents."""
    if newest is None:
        raise Damaged("a frame needs the newest content of its group, which is not there; run verify")
    if not end:
        return b""
    output = ZstdDecompressor(zstd_dict=as_prefix(newest)).decompress(rest, end)
    if len(output) < end:
        raise Damaged("a frame ends before its last content; run verify")
    return output


@contextmanager
def _zstd_errors() -> Iterator[None]:
    try:
        yield
    except ZstdError as error:
        raise Damaged(f"a frame cannot be decompressed ({error})", VERIFY) from error


class FrameCoder(NamedTuple):
    """One way to read frames: one content of a frame or all of them.

    This takes the newest content of the group and the known text of the site if `needs_newest` and `needs_known` are
    set.
    """

    method: RecordMethod
    decode: Callable[[bytes, int, bytes | None, bytes], DecodedContent]
    decode_all: Callable[[bytes, bytes | None, bytes], list[bytes]]
    needs_newest: Callable[[bytes], bool]
    needs_known: Callable[[bytes], bool]
    newest_span: Callable[[bytes], int]

    def shares(self, data: bytes, count: int, first: bool) -> list[int]:
        """The share of a frame that is attributed to each content; together the whole frame."""
        own = [self.newest_span(data)] if first else []
        others, rest = count - len(own), len(data) - sum(own)
        if others == 0:
            return [len(data)]
        return own + [rest * (index + 1) // others - rest * index // others for index in range(others)]


RUN_CODER = FrameCoder(
    RecordMethod.RUN,
    lambda data, slot, newest, _: decode_run(data, slot, newest),
    lambda data, newest, _: decode_whole_run(data, newest),
    run_needs_newest,
    lambda _: False,
    run_newest_span,
)
_BY_METHOD: dict[int, FrameCoder] = {RecordMethod.RUN: RUN_CODER}


def solid_coder() -> FrameCoder:
    """The reader of solid frames. Created at its first use: most commands read none."""
    # A block of this size that was given back tells the C library to keep as much for the next page: to ask the system
    # for the same memory at each read of a large page takes a third of the time. It is never touched, nor filled.
    bytes(_KEPT_BYTES)
    made = FrameCoder(
        RecordMethod.SOLID,
        solid_frames.decode,
        solid_frames.decode_all,
        solid_frames.needs_newest,
        solid_frames.needs_known,
        solid_frames.newest_span,
    )
    return _BY_METHOD.setdefault(RecordMethod.SOLID, made)


def frame_coder(method: int) -> FrameCoder:
    """The coder of a record's method."""
    found = _BY_METHOD.get(method)
    if found is not None:
        return found
    if method == RecordMethod.SOLID:
        return solid_coder()
    raise Damaged(f"a frame names the unknown method {method}; run verify")
