"""Differences between two states of a page that say nothing: frames, banners, advertisements, labels, consent notices.

`MuteRules` are what people decided about them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import groupby
from math import sqrt
from typing import TypeVar

from letopis.change.fingerprints import (
    Fingerprint,
    digits_folded,
    is_version_or_mail,
    names_counter,
    names_event,
    normalized_words,
    without_dates,
    words_in,
)
from letopis.change.profiles import ChangedRegion
from letopis.change.sequence import opcodes
from letopis.change.values import differ_in_signs, is_phone, is_regraded, is_value
from letopis.model import BlockKind
from letopis.tuples import NamedTuple

_MOST_WORDS = 1000


class WordSet(NamedTuple):
    """A text as the set of its words."""

    words: frozenset[str]
    letters: int
    folded: str


def word_set(text: str) -> WordSet:
    """The words of a text, with their letters counted once."""
    words = frozenset(normalized_words(text).split())
    return WordSet(words, sum(map(len, words)), digits_folded(text))


def word_similarity(old: WordSet, new: WordSet) -> float:
    """Share of letters in words that both texts have; 1 for texts that differ in digits alone."""
    if old.folded == new.folded:
        return 1.0
    whole = old.letters + new.letters
    if 4 * min(old.letters, new.letters) < whole:
        return 0.0
    return 2 * sum(map(len, old.words & new.words)) / whole


LEAST_NUMBER = 2.0
"""Least weight of a number, a state or a "not": each turns round what is said, however short it is."""
_ARTICLES = frozenset(("a", "an", "o", "un", "une", "el", "la", "le", "il", "lo"))
_NEGATIONS = frozenset(("no", "not", "ne", "nie", "nem", "non", "nej", "не", "ні", "nu", "ni", "pas"))


def edit_weight(old: str, new: str) -> float:
    """Weight of an edit: by the words that came, went or changed places; numbers and a "not" weigh more than a typo."""
    words_old, words_new = normalized_words(old).split(), normalized_words(new).split()
    before, after = Counter(words_old), Counter(words_new)
    gone, came = before - after, after - before
    weight = sqrt(max(_letters(gone), _letters(came)) or _letters_moved(words_old, words_new))
    number = list(filter(str.isdigit, words_old)) != list(filter(str.isdigit, words_new)) or is_regraded(old, new)
    number = number or differ_in_signs(old, new) or _is_reworded(gone, came)
    return max(weight, LEAST_NUMBER) if number or not _NEGATIONS.isdisjoint((*gone, *came)) else weight


def _is_reworded(gone: Counter[str], came: Counter[str]) -> bool:
    """Whether one short word stands for another: "from" a date or "to" it, "mg" or "g", "IV" or "V"; no article."""
    return gone.total() == came.total() == 1 and not {*gone, *came} <= _ARTICLES


def _letters_moved(old: list[str], new: list[str]) -> int:
    """Letters of words that stand elsewhere among the same words; blocks too long for a close look have none."""
    if max(len(old), len(new)) > _MOST_WORDS:
        return 0
    return sum(sum(map(len, old[op.a1 : op.a2])) for op in opcodes(old, new) if op.tag != "equal")


def _letters(words: Counter[str]) -> int:
    return sum(len(word) * count for word, count in words.items())


_TOKEN = re.compile(r"(?=\w*\d)(?=\w*[^\W\d_])\w{8,}|\d{10,}")
_IDENTIFIER = re.compile(r"(?=\w*\d)(?=\w*[^\W\d_])\w{6,}|\d+")


def ticking_part(old: str, new: str, label: str = "") -> str:
    """What alone differs between two texts of a place that never stays: a counter, a date, an identifier; or nothing.

    A number is a counter where the words beside it, or else the `label` before it, say that it counts looks, people
    at the page or what they leave there; any other number is what the text says, however often it changes.
    """
    if digits_folded(old) == digits_folded(new):
        beside = new if has_words(new) else label[-MOST_LABEL:]
        if names_counter(beside) and not is_value(old) and not is_value(new):
            return "counter"
        if without_dates(old) == without_dates(new):
            return "date"
        return "identifier" if _differ_in(_TOKEN, old, new) and not is_phone(new) else ""
    if without_dates(old) == without_dates(new):
        return "date"
    return "identifier" if _differ_in(_IDENTIFIER, old, new) else ""


def _differ_in(form: re.Pattern[str], old: str, new: str) -> bool:
    """Whether two texts of as many words differ in words of one form alone."""
    before, after = normalized_words(old).split(), normalized_words(new).split()
    if len(before) != len(after):
        return False
    return all(form.fullmatch(word) for pair in zip(before, after, strict=True) if pair[0] != pair[1] for word in pair)


def has_words(text: str) -> bool:
    """Whether a text has any letter."""
    return any(map(str.isalpha, text))


SENTENCE_END = re.compile(r"\w[.!?…](?=\s|$)")
_LEAST_BODY = 12.0
_SHELL_BLOCKS = 60  # blocks of frame from which a page without a body is the shell of one that scripts fill
_REPEATED, _BANNER = 4, 20  # the same text so often in a row, of so many letters, is a running banner


def frame_blocks(side: Fingerprint) -> frozenset[int]:
    """The blocks that the page itself marks as its frame, unless next to nothing else is there.

    A large frame around nothing is the shell of a page whose body is not in its bytes: its menu still is a menu.
    """
    if not side.frame or len(side.frame) >= _SHELL_BLOCKS:
        return side.frame
    inside = sum(map(side.weight, side.frame))
    return side.frame if sum(map(sqrt, side.lengths)) - inside >= _LEAST_BODY else frozenset()


def boilerplate_blocks(side: Fingerprint) -> frozenset[int]:
    """The blocks that say nothing of the page: its frame but for facts in it, and running banners."""
    frame = frame_blocks(side)
    facts = {i for i in frame if _says_something(side, i)} if side.blocks else frozenset[int]()
    return (frame - facts) | banner_blocks(side)


def _says_something(side: Fingerprint, index: int) -> bool:
    """Whether a block of a frame is a fact, or a paragraph of sentences as the head of a page has them."""
    text = side.text(index)
    if side.kinds[index] is not BlockKind.PARAGRAPH:
        return is_version_or_mail(text)
    return len(SENTENCE_END.findall(text)) >= 2 or is_version_or_mail(text)


_CONTROLS = re.compile(
    r"men[uüú]|nabídk|navig|меню|passwor|heslo|table of contents|inhaltsverzeichnis|sommaire|índice|obsah|"
    r"^(?:search|suche|hled|skip|log ?in|sign|regist|forgot|share|follow|subscribe|zum|поиск|войти)"
)
_RUN_TOGETHER = re.compile(r"[^\W\d_A-Z](?=[A-Z])")
_FEW_TOGETHER, _LONGEST_CONTROL = 2, 40
_SAID, _SAID_TO_THE_END, _SAID_IN_LIST = 4, 2, 5
"""Words from which a paragraph, one that ends as a sentence does, and a link or such an entry say something."""


def is_sentence(kind: BlockKind, text: str) -> bool:
    """Whether a text in a frame says something, and is no entry, control or notice of the site, nor a run of links."""
    ends = SENTENCE_END.search(text[-2:]) is not None
    least = _SAID_IN_LIST if kind not in _SPOKEN else _SAID_TO_THE_END if ends else _SAID
    if words_in(text) < least or not (ends or kind in _SPOKEN or kind is BlockKind.LINK):
        return False
    if len(_RUN_TOGETHER.findall(text)) > _FEW_TOGETHER:
        return False
    if not ends and len(text) <= _LONGEST_CONTROL and _CONTROLS.search(normalized_words(text)):
        return False
    return not (_THIRD_PARTY.search(text[:_MOST_NOTICE]) and _TO_READER.search(text[:_MOST_NOTICE]))


def banner_blocks(side: Fingerprint) -> frozenset[int]:
    """Blocks that repeat one sentence again and again, as a line that runs across the page does, and its label."""
    found: set[int] = set()
    at = 0
    for _, run in groupby(side.hashes):
        size = len(list(run))
        if size >= _REPEATED and side.lengths[at] >= _BANNER:
            labelled = at > 0 and side.lengths[at - 1] < _BANNER
            found.update(range(at - labelled, at + size))
        at += size
    return frozenset(found)


_PART_NAMES = (
    r"appendix|annex|section|chapter|part|anhang|abschnitt|kapitel|teil|annexe|chapitre|partie|anexo|sección|capítulo|"
    r"příloha|oddíl|kapitola|část|príloha|oddiel|časť|приложение|раздел|глава|часть"
)
_NUMERAL = r"(?:\d{1,4}|[a-z]|[ivxlc]{1,8})(?:\.\d{1,4}){0,6}"
_PARTS = r"\d{1,4}(?:\.\d{1,4}){1,6}"
_LABEL = re.compile(
    rf"\s*(?:(?:{_PART_NAMES})\s+{_NUMERAL}[.:)]?|{_NUMERAL}[.:)]|{_PARTS})(?:\s*[-–—])?\s+(?=\w)", re.IGNORECASE
)
_SURE_LABEL = re.compile(rf"\s*(?:(?:{_PART_NAMES})\s+{_NUMERAL}[.:)]|{_NUMERAL}[:)])\s+(?=\w)", re.IGNORECASE)
"""A label and nothing else; "19.90 EUR", "12. festival", "J. Smith" and "Chapter 11 bankruptcy" only look like one."""
_ALPHABETS = "abcdefghijklmnopqrstuvwxyz" * 8
_LEAST_RUN, _MOST_FILLER = 4, 200
_LOREM = "lorem ipsum dolor"
_THIRD_PARTY = re.compile(
    r"third[- ]part(?:y|ies)|external (?:content|media)|cookies?\b|drittanbieter|drittinhalt|extern\w{0,3} inhalt|"
    r"contenus? (?:tiers|externes?)|contenidos? (?:de terceros|externos?)|třetích stran|extern\w{0,4} obsah|"
    r"tretích strán|сторонн\w{1,4} (?:контент|содерж)|файл\w{0,3} cookie",
    re.IGNORECASE,
)
_CONSENT = re.compile(
    r"\b(?:consent|i agree|you agree|accept|allow|activate|einverstanden|zustimm\w{0,6}|aktivieren|akzeptieren|"
    r"accepte[rz]?|consentement|acept\w{1,4}|consentimiento|souhlas\w{0,6}|přijmout|povolit|súhlas\w{0,6}|"
    r"соглас\w{1,6}|принять|разрешить)\b",
    re.IGNORECASE,
)
_TO_READER = re.compile(
    r"\b(?:we|our|us|you|your|i|this (?:web)?(?:site|page)|wir|unser\w{0,2}|uns|sie|ihr\w{0,2}|"
    r"diese\w? (?:web)?(?:site|seite)|"
    r"nous|notre|vous|votre|ce site|nosotros|nuestr\w{1,2}|usted|su|este sitio|my|náš|naš\w{1,2}|vám|váš|vaš\w{1,2}|"
    r"tent\w (?:web|stránk)\w{0,3}|táto stránka|мы|наш\w{0,2}|вы|ваш\w{0,2})\b|"
    r"^\W*(?:accept|allow|activate|agree|aktivieren|akzeptieren|zustimmen|accepter|acept\w{1,2}|souhlasím|"
    r"přijmout|povolit|"
    r"súhlasím|принять|разрешить)\b",
    re.IGNORECASE,
)
"""A notice speaks to whoever reads it, or has a button; news about consent speaks of others."""
_ADVERT_LABELS = re.compile(
    r"anzeigen?|werbung|advert(?:isement)?s?|sponsored|promoted|reklama|reklamní sdělení|inzerce|inzerát|"
    r"publicité|annonce|publicidad|anuncio|реклама"
)
_MOST_NOTICE = 1000
_MOST_NOTICE_BLOCKS = 8
MOST_LABEL = 40


def heading_words(heading: str) -> str:
    """A heading without its number or letter: the same for "B. Sources", "Appendix B. Sources" and "7.2) Sources"."""
    return normalized_words(_LABEL.sub("", heading[:_MOST_NOTICE], count=1))


def is_only_decorated(old: str, new: str, said: str) -> bool:
    """Whether a title has the words of the other, and besides only words that the page says anyway."""
    before, after = normalized_words(old).split(), normalized_words(new).split()
    short, long = sorted((before, after), key=len)
    at = next((n for n in range(len(long) - len(short) + 1) if long[n : n + len(short)] == short), None)
    if not short or at is None:
        return False
    more = long[:at] + long[at + len(short) :]
    return bool(more) and " ".join(more) in said


def is_advert_label(text: str) -> bool:
    """Whether a text is the label that advertisements must carry, and nothing else."""
    return len(text) <= MOST_LABEL and _ADVERT_LABELS.fullmatch(normalized_words(text)) is not None


def is_filler(text: str) -> bool:
    """Whether a text only shows how text looks: the alphabet in its order, again and again, or the printers' Latin."""
    if len(text) > _MOST_FILLER and _LOREM not in text[:_MOST_FILLER].lower():
        return False
    run = normalized_words(text).replace(" ", "")
    return normalized_words(text[:_MOST_FILLER]).startswith(_LOREM) or (len(run) >= _LEAST_RUN and run in _ALPHABETS)


