"""Writing frames: versions in, the smallest of several forms out.

The format is written down in docs/internals/solid-frames.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from letopis.errors import CodecRefused
from letopis.store.solid import layout, marks, residue, stream, tokens, tokenwise
from letopis.store.solid.bases import Texts
from letopis.store.solid.known import check_of
from letopis.store.solid.layout import Flags
from letopis.store.solid.matching import Run
from letopis.store.solid.plan import kept, runs_between

_RECENT = residue.TO_NEWEST
_SHARE = 6.0  # of the eight that a read may take: large pages that change much are read faster for 2 % more
_BEST = 11
_FAST = 9
# With so much residue a contest at full effort takes too long.
_LARGE = 1 << 20
# Copies shorter than one of these are written as text: coarse differences often compress better.
_SHORTEST_COPIES = (16, 64, 256)
# Text that reads must pass through is weighed against stored bytes: a little growth buys much speed.
_OUTPUT_WEIGHT = 0.001
_CHAIN_WEIGHT = 0.02
_CHAIN_STEP = 64


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes that hold `count` consecutive versions, newest first."""

    data: bytes
    count: int


@dataclass(frozen=True, slots=True)
class Way:
    """How differences are written: at one level, and how many in a row at most, 0 for all that the bound allows.

    Level 1 counts in lines, tags and attributes, 2 also in parts of
    addresses, 3 also in their parameters; 0 lets the levels compete.
    """

    chain: int = 0
    level: int = 0


USUAL = Way()


def encode(bodies: Sequence[bytes], *, bound: int = 2_000_000, known: bytes = b"", way: Way = USUAL) -> list[Frame]:
    """All versions of a document, newest first, as the frames to store in this order.

    Reading any version makes at most the greater of `bound` and five times
    its size of coder output, unless the newest version alone is larger. With
    a `known` text, which readers must have too, what it shares costs little;
    that they may first have to decode it is counted in.
    """
    if _too_large(bodies):
        # Each frame is then a document of its own and needs no other.
        return [_alone(body, known) for body in bodies]
    best = _best([_Document(bodies, bound, known, ends, way.chain) for ends in _ends_of(way)])
    return best.frames(_shortest(best))


def encode_behind(
    bodies: Sequence[bytes], *, bound: int = 2_000_000, known: bytes = b"", way: Way = USUAL
) -> list[Frame]:
    """Frames of all versions but the newest, which stands elsewhere and is needed to read them."""
    if _too_large(bodies):
        return [_alone(body, known) for body in bodies[1:]]
    best = _best([_Behind(bodies, bound, known, ends, way.chain) for ends in _ends_of(way)])
    return best.frames(_shortest(best))


def _too_large(bodies: Sequence[bytes]) -> bool:
    if max(map(len, bodies), default=0) > layout.MOST_BYTES // 2:
        raise CodecRefused("a version is too large for a solid frame; leave it as it was stored")
    return len(bodies) < 2 or max(map(_tokens_of, bodies)) > tokenwise.MOST_WRITTEN


def _ends_of(way: Way) -> Sequence[int]:
    return [way.level - 1] if way.level else range(len(tokens.END_SETS))


def _best(cuts: Sequence[_Document]) -> _Document:
    """The cut with the smallest frames: no single level ever beats the contest of levels."""
    return min(cuts, key=lambda cut: cut.tried(_shortest(cut)).size)


def _shortest(cut: _Document) -> int:
    return min(_SHORTEST_COPIES, key=lambda least: cut.tried(least).score)


def _alone(body: bytes, known: bytes) -> Frame:
    """A single version, which needs not be cut into tokens."""
    form = marks.opened(body)
    opened = form != marks.escape(body)
    newest = form if opened else body
    part = stream.parts([newest], known)[0]
    flags = Flags.HOLDS_NEWEST | Flags.OPENED * opened | Flags.KNOWN * bool(known)
    return Frame(layout.written(layout.Head(flags, 0, len(part), len(newest), 0, check_of(known))) + part, 1)


def _tokens_of(body: bytes) -> int:
    return sum(body.count(end) for end in tokens.END_SETS[-1])


def size_of(frames: Sequence[Frame]) -> int:
    """Bytes of all frames together."""
    return sum(len(frame.data) for frame in frames)


class _Tried(NamedTuple):
    """Bytes of all frames, and the same with a little added for the time of reads."""

    size: int
    score: float


@dataclass(slots=True)
class _Group:
    """Versions that share a frame, by number in the document; number 0 is the newest."""

    front: int
    members: list[int] = field(default_factory=lambda: [0])
    bases: list[int] = field(default_factory=list)
    scripts: list[bytes] = field(default_factory=list)
    length: int = 0
    through: dict[int, float] = field(default_factory=lambda: {0: 0.0})
    depths: dict[int, int] = field(default_factory=lambda: {0: 0})

    def add(self, member: int, base: int, script: bytes, same: bool) -> None:
        # An exact repeat costs a reader nothing, so it does not count as a difference.
        self.depths[member] = self.depths[base] + (not same)
        self.through[member] = self.through[base] + _CHAIN_WEIGHT * (len(script) + _CHAIN_STEP)
        self.members.append(member)
        self.bases.append(base)
        self.scripts.append(script)
        self.length += len(script)


