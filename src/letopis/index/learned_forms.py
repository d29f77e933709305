"""Word forms learned from the archive itself: which further base forms a word belongs to.

Dictionaries leave words alone that they do not know, and name one base form where several are meant. Two words with a
common beginning differ in a pair of endings (*dabing*, *dabingu*: nothing and *u*). How often words with such a pair
belong together is counted over those words of the archive that the dictionary knows, by the pair and the last letters
before it. A word then also belongs to a base form when the pairs with the words of that base form do so on average.
Nothing of it is in the documents of the index: it widens questions only, so that what is learned anew makes nothing
else anew.

Kept are two tables, further base forms by word and words by further base form, and a mark that says of what they were
made.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from letopis.binary import atomic_file, make_private_folder
from letopis.errors import NotReady
from letopis.index.base_forms import SELDOM_ENDINGS, BaseForms, EndingPairs
from letopis.index.form_tables import LemmaTable, write_lemma_table
from letopis.index.page_text import unmarked
from letopis.tuples import NamedTuple

FEWEST_WORDS = 500
"""Words of a language from which on pairs of endings tell anything."""
MOST_WORDS = 50_000
"""Words of a language that are learned from, the most frequent."""
_SHORTEST_STEM, _LONGEST_ENDING, _SHORTEST_WORD = 3, 6, 4
_PRIOR, _PRIOR_WEIGHT = 0.15, 4.0
"""What two words with a common beginning are taken to share until pairs of endings say otherwise, and its weight."""
_ENOUGH_KNOWN, _ENOUGH_UNKNOWN = 0.7, 0.5
"""Shares from which on a word that the dictionary knows, or does not know, belongs to a further base form."""
_NEAR_FORMS = 0.5
"""The share of the forms of a base form that have to begin as a word does that belongs to it.

*účely* begins as *účet* does, but not as *účtu*, *účty* and the others.
"""
_MANY_FORMS = 3
"""Forms of a participle from which on it is a word of its own."""
_FORMAT = 2
_STALE_SHARE = 5
"""One new version in so many makes the tables anew."""

_Place = tuple[str, str, str]
"""Letters before a pair of endings, and the pair in the order of letters."""


class LearnedFormsMark(NamedTuple):
    """Of what tables were made: how many versions, which base forms."""

    versions: int = -1
    bases: str = ""
    format: int = _FORMAT


class KnownForm(NamedTuple):
    """The base form of a word, whether a dictionary lists it, and whether endings say nothing about it."""

    base: str
    listed: bool
    closed: bool = False


class FormLearner:
    """Learns from the words of one language, with the base forms they have."""

    def __init__(self, words: Mapping[str, KnownForm]) -> None:
        self._words = words
        self._endings: defaultdict[str, list[str]] = defaultdict(list)
        for word in words:
            for length in range(max(_SHORTEST_STEM, len(word) - _LONGEST_ENDING), len(word) + 1):
                self._endings[word[:length]].append(word[length:])
        self._seen: Counter[_Place] = Counter()
        self._joined: Counter[_Place] = Counter()
        self._shares: dict[_Place, float] = {}
        self._count()

    def further_bases(self) -> Iterator[tuple[str, list[str]]]:
        """Words with the base forms that they belong to beside their own."""
        forms = Counter(form.base for form in self._words.values())
        for word, form in self._words.items():
            if form.closed:
                continue
            enough = _ENOUGH_KNOWN if form.listed else _ENOUGH_UNKNOWN
            shares: defaultdict[str, list[float]] = defaultdict(list)
            for stem, ending, other in self._neighbours(word):
                base = self._words[stem + other].base
                if base != form.base and not self._words[stem + other].closed:
                    shares[base].append(self._share(stem, *sorted((ending, other))))
            found = sorted(
                base for base, near in shares.items()
                if sum(near) >= enough * len(near) and len(near) >= _NEAR_FORMS * forms[base]
            )  # fmt: skip
            if found:
                yield word, found

    def _neighbours(self, word: str) -> Iterator[tuple[str, str, str]]:
        """Other words by the longest common beginning, each with its ending and that of this word."""
        for length in range(max(_SHORTEST_STEM, len(word) - _LONGEST_ENDING), len(word) + 1):
            stem, ending = word[:length], word[length:]
            first = ending[:1]
            for other in self._endings[stem]:
                if other[:1] != first:
                    yield stem, ending, other

    def _count(self) -> None:
        listed = {word: form.base for word, form in self._words.items() if form.listed}
        for word, base in listed.items():
            for stem, ending, other in self._neighbours(word):
                other_base = listed.get(stem + other)
                if other_base is None or ending > other:
                    continue
                for place in _places(stem, ending, other):
                    self._seen[place] += 1
                    self._joined[place] += base == other_base

    def _share(self, stem: str, ending: str, other: str) -> float:
        """How often words with this pair of endings belong together: in general, then after these last letters."""
        closest = (stem[-2:], ending, other)
        share = self._shares.get(closest)
        if share is None:
            share = _PRIOR
            for place in _places(stem, ending, other):
                share = (self._joined[place] + _PRIOR_WEIGHT * share) / (self._seen[place] + _PRIOR_WEIGHT)
            self._shares[closest] = share
        return share


def _places(stem: str, ending: str, other: str) -> tuple[_Place, _Place, _Place]:
    return ("", ending, other), (stem[-1:], ending, other), (stem[-2:], ending, other)


def learn_forms(vocabulary: Mapping[str, Counter[str]], bases: BaseForms) -> dict[str, set[str]]:
    """Further base forms of words, over all languages whose forms are joined; of settled words none."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for language in bases.languages:
        words = _known_forms(vocabulary.get(language, Counter()), language, bases)
        nouns = {word: noun for word in words if (noun := bases.noun_base(word, language))}
        plurals = [noun for word, noun in nouns.items() if word == _plural(word, noun)]
        # A noun with a plural in -er has no other: buche is of buchen alone.
        verbal = {noun + tail for noun in plurals for tail in ("e", "en")}
        learned = FormLearner(words).further_bases() if len(words) >= FEWEST_WORDS else ()
        for word, further in (*learned, *_other_readings(words, nouns, SELDOM_ENDINGS.get(language, ()))):
            found[word].update(base for base in further if word not in verbal or not word.startswith(base))
    return {word: further for word, further in found.items() if further}