def is_consent_notice(texts: list[str]) -> bool:
    """Whether texts that stand together ask to agree to what others bring onto the page, and say nothing else."""
    if not 2 <= len(texts) <= _MOST_NOTICE_BLOCKS or any(len(text) > _MOST_NOTICE for text in texts):
        return False
    said = [bool(_THIRD_PARTY.search(text)) + 2 * bool(_CONSENT.search(text)) for text in texts]
    return all(said) and 3 in said and any(_TO_READER.search(text) for text in texts)


def mentions_consent(texts: Iterable[str]) -> bool:
    """Whether a page itself is about what others bring onto pages, as its terms or its privacy statement are."""
    return any(_THIRD_PARTY.search(text[:_MOST_NOTICE]) for text in texts)


HEADINGS = frozenset((BlockKind.H1, BlockKind.H2, BlockKind.H3, BlockKind.H4, BlockKind.H5, BlockKind.H6))
_SPOKEN = HEADINGS | {BlockKind.PARAGRAPH, BlockKind.QUOTE}
_CONTENTS_KINDS = HEADINGS | {BlockKind.ITEM, BlockKind.CELL}
"""Kinds of block that a list of contents may be seen as: one heading and its entry have the same hash."""
_MOST_ADVERT = 300
_LEAST_ENTRIES = 5
_MOST_FRAME = 200
_LEAST_NUMBERED = 3  # headings with labels from which a page numbers its headings
_MOST_WORDS_TEXT = 1 << 17  # letters of a page in which the ornaments of its title are looked for

