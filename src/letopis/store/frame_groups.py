"""Contents of one document put together in frames: which share a group, how they are coded, whether they read back.

Pure decisions and coders; `pack_compaction` decides what is written where.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from letopis.errors import Damaged
from letopis.store import record_bodies
from letopis.store.content_reader import GENERIC_TEXT, NO_TEXT, CompactionSource, SharedText, text_read_cost
from letopis.store.record_bodies import FrameCoder
from letopis.store.solid.frame_writer import (
    SolidFrame,
    SolidOptions,
    best_shared_text,
    encode_solid,
    encode_solid_behind,
    frames_size,
    paying_shared_text,
)
from letopis.store.values import ChainEntry

READ_BOUND = 2_000_000
"""Coder output that reading any content may take, whatever its size."""
READ_FACTOR = 8
"""Reading a content may take this many times its size, when that is more."""


def affordable_to_read(newest: int, length: int) -> bool:
    """Whether a content may be coded against a newest content of that length."""
    return newest + length <= max(READ_BOUND, READ_FACTOR * length)


def frame_groups(lengths: Sequence[int], whole: int) -> Iterator[list[int]]:
    """Splits contents, newest first, into groups that each have their own newest content.

    The first `whole` contents head groups; a content that is too small for
    the head of its group to be decoded with it goes to the next one.
    """
    for index in range(min(whole - 1, len(lengths))):
        yield [index]
    rest = list(range(max(whole - 1, 0), len(lengths)))
    while rest:
        head = lengths[rest[0]]
        group = [index for index in rest if index == rest[0] or affordable_to_read(head, lengths[index])]
        yield group
        taken = set(group)
        rest = [index for index in rest if index not in taken]


_QUICK_BOUND = READ_BOUND // 16


@dataclass(frozen=True, slots=True)
class CodedFrame:
    """Bytes that hold `count` contents, and who reads them."""

    coder: FrameCoder
    data: bytes
    count: int


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """The frames of some contents, newest first, and the text that they need."""

    known: SharedText
    frames: tuple[CodedFrame, ...]


FrameEncoder = Callable[[Sequence[bytes], Sequence[SharedText]], FrameGroup]
"""Made of contents, newest first, and texts that they may use."""


def quick_frames(bodies: Sequence[bytes], texts: Sequence[SharedText] = ()) -> FrameGroup:
    """Frames that are made fast. They are kept short, so that they are read fast as well."""
    made = record_bodies.encode_runs(bodies, bound=_QUICK_BOUND)
    return FrameGroup(NO_TEXT, tuple(CodedFrame(record_bodies.RUN_CODER, frame.data, frame.size) for frame in made))


def solid_frames(way: SolidOptions, growth: float) -> FrameEncoder:
    """Frames as small as they get; the newest content may be larger by `growth` if that makes it faster to read."""

    def framing(bodies: Sequence[bytes], texts: Sequence[SharedText]) -> FrameGroup:
        choice = (NO_TEXT, *texts)
        known = choice[best_shared_text(bodies[0], [one.text for one in choice])]
        fast = record_bodies.encode_newest_run(bodies[0]) if growth else b""
        if fast and len(fast) <= (1 + growth) * frames_size(encode_solid(bodies[:1], known=known.text)):
            behind = encode_solid_behind(bodies, bound=READ_BOUND, known=known.text, way=way)
            return FrameGroup(known, (CodedFrame(record_bodies.RUN_CODER, fast, 1), *_solid_coded(behind)))
        return FrameGroup(known, tuple(_solid_coded(encode_solid(bodies, bound=READ_BOUND, known=known.text, way=way))))

    return framing


def _solid_coded(frames: Iterable[SolidFrame]) -> Iterator[CodedFrame]:
    return (CodedFrame(record_bodies.solid_coder(), frame.data, frame.count) for frame in frames)


def frames_read_back(group: FrameGroup, bodies: Sequence[bytes]) -> bool:
    """Whether the frames decode to exactly the same bodies, within the bound."""
    start = 0
    for number, frame in enumerate(group.frames):
        expected = bodies[start : start + frame.count]
        outside = bodies[0] if number and frame.coder.needs_newest(frame.data) else None
        if frame.coder.decode_all(frame.data, outside, group.known.text) != list(expected):
            return False
        smallest = min(range(frame.count), key=lambda slot: (len(expected[slot]), -slot))
        if any(
            _read_cost(group, frame, slot, outside) > _max_read_cost(expected[slot])
            for slot in {smallest, frame.count - 1}
        ):
            return False
        start += frame.count
    return start == len(bodies)


def _read_cost(group: FrameGroup, frame: CodedFrame, slot: int, outside: bytes | None) -> int:
    """Coder output of a read with nothing cached."""
    found = frame.coder.decode(frame.data, slot, outside, group.known.text)
    newest = 0
    if outside is not None:
        first = group.frames[0]
        newest = first.coder.decode(first.data, 0, None, group.known.text).decoded_bytes
    return found.decoded_bytes + newest + text_read_cost(group.known.at, group.known.text)


def _max_read_cost(body: bytes) -> int:
    return max(READ_BOUND, READ_FACTOR * len(body))


def existing_shared_text(
    sources: CompactionSource, sample: Collection[ChainEntry], dying: Collection[int]
) -> SharedText:
    """The latest text that documents of the site use, unless its pack is to be emptied."""
    places = {sources.text_of(entry.place) for entry in sample} - {None, GENERIC_TEXT}
    for at in sorted((at for at in places if at is not None and at.pack not in dying), reverse=True):
        if text := sources.text(at):
            return SharedText(at, text)
    return NO_TEXT


def proposed_shared_text(
    sources: CompactionSource, sample: Collection[ChainEntry], texts: Collection[SharedText]
) -> bytes:
    """A new text that saves more than it takes for the documents to be written; empty if there is none."""
    pages = []
    for entry in sample:
        with suppress(Damaged):
            body = sources.body(entry.place, entry.digest)
            pages += [body] if body is not None else []
    return paying_shared_text(pages, [known.text for known in texts])