class _Document:
    """One document on its way into frames, cut in one way; alignments are made once for all variants."""

    def __init__(self, bodies: Sequence[bytes], bound: int, known: bytes, ends: int, chain: int) -> None:
        self._bodies = bodies
        self._bound = bound
        self._known = known
        self._ends = ends
        self._chain = chain or len(bodies)
        self._forms = [marks.opened(body) for body in bodies]
        self._flags = Flags.KNOWN if known else 0
        # With nothing opened the newest is stored as it is, however many NULs it has.
        self._newest = bodies[0]
        if self._forms[0] != marks.escape(bodies[0]):
            self._newest = self._forms[0]
            self._flags |= Flags.OPENED
        self._texts = Texts(self._forms, tokens.END_SETS[ends])
        self._runs: dict[tuple[int, int], list[Run]] = {}
        self._tries: dict[int, _Tried] = {}

    def tried(self, least: int) -> _Tried:
        """What writing copies of fewer than `least` bytes as text comes to."""
        if least not in self._tries:
            groups = self._groups(least)
            output = sum(group.length for group in groups)
            size = size_of(self._written(groups, _FAST if output > _LARGE else _BEST))
            self._tries[least] = _Tried(size, size + _OUTPUT_WEIGHT * output)
        return self._tries[least]

    def frames(self, least: int) -> list[Frame]:
        """The frames with copies of fewer than `least` bytes written as text."""
        return self._written(self._groups(least), _BEST)

    def _written(self, groups: Sequence[_Group], quality: int) -> list[Frame]:
        first, *later = groups
        return [self._first_frame(first, quality), *(self._later_frame(group, quality) for group in later)]

    def _fronts(self) -> tuple[int, int]:
        """Coder output before the differences of the first frame, and of each later one."""
        overhead = stream.overhead(self._known)
        first = len(self._newest) + overhead + len(self._known)
        return first, first + overhead + len(self._forms[0])

    def _groups(self, least: int) -> list[_Group]:
        first, later = self._fronts()
        groups = [_Group(first)]
        room = self._room(0)
        for index in range(1, len(self._bodies)):
            base, script = self._script(groups[-1], index, least)
            room = min(room, self._room(index))
            if groups[-1].scripts and groups[-1].front + groups[-1].length + len(script) > room:
                groups.append(_Group(later))
                room = self._room(index)
                base, script = self._script(groups[-1], index, least)
            groups[-1].add(index, base, script, self._forms[base] == self._forms[index])
        return groups

    def _room(self, index: int) -> int:
        """How much coder output reading this version may make."""
        return max(self._bound, int(_SHARE * len(self._bodies[index])))

    def _script(self, group: _Group, index: int, least: int) -> tuple[int, bytes]:
        same = self._repeat(group, index)
        base = self._nearest(group, index) if same is None else same
        back = len(group.members) - 1 - group.members.index(base)
        reference = residue.reference(back, len(group.members) - 1)
        if same is not None:
            return base, reference + residue.STOP
        runs = self._kept_runs(base, index, least)
        script = tokenwise.written(runs, self._texts.literal(index), len(self._texts.ids[base]))
        return base, reference + script + residue.STOP

    def _kept_runs(self, base: int, index: int, least: int) -> list[Run]:
        if (base, index) not in self._runs:
            self._runs[base, index] = runs_between(self._texts, base, index)
        return kept(self._texts, index, self._runs[base, index], least)

    def _repeat(self, group: _Group, index: int) -> int | None:
        for member in reversed(group.members):
            if self._forms[member] == self._forms[index]:
                return member
        return None

    def _nearest(self, group: _Group, index: int) -> int:
        near = [member for member in group.members[-_RECENT:] if group.depths[member] < self._chain]
        return self._texts.cheapest(index, list(dict.fromkeys([0, *near])), group.through)

    def _first_frame(self, group: _Group, quality: int) -> Frame:
        rest = b"".join(group.scripts)
        parts = stream.parts([self._newest, rest] if rest else [self._newest], self._known, quality)
        flags = self._flags | Flags.HOLDS_NEWEST
        head = layout.Head(flags, self._ends, len(parts[0]), len(self._newest), len(rest), check_of(self._known))
        return Frame(layout.written(head) + b"".join(parts), 1 + len(group.scripts))

    def _later_frame(self, group: _Group, quality: int) -> Frame:
        rest = b"".join(group.scripts)
        head = layout.Head(self._flags, self._ends, 0, 0, len(rest), check_of(self._known))
        part = stream.parts([rest], self._known + self._forms[0], quality)[0]
        return Frame(layout.written(head) + part, len(group.scripts))


class _Behind(_Document):
    """A document whose newest version is kept elsewhere, in a form that is read faster."""

    def _fronts(self) -> tuple[int, int]:
        _, later = super()._fronts()
        return later, later

    def _written(self, groups: Sequence[_Group], quality: int) -> list[Frame]:
        return [self._later_frame(group, quality) for group in groups]