T = TypeVar("T")


class ChangedBlocks(NamedTuple):
    """Indices that still have to be explained, in one region."""

    region: ChangedRegion
    old: list[int]
    new: list[int]


class MuteRules(NamedTuple):
    """The rules that people set for the changes of a page, in texts of blocks with every number as one mark.

    `always` never counts, nor does a block right after one of `behind`; `never` is not muted however often it changes.
    """

    always: frozenset[str] = frozenset()
    behind: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()

    def mutes(self, state: Fingerprint, index: int) -> bool:
        """Whether a block of a state does not count because somebody said so."""
        if not state.blocks or not (self.always or self.behind):
            return False
        if digits_folded(state.text(index)) in self.always:
            return True
        return index > 0 and bool(self.behind) and digits_folded(state.text(index - 1)) in self.behind

    def keeps(self, state: Fingerprint, index: int) -> bool:
        """Whether somebody wants to hear of a block however often it changes."""
        return bool(self.never and state.blocks) and digits_folded(state.text(index)) in self.never


class NoiseFilter:
    """Finds what surrounds the content in two states of a page; finds nothing if only stored forms are available."""

    def __init__(self, old: Fingerprint, new: Fingerprint) -> None:
        self.old, self.new = old, new
        self._silent = not old.blocks or not new.blocks

    def news_of_frame(self, blocks: Iterable[int]) -> frozenset[int]:
        """Of some blocks of the newer state's frame those that say what the older state does not.

        A number alone says nothing there, unless it is a price, of a telephone, or the time of an event.
        """
        return frozenset() if self._silent else frozenset(filter(self._is_news_of_frame, blocks))

    def _is_news_of_frame(self, index: int) -> bool:
        text = self.new.text(index)[:_MOST_NOTICE]
        if not is_phone(text) and not is_sentence(self.new.kinds[index], text):
            return False
        if names_event(text.lower()):
            return normalized_words(text) not in self._words
        if without_dates(text) in self._stilled_frame:
            return False
        return digits_folded(text) not in self._folded or is_phone(text) or is_value(text)

    @cached_property
    def _words(self) -> frozenset[str]:
        """The older state's texts."""
        return frozenset(normalized_words(block.text[:_MOST_NOTICE]) for block in self.old.blocks)

    @cached_property
    def _folded(self) -> frozenset[str]:
        """The older state's texts, whatever their numbers."""
        return frozenset(digits_folded(block.text[:_MOST_NOTICE]) for block in self.old.blocks)

    @cached_property
    def _stilled_frame(self) -> frozenset[str]:
        """What the older state's frame says besides clocks, counters and dates; of a long frame its two ends."""
        frame = sorted(self.old.frame)
        ends = [*frame[:_MOST_FRAME], *frame[_MOST_FRAME:][-_MOST_FRAME:]]
        return frozenset(without_dates(self.old.text(i)[:_MOST_NOTICE]) for i in ends)

    def without_notices(self, side: ChangedBlocks) -> ChangedBlocks:
        """Without filler and advertisements, and without a notice to agree to on a page that is not about that."""
        if self._silent:
            return side
        old = [i for i in side.old if not self._is_advert(self.old, i) and not is_filler(self.old.text(i))]
        new = [j for j in side.new if not self._is_advert(self.new, j) and not is_filler(self.new.text(j))]
        alone = (self.old, old) if not new else (self.new, new) if not old else None
        if alone and is_consent_notice([alone[0].text(i) for i in alone[1]]) and not _is_about_consent(*alone):
            return ChangedBlocks(side.region, [], [])
        return ChangedBlocks(side.region, old, new)

    def _is_advert(self, state: Fingerprint, index: int) -> bool:
        """Whether a block stands behind the label of an advertisement, or says what such a block says."""
        if not self._adverts:
            return False
        form = normalized_words(state.text(index)[:_MOST_ADVERT])
        return " " in form and any(form in advert for advert in self._adverts)

    @cached_property
    def _adverts(self) -> frozenset[str]:
        """The words behind each label of advertisements, in both states."""
        return frozenset(form for state in (self.old, self.new) for form in _behind_labels(state)) - {""}

    def without_labels(self, side: ChangedBlocks) -> ChangedBlocks:
        """Without headings, and entries of contents, that differ in their labels alone, and a title adorned anew."""
        if self._silent or not side.old or not side.new:
            return side
        before = {i: form for i in side.old if (form := self._heading(self.old, i))}
        after = {j: form for j in side.new if (form := self._heading(self.new, j))}
        both = Counter(before.values()) & Counter(after.values())
        spare_old, spare_new = both.copy(), both
        old = [i for i in side.old if i not in before or not take_one(spare_old, before[i])]
        new = [j for j in side.new if j not in after or not take_one(spare_new, after[j])]
        return self._without_ornaments(ChangedBlocks(side.region, old, new))

    def without_contents(self, side: ChangedBlocks) -> ChangedBlocks:
        """Without a list of contents that came or went: it names headings that both states have, or repeats another."""
        if self._silent:
            return side
        old = [i for i in side.old if not self._is_contents(self.old, i)]
        new = [j for j in side.new if not self._is_contents(self.new, j)]
        alone = (self.old, old) if not new else (self.new, new) if not old else None
        if alone and self._repeats(*alone):
            return ChangedBlocks(side.region, [], [])
        return ChangedBlocks(side.region, old, new)

    def _repeats(self, state: Fingerprint, blocks: list[int]) -> bool:
        """Whether a list, maybe under a heading of its own, holds only entries that both states have elsewhere."""
        entries = blocks[1:] if blocks and state.kinds[blocks[0]] in HEADINGS else blocks
        if len(entries) < _LEAST_ENTRIES or any(state.kinds[i] is not BlockKind.ITEM for i in entries):
            return False
        return self._both.issuperset(state.hashes[i] for i in entries)

    @cached_property
    def _both(self) -> frozenset[int]:
        """The blocks that both states have."""
        return frozenset(self.old.hashes) & frozenset(self.new.hashes)

    def _is_contents(self, state: Fingerprint, index: int) -> bool:
        return state.kinds[index] in _CONTENTS_KINDS and self._named(state.text(index)) in self._kept_headings

    def _heading(self, state: Fingerprint, index: int) -> str:
        """The words of a heading, or of an entry that names one; nothing for other blocks."""
        kind = state.kinds[index]
        form = self._named(state.text(index)) if kind in _CONTENTS_KINDS else ""
        return form if kind in HEADINGS or form in self._headings else ""

    def _named(self, text: str) -> str:
        """The words of a heading; what looks like its label is one where the page numbers its headings."""
        form = heading_words(text)
        return form if form in self._numbered else normalized_words(text)

    @cached_property
    def _numbered(self) -> frozenset[str]:
        """The words behind the labels of headings, where a state numbers them."""
        return _numbered_headings(self.old) | _numbered_headings(self.new)

    @cached_property
    def _headings(self) -> frozenset[str]:
        """The words of the newer state's headings."""
        return frozenset(map(self._named, _headings(self.new))) - {""}

    @cached_property
    def _kept_headings(self) -> frozenset[str]:
        """The words of headings that both states have."""
        return self._headings & frozenset(map(self._named, _headings(self.old)))

    def _without_ornaments(self, side: ChangedBlocks) -> ChangedBlocks:
        old = next((i for i in side.old if self.old.kinds[i] is BlockKind.TITLE), None)
        new = next((j for j in side.new if self.new.kinds[j] is BlockKind.TITLE), None)
        if old is None or new is None:
            return side
        if not is_only_decorated(self.old.text(old), self.new.text(new), self._words_below(old)):
            return side
        return ChangedBlocks(side.region, [i for i in side.old if i != old], [j for j in side.new if j != new])

    def _words_below(self, title: int) -> str:
        """What the older state says beside its title."""
        texts = (block.text for i, block in enumerate(self.old.blocks) if i != title)
        return normalized_words(" ".join(texts)[:_MOST_WORDS_TEXT])