def _plural(word: str, noun: str) -> str:
    """The plural in -er of a noun, its vowel as it stands in a word: Bild, Bilder; Buch, Bücher."""
    return f"{word[: len(noun)]}er" if len(word) == len(noun) + 2 else ""


def _other_readings(
    words: Mapping[str, KnownForm], nouns: Mapping[str, str], participles: EndingPairs
) -> Iterator[tuple[str, list[str]]]:
    """What words are beside their base form: a noun; a participle that is seldom met, of its verb."""
    forms = Counter(form.base for form in words.values())
    for word, (base, _, closed) in words.items():
        if not closed and nouns.get(word, base) not in (base, word):
            yield word, [nouns[word]]
        if word.startswith(base) and forms[base] < _MANY_FORMS:
            verbs = [base.removesuffix(ending) + other for ending, other in participles if base.endswith(ending)]
            yield word, verbs[:1]


def _known_forms(counted: Counter[str], language: str, bases: BaseForms) -> dict[str, KnownForm]:
    table = bases.of(language)
    usable = (
        word for word, _ in counted.most_common()
        if len(word) >= _SHORTEST_WORD and unmarked(word).isalpha() and not bases.is_settled(word)
    )  # fmt: skip
    chosen = [word for word, _ in zip(usable, range(MOST_WORDS), strict=False)]
    return {
        word: KnownForm(table[word], bases.listed(word, language) is not None, bases.is_closed(word, language))
        for word in sorted(chosen)
    }


class LearnedForms:
    """The tables of one archive. Safe to share between threads; where there are none, nothing was learned."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mark = LearnedFormsMark()
        self._further: Mapping[str, str] = {}
        self._members: Mapping[str, str] = {}

    def bases_of(self, word: str) -> tuple[str, ...]:
        """Base forms that a word belongs to beside its own."""
        return _split(self._further, word)

    def members_of(self, base: str) -> tuple[str, ...]:
        """Words that belong to a base form beside its own forms."""
        return _split(self._members, base)

    def open(self, bases: str) -> None:
        """Follows what was learned last, here or elsewhere; what was made with other base forms is left out."""
        mark = _read_mark(self._folder)
        if mark == self._mark and mark.bases == bases:
            return
        self._mark, self._further, self._members = LearnedFormsMark(), {}, {}
        if mark.bases == bases and mark.format == _FORMAT:
            try:
                self._further = LemmaTable(self._folder / f"further-{mark.versions}")
                self._members = LemmaTable(self._folder / f"members-{mark.versions}")
            except (OSError, ValueError):
                return
            self._mark = mark

    def is_stale(self, versions: int, bases: str) -> bool:
        """Whether the archive has so much more than what was learned from."""
        self.open(bases)
        new = versions - self._mark.versions
        return self._mark.bases != bases or new * _STALE_SHARE > max(1, self._mark.versions)

    def learn(self, vocabulary: Callable[[], Mapping[str, Counter[str]]], versions: int, bases: BaseForms) -> None:
        """Makes the tables anew; for one process at a time."""
        further = learn_forms(vocabulary(), bases)
        members: defaultdict[str, set[str]] = defaultdict(set)
        for word, found in further.items():
            for base in found:
                members[base].add(word)
        try:
            make_private_folder(self._folder)
            write_lemma_table(self._folder / f"further-{versions}", _joined(further.items()))
            write_lemma_table(self._folder / f"members-{versions}", _joined(members.items()))
            with atomic_file(self._folder / "mark.json") as out:
                out.write(json.dumps(LearnedFormsMark(versions, bases.signature)._asdict()).encode())
            for file in self._folder.iterdir():
                if file.name != "mark.json" and not file.name.endswith(f"-{versions}"):
                    file.unlink(missing_ok=True)
        except OSError as error:
            raise NotReady(f"cannot write to {self._folder}: {error.strerror}; check its permissions") from None
        self._mark = LearnedFormsMark()
        self.open(bases.signature)


def _joined(items: Iterable[tuple[str, set[str]]]) -> dict[str, str]:
    return {word: " ".join(sorted(found)) for word, found in items}


def _split(table: Mapping[str, str], word: str) -> tuple[str, ...]:
    try:
        return tuple(table.get(word, "").split())
    except ValueError:
        # A damaged table: questions are asked as if nothing had been learned.
        return ()


def _read_mark(folder: Path) -> LearnedFormsMark:
    try:
        return LearnedFormsMark(**json.loads((folder / "mark.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return LearnedFormsMark()
