"""Evidence for a change between two states of a page, without noise.

Noise is separated from news in this order: text split into other blocks; blocks that only moved; muted text; frames
and banners; advertisements, filler and consent notices; clocks and counters; labels and tables of contents; what
changes at every visit without saying anything new. A sentence that is new to the page is news however often its place
changes. What remains is *strong* evidence (text that was added, removed or edited) or *weak* (a few words that
replace others; invisible metadata).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import sqrt

from letopis.change.fingerprints import (
    Fingerprint,
    digits_folded,
    is_date_alone,
    is_label_of_page,
    is_timetable,
    marks_in,
    names_event,
    normalized_words,
    plain_words,
    without_clocks,
    words_in,
)
from letopis.change.moved_blocks import MovedBlocks, is_figure, stands_in_timetable
from letopis.change.noise import (
    LEAST_NUMBER,
    MOST_LABEL,
    SENTENCE_END,
    ChangedBlocks,
    MuteRules,
    NoiseFilter,
    banner_blocks,
    boilerplate_blocks,
    edit_weight,
    frame_blocks,
    has_words,
    is_sentence,
    take_one,
    ticking_part,
    word_set,
    word_similarity,
)
from letopis.change.profiles import ChangedRegion, PageHabits, changed_regions
from letopis.change.values import differ_in_signs, is_restated, is_state, names_state, resigned_blocks
from letopis.model import BlockKind
from letopis.tuples import NamedTuple

_HIDDEN = frozenset((BlockKind.KEYWORDS, BlockKind.DESCRIPTION, BlockKind.ALT))
_ENTRIES = frozenset((BlockKind.ITEM, BlockKind.CELL))
_LONG_TEXT = 90  # letters from which one block in place of another is no advertisement
_FRAME_RUN, _FRAME_LENGTH = 2, 40
_SWAPS, _EDITS = 2, 5  # changes in a row that make a slot restless
_RESTLESS_SHARE = 1 / 3
_MOST_PAIRS = 64
_MOST_STILLED = 1 << 17
_ALIKE = 0.35
_SWAPPED, _LITTLE = 0.5, 0.25
_LEAST_SAID = 3  # words of what says something whatever it replaces


class WeightedBlock(NamedTuple):
    """One block that differs: its position on its side and its weight as evidence."""

    at: int
    strong: float
    weak: float


@dataclass(slots=True)
class Evidence:
    """The evidence for a change between two states of a page."""

    added: list[WeightedBlock] = field(default_factory=list)
    removed: list[WeightedBlock] = field(default_factory=list)

    @property
    def strong(self) -> float:
        """Weight of text that came, went or was edited."""
        return max(sum(w.strong for w in self.added), sum(w.strong for w in self.removed))


class Experience(NamedTuple):
    """What is already known about a page: the frame of its host, its habits, and the mute rules of people."""

    frame: frozenset[int]
    habits: PageHabits
    rules: MuteRules


class ChangeJudge:
    """Compares two states of a page, using what is known about it.

    `noise` names the kinds of noise that were found, `muted` contains what was left out because it changes often or
    somebody muted it.
    """

    def __init__(self, old: Fingerprint, new: Fingerprint, known: Experience) -> None:
        self.old, self.new = old, new
        self.frame, self.habits, self.rules = known
        self.evidence = Evidence()
        self.noise: dict[str, None] = {}
        self.muted: dict[tuple[bool, int], str] = {}
        self._room = _MOST_STILLED
        self._trimmings = NoiseFilter(old, new)
        self._banners = banner_blocks(new)
        self._framed_old, self._framed_new = boilerplate_blocks(old), boilerplate_blocks(new)
        self._old_set, self._new_set = frozenset(old.hashes), frozenset(new.hashes)

    def judge(self) -> Evidence:
        """Sort every block that differs to noise, weak or strong evidence."""
        every = changed_regions(self.old, self.new)
        found = [region for region in every if not self._reflowed(region)]
        if len(found) < len(every):
            self.noise["text cut otherwise"] = None
        sides = [
            ChangedBlocks(one, list(range(one.op.a1, one.op.a2)), list(range(one.op.b1, one.op.b2))) for one in found
        ]
        self._weigh_signs(resigned_blocks(self.old, self.new))
        for noise, without in (
            ("moved text", MovedBlocks(self.old, self.new, found).left_of),
            ("what was muted", self._without_ruled),
            ("menus and frames", self._without_frame),
            ("other signs", self._without_signs),
            ("adverts and notices", self._trimmings.without_notices),
            ("clocks and counters", self._without_ticks),
            ("labels", self._trimmings.without_labels),
            ("lists of contents", self._trimmings.without_contents),
        ):
            sides = self._taken_out(noise, without, sides)
        sides = self._without_restless(sides)
        if self._recut(sides):
            self.noise["text cut otherwise"] = None
            return self.evidence
        for side in sides:
            self._weigh(side)
        return self.evidence

    def _taken_out(
        self, noise: str, without: Callable[[ChangedBlocks], ChangedBlocks], sides: list[ChangedBlocks]
    ) -> list[ChangedBlocks]:
        """What one kind of noise leaves, and what somebody wants to hear of; the kind is noted where it was met."""
        left = [self._with_kept(side, without(side)) for side in sides]
        if left != sides:
            self.noise[noise] = None
        return [side for side in left if side.old or side.new]

    def _with_kept(self, side: ChangedBlocks, left: ChangedBlocks) -> ChangedBlocks:
        """What is left of a side, with what was taken out of it that is never to be muted."""
        if not self.rules.never:
            return left
        old = [i for i in side.old if i in left.old or self._is_kept(self.old, i, self._new_set)]
        new = [j for j in side.new if j in left.new or self._is_kept(self.new, j, self._old_set)]
        return ChangedBlocks(side.region, old, new)

    def _is_kept(self, state: Fingerprint, index: int, others: frozenset[int]) -> bool:
        """Whether a block that the other state has nowhere is never to be muted."""
        return state.hashes[index] not in others and self.rules.keeps(state, index)

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
        before, after = " ".join(map(self.old.text, range(a1, a2))), " ".join(map(self.new.text, range(b1, b2)))
        return normalized_words(before) == normalized_words(after) != "" and not differ_in_signs(before, after)

    def _without_ruled(self, side: ChangedBlocks) -> ChangedBlocks:
        """Without what somebody muted."""
        old = [i for i in side.old if not self.rules.mutes(self.old, i)]
        new = [j for j in side.new if not self.rules.mutes(self.new, j)]
        self._mute("rule", set(side.old) - set(old), set(side.new) - set(new))
        return ChangedBlocks(side.region, old, new)

    def _mute(self, why: str, old: Iterable[int], new: Iterable[int]) -> None:
        self.muted |= {(False, i): why for i in old}
        self.muted |= {(True, j): why for j in new}

    def _without_frame(self, side: ChangedBlocks) -> ChangedBlocks:
        """Without the frame, and without what stands in the place of a piece of it."""
        old = [i for i in side.old if self.old.hashes[i] not in self.frame and i not in self._framed_old]
        new = [j for j in side.new if self.new.hashes[j] not in self.frame]
        self._mute("on many pages", (), filter(self._is_shared_news, side.new))
        said = self._news_in_frame(j for j in new if self.new.lengths[j] <= _FRAME_LENGTH or j in self._framed_new)
        new = [j for j in new if j not in self._framed_new or j in said]
        in_frame = all(not away and anchor in self.frame for away, anchor in (side.region.before, side.region.after))
        short = all(self.new.lengths[j] <= _FRAME_LENGTH and j not in said for j in new)
        if in_frame and not old and short and len(new) <= max(_FRAME_RUN, len(side.old)):
            return ChangedBlocks(side.region, [], [])
        return ChangedBlocks(side.region, old, new)

    def _is_shared_news(self, index: int) -> bool:
        """Whether a sentence that is new here stands on many pages of the host: it was told there and is named here."""
        block = self.new.hashes[index]
        if block not in self.frame or block in self._old_set or self.habits.knows(block):
            return False
        return is_sentence(self.new.kinds[index], self.new.text(index))

    def _news_in_frame(self, blocks: Iterable[int]) -> frozenset[int]:
        """Of blocks of a frame those that say what this page never said before."""
        unread = (j for j in blocks if j not in self._banners and not self.habits.knows(self.new.hashes[j]))
        return self._trimmings.news_of_frame(unread)

    def _without_restless(self, sides: list[ChangedBlocks]) -> list[ChangedBlocks]:
        """Without what changes at every visit and says nothing new; where that is most of the page, it is the page."""
        found = {block: why for side in sides for block, why in self._habitual(side).items()}
        found |= dict.fromkeys(self._rotated(sides), "known item")
        weight = sum((self.new if is_new else self.old).weight(n) for is_new, n in found)
        if not found or weight > _RESTLESS_SHARE * self._weight():
            return sides
        self.muted |= found
        self.noise["frequent changes"] = None
        return [
            ChangedBlocks(
                side.region,
                [i for i in side.old if (False, i) not in found],
                [j for j in side.new if (True, j) not in found],
            )
            for side in sides
        ]

    def _weight(self) -> float:
        """Weight of both states without the host's frame."""
        return _total_weight(self.old, self.frame) + _total_weight(self.new, self.frame)

    def _habitual(self, side: ChangedBlocks) -> dict[tuple[bool, int], str]:
        """Blocks (new or not, where) that this page changes again and again, and what they are."""
        found = {(False, i): "comes and goes" for i in side.old if self._flaps(self.old, i)}
        found |= {(True, j): "comes and goes" for j in side.new if self._flaps(self.new, j)}
        for from_left in (True, False):
            for key, i, j in side.region.slots(from_left):
                why = self._habit(key, i, j)
                found |= {(False, i): why, (True, j): why} if why else {}
                if self._repriced(i, j) or is_restated(self.old.text(i), self.new.text(j)):
                    found = {at: why for at, why in found.items() if at not in ((False, i), (True, j))}
        return {(is_new, n): why for (is_new, n), why in found.items() if n in (side.new if is_new else side.old)}

    def _rotated(self, sides: list[ChangedBlocks]) -> Iterator[tuple[bool, int]]:
        """Blocks (new or not, where) of lists whose items take turns and which say nothing else than before."""
        if not self.old.blocks or not self.new.blocks:
            return
        turns: dict[int, tuple[list[int], list[int]]] = {}
        for key, side in zip(self.habits.lists(self.old, self.new, (s.region for s in sides)), sides, strict=True):
            gone, came = turns.setdefault(key, ([], []))
            gone += side.old
            came += side.new
        for key, (gone, came) in turns.items():
            if len(gone) == len(came) and self.habits.rotating(key) and self._took_turns(gone, came):
                yield from ((False, i) for i in gone)
                yield from ((True, j) for j in came)

    def _took_turns(self, gone: list[int], came: list[int]) -> bool:
        """Whether items that all came and went before stand for one another, and none is another state or price."""
        if max(len(gone), len(came)) > _MOST_PAIRS:
            return False
        for state, blocks in ((self.old, gone), (self.new, came)):
            if not all(self.habits.knows(state.hashes[n]) for n in blocks):
                return False
            if any(self.rules.keeps(state, n) or names_state(state.text(n)) for n in blocks):
                return False
        pairs = [(i, j) for i in gone for j in came]
        return not any(self._repriced(i, j) or is_restated(self.old.text(i), self.new.text(j)) for i, j in pairs)

    def _habit(self, key: int, i: int, j: int) -> str:
        """What a block is that took the place of another where that always happens; empty for what may be news."""
        if not self.old.blocks or not self.new.blocks or self.rules.keeps(self.old, i) or self.rules.keeps(self.new, j):
            return ""
        if not self.habits.restless(key, _SWAPS if self._likeness(i, j) < _ALIKE else _EDITS):
            return ""
        if self.habits.knows(self.new.hashes[j]):
            return "known item"
        return ticking_part(self.old.text(i), self.new.text(j), self._label(j))

    def _repriced(self, i: int, j: int) -> bool:
        """Whether only a price, a share or another measure differs: that is news though it was there before."""
        old, new = self.old.text(i), self.new.text(j)
        return digits_folded(old) == digits_folded(new) != "" and not ticking_part(old, new, self._label(j))

    def _label(self, j: int) -> str:
        """What a number is called: the block before it, or else the one behind, unless that names the next number."""
        before, behind, beyond = (
            self.new.text(n) if 0 <= n < len(self.new.lengths) else "" for n in (j - 1, j + 1, j + 2)
        )
        if _is_label(before) or not _is_label(behind) or (beyond and not has_words(beyond)):
            return before
        return behind

    def _flaps(self, state: Fingerprint, index: int) -> bool:
        """Whether a block stands on one side only and has come and gone before."""
        block = state.hashes[index]
        if not self.habits.flapping(block) or (block in self._old_set and block in self._new_set):
            return False
        return not self.rules.keeps(state, index) and not names_state(state.text(index))

    def _without_ticks(self, side: ChangedBlocks) -> ChangedBlocks:
        """Without pairs that differ in clocks and counters alone, and without blocks that are nothing else."""
        if not self.old.blocks or not self.new.blocks:
            return side
        before = {i: form for i in side.old if (form := self._still(self.old, i))}
        after = {j: form for j in side.new if (form := self._still(self.new, j))}
        both = Counter(before.values()) & Counter(after.values())
        spare_old, spare_new = both.copy(), both
        old = [i for i, form in before.items() if not take_one(spare_old, form)]
        new = [j for j, form in after.items() if not take_one(spare_new, form)]
        return ChangedBlocks(side.region, old, new)

    def _still(self, state: Fingerprint, at: int) -> str:
        """The stilled form, as long as the room for this costly look lasts; the date of an event stays."""
        text = state.text(at)
        self._room -= len(text)
        form = (without_clocks(text) if self._room > 0 else text) or marks_in(text)
        label = state.text(at - 1)[-MOST_LABEL:].lower() if at and not form else ""
        return text if names_event(label) or is_timetable(text) or self._is_dated(state, at, label) else form

    def _is_dated(self, state: Fingerprint, at: int, label: str) -> bool:
        """Whether a block is the date of what a label in the cell before it, or before a colon, names, or of a row."""
        if stands_in_timetable(state, at):
            return not is_label_of_page(label)
        labelled = label.rstrip().endswith(":") or (
            label != "" and state.kinds[at] is state.kinds[at - 1] is BlockKind.CELL and len(label) < MOST_LABEL
        )
        return labelled and has_words(label) and not is_label_of_page(label) and is_date_alone(state.text(at))

    def _weigh(self, side: ChangedBlocks) -> None:
        pairs = self._pairs(side.old, side.new)
        steady = self._steady(side.region)
        for i, j, likeness in pairs:
            self._weigh_pair(i, j, likeness, steady and self.old.kinds[i] in _ENTRIES)
        gone = set(side.old) - {i for i, _, _ in pairs}
        came = set(side.new) - {j for _, j, _ in pairs}
        self.evidence.removed += [self._single(self.old, i) for i in sorted(gone)]
        self.evidence.added += [self._single(self.new, j) for j in sorted(came)]

    def _weigh_signs(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Blocks whose signs alone differ: "-5" and "5" are the same letters, and not the same news."""
        for i, j in pairs:
            framed = self.old.hashes[i] in self.frame or i in self._framed_old or j in self._framed_new
            if not framed and not self.rules.mutes(self.old, i) and not self.rules.mutes(self.new, j):
                self.evidence.removed.append(WeightedBlock(i, LEAST_NUMBER, self.old.weight(i)))
                self.evidence.added.append(WeightedBlock(j, LEAST_NUMBER, self.new.weight(j)))

    def _without_signs(self, side: ChangedBlocks) -> ChangedBlocks:
        """Without pairs of the same words whose signs differ: these are evidence."""
        if not self.old.blocks or not self.new.blocks:
            return side
        forms = {form: i for i in reversed(side.old) if (form := normalized_words(self.old.text(i)))}
        pairs = [(i, j) for j in side.new if (i := forms.pop(normalized_words(self.new.text(j)), None)) is not None]
        pairs = [(i, j) for i, j in pairs if differ_in_signs(self.old.text(i), self.new.text(j))]
        self._weigh_signs(pairs)
        old, new = {i for i, _ in pairs}, {j for _, j in pairs}
        return ChangedBlocks(side.region, [i for i in side.old if i not in old], [j for j in side.new if j not in new])

    def _steady(self, region: ChangedRegion) -> bool:
        """Whether this place of the page hardly ever changes, as far as it is known."""
        keys = [key for from_left in (True, False) for key, _, _ in region.slots(from_left)]
        return bool(keys) and all(map(self.habits.steady, keys))

    def _single(self, side: Fingerprint, index: int) -> WeightedBlock:
        weight = side.weight(index)
        silent = side.kinds[index] in _HIDDEN and not self._badge(side, index)
        strong = max(weight, LEAST_NUMBER) if is_figure(side, index) else weight
        return WeightedBlock(index, 0.0 if silent else strong, weight)

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
        return all(len(SENTENCE_END.findall(text)) >= 2 for text in (self.old.text(i), self.new.text(j)))

    def _settled(self, i: int) -> bool:
        return self.habits.settled(self.old.hashes[i])

    def _is_unread(self, i: int, j: int) -> bool:
        """Whether a block says what this page never said, or said once and took back: some words, or another word."""
        block = self.new.hashes[j]
        if block in self._old_set or self.habits.returned(block):
            return False
        if words_in(self.new.text(j)) >= _LEAST_SAID:
            return True
        others, words = plain_words(self.old.text(i)), plain_words(self.new.text(j))
        return self.new.kinds[j] is not BlockKind.LINK and not words <= others

    def _state(self, i: int, j: int) -> bool:
        """Whether a cell went from one state to another of those that other cells of the page have, too."""
        if self.old.kinds[i] is not BlockKind.CELL or self.new.kinds[j] is not BlockKind.CELL:
            return False
        return self.new.hashes[j] in self._old_set or self.old.hashes[i] in self._new_set

    def _labelled(self, i: int, j: int) -> bool:
        """Whether one value stands for another behind the same label: a cell with words, or what ends with a colon."""
        named, colon, _ = self.new.text(j).partition(":")
        if colon and _is_label(named) and self.old.text(i).startswith(named + colon):
            return True
        if min(i, j) < 1 or self.old.hashes[i - 1] != self.new.hashes[j - 1]:
            return False
        label = self.new.text(j - 1)
        cells = {self.old.kinds[i], self.new.kinds[j], self.new.kinds[j - 1]} == {BlockKind.CELL}
        return (cells and has_words(label)) or (_is_label(label) and label.rstrip().endswith(":"))

    def _weigh_pair(self, i: int, j: int, alike: float, entry: bool) -> None:
        weight_old, weight_new = self.old.weight(i), self.new.weight(j)
        hidden = self.new.kinds[j] in _HIDDEN and not self.old.kinds[i] is self.new.kinds[j] is BlockKind.ALT
        strong_old = strong_new = 0.0
        if alike >= _ALIKE and not hidden:
            strong_old = strong_new = edit_weight(self.old.text(i), self.new.text(j))
        elif not hidden and (
            entry or self._prose(i, j) or self._state(i, j) or self._settled(i) or self._is_unread(i, j)
        ):
            strong_old, strong_new = max(weight_old, LEAST_NUMBER), max(weight_new, LEAST_NUMBER)
        elif not hidden and (self._labelled(i, j) or (is_state(self.old.text(i)) and is_state(self.new.text(j)))):
            strong_old = strong_new = max(weight_old, weight_new, LEAST_NUMBER)
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
    if not whole:
        return 1.0
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


def _is_label(text: str) -> bool:
    return len(text) <= MOST_LABEL and has_words(text) and not any(map(str.isdigit, text))
