"""Words of the index that are like a given one: the same but for accents, but for a typo, or longer.

The term dictionary is searched by automata (tantivy's regular expressions and fuzzy terms), which tell pages, not
words; the words are read from the text that the index keeps of those pages. Also what tells the words of older
versions, which are kept by their base forms.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol

from letopis.index.page_text import WORD, StoredPage, is_solid, lowered, marks_of, nfc, split_words, unmarked
from letopis.index.word_documents import ABSENT, ANY_START, PHRASE_STARTS, STATE_OLD
from letopis.lazy import Occur, Query
from letopis.tuples import NamedTuple

_BEARING = frozenset((*range(0xC0, 0x250), *range(0x386, 0x3CF), *range(0x1E00, 0x2000)))
"""Letters of the Latin and the Greek script that may bear accents."""
_PLAIN = {"ß": "ss", "æ": "ae", "œ": "oe", **dict(zip("łøđħıςёґँ", "lodhiσегं", strict=True))}
_PLAIN |= zip("أإآٱىیئکةەۀہؤ", "اااايييكههههو", strict=True)
_PLAIN |= {chr(zero + digit): str(digit) for zero in (0x660, 0x6F0, 0x966, 0xE50) for digit in range(10)}
"""How letters that no accent makes, and digits, are written where they are missing or where others are usual."""
_PAIRS = {"ss": "ß", "ae": "æä", "oe": "œöø", "ue": "ü", "aa": "å"}
"""Two letters that may stand for one."""
_POINTS = {
    "[а-яѐ-џ]": "[\u0300\u0301]",
    "[א-ת]": "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]",
    "[ء-يٮ-ۓ]": "[\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]",
    "[\u0904-\u0939]": "\u093c",
}
"""Letters of Cyrillic, Hebrew, Arabic and Devanagari, and the signs behind them that are often left out."""
_POINT = re.compile("|".join(f"(?<={letters}){signs}+" for letters, signs in _POINTS.items()))
MAX_VARIANTS = 8
"""Words that are taken for the same but for their accents."""
_SHORTEST_TYPO, _SHORTEST_TWO_TYPOS = 4, 6
_LONGEST_TYPO = 24
"""Letters of a word for which typos aside from accents are looked for: each of them costs some milliseconds."""
_CANDIDATE_PAGES = 20
"""Pages whose words are read for corrections and completions."""
_CONTINUED = 6
"""Words of scripts without blanks by which a beginning is completed."""


class WordSource(Protocol):
    """An index whose pages keep their words."""

    searcher: Any
    schema: Any

    def hits(self, query: Any, limit: int) -> list[tuple[float, Any]]:
        """The best documents of a query."""

    def stored(self, address: Any) -> StoredPage:
        """What is kept of a document."""

    def find_bases(self, form: str) -> tuple[str, ...]:
        """Base forms under which a word can be found, of a word on a page those that the page has."""

    def places_of(self, word: str) -> tuple[str, ...]:
        """A word as written on newest pages: a term of `placed` for each kind of block that has it."""

    def older_with(self, word: str) -> Any | None:
        """A query of the older versions that have a word as written; None if there are none."""


class KnownWord(NamedTuple):
    """A word of the archive and how many versions have it, those with the same words counted once."""

    word: str
    versions: int


@lru_cache(maxsize=4096)
def folded(word: str) -> str:
    """A word without accents and points, its letters and digits in their plain form."""
    if word.isascii():
        return word
    return "".join(_base_letter(letter) for letter in _POINT.sub("", word))


def _base_letter(letter: str) -> str:
    plain = _PLAIN.get(letter)
    return plain or (unicodedata.normalize("NFD", letter)[0] if ord(letter) in _BEARING else letter)


def _accented_letters() -> dict[str, str]:
    found: dict[str, str] = {}
    for letter in map(chr, sorted({*_BEARING, *map(ord, _PLAIN)})):
        base = _base_letter(letter)
        if letter == letter.lower() and base != letter:
            found[base] = found.get(base, base) + letter
    return found


_ACCENTED = _accented_letters()
_PARTS = re.compile("ss|ae|oe|ue|(?<!a)aa(?!a)|.", re.DOTALL)
"""Pairs, and single letters: a scream of as has none, for its automaton would be too large."""
_LONGEST_PLAIN = 64
"""Letters of a word that may stand for words with accents; more are no word."""


def accent_pattern(word: str) -> str:
    """A regular expression of all words that differ from this one in accents, or in letters written as two, alone."""
    if len(word) > _LONGEST_PLAIN:
        return word
    return _PARTS.sub(lambda part: _part_pattern(part[0]), folded(word))


def _part_pattern(part: str) -> str:
    letters = "".join(f"[{_ACCENTED[letter]}]" if letter in _ACCENTED else letter for letter in part)
    if part in _PAIRS:
        return f"(?:{letters}|[{_PAIRS[part]}])"
    signs = () if part.isascii() else [f"{signs}*" for letter, signs in _POINTS.items() if re.match(letter, part)]
    return "".join([letters, *signs])


def accent_beginnings(word: str) -> str:
    """The letters with which words may begin that differ from this one in accents, or letters written as two, alone."""
    plain = folded(word)
    return _ACCENTED.get(plain[:1], plain[:1]) + _PAIRS.get(plain[:2], "")


def accent_variants(source: WordSource, word: str) -> tuple[str, ...]:
    """Other words and base forms of the index that differ in accents alone, in the order in which pages have them."""
    pattern = accent_pattern(word)
    if pattern == word or is_solid(word):
        return ()
    fields = (("placed", ANY_START), ("stood", ""), ("base", ""))
    *written, base = (Query.regex_query(source.schema, field, start + pattern) for field, start in fields)
    same, near = re.compile(pattern), re.compile(accent_pattern(word[:2]))
    found = [word]
    while len(found) <= MAX_VARIANTS:
        # Pages with known words are skipped: the next one has a new word.
        known = [(Occur.MustNot, part) for other in found for part in _having(source, other)]
        bases = [(Occur.MustNot, Query.term_query(source.schema, "base", other, "basic")) for other in found]
        alike = any_of([*written, Query.boolean_query([(Occur.Must, base), *bases])])
        hits = source.hits(Query.boolean_query([(Occur.Must, Query.const_score_query(alike, 1.0)), *known]), 1)
        words = set(WORD.findall(lowered(source.stored(hits[0][1]).text))) if hits else set()
        # Most forms begin as their base form does, and words of a page are many.
        for some in (set(filter(near.match, words)), words):
            forms = some.union(*map(source.find_bases, some))
            if new := set(filter(same.fullmatch, forms)).difference(found):
                break
        else:
            break
        found += sorted(new)
    return tuple(found[1 : MAX_VARIANTS + 1])


def corrections(source: WordSource, word: str) -> list[KnownWord]:
    """Words of the index for which this one may be a typo: fewest letters away first, then the most frequent."""
    if len(word) < _SHORTEST_TYPO or not unmarked(word).isalpha():
        return []
    near = _typos(source, word, 1) or _typo_but_accents(source, word)
    if not near and len(word) >= _SHORTEST_TWO_TYPOS:
        near = _typos(source, word, 2)
    return _by_frequency(source, near)


def _typos(source: WordSource, word: str, distance: int) -> set[str]:
    """Words of the index that are no more than so many letters away."""
    places = (("placed", PHRASE_STARTS), ("stood", ("",)), ("base", ("",)))
    queries = (_fuzzy(source, field, [start + word for start in starts], distance) for field, starts in places)
    found = (other for query in queries for other in _words(source, query))
    return {other for other in found if 0 < edit_distance(word, other, distance) <= distance}


def _typo_but_accents(source: WordSource, word: str) -> set[str]:
    """Words of the index that are one letter away, accents aside: so is what people type without accents."""
    if len(word) > _LONGEST_TYPO:
        return set()
    plain = folded(word)
    found = _words(source, any_of([_matching(source, pattern) for pattern in _typo_patterns(plain)]))
    return {other for other in found if edit_distance(plain, folded(other), 1) == 1}


def _typo_patterns(word: str) -> Iterator[str]:
    """Regular expressions of all words with another letter, one more, one less, or two swapped, each for one place."""
    letters = [accent_pattern(letter) for letter in word]
    for at in range(len(letters) + 1):
        ways = ["." + "".join(letters[at:])]
        if at < len(letters):
            ways.append(".?" + "".join(letters[at + 1 :]))
        if at + 1 < len(letters):
            ways.append("".join((letters[at + 1], letters[at], *letters[at + 2 :])))
        yield f"{''.join(letters[:at])}({'|'.join(ways)})"


def _fuzzy(source: WordSource, field: str, words: list[str], distance: int) -> Any:
    return any_of([Query.fuzzy_term_query(source.schema, field, word, distance) for word in words])


_QUOTED = re.compile(r'"[^"]*"')


def corrected_query(source: WordSource, text: str) -> str:
    """The question with the likeliest word for each plain one that no version has; quoted words stay as they are."""
    quoted = [match.span() for match in _QUOTED.finditer(text)]

    def correct(match: re.Match[str]) -> str:
        word = lowered(nfc(match[0]))
        inside = any(start <= match.start() < end for start, end in quoted)
        if inside or match[0] == "OR" or _versions(source, word):
            return match[0]
        found = corrections(source, word)
        return found[0].word if found else match[0]

    letter = rf"\w{marks_of(text)}"
    return re.sub(rf'(?<![{letter}"*:-])\w[{letter}]*+(?![{letter}"*:])', correct, text)


def completions(source: WordSource, beginning: str, limit: int) -> list[KnownWord]:
    """Words of the index that begin so, accents aside, the most frequent first."""
    if not unmarked(beginning).isalnum():
        return []
    if is_solid(beginning):
        return _continued(source, split_words(beginning), limit)
    pattern = accent_pattern(beginning)
    begins = re.compile(pattern)
    found = {word for word in _words(source, _matching(source, f"{pattern}.*")) if begins.match(word)}
    places = [("base", ""), ("stood", ""), *(("placed", start) for start in PHRASE_STARTS)]
    for field, start in places if len(beginning) > 2 else ():
        strict = source.searcher.terms_with_prefix(field, start + beginning, limit=limit)
        found.update(term.removeprefix(start) for term, _ in strict)
    return _by_frequency(source, found)[:limit]


def _continued(source: WordSource, words: list[str], limit: int) -> list[KnownWord]:
    """What begins so in a script without blanks: as much behind these words as most pages have alike."""
    begins, counts = re.compile(f"{''.join(words)}\\w*[\\w{marks_of(words[0])}]*"), Counter[str]()
    for _, address in source.hits(_adjacent(source, words, Query.phrase_prefix_query), _CANDIDATE_PAGES):
        runs = map(split_words, begins.findall(lowered(source.stored(address).text)))
        lengths = range(len(words), len(words) + _CONTINUED + 1)
        counts.update({"".join(run[:end]) for run in runs for end in lengths if end <= len(run)})
    most = Counter[str]()
    for text, count in counts.items():
        shorter = "".join(split_words(text)[:-1])
        most[shorter] = max(most[shorter], count)
    whole = sorted((text for text in counts if most[text] < counts[text]), key=lambda text: (-counts[text], text))
    found = ((text, _adjacent(source, split_words(text), Query.phrase_query)) for text in whole[:limit])
    return [KnownWord(text, int(source.searcher.search(query, 1).count)) for text, query in found]


def _adjacent(source: WordSource, words: list[str], make: Callable[..., Any]) -> Any:
    """Newest versions that have such words one behind the other."""
    if len(words) == 1:
        return any_of(_having(source, words[0]) or [Query.empty_query()])
    phrases: list[list[Any]] = [[start + word for word in words] for start in PHRASE_STARTS]
    return any_of([make(source.schema, "placed", phrase) for phrase in phrases])


def any_of(queries: list[Any]) -> Any:
    """One of these, or more."""
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])


class OlderWords:
    """Queries of older versions with words for which `make` asks.

    `sure` finds them as they stand, or as base forms none of which is absent; of those that `unsure` finds only the
    texts tell which words stand there.
    """

    def __init__(self, schema: Any, make: Callable[..., Any], asked: str) -> None:
        self._old = Query.const_score_query(Query.term_query(schema, "state", STATE_OLD, "basic"), 0.0)
        self._stands, self._base = make(schema, "stood", asked), make(schema, "base", asked)
        self._absent = make(schema, "stood", ABSENT + asked)

    def sure(self) -> Any:
        """Versions that certainly have such a word."""
        return any_of([self._stands, self._by_base((Occur.MustNot, self._absent))])

    def unsure(self) -> Any:
        """Versions that may have one, too."""
        return self._by_base((Occur.Must, self._absent), (Occur.MustNot, self._stands))

    def any(self) -> Any:
        """All of them."""
        return any_of([self._stands, self._by_base()])

    def _by_base(self, *parts: tuple[Occur, Any]) -> Any:
        return Query.boolean_query([(Occur.Must, self._base), (Occur.Must, self._old), *parts])


def _matching(source: WordSource, pattern: str) -> Any:
    """Versions of any time with words that match a regular expression."""
    newest = Query.regex_query(source.schema, "placed", ANY_START + pattern)
    return any_of([newest, OlderWords(source.schema, Query.regex_query, pattern).sure()])


def _having(source: WordSource, word: str) -> list[Any]:
    """Versions of any time that have a word as written."""
    places, older = source.places_of(word), source.older_with(word)
    newest = [Query.term_set_query(source.schema, "placed", list(places))] if places else []
    return newest if older is None else [*newest, older]


def _words(source: WordSource, query: Any) -> Iterator[str]:
    for _, address in source.hits(Query.const_score_query(query, 1.0), _CANDIDATE_PAGES):
        yield from set(WORD.findall(lowered(source.stored(address).text)))


def _by_frequency(source: WordSource, words: set[str]) -> list[KnownWord]:
    found = [KnownWord(word, _versions(source, word)) for word in words]
    return sorted((known for known in found if known.versions), key=lambda known: (-known.versions, known.word))


def _versions(source: WordSource, word: str) -> int:
    having = _having(source, word)
    return int(source.searcher.search(any_of(having), 1).count) if having else 0


def edit_distance(first: str, second: str, most: int) -> int:
    """Letters to change, add, leave out or swap with the next; `most` + 1 for all that is more."""
    if abs(len(first) - len(second)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(second) + 1))
    for at, letter in enumerate(first, 1):
        last, row = row, [at]
        for to, other in enumerate(second, 1):
            cost = min(last[to] + 1, row[to - 1] + 1, last[to - 1] + (letter != other))
            if at > 1 and to > 1 and letter == second[to - 2] and first[at - 2] == other:
                cost = min(cost, before[to - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before = last
    return min(row[-1], most + 1)
