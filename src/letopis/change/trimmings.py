"""Blocks that differ only in what surrounds the words of a page: labels, contents, ornaments, notices, adverts."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import NamedTuple, TypeVar

from letopis.change.aside import framed
from letopis.change.fingerprint import Fingerprint
from letopis.change.habits import Region
from letopis.change.text_forms import words_form
from letopis.change.wording import asks_to_agree, is_filler, names_adverts, only_adorned, speaks_of_agreeing, unlabelled
from letopis.model import BlockKind

_HEADINGS = frozenset((BlockKind.H1, BlockKind.H2, BlockKind.H3, BlockKind.H4, BlockKind.H5, BlockKind.H6))
_NAMING = _HEADINGS | {BlockKind.ITEM, BlockKind.CELL}
"""Kinds of block that a list of contents may be seen as: one heading and its entry have the same hash."""
_MOST_ADVERT = 300
_MOST_SAID = 1 << 17  # letters of a page in which the ornaments of its title are looked for

T = TypeVar("T")


class Sides(NamedTuple):
    """Indices that still have to be explained, in one region."""

    region: Region
    old: list[int]
    new: list[int]


class Trimmings:
    """Knows what of two states of a page is around their words; says nothing where only stored forms are at hand."""

    def __init__(self, old: Fingerprint, new: Fingerprint) -> None:
        self.old, self.new = old, new
        self._silent = not old.blocks or not new.blocks

    def without_notices(self, side: Sides) -> Sides:
        """Without filler and advertisements, and without a notice to agree to on a page that is not about that."""
        if self._silent:
            return side
        old = [i for i in side.old if not self._is_advert(self.old, i) and not is_filler(self.old.text(i))]
        new = [j for j in side.new if not self._is_advert(self.new, j) and not is_filler(self.new.text(j))]
        alone = (self.old, old) if not new else (self.new, new) if not old else None
        if alone and asks_to_agree([alone[0].text(i) for i in alone[1]]) and not _about_agreeing(*alone):
            return Sides(side.region, [], [])
        return Sides(side.region, old, new)

    def _is_advert(self, state: Fingerprint, index: int) -> bool:
        """Whether a block stands behind the label of an advertisement, or says what such a block says."""
        if not self._adverts:
            return False
        form = words_form(state.text(index)[:_MOST_ADVERT])
        return " " in form and any(form in advert for advert in self._adverts)

    @cached_property
    def _adverts(self) -> frozenset[str]:
        """The words behind each label of advertisements, in both states."""
        return frozenset(form for state in (self.old, self.new) for form in _behind_labels(state)) - {""}

    def without_labels(self, side: Sides) -> Sides:
        """Without headings, and entries of contents, that differ in their labels alone, and a title adorned anew."""
        if self._silent or not side.old or not side.new:
            return side
        before = {i: form for i in side.old if (form := self._heading(self.old, i))}
        after = {j: form for j in side.new if (form := self._heading(self.new, j))}
        both = Counter(before.values()) & Counter(after.values())
        spare_old, spare_new = both.copy(), both
        old = [i for i in side.old if i not in before or not taken(spare_old, before[i])]
        new = [j for j in side.new if j not in after or not taken(spare_new, after[j])]
        return self._without_ornaments(Sides(side.region, old, new))

    def without_contents(self, side: Sides) -> Sides:
        """Without what names headings that both states have: a list of contents that came or went."""
        if self._silent:
            return side
        old = [i for i in side.old if not self._is_contents(self.old, i)]
        new = [j for j in side.new if not self._is_contents(self.new, j)]
        return Sides(side.region, old, new)

    def _is_contents(self, state: Fingerprint, index: int) -> bool:
        return state.kinds[index] in _NAMING and unlabelled(state.text(index)) in self._kept_headings

    def _heading(self, state: Fingerprint, index: int) -> str:
        """The words of a heading, or of an entry that names one; nothing for other blocks."""
        kind = state.kinds[index]
        form = unlabelled(state.text(index)) if kind in _NAMING else ""
        return form if kind in _HEADINGS or form in self._headings else ""

    @cached_property
    def _headings(self) -> frozenset[str]:
        """The words of the newer state's headings."""
        return _headings(self.new)

    @cached_property
    def _kept_headings(self) -> frozenset[str]:
        """The words of headings that both states have."""
        return self._headings & _headings(self.old)

    def _without_ornaments(self, side: Sides) -> Sides:
        old = next((i for i in side.old if self.old.kinds[i] is BlockKind.TITLE), None)
        new = next((j for j in side.new if self.new.kinds[j] is BlockKind.TITLE), None)
        if old is None or new is None or not only_adorned(self.old.text(old), self.new.text(new), self._said(old)):
            return side
        return Sides(side.region, [i for i in side.old if i != old], [j for j in side.new if j != new])

    def _said(self, title: int) -> str:
        """What the older state says beside its title."""
        texts = (block.text for i, block in enumerate(self.old.blocks) if i != title)
        return words_form(" ".join(texts)[:_MOST_SAID])


def _headings(state: Fingerprint) -> frozenset[str]:
    kinds = enumerate(state.kinds)
    return frozenset(unlabelled(state.text(i)) for i, kind in kinds if kind in _HEADINGS) - {""}


def _behind_labels(state: Fingerprint) -> list[str]:
    labels = [i for i in range(len(state) - 1) if names_adverts(state.text(i))]
    return [words_form(state.text(i + 1)[:_MOST_ADVERT]) for i in labels]


def _about_agreeing(state: Fingerprint, notice: list[int]) -> bool:
    """Whether the state speaks of agreeing outside of the notice and of its frame, too."""
    frame = framed(state)
    return speaks_of_agreeing(state.text(i) for i in range(len(state)) if i not in notice and i not in frame)


def taken(spare: Counter[T], key: T) -> bool:
    """Whether one of `key` is left; it is taken then."""
    if spare[key] <= 0:
        return False
    spare[key] -= 1
    return True
