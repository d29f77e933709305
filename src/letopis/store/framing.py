"""From the contents of a document to the frames of one group: the smallest that read back exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from letopis.store import coders, run
from letopis.store.coders import FrameCoder
from letopis.store.grouping import READ_BOUND, WORK
from letopis.store.solid.site import best_text
from letopis.store.solid.writing import Frame, Way, encode, encode_behind
from letopis.store.texts import NOTHING, Known, cost

_QUICK_BOUND = READ_BOUND // 16


@dataclass(frozen=True, slots=True)
class CodedFrame:
    """Bytes that hold `count` contents, and who reads them."""

    coder: FrameCoder
    data: bytes
    count: int


@dataclass(frozen=True, slots=True)
class Group:
    """The frames of some contents, newest first, and the text that they need."""

    known: Known
    frames: tuple[CodedFrame, ...]


Framing = Callable[[Sequence[bytes], Sequence[Known]], Group]
"""From contents, newest first, and texts they may lean on."""


def quick(bodies: Sequence[bytes], texts: Sequence[Known] = ()) -> Group:
    """Frames that are made fast. They are kept short, so that they are read fast as well."""
    made = run.encode(bodies, bound=_QUICK_BOUND)
    return Group(NOTHING, tuple(CodedFrame(coders.RUN, frame.data, frame.count) for frame in made))


def solid(way: Way, growth: float) -> Framing:
    """Frames as small as they get; the newest content may be larger by `growth` if that makes it faster to read."""

    def framing(bodies: Sequence[bytes], texts: Sequence[Known]) -> Group:
        choice = (NOTHING, *texts)
        best, size = best_text(bodies[0], [one.text for one in choice])
        known = choice[best]
        fast = run.alone(bodies[0]) if growth else b""
        if fast and len(fast) <= (1 + growth) * size:
            behind = encode_behind(bodies, bound=READ_BOUND, known=known.text, way=way)
            return Group(known, (CodedFrame(coders.RUN, fast, 1), *_coded(behind)))
        return Group(known, tuple(_coded(encode(bodies, bound=READ_BOUND, known=known.text, way=way))))

    return framing


def _coded(frames: Iterable[Frame]) -> Iterator[CodedFrame]:
    return (CodedFrame(coders.SOLID, frame.data, frame.count) for frame in frames)


def sound(group: Group, bodies: Sequence[bytes]) -> bool:
    """Whether the frames give the very same bodies back, within the bound."""
    start = 0
    for number, frame in enumerate(group.frames):
        expected = bodies[start : start + frame.count]
        outside = bodies[0] if number and frame.coder.needs_newest(frame.data) else None
        if frame.coder.decode_all(frame.data, outside, group.known.text) != list(expected):
            return False
        smallest = min(range(frame.count), key=lambda slot: (len(expected[slot]), -slot))
        if any(_work(group, frame, slot, outside) > _most(expected[slot]) for slot in {smallest, frame.count - 1}):
            return False
        start += frame.count
    return start == len(bodies)


def _work(group: Group, frame: CodedFrame, slot: int, outside: bytes | None) -> int:
    """Coder output of a read by somebody who has nothing at hand."""
    found = frame.coder.decode(frame.data, slot, outside, group.known.text)
    newest = 0
    if outside is not None:
        first = group.frames[0]
        newest = first.coder.decode(first.data, 0, None, group.known.text).decoded_bytes
    return found.decoded_bytes + newest + cost(group.known.at, group.known.text)


def _most(body: bytes) -> int:
    return max(READ_BOUND, WORK * len(body))
