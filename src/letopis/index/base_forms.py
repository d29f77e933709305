"""Base forms of words: what people settled first, then affix files and the dictionaries of simplemma together.

What a dictionary says is corrected by tables of endings, for the languages that it treats otherwise than readers do.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from unicodedata import normalize

from xxhash import xxh3_64_hexdigest

from letopis.archive.index_facts import WordRow
from letopis.config import SearchSettings
from letopis.errors import SettingError
from letopis.index.page_text import nfc, unmarked

if TYPE_CHECKING:
    from letopis.index.hunspell import HunspellDictionary

_MAX_CACHED_FORMS = 500_000
_METHOD = "affixes and dictionaries agree; endings 6"
"""Part of the signature; another one when sources are used in another way."""
_SHORTEST_STEM = 3
"""Letters before an ending that is replaced."""
_LONG_ENDINGS = frozenset({"cs"})
"""Languages whose long endings say enough after fewer letters: uveden, nucen."""


class LemmaSource(Protocol):
    """Dictionaries of forms with their base forms."""

    def lemmatize(self, form: str, language: str) -> str:
        """The base form of a word; where no dictionary has it, a guess."""

    def listed(self, form: str, language: str) -> str | None:
        """The base form as the dictionary lists it; None where it does not have the form."""

    def matching(self, beginnings: str, pattern: str, language: str) -> Iterable[str]:
        """The forms of the dictionary, in lower case, with one of these first letters, that match a pattern."""


@lru_cache(maxsize=1)
def simplemma_source() -> LemmaSource:
    """Simplemma over tables in the cache folder of this user."""
    # A tenth of a second that questions answered by the index itself need not pay.
    tables = import_module("letopis.index.lemma_tables")
    source: LemmaSource = tables.SimplemmaSource(tables.cache_folder())
    return source


def _hunspell(file: Path) -> HunspellDictionary:
    # The same holds for affix files, which few archives name.
    found: HunspellDictionary = import_module("letopis.index.hunspell").load_hunspell(file)
    return found


class _FormTable(dict[str, str]):
    """Base forms of one language, worked out once a form."""

    def __init__(self, find: Callable[[str], str]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, form: str) -> str:
        if len(self) >= _MAX_CACHED_FORMS:
            self.clear()
        base = self[form] = self._find(form)
        return base


class BaseForms:
    """Finds base forms by language. Deterministic: equal sources have equal signatures and give equal answers."""

    def __init__(
        self,
        settings: SearchSettings,
        settled_words: Iterable[WordRow] = (),
        source: Callable[[], LemmaSource] = simplemma_source,
    ) -> None:
        self.languages = settings.languages
        self._source = source
        self._settled = {row.form: row.form if row.locked else row.base for row in settled_words}
        self._affix_files = dict(map(_affix_file, settings.affixes))
        self._tables: dict[str, _FormTable] = {}
        self.signature = self._sign()

    def _sign(self) -> str:
        """Names all sources: another signature means that base forms may differ."""
        files = [(language, _file_stamp(file)) for language, file in sorted(self._affix_files.items())]
        sources = (self.languages, [_METHOD, *files], sorted(self._settled.items()))
        return xxh3_64_hexdigest(repr(sources).encode())

    def of(self, language: str) -> Mapping[str, str]:
        """The table of a language: `table[form]` is the base form, of any word whatever."""
        if language not in self._tables:
            self._tables[language] = _FormTable(self._finder(language))
        return self._tables[language]

    def _finder(self, language: str) -> Callable[[str], str]:
        affixed = _hunspell(self._affix_files[language]) if language in self._affix_files else None
        known = language in self.languages

        def find(form: str) -> str:
            if form in self._settled:
                return self._settled[form]
            if not unmarked(form).isalpha() or not (known or affixed is not None):
                return form
            lemma = self._lemma(form, language) if known else form
            return lemma if affixed is None else _tidy(_agreed_base(form, lemma, affixed))

        return find

    def _lemma(self, form: str, language: str) -> str:
        """What the dictionary says, corrected by endings."""
        if form in (closed := CLOSED_WORDS.get(language, {})):
            return closed[form]
        base = self._replaced(form, language, FORM_ENDINGS.get(language, ())) or self.listed(form, language)
        if base is None:
            base = _tidy(self._source().lemmatize(form, language))
        if base.endswith(VERB_ENDINGS.get(language, ())):
            # An adverb rather than a transgressive: zdravě.
            adverb = self._replaced(form, language, BASE_ENDINGS.get(language, ())) if form.endswith("ě") else None
            base = adverb or _verbal_base(form, base, language)
        else:
            base = _derived_base(form, base, language)
        name = base.capitalize()
        # A name in -o is no adverb: Kladno.
        if name.endswith("o") and not self._source().listed(base, language) and self.listed(name, language) == base:
            return base
        return self._replaced(base, language, BASE_ENDINGS.get(language, ())) or base

    def listed(self, form: str, language: str) -> str | None:
        """The base form that the dictionary of a language lists, in lower case; None where it has no such form."""
        found = self._source().listed(form, language)
        noun = self._source().listed(form.capitalize(), language) if language in _CAPITAL_NOUNS or not found else None
        # A noun without an ending is rather itself than the imperative of a verb: Besuch, besuchen.
        if noun and (not found or found == f"{form}en" or (found == f"{form}n" and not form.endswith("e"))):
            found = noun
        if found and form.endswith(INFINITIVE_ENDINGS.get(language, ())) and found.endswith(VERB_ENDINGS[language]):
            found = form
        return None if found is None else _tidy(found)

    def is_settled(self, form: str) -> bool:
        """Whether people said what its base form is."""
        return form in self._settled

    def noun_base(self, form: str, language: str) -> str | None:
        """The base form of the noun that a form is as well, of a language that tells nouns by their capitals."""
        noun = self._source().listed(form.capitalize(), language) if language in _CAPITAL_NOUNS else None
        return _tidy(noun) if noun and noun[0].isupper() else None

    def is_closed(self, form: str, language: str) -> bool:
        """Whether endings say nothing about a form: of a closed class, or a noun that looks like a participle."""
        if form in CLOSED_WORDS.get(language, {}):
            return True
        start = NOUN_BEGINNINGS.get(language)
        if start is None or not form.startswith(start) or not self.of(language)[form].startswith(start):
            return False
        noun = self.noun_base(form, language) or ""
        # A participle that became a noun ends as adjectives do: der Gesandte.
        return noun.startswith(start) and not noun.endswith(("e", "er"))

    def _replaced(self, word: str, language: str, endings: EndingPairs) -> str | None:
        for ending, other in endings:
            stem = word.removesuffix(ending)
            # The vowel of a gender makes no ending longer: pláni is not of plat.
            letters = len(ending) - (ending[-2:] in ("na", "no", "ny", "ni"))
            shortest = max(1, 5 - letters) if language in _LONG_ENDINGS else _SHORTEST_STEM
            if len(stem) + len(ending) == len(word) and len(stem) >= min(_SHORTEST_STEM, shortest):
                base = stem + other
                if base != word and self.listed(base, language) == base:
                    return base
        return None

    def guesses(self, form: str, spoken: Container[str]) -> list[str]:
        """Base forms of a word of unknown language: one for each language that some page speaks, itself included."""
        asked = [language for language in (*self.languages, *self._affix_files) if language in spoken]
        found = dict.fromkeys(self.of(language)[form] for language in asked)
        return list(dict.fromkeys([*found, form]))

    def accented(self, beginnings: str, pattern: str, spoken: Container[str]) -> list[str]:
        """Base forms of the words of dictionaries, of languages that some page speaks, that match a pattern."""
        asked = [language for language in self.languages if language in spoken]
        listed = ((one, form) for one in asked for form in self._source().matching(beginnings, pattern, one))
        return list(dict.fromkeys(self.of(language)[form] for language, form in listed))


_CAPITAL_NOUNS = frozenset({"de"})


def _agreed_base(form: str, lemma: str, affixed: HunspellDictionary) -> str:
    """The base by rules, unless simplemma names another word that the rules know too.

    Rules alone cannot tell which of several words a form belongs to, and
    dictionaries list irregular forms as words of their own.
    """
    if lemma != form and lemma.lower() in affixed:
        return lemma
    return affixed.base(form) or lemma


def _verbal_base(form: str, verb: str, language: str) -> str:
    """The verb to which a form belongs; participles and reflexive verbs are words of their own, listed or not."""
    for ending, other in PARTICIPLE_ENDINGS.get(language, ()):
        stem = form.removesuffix(ending)
        if _SHORTEST_STEM <= len(stem) < len(form) and _is_participle(stem + other, verb, language):
            return stem + other
    reflexive = REFLEXIVE_ENDINGS.get(language, ())
    if form.endswith(reflexive) and not verb.endswith(reflexive):
        return verb + ("сь" if verb.endswith("ти") else "ся")
    return verb


def _derived_base(form: str, base: str, language: str) -> str:
    """The base form of a word that is made of another, where the dictionary names the other: *hodinka*, *hodina*."""
    for derived, mark, endings in DERIVED_ENDINGS.get(language, ()):
        ending = next((ending for ending in endings if form.endswith(ending)), None)
        has_mark = normalize("NFD", mark) in normalize("NFD", base[-3:])
        if ending and len(form) - len(ending) >= _SHORTEST_STEM and not has_mark:
            return form.removesuffix(ending) + derived
    return base


def _is_participle(base: str, verb: str, language: str) -> bool:
    """German ones are the verb with one letter more: passend, but not verwende."""
    return language != "de" or verb.endswith(base[:-1])


def _tidy(base: str) -> str:
    """One lower-case word; the Russian io is written with and without its dots."""
    word = nfc(base).lower().replace("ё", "е")
    return word.split()[0] if " " in word else word


def _affix_file(text: str) -> tuple[str, Path]:
    language, equals, file = text.partition("=")
    if not (equals and language and file):
        raise SettingError(f"'{text}' in search.affixes is not LANGUAGE=FILE; write cs=/usr/share/hunspell/cs_CZ.aff")
    return language, Path(file)


def _file_stamp(file: Path) -> tuple[str, int, int]:
    try:
        facts = [part.stat() for part in (file, file.with_suffix(".dic"))]
    except OSError as error:
        raise SettingError(f"cannot read {error.filename}: {error.strerror}; correct search.affixes") from None
    return str(file), sum(fact.st_size for fact in facts), max(fact.st_mtime_ns for fact in facts)


# Endings by language. A pair is an ending and what takes its place; it holds only where the word that results is a base
# form of the dictionary, so a wrong pair makes nothing up. The first that fits is taken.

EndingPairs = tuple[tuple[str, str], ...]


def _each(endings: str, further: str, base: str) -> EndingPairs:
    """Every ending with every further one, each replaced by the base ending behind the first."""
    tails = ("", *further.split())
    return tuple((ending + tail, ending + base) for ending in endings.split() for tail in tails)


def _instead(pairs: dict[str, str], further: str) -> EndingPairs:
    tails = ("", *further.split())
    return tuple((ending + tail, base) for ending, base in pairs.items() for tail in tails)


_GERMAN_ADJECTIVE = "e en em er es"
_CZECH_ADJECTIVE = "ý á é ého ému ém ým ých ými"
_CZECH_VERB = "t l la lo li ly"
_RUSSIAN_ADJECTIVE = "ая ее ое ие ые его ого ему ому ей ой ую им ым их ых ими ыми ем ом ий ый"

FORM_ENDINGS: dict[str, EndingPairs] = {
    # Passives belong to the verb: dokončena to dokončit, not to dokončený. Long endings come first.
    "cs": (
        # Vowels that were shortened: zasažen, oblečen, nadšen, nalezen.
        *_instead({"ažen": "áhnout", "ečen": "éct", "dšen": "dchnout", "ezen": "ézt"}, "a o y i"),
        *_instead({"ován": "ovat", "eden": "ést"}, "a o y i"),
        # Consonants that were softened: odsouzen, obrácen, ohrožen, zjištěn.
        *_instead({"štěn": "stit", "zen": "dit", "cen": "tit", "šen": "sit", "žen": "zit"}, "a o y i"),
        *_instead({"žen": "hnout", "řen": "řít", "věn": "vět"}, "a o y i"),
        *_instead({"en": "it", "ěn": "it", "án": "at", "ut": "out", "it": "ít", "yt": "ýt"}, "a o y i"),
        *_instead({"at": "mout", "en": "nout", "ěn": "ět", "aden": "ást"}, "a o y i"),
        # Adjectives in -ský and verbs in -ovat have forms of their own: holandsku is of holandsko, kontaktuje no noun.
        *_instead({"sku": "sko", "skem": "sko", "cku": "cko", "ckem": "cko"}, ""),
        *_instead({"uj": "ovat"}, "i e í eš eme ete u ou"),
    ),
    "sk": (("aní", "anie"), ("ení", "enie"), ("tí", "tie")),
    # Participles that the dictionary knows as adjectives are words of their own, reflexive verbs too.
    "ru": (
        *_each("ан ян ен ён", "а о ы", "ный"),
        ("тся", "ться"),
        *_each("ющ ущ ащ ящ вш", _RUSSIAN_ADJECTIVE, "ий"),
        *_each("анн янн енн ем им", _RUSSIAN_ADJECTIVE, "ый"),
    ),
    "pl": (("owi", ""),),
    "de": _instead({"iert": "ieren"}, _GERMAN_ADJECTIVE),
}
"""Ending of a form, ending of its base form; takes precedence over the dictionary."""

VERB_ENDINGS: dict[str, tuple[str, ...]] = {
    "cs": (*(f"{letter}t" for letter in "aáeěiíuýcsz"), "ci"),
    "ru": ("ть", "ти", "чь", "ться", "тись", "чься"),
    "de": ("en", "ern", "eln"),
}
"""Endings of the base forms of verbs."""

PARTICIPLE_ENDINGS: dict[str, EndingPairs] = {
    # Verbs of what is done again and again too: vyhrávat is not vyhrát.
    "cs": (
        *_each("áva íva ýva éva ova", _CZECH_VERB, "t"),
        *_instead({"ává": "ávat", "ívá": "ívat", "ývá": "ývat"}, "m š me te"),
        *_instead({"ávají": "ávat", "ívají": "ívat", "ývají": "ývat"}, ""),
        *(pair for pair in _each("ěn en an", _CZECH_ADJECTIVE, "ý") if pair[0][-1] != "n"),
    ),
    "ru": (
        *_each("ющ ущ ащ ящ вш", _RUSSIAN_ADJECTIVE, "ий"),
        *_each("ющ ущ ащ ящ вш", " ".join(f"{ending}ся" for ending in _RUSSIAN_ADJECTIVE.split()), "ийся"),
        *_each("анн янн енн", _RUSSIAN_ADJECTIVE, "ый"),
        *_each("ан ян ен ён", "а о ы", "ный"),
        *(pair for pair in _each("ем им", _RUSSIAN_ADJECTIVE, "ый") if pair[0] not in ("ем", "им", "имая", "имей")),
    ),
    "de": _each("end ernd elnd", f"{_GERMAN_ADJECTIVE} ste sten stem ster stes", ""),
}
"""Ending of a form that the dictionary takes for one of a verb, ending of the participle: a word of its own."""

INFINITIVE_ENDINGS: dict[str, tuple[str, ...]] = {
    "cs": (*(f"{letter}at" for letter in "bdhklmprstv"), "et", "ět", "out", "ct", "st", "zt")
}
"""Endings that nothing but infinitives have among the forms of verbs: each is its own base form, whatever its pair."""

DERIVED_ENDINGS: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "cs": (
        # Women's names and small things: kandidátka, hodinka.
        ("ka", "k", ("ka", "ky", "ku", "kou", "kám", "kách", "kami")),
        ("ek", "k", ("ek",)),
        ("ec", "c", ("ec",)),
        ("ní", "n", ("ní", "ního", "nímu", "ním", "ních", "ními")),
        ("ník", "ník", ("níka", "níku", "níkovi", "níkem", "níci", "níky", "níků", "níkům", "nících")),
        ("ovat", "uj", ("uji", "uje", "uješ", "ujeme", "ujete", "ují", "uju", "ujou")),
    )
}
"""Of words that are made of others, so words of their own: ending of the base, what the others lack, all endings."""

REFLEXIVE_ENDINGS: dict[str, tuple[str, ...]] = {"ru": ("ся", "сь")}
"""Endings of reflexive verbs, which are separate words."""

BASE_ENDINGS: dict[str, EndingPairs] = {
    # Adverbs, names of qualities are found with their adjective: bezplatně, rychlost.
    "cs": (
        ("ě", "ý"), ("ně", "ní"), ("ce", "ký"), ("sky", "ský"), ("cky", "cký"), ("ze", "hý"), ("še", "chý"),
        ("ře", "rý"), ("e", "ý"), ("dne", "dní"), ("ze", "zí"), ("že", "ží"), ("no", "ný"), ("ost", "ý"),
        ("nost", "ní"),
    ),
    "sk": (("e", "y"), ("o", "y"), ("o", "ý"), ("e", "ý"), ("sky", "ský"), ("cky", "cký"), ("o", "í")),
    "ru": (("о", "ый"), ("о", "ий"), ("е", "ий"), ("и", "ий"), ("о", "ой")),
    # Names of deeds and participles with their verb: granie, grający, grany.
    "pl": (
        ("ie", "y"), ("o", "y"), ("o", "i"), ("śnie", "sny"), ("anie", "ać"), ("enie", "ić"), ("enie", "yć"),
        ("enie", "eć"), ("any", "ać"), ("iony", "ić"), ("ony", "ić"), ("ony", "yć"), ("ony", "eć"), ("ujący", "ować"),
        ("ający", "ać"), ("ący", "ić"), ("ący", "yć"), ("ący", "ć"), ("ęty", "ąć"), ("ęcie", "ąć"), ("ty", "ć"),
        ("cie", "ć"), ("cie", "ty"), ("le", "ły"),
    ),
}  # fmt: skip
"""Ending of one base form, ending of another under which it is found."""

SELDOM_ENDINGS: dict[str, EndingPairs] = {"de": (("ernd", "ern"), ("elnd", "eln"), ("end", "en"))}
"""Ending of a participle, ending of its verb: what an archive hardly inflects is no adjective yet, but the verb's."""

CLOSED_WORDS: dict[str, dict[str, str]] = {
    # Words that point: der erste, and der erstere, which is no comparison of it.
    "de": {
        stem + tail: f"{stem}e" for stem in ("erst", "erster", "letzt", "letzter") for tail in _GERMAN_ADJECTIVE.split()
    }
}
"""Base forms of words whose classes are closed: no ending says anything about them."""

NOUN_BEGINNINGS: dict[str, str] = {"de": "ge"}
"""What nouns and participles both begin with: Gesetz, gesetzt. A noun of that kind has no forms of a verb."""