def _headings(state: Fingerprint) -> list[str]:
    return [state.text(i) for i, kind in enumerate(state.kinds) if kind in HEADINGS]


def _numbered_headings(state: Fingerprint) -> frozenset[str]:
    """Words behind sure labels, and behind all where many differ: one number, or many before the same, are news."""
    labelled = [text for text in _headings(state) if _LABEL.match(text)]
    forms = Counter(map(heading_words, labelled))
    once = frozenset(form for form, times in forms.items() if form and times == 1)
    return once if len(once) >= _LEAST_NUMBERED else once & set(map(heading_words, filter(_SURE_LABEL.match, labelled)))


def _behind_labels(state: Fingerprint) -> list[str]:
    labels = [i for i in range(len(state) - 1) if is_advert_label(state.text(i))]
    return [normalized_words(state.text(i + 1)[:_MOST_ADVERT]) for i in labels]


def _is_about_consent(state: Fingerprint, notice: list[int]) -> bool:
    """Whether the state speaks of agreeing outside of the notice and of its frame, too."""
    frame = frame_blocks(state)
    return mentions_consent(state.text(i) for i in range(len(state)) if i not in notice and i not in frame)


def take_one(spare: Counter[T], key: T) -> bool:
    """Whether one of `key` is left; it is taken then."""
    if spare[key] <= 0:
        return False
    spare[key] -= 1
    return True
