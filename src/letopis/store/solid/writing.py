"""Writing frames: versions in, the smallest of several forms out.

The format is written down in docs/internals/solid-frames.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from letopis.store.solid import layout, marks, numbers, residue, stream
from letopis.store.solid.bases import Texts
from letopis.store.solid.matching import Run
from letopis.store.solid.plan import kept, runs_between

_RECENT = residue.TO_NEWEST
_SHORTEST_COPIES = (4, 16, 64, 256)
_SHARE = 8
_BEST = 11
_FAST = 9
_LARGE = 1 << 23


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes that hold `count` consecutive versions, newest first."""

    data: bytes
    count: int


def encode(bodies: Sequence[bytes], *, bound: int = 2_000_000, known: bytes = b"") -> list[Frame]:
    """All versions of a document, newest first, as the frames to store in this order.

    Reading any version makes at most the greater of `bound` and eight times
    its size of coder output, unless the newest version alone is larger.
    """
    document = _Document(bodies, bound, known)
    if len(bodies) == 1:
        return document.frames(_SHORTEST_COPIES[0])
    quality = _FAST if sum(map(len, bodies)) > _LARGE else _BEST
    least = min(_SHORTEST_COPIES, key=lambda least: _size(document.frames(least, quality)))
    return document.frames(least)


def _size(frames: Sequence[Frame]) -> int:
    return sum(len(frame.data) for frame in frames)


@dataclass(slots=True)
class _Group:
    """Versions that share a frame, by number in the document; number 0 is the newest."""

    members: list[int] = field(default_factory=lambda: [0])
    scripts: list[bytes] = field(default_factory=list)


class _Document:
    """One document on its way into frames; alignments are made once for all variants."""

    def __init__(self, bodies: Sequence[bytes], bound: int, known: bytes) -> None:
        self._known = known
        self._bodies = bodies
        self._forms = [marks.opened(body) for body in bodies]
        self._opened = self._forms[0] != marks.escape(bodies[0])
        if not self._opened:
            # With nothing opened the newest is stored as it is, however many NULs it has.
            self._newest = bodies[0]
        else:
            self._newest = self._forms[0]
        self._bound = bound
        self._texts = Texts(self._forms)
        self._runs: dict[tuple[int, int], list[Run]] = {}

    def frames(self, least: int, quality: int = _BEST) -> list[Frame]:
        """The frames with copies of fewer than `least` bytes written as text."""
        first, *later = self._groups(least)
        return [self._first_frame(first, quality), *(self._later_frame(group, quality) for group in later)]

    def _groups(self, least: int) -> list[_Group]:
        groups = [_Group()]
        room, later = self._room(0), 0
        for index in range(1, len(self._bodies)):
            script = self._script(groups[-1], index, least)
            room = min(room, self._room(index) - later)
            if groups[-1].scripts and sum(map(len, groups[-1].scripts)) + len(script) > room:
                groups.append(_Group())
                later = len(self._known) + len(self._forms[0])
                room = self._room(index) - later
                script = self._script(groups[-1], index, least)
            groups[-1].scripts.append(script)
            groups[-1].members.append(index)
        return groups

    def _room(self, index: int) -> int:
        """How much residue a frame may hold that this version is read from."""
        return max(self._bound, _SHARE * len(self._bodies[index])) - len(self._newest)

    def _script(self, group: _Group, index: int, least: int) -> bytes:
        same = self._repeat(group, index)
        base = self._nearest(group, index) if same is None else same
        back = len(group.members) - 1 - group.members.index(base)
        reference = residue.reference(back, len(group.members) - 1)
        if same is not None:
            return reference + residue.STOP
        if (base, index) not in self._runs:
            self._runs[base, index] = runs_between(self._texts, base, index)
        runs = kept(self._texts, index, self._runs[base, index], least)
        return reference + residue.written(runs, self._texts.literal(index), len(self._texts.ids[base])) + residue.STOP

    def _repeat(self, group: _Group, index: int) -> int | None:
        for member in reversed(group.members):
            if self._forms[member] == self._forms[index]:
                return member
        return None

    def _nearest(self, group: _Group, index: int) -> int:
        return self._texts.cheapest(index, list(dict.fromkeys([0, *group.members[-_RECENT:]])))

    def _first_frame(self, group: _Group, quality: int) -> Frame:
        rest = b"".join(group.scripts)
        parts = stream.parts([self._newest, rest] if rest else [self._newest], self._known, quality)
        head = layout.Head(True, self._opened, len(parts[0]), len(self._newest), len(rest))
        return Frame(layout.written(head) + b"".join(parts), 1 + len(group.scripts))

    def _later_frame(self, group: _Group, quality: int) -> Frame:
        rest = b"".join(group.scripts)
        head = layout.Head(False, self._opened, 0, 0, len(rest))
        return Frame(layout.written(head) + stream.parts([rest], self._known + self._forms[0], quality)[0], len(group.scripts))
