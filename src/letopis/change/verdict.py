"""Did it change? Three answers kept apart: same bytes, same text, changed meaningfully.

Noise is told from news in this order: text cut into other blocks; blocks that
only moved; frames and banners; adverts, filler and consent notices; clocks and
counters; labels and contents; slots and blocks that are never the same.
What remains is *strong* evidence (text that came, went or was edited) or
*weak* (one short block in place of another, as an advertisement does;
metadata nobody sees).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import NamedTuple, TypeVar

from xxhash import xxh3_64_intdigest

from letopis.change.fingerprints import Fingerprint, fingerprint, normalized_words, without_clocks
from letopis.change.noise import (
    ChangedBlocks,
    NoiseFilter,
    boilerplate_blocks,
    edit_weight,
    frame_blocks,
    take_one,
    word_set,
    word_similarity,
)
from letopis.change.profiles import ChangedRegion, HostProfile, PageHabits, changed_regions
from letopis.config import ChangeSettings
from letopis.model import BlockChange, BlockKind, Change, Page

LONG_PARAGRAPH = 50
KNOWN_FROM = 0.9


def long_paragraphs(page: Page) -> Iterator[tuple[int, int]]:
    """Hash and length of each paragraph of at least 50 characters in its normal form."""
    for block in page.blocks:
        form = normalized_words(block.text)
        if len(form) >= LONG_PARAGRAPH:
            yield xxh3_64_intdigest(form.encode("utf-8", "surrogatepass")), len(form)


def known_share(page: Page, known: Container[int]) -> float | None:
    """D: length of known long paragraphs by length of all; None when the page has none."""
    whole = familiar = 0
    for block, length in long_paragraphs(page):
        whole += length
        familiar += length if block in known else 0
    return familiar / whole if whole else None


def known_share_of(new: Page, old: Page) -> float | None:
    """D of a page against its own last version alone."""
    return known_share(new, {block for block, _ in long_paragraphs(old)})


_HIDDEN = frozenset((BlockKind.KEYWORDS, BlockKind.DESCRIPTION, BlockKind.ALT))
_ENTRIES = frozenset((BlockKind.ITEM, BlockKind.CELL))
_LONG_TEXT = 90  # letters from which one block in place of another is no advertisement
_FRAME_RUN, _FRAME_LENGTH = 2, 40
_SWAPS, _EDITS = 2, 5  # changes in a row that make a slot restless
_RESTLESS_SHARE = 1 / 3
_MOST_PAIRS = 64
_MOST_STILLED = 1 << 17
_ALIKE = 0.35
_SENTENCE_END = re.compile(r"\w[.!?…](?=\s|$)")
_SWAPPED, _LITTLE = 0.5, 0.25

T = TypeVar("T")


class WeightedBlock(NamedTuple):
    """One block that differs: where it stands on its side and what it adds to the evidence."""

    at: int
    strong: float
    weak: float


@dataclass(slots=True)
class Evidence:
    """What speaks for a change between two states of a page."""

    added: list[WeightedBlock] = field(default_factory=list)
    removed: list[WeightedBlock] = field(default_factory=list)

    @property
    def strong(self) -> float:
        """Weight of text that came, went or was edited."""
        return max(sum(w.strong for w in self.added), sum(w.strong for w in self.removed))


class ChangeJudge:
    """Compares two states of a page in the light of its habits and its host's frame."""

    def __init__(self, old: Fingerprint, new: Fingerprint, frame: frozenset[int], habits: PageHabits) -> None:
        self.old, self.new = old, new
        self.frame, self.habits = frame, habits
        self.evidence = Evidence()
        self._room = _MOST_STILLED
        self._framed_old, self._framed_new = boilerplate_blocks(old), boilerplate_blocks(new)
        self._old_set, self._new_set = frozenset(old.hashes), frozenset(new.hashes)

    def judge(self) -> Evidence:
        """Sort every block that differs to noise, weak or strong evidence."""
        found = [region for region in changed_regions(self.old, self.new) if not self._reflowed(region)]
        sides = self._without_moves(found)
        sides = [side for side in map(self._without_frame, sides) if side.old or side.new]
        trimmings = NoiseFilter(self.old, self.new)
        for without in (
            trimmings.without_notices,
            self._without_ticks,
            trimmings.without_labels,
            trimmings.without_contents,
        ):
            sides = [side for side in map(without, sides) if side.old or side.new]
        sides = self._without_restless(sides)
        if not self._recut(sides):
            for side in sides:
                self._weigh(side)
        return self.evidence

    def _recut(self, sides: list[ChangedBlocks]) -> bool:
        """Whether the same words stand on both sides in more or fewer blocks."""
        old, new = [i for side in sides for i in side.old], [j for side in sides for j in side.new]
        if not old or not new or len(old) == len(new):
            return False
        if sum(self.old.lengths[i] for i in old) != sum(self.new.lengths[j] for j in new):
            return False
        return _word_counts(map(self.old.text, old)) == _word_counts(map(self.new.text, new)) != Counter()

    def _reflowed(self, region: ChangedRegion) -> bool:
        """Whether a region has the same text on both sides, cut into other blocks."""
        _, a1, a2, b1, b2 = region.op
        if a1 == a2 or b1 == b2 or sum(self.old.lengths[a1:a2]) != sum(self.new.lengths[b1:b2]):
            return False
        before, after = map(self.old.text, range(a1, a2)), map(self.new.text, range(b1, b2))
        return normalized_words(" ".join(before)) == normalized_words(" ".join(after)) != ""

    def _without_moves(self, found: list[ChangedRegion]) -> list[ChangedBlocks]:
        gone = Counter(self.old.hashes[i] for r in found for i in range(r.op.a1, r.op.a2))
        came = Counter(self.new.hashes[j] for r in found for j in range(r.op.b1, r.op.b2))
        moved = gone & came
        moved_old, moved_new = moved.copy(), moved
        return [
            ChangedBlocks(
                region,
                _unless_moved(range(region.op.a1, region.op.a2), self.old, moved_old),
                _unless_moved(range(region.op.b1, region.op.b2), self.new, moved_new),
            )
            for region in found
        ]

    def _without_frame(self, side: ChangedBlocks) -> ChangedBlocks:
        """Without the frame, and without what stands in the place of a piece of it."""
        old = [i for i in side.old if self.old.hashes[i] not in self.frame and i not in self._framed_old]
        new = [j for j in side.new if self.new.hashes[j] not in self.frame and j not in self._framed_new]
        in_frame = side.region.left in self.frame and side.region.right in self.frame
        short = all(self.new.lengths[j] <= _FRAME_LENGTH for j in new)
        if in_frame and not old and short and len(new) <= max(_FRAME_RUN, len(side.old)):
            return ChangedBlocks(side.region, [], [])
        return ChangedBlocks(side.region, old, new)

    def _without_restless(self, sides: list[ChangedBlocks]) -> list[ChangedBlocks]:
        """Without what never stays, unless that is most of the page: then it is the page."""
        calm = [self._calm(side) for side in sides]
        dropped = sum(
            sum(map(self.new.weight, set(side.new) - set(rest.new)))
            + sum(map(self.old.weight, set(side.old) - set(rest.old)))
            for side, rest in zip(sides, calm, strict=True)
        )
        return calm if dropped <= _RESTLESS_SHARE * self._weight() else sides

    def _weight(self) -> float:
        """Weight of both states without the host's frame."""
        return _total_weight(self.old, self.frame) + _total_weight(self.new, self.frame)

    def _calm(self, side: ChangedBlocks) -> ChangedBlocks:
        old = {i for i in side.old if not self._flaps(self.old.hashes[i])}
        new = {j for j in side.new if not self._flaps(self.new.hashes[j])}
        for from_left in (True, False):
            for key, i, j in side.region.slots(from_left):
                if self.habits.restless(key, _SWAPS if self._likeness(i, j) < _ALIKE else _EDITS):
                    old.discard(i)
                    new.discard(j)
        return ChangedBlocks(side.region, sorted(old), sorted(new))

    def _flaps(self, block: int) -> bool:
        """Whether a block stands on one side only and has come and gone before."""
        return self.habits.flapping(block) and not (block in self._old_set and block in self._new_set)

    def _without_ticks(self, side: ChangedBlocks) -> ChangedBlocks:
        """Without pairs that differ in clocks and counters alone, and without blocks that are nothing else."""
        if not self.old.blocks or not self.new.blocks:
            return side
        before = {i: form for i in side.old if (form := self._still(self.old.text(i)))}
        after = {j: form for j in side.new if (form := self._still(self.new.text(j)))}
        both = Counter(before.values()) & Counter(after.values())
        spare_old, spare_new = both.copy(), both
        old = [i for i, form in before.items() if not take_one(spare_old, form)]
        new = [j for j, form in after.items() if not take_one(spare_new, form)]
        return ChangedBlocks(side.region, old, new)

    def _still(self, text: str) -> str:
        """The stilled form, as long as the room for this costly look lasts."""
        self._room -= len(text)
        return without_clocks(text) if self._room > 0 else text

    def _weigh(self, side: ChangedBlocks) -> None:
        pairs = self._pairs(side.old, side.new)
        steady = self._steady(side.region)
        for i, j, likeness in pairs:
            self._weigh_pair(i, j, likeness, steady and self.old.kinds[i] in _ENTRIES)
        gone = set(side.old) - {i for i, _, _ in pairs}
        came = set(side.new) - {j for _, j, _ in pairs}
        self.evidence.removed += [self._single(self.old, i) for i in sorted(gone)]
        self.evidence.added += [self._single(self.new, j) for j in sorted(came)]

    def _steady(self, region: ChangedRegion) -> bool:
        """Whether this place of the page hardly ever changes, as far as it is known."""
        keys = [key for from_left in (True, False) for key, _, _ in region.slots(from_left)]
        return bool(keys) and all(map(self.habits.steady, keys))

    def _single(self, side: Fingerprint, index: int) -> WeightedBlock:
        weight = side.weight(index)
        silent = side.kinds[index] in _HIDDEN and not self._badge(side, index)
        return WeightedBlock(index, 0.0 if silent else weight, weight)

    def _badge(self, side: Fingerprint, index: int) -> bool:
        """Whether a picture says what others on the page say, too, as one that marks what is sold out does."""
        block = side.hashes[index]
        return side.kinds[index] is BlockKind.ALT and block in self._old_set and block in self._new_set

    def _pairs(self, old: list[int], new: list[int]) -> list[tuple[int, int, float]]:
        """Blocks that stand for one another: the likest first, then by place."""
        pairs = self._alike(old, new) if max(len(old), len(new)) <= _MOST_PAIRS else []
        taken_old, taken_new = {i for i, _, _ in pairs}, {j for _, j, _ in pairs}
        rest_old = [i for i in old if i not in taken_old]
        rest_new = [j for j in new if j not in taken_new]
        return pairs + [(i, j, 0.0) for i, j in zip(rest_old, rest_new, strict=False)]

    def _alike(self, old: list[int], new: list[int]) -> list[tuple[int, int, float]]:
        if not self.old.blocks or not self.new.blocks:
            return []
        before = [word_set(self.old.text(i)) for i in old]
        after = [word_set(self.new.text(j)) for j in new]
        found = [
            (word_similarity(x, y), -abs(a - b), i, j)
            for a, (i, x) in enumerate(zip(old, before, strict=True))
            for b, (j, y) in enumerate(zip(new, after, strict=True))
        ]
        pairs: list[tuple[int, int, float]] = []
        used_old: set[int] = set()
        used_new: set[int] = set()
        for likeness, _, i, j in sorted((row for row in found if row[0] >= _ALIKE), reverse=True):
            if i not in used_old and j not in used_new:
                pairs.append((i, j, likeness))
                used_old.add(i)
                used_new.add(j)
        return pairs

    def _likeness(self, i: int, j: int) -> float:
        if not self.old.blocks or not self.new.blocks:
            return 0.0
        return word_similarity(word_set(self.old.text(i)), word_set(self.new.text(j)))

    def _prose(self, i: int, j: int) -> bool:
        """Whether both texts are long, or of several sentences: no advertisement is."""
        if min(self.old.lengths[i], self.new.lengths[j]) >= _LONG_TEXT:
            return True
        return all(len(_SENTENCE_END.findall(text)) >= 2 for text in (self.old.text(i), self.new.text(j)))

    def _settled(self, i: int) -> bool:
        return self.habits.settled(self.old.hashes[i])

    def _state(self, i: int, j: int) -> bool:
        """Whether a cell went from one state to another of those that other cells of the page have, too."""
        if self.old.kinds[i] is not BlockKind.CELL or self.new.kinds[j] is not BlockKind.CELL:
            return False
        return self.new.hashes[j] in self._old_set or self.old.hashes[i] in self._new_set

    def _weigh_pair(self, i: int, j: int, alike: float, entry: bool) -> None:
        weight_old, weight_new = self.old.weight(i), self.new.weight(j)
        hidden = self.new.kinds[j] in _HIDDEN
        strong_old = strong_new = 0.0
        if alike >= _ALIKE and not hidden:
            strong_old = strong_new = edit_weight(self.old.text(i), self.new.text(j))
        elif not hidden and (entry or self._prose(i, j) or self._state(i, j) or self._settled(i)):
            strong_old, strong_new = weight_old, weight_new
        self.evidence.removed.append(WeightedBlock(i, strong_old, weight_old))
        self.evidence.added.append(WeightedBlock(j, strong_new, weight_new))


