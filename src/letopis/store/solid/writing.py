"""Writing frames: versions in, the smallest of several forms out.

The format is written down in docs/internals/solid-frames.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from letopis.errors import CodecRefused
from letopis.store.solid import layout, marks, residue, stream, tokens, tokenwise
from letopis.store.solid.bases import Texts
from letopis.store.solid.known import check_of
from letopis.store.solid.layout import Flags
from letopis.store.solid.matching import Run
from letopis.store.solid.plan import kept, runs_between

_RECENT = residue.TO_NEWEST
_SHARE = 8
_BEST = 11
_FAST = 9
# With so much residue a contest at full effort takes too long.
_LARGE = 1 << 20
# Copies shorter than one of these are written as text: coarse differences often compress better.
_SHORTEST_COPIES = (16, 64, 256)
_USUAL_COPY = 64
# Text that reads must pass through is weighed against stored bytes: a little growth buys much speed.
_OUTPUT_WEIGHT = 0.001
_CHAIN_WEIGHT = 0.02
_CHAIN_STEP = 64


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes that hold `count` consecutive versions, newest first."""

    data: bytes
    count: int


def encode(bodies: Sequence[bytes], *, bound: int = 2_000_000, known: bytes = b"") -> list[Frame]:
    """All versions of a document, newest first, as the frames to store in this order.

    Reading any version makes at most the greater of `bound` and eight times
    its size of coder output, unless the newest version alone is larger. With
    a `known` text, which readers must have too, what it shares costs little.
    """
    if max(map(len, bodies), default=0) > layout.MOST_BYTES // 2:
        raise CodecRefused("a version is too large for a solid frame; leave it as it was stored")
    if len(bodies) < 2 or max(map(_tokens_of, bodies)) > tokenwise.MOST_WRITTEN:
        # Each frame is then a document of its own and needs no other.
        return [_alone(body, known) for body in bodies]
    cuts = [_Document(bodies, bound, known, ends) for ends in range(len(tokens.END_SETS))]
    best = min(cuts, key=lambda cut: cut.score(_USUAL_COPY))
    return best.frames(min(_SHORTEST_COPIES, key=best.score))


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


@dataclass(slots=True)
class _Group:
    """Versions that share a frame, by number in the document; number 0 is the newest."""

    front: int
    members: list[int] = field(default_factory=lambda: [0])
    bases: list[int] = field(default_factory=list)
    scripts: list[bytes] = field(default_factory=list)
    length: int = 0
    through: dict[int, float] = field(default_factory=lambda: {0: 0.0})

    def add(self, member: int, base: int, script: bytes) -> None:
        self.through[member] = self.through[base] + _CHAIN_WEIGHT * (len(script) + _CHAIN_STEP)
        self.members.append(member)
        self.bases.append(base)
        self.scripts.append(script)
        self.length += len(script)


class _Document:
    """One document on its way into frames, cut in one way; alignments are made once for all variants."""

    def __init__(self, bodies: Sequence[bytes], bound: int, known: bytes, ends: int) -> None:
        self._bodies = bodies
        self._bound = bound
        self._known = known
        self._ends = ends
        self._forms = [marks.opened(body) for body in bodies]
        self._flags = Flags.KNOWN if known else Flags(0)
        # With nothing opened the newest is stored as it is, however many NULs it has.
        self._newest = bodies[0]
        if self._forms[0] != marks.escape(bodies[0]):
            self._newest = self._forms[0]
            self._flags |= Flags.OPENED
        self._texts = Texts(self._forms, tokens.END_SETS[ends])
        self._runs: dict[tuple[int, int], list[Run]] = {}

    def score(self, least: int) -> float:
        """What this way of writing costs: bytes, and a little for the time of reads."""
        output = sum(group.length for group in self._groups(least))
        quality = _FAST if output > _LARGE else _BEST
        return size_of(self.frames(least, quality)) + _OUTPUT_WEIGHT * output

    def frames(self, least: int, quality: int = _BEST) -> list[Frame]:
        """The frames with copies of fewer than `least` bytes written as text."""
        first, *later = self._groups(least)
        return [self._first_frame(first, quality), *(self._later_frame(group, quality) for group in later)]

    def _groups(self, least: int) -> list[_Group]:
        overhead = stream.overhead(self._known)
        groups = [_Group(len(self._newest) + overhead)]
        later = len(self._newest) + 2 * overhead + len(self._forms[0])
        room = self._room(0)
        for index in range(1, len(self._bodies)):
            base, script = self._script(groups[-1], index, least)
            room = min(room, self._room(index))
            if groups[-1].scripts and groups[-1].front + groups[-1].length + len(script) > room:
                groups.append(_Group(later))
                room = self._room(index)
                base, script = self._script(groups[-1], index, least)
            groups[-1].add(index, base, script)
        return groups

    def _room(self, index: int) -> int:
        """How much coder output reading this version may make."""
        return max(self._bound, _SHARE * len(self._bodies[index]))

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
        return self._texts.cheapest(index, list(dict.fromkeys([0, *group.members[-_RECENT:]])), group.through)

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
