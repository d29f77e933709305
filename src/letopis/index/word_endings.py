"""Endings by language that the dictionaries of simplemma treat otherwise than readers do.

Two tables of pairs, an ending and what takes its place. Both hold only where the word that results is a base form of
the dictionary, so a wrong pair makes nothing up; the first that fits is taken.
"""

from __future__ import annotations

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