def changed_share(evidence: Evidence, old: Fingerprint, new: Fingerprint, frame: frozenset[int]) -> float:
    """Share of both states, by weight and without the frame, that differs.

    Weak evidence counts half while it is little: one short text in place of
    another is most often an advertisement, a page of them is another page.
    """
    found = evidence.added + evidence.removed
    if not found:
        return 0.0
    whole = _total_weight(old, frame) + _total_weight(new, frame)
    full = sum(w.weak for w in found) / whole
    soft = sum(w.weak if w.strong else _SWAPPED * w.weak for w in found) / whole
    return min(1.0, full if full > _LITTLE else soft)


def _word_counts(texts: Iterable[str]) -> Counter[str]:
    return Counter(normalized_words(" ".join(texts)).split())


def _total_weight(side: Fingerprint, frame: frozenset[int]) -> float:
    """Weight of what is neither the host's nor the page's own frame."""
    outside = frame_blocks(side)
    if not frame and not outside:
        return sum(map(sqrt, side.lengths))
    return sum(side.weight(i) for i, block in enumerate(side.hashes) if block not in frame and i not in outside)


def _unless_moved(indices: range, side: Fingerprint, moved: Counter[int]) -> list[int]:
    return [i for i in indices if not take_one(moved, side.hashes[i])]


