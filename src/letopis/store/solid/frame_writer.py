"""Writing solid frames: versions in, the smallest of several forms out; and shared texts for the pages of a site.

The format is written down in docs/internals/solid-frames.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from letopis.errors import CodecRefused
from letopis.store.solid import frame_format, stream
from letopis.store.solid.alignment import TokenRuns, TokenTable, encode_script, kept_runs, runs_between
from letopis.store.solid.stream import SolidFlags, known_text_check
from letopis.tuples import NamedTuple
from letopis.zstandard import compress_behind

_SAMPLE_ENDS = frame_format.TOKEN_END_SETS[0]
_SHARED_WINDOW = 4
_MAX_SAMPLES = 6
_MIN_SHARED_BYTES = 64
_MAX_SHARED_BYTES = 1 << 17

TokenWindow = tuple[bytes, ...]


def shared_text(documents: Sequence[Sequence[bytes]]) -> bytes:
    """A known text for the documents of a site, each given as its versions, newest first.

    The newest page that has most in common with other documents, whole, then
    whatever else occurs in several of them. Empty when they share nothing.
    """
    samples = [
        [frame_format.cut_tokens(stream.opened_form(body), _SAMPLE_ENDS) for body in _sampled_versions(bodies)]
        for bodies in documents
    ]
    counts: Counter[TokenWindow] = Counter()
    for document in samples:
        counts.update({window for sample in document for window in _token_windows(sample)})
    shared = {window for window, count in counts.items() if count > 1}
    page = max((document[0] for document in samples), key=lambda sample: _in_common(sample, shared))
    if _in_common(page, shared) < _MIN_SHARED_BYTES:
        return b""
    parts = [frame_format.join_tokens(page)]
    shared.difference_update(_token_windows(page))
    for document in samples:
        for sample in document:
            parts += _shared_runs(sample, shared)
    return b"".join(parts)[:_MAX_SHARED_BYTES]


def _sampled_versions(bodies: Sequence[bytes]) -> list[bytes]:
    step = max(1, -(-len(bodies) // _MAX_SAMPLES))
    return list(bodies[::step])


def _token_windows(sample: list[bytes]) -> Iterator[TokenWindow]:
    return zip(*(sample[shift:] for shift in range(_SHARED_WINDOW)), strict=False)


def _in_common(sample: list[bytes], shared: set[TokenWindow]) -> int:
    return sum(len(window[0]) for window in _token_windows(sample) if window in shared)


def _shared_runs(sample: list[bytes], shared: set[TokenWindow]) -> list[bytes]:
    """The stretches of shared windows in a sample; they count as taken from then on."""
    out = []
    start = end = 0
    taken = []
    for place, window in enumerate(_token_windows(sample)):
        if window not in shared:
            continue
        if place > end:
            out.append(b"".join(sample[start:end]))
            start = place
        end = place + _SHARED_WINDOW
        taken.append(window)
    out.append(b"".join(sample[start:end]))
    shared.difference_update(taken)
    return [run for run in out if len(run) >= _MIN_SHARED_BYTES]


# Good enough to tell whether a text pays, at a tenth of the time.
_TRIAL_QUALITY = 9


def paying_shared_text(pages: Sequence[bytes], texts: Sequence[bytes]) -> bytes:
    """A text by which the newest pages of a site shrink more than it takes to store; empty when there is none.

    `texts` are those that they could lean on anyway.
    """
    text = shared_text([[page] for page in pages]) if len(pages) > 1 else b""
    if not text:
        return b""
    gain = 0
    for page in pages:
        form = stream.opened_form(page)
        before = min(_coded_size(form, known, _TRIAL_QUALITY) for known in (b"", *texts))
        gain += max(0, before - _coded_size(form, text, _TRIAL_QUALITY))
    return text if gain > len(encode_shared_text(text, texts[0] if texts else b"")) else b""


def best_shared_text(page: bytes, texts: Sequence[bytes]) -> int:
    """Which of the texts makes a page smallest, as far as a trial tells; of equal ones the first."""
    form = stream.opened_form(page)
    return min(range(len(texts)), key=lambda index: _coded_size(form, texts[index], _TRIAL_QUALITY))


def encode_shared_text(text: bytes, known: bytes = b"") -> bytes:
    """A known text as it is stored; it may lean on another one itself."""
    part = stream.encode_stream([text], known)[0]
    flags = SolidFlags.HOLDS_NEWEST | SolidFlags.KNOWN * bool(known)
    return stream.encode_head(stream.SolidHead(flags, 0, len(part), len(text), 0, known_text_check(known))) + part


def _coded_size(form: bytes, known: bytes, quality: int) -> int:
    return len(stream.encode_stream([form], known, quality)[0])


_RECENT = frame_format.NEWEST_REFERENCE
_READ_FACTOR = 8  # a read may take so many times the size of a version
_ESTIMATE_LEVEL = 6
_FEW_VERSIONS = 6
_FULL_QUALITY = 11
# So much residue takes three times as long at full effort, for 2 % less.
_FAST_QUALITY = 10
_LARGE_RESIDUE = 1 << 20
# Copies shorter than one of these are written as text: coarse differences often compress better.
_SHORTEST_COPIES = (16, 64, 256)
# Text that reads must pass through is weighed against stored bytes: a little growth buys much speed.
_OUTPUT_WEIGHT = 0.001
_CHAIN_WEIGHT = 0.1
_CHAIN_STEP = 64


@dataclass(frozen=True, slots=True)
class SolidFrame:
    """Bytes that hold `count` consecutive versions, newest first."""

    data: bytes
    count: int


@dataclass(frozen=True, slots=True)
class SolidOptions:
    """How differences are written: at one level, and how many in a row at most, 0 for all that the bound allows.

    Level 1 counts in lines, tags and attributes, 2 also in parts of
    addresses, 3 also in their parameters; 0 lets the levels compete.
    """

    chain: int = 0
    level: int = 0


DEFAULT_SOLID_OPTIONS = SolidOptions()


def encode_solid(
    bodies: Sequence[bytes], *, bound: int = 2_000_000, known: bytes = b"", way: SolidOptions = DEFAULT_SOLID_OPTIONS
) -> list[SolidFrame]:
    """All versions of a document, newest first, as the frames to store in this order.

    Reading any version makes at most the greater of `bound` and eight times its size of coder output, unless the newest
    version alone is larger. With a `known` text, which readers must have too, what it shares costs little; that they
    may first have to decode it is counted in.
    """
    if _too_large(bodies):
        # Each frame is then a document of its own and needs no other.
        return [_lone_frame(body, known) for body in bodies]
    return _smallest_frames(_Document, _Versions.of(bodies, bound, known, way.chain), way)


def encode_solid_behind(
    bodies: Sequence[bytes], *, bound: int = 2_000_000, known: bytes = b"", way: SolidOptions = DEFAULT_SOLID_OPTIONS
) -> list[SolidFrame]:
    """Frames of all versions but the newest, which stands elsewhere and is needed to read them."""
    if _too_large(bodies):
        return [_lone_frame(body, known) for body in bodies[1:]]
    return _smallest_frames(_DocumentBehind, _Versions.of(bodies, bound, known, way.chain), way)


def _too_large(bodies: Sequence[bytes]) -> bool:
    if max(map(len, bodies), default=0) > stream.MAX_BODY_BYTES // 2:
        raise CodecRefused("a version is too large for a solid frame; leave it as it was stored")
    return len(bodies) < 2 or max(map(_tokens_of, bodies)) > frame_format.MAX_WRITTEN_TOKENS


def _ends_of(way: SolidOptions) -> Sequence[int]:
    return [way.level - 1] if way.level else range(len(frame_format.TOKEN_END_SETS))


def _smallest_frames(kind: type[_Document], versions: _Versions, way: SolidOptions) -> list[SolidFrame]:
    """The frames of the cut and the shortest copy that come out smallest by estimate."""
    ends = _ends_of(way)
    few = versions.latest(_FEW_VERSIONS)
    middle = kind(few, ends[len(ends) // 2])
    least = _SHORTEST_COPIES[0]
    # Where much changes, a few versions tell, and short copies pay; where little does, it differs from time to time.
    if middle.residue(least) * len(versions.bodies) < _LARGE_RESIDUE * len(few.bodies):
        few, middle = versions, middle if few is versions else kind(versions, middle.ends)
        # Sets of ends hardly change which copies pay: those compete in one cut, then the cuts with the winner.
        least = min(_SHORTEST_COPIES, key=middle.estimate)
    cuts = [middle if one == middle.ends else kind(few, one) for one in ends]
    best = min(cuts, key=lambda cut: cut.estimate(least))
    return (best if few is versions else kind(versions, best.ends)).frames(least)


def _lone_frame(body: bytes, known: bytes) -> SolidFrame:
    """A single version, which needs not be cut into tokens."""
    form = stream.opened_form(body)
    opened = form != stream.escape_marks(body)
    newest = form if opened else body
    part = stream.encode_stream([newest], known)[0]
    flags = SolidFlags.HOLDS_NEWEST | SolidFlags.OPENED * opened | SolidFlags.KNOWN * bool(known)
    return SolidFrame(
        stream.encode_head(stream.SolidHead(flags, 0, len(part), len(newest), 0, known_text_check(known))) + part, 1
    )


def _tokens_of(body: bytes) -> int:
    return sum(body.count(end) for end in frame_format.TOKEN_END_SETS[-1])


def frames_size(frames: Sequence[SolidFrame]) -> int:
    """Bytes of all frames together."""
    return sum(len(frame.data) for frame in frames)


class _Versions(NamedTuple):
    """The versions of a document, newest first, in their forms, and what reading them may take."""

    bodies: Sequence[bytes]
    forms: Sequence[bytes]
    bound: int
    known: bytes
    chain: int

    @classmethod
    def of(cls, bodies: Sequence[bytes], bound: int, known: bytes, chain: int) -> _Versions:
        """Versions whose forms are still to be made."""
        return cls(bodies, [stream.opened_form(body) for body in bodies], bound, known, chain or len(bodies))

    def latest(self, count: int) -> _Versions:
        """At most so many of them, the latest ones."""
        if len(self.bodies) <= count:
            return self
        return self._replace(bodies=self.bodies[:count], forms=self.forms[:count])


@dataclass(slots=True)
class _VersionGroup:
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

    def __init__(self, versions: _Versions, ends: int) -> None:
        self.ends = ends
        self._bodies, self._forms, self._bound, self._known, self._chain = versions
        self._flags = SolidFlags.KNOWN if self._known else 0
        # With nothing opened the newest is stored as it is, however many NULs it has.
        self._newest = self._bodies[0]
        if self._forms[0] != stream.escape_marks(self._newest):
            self._newest = self._forms[0]
            self._flags |= SolidFlags.OPENED
        self._texts = TokenTable(self._forms, frame_format.TOKEN_END_SETS[ends])
        self._runs: dict[tuple[int, int], TokenRuns] = {}
        self._made: dict[int, list[_VersionGroup]] = {}

    def residue(self, least: int) -> int:
        """Bytes of all differences before they are compressed."""
        return sum(group.length for group in self._groups(least))

    def estimate(self, least: int) -> float:
        """About what the differences take, with copies of fewer than `least` bytes written as text.

        A fast coder tells it: sizes of the two differ, but not which variant is the smaller one.
        """
        residues = [b"".join(group.scripts) for group in self._groups(least)]
        sizes = (len(compress_behind(text, self._forms[0], _ESTIMATE_LEVEL)) for text in residues)
        return sum(sizes) + _OUTPUT_WEIGHT * self.residue(least)

    def frames(self, least: int) -> list[SolidFrame]:
        """The frames with copies of fewer than `least` bytes written as text."""
        quality = _FAST_QUALITY if self.residue(least) > _LARGE_RESIDUE else _FULL_QUALITY
        return self._written(self._groups(least), quality)

    def _written(self, groups: Sequence[_VersionGroup], quality: int) -> list[SolidFrame]:
        first, *later = groups
        return [self._first_frame(first, quality), *(self._later_frame(group, quality) for group in later)]

    def _fronts(self) -> tuple[int, int]:
        """Coder output before the differences of the first frame, and of each later one."""
        overhead = stream.stream_overhead(self._known)
        first = len(self._newest) + overhead + len(self._known)
        return first, first + overhead + len(self._forms[0])

    def _groups(self, least: int) -> list[_VersionGroup]:
        if least not in self._made:
            self._made[least] = self._new_groups(least)
        return self._made[least]

    def _new_groups(self, least: int) -> list[_VersionGroup]:
        first, later = self._fronts()
        groups = [_VersionGroup(first)]
        room = self._room(0)
        for index in range(1, len(self._bodies)):
            base, script = self._script(groups[-1], index, least)
            room = min(room, self._room(index))
            if groups[-1].scripts and groups[-1].front + groups[-1].length + len(script) > room:
                groups.append(_VersionGroup(later))
                room = self._room(index)
                base, script = self._script(groups[-1], index, least)
            groups[-1].add(index, base, script, self._forms[base] == self._forms[index])
        return groups

    def _room(self, index: int) -> int:
        """How much coder output reading this version may make."""
        return max(self._bound, _READ_FACTOR * len(self._bodies[index]))

    def _script(self, group: _VersionGroup, index: int, least: int) -> tuple[int, bytes]:
        same = self._repeat(group, index)
        base = self._nearest(group, index) if same is None else same
        back = len(group.members) - 1 - group.members.index(base)
        reference = frame_format.encode_reference(back, len(group.members) - 1)
        if same is not None:
            return base, reference + frame_format.VERSION_STOP
        offsets = self._texts.offsets(index)
        runs = kept_runs(self._runs_between(base, index), offsets, least)
        text = self._forms[index] + frame_format.TOKEN_END
        script = encode_script(runs, text, offsets, len(self._texts.ids[base]))
        return base, reference + script + frame_format.VERSION_STOP

    def _runs_between(self, base: int, index: int) -> TokenRuns:
        if (base, index) not in self._runs:
            self._runs[base, index] = runs_between(self._texts, base, index)
        return self._runs[base, index]

    def _repeat(self, group: _VersionGroup, index: int) -> int | None:
        for member in reversed(group.members):
            if self._forms[member] == self._forms[index]:
                return member
        return None

    def _nearest(self, group: _VersionGroup, index: int) -> int:
        near = [member for member in group.members[-_RECENT:] if group.depths[member] < self._chain]
        return self._texts.cheapest(index, list(dict.fromkeys([0, *near])), group.through)

    def _first_frame(self, group: _VersionGroup, quality: int) -> SolidFrame:
        rest = b"".join(group.scripts)
        parts = stream.encode_stream([self._newest, rest] if rest else [self._newest], self._known, quality)
        flags = self._flags | SolidFlags.HOLDS_NEWEST
        head = stream.SolidHead(
            flags, self.ends, len(parts[0]), len(self._newest), len(rest), known_text_check(self._known)
        )
        return SolidFrame(stream.encode_head(head) + b"".join(parts), 1 + len(group.scripts))

    def _later_frame(self, group: _VersionGroup, quality: int) -> SolidFrame:
        rest = b"".join(group.scripts)
        head = stream.SolidHead(self._flags, self.ends, 0, 0, len(rest), known_text_check(self._known))
        part = stream.encode_stream([rest], self._known + self._forms[0], quality)[0]
        return SolidFrame(stream.encode_head(head) + part, len(group.scripts))


class _DocumentBehind(_Document):
    """A document whose newest version is kept elsewhere, in a form that is read faster."""

    def _fronts(self) -> tuple[int, int]:
        _, later = super()._fronts()
        return later, later

    def _written(self, groups: Sequence[_VersionGroup], quality: int) -> list[SolidFrame]:
        return [self._later_frame(group, quality) for group in groups]