PageState = Page | Fingerprint
"""A state of a page: read just now, or kept as numbers."""

_HALF_WAY = 15.0
_MOST_BLOCKS = 100
_MOST_TEXT = 500
_DEFAULTS = ChangeSettings()


def compare(
    new: PageState,
    history: Sequence[PageState],
    host: HostProfile | None = None,
    settings: ChangeSettings = _DEFAULTS,
    *,
    habits: PageHabits | None = None,
    same_bytes: bool = False,
) -> Change:
    """How `new` differs from the newest of `history` (newest first).

    Older states and `habits` (whichever the caller keeps) teach what on this
    page never stays; `host` what all pages of the host share. An empty
    history is not judged. With the rule "paragraphs-50" the answer needs
    pages, not fingerprints; without them the digest of the text decides.
    """
    if not history:
        return Change(same_bytes, same_bytes, None)
    if same_bytes:
        return Change(True, True, False)
    old, now = _as_fingerprint(history[0]), _as_fingerprint(new)
    same_text = old.text_hash == now.text_hash
    if settings.count == "paragraphs-50":
        return _by_paragraphs(new, history[0], same_text)
    if not old.hashes and not now.hashes:
        return _without_text(new, history[0])
    if same_text:
        return Change(False, True, False)
    frame = host.boilerplate() if host else frozenset()
    evidence = ChangeJudge(old, now, frame, habits or learn_habits(history)).judge()
    return _verdict(evidence, old, now, frame, settings.threshold)


def learn_habits(history: Sequence[PageState]) -> PageHabits:
    """The habits that a series of states (newest first, one a visit) shows."""
    habits = PageHabits()
    states = [_as_fingerprint(state) for state in reversed(history)]
    for old, new in pairwise(states):
        habits.observe(old, new)
    return habits


def change_score(evidence: Evidence, old: Fingerprint, new: Fingerprint, frame: frozenset[int]) -> float:
    """0 for nothing, 1 for everything.

    The share of the page that differs, or, if that is more, what the
    changed text says by itself: one sentence is a change on a page of any
    length. Text alone never counts more than a half.
    """
    strong = evidence.strong
    return max(changed_share(evidence, old, new, frame), 0.5 * strong / (strong + _HALF_WAY))


def _as_fingerprint(state: PageState) -> Fingerprint:
    return state if isinstance(state, Fingerprint) else fingerprint(state)


def _verdict(evidence: Evidence, old: Fingerprint, new: Fingerprint, frame: frozenset[int], threshold: float) -> Change:
    value = change_score(evidence, old, new, frame)
    return Change(False, False, value > 1.0 - threshold, round(value, 4), tuple(_changed_blocks(evidence, old, new)))


def _changed_blocks(evidence: Evidence, old: Fingerprint, new: Fingerprint) -> Iterable[BlockChange]:
    """The blocks that count, removed before added, cut to what a record can hold."""
    for weighed in sorted(evidence.removed)[:_MOST_BLOCKS]:
        yield BlockChange("removed", old.kinds[weighed.at], old.text(weighed.at)[:_MOST_TEXT])
    for weighed in sorted(evidence.added)[:_MOST_BLOCKS]:
        yield BlockChange("added", new.kinds[weighed.at], new.text(weighed.at)[:_MOST_TEXT])


def _without_text(new: PageState, old: PageState) -> Change:
    """No readable text on either side: the bytes decide, for a page of links its targets."""
    if isinstance(new, Page) and isinstance(old, Page) and (new.links or old.links):
        same = {link.target for link in new.links} == {link.target for link in old.links}
        return Change(False, same, not same, 0.0 if same else 1.0)
    return Change(False, False, True, 1.0)


def _by_paragraphs(new: PageState, old: PageState, same_text: bool) -> Change:
    if same_text:
        return Change(False, True, False)
    known = known_share_of(new, old) if isinstance(new, Page) and isinstance(old, Page) else None
    if known is None:
        return Change(False, False, True, 1.0)
    return Change(False, False, known < KNOWN_FROM, round(1.0 - known, 4))
