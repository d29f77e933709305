"""The charset of bytes that declare none: the one in which they look most like words of a language.

Each reading is scored by how much its letters beyond ASCII are those of one language, how much they are spread like
them, and by what no text has: controls, marks inside words, capitals behind small letters. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import islice

from letopis.tuples import NamedTuple

_SAMPLE = 16 * 1024
_MOST_WORDS = 400
_MOST_LETTERS = 40
_WORD = re.compile(r"[^\s<>\"=]+")
_BYTE_WORD = re.compile(rb"[^\t-\r\x1c-\x20<>\"=]+")
"""A word as far as bytes tell; in a charset whose blanks are beyond ASCII it may be several."""
# Letters beyond ASCII, the most frequent ones first.
_LANGUAGES = (
    "íáéěřýšůčžúóťňď",  # Czech
    "áíéýčšúľžôťňóäďĺŕ",  # Slovak
    "ęółążśćńź",  # Polish
    "éáöóüőíúű",  # Hungarian
    "ăţşîâ", "ășțîâ",  # Romanian, in both spellings
    "čšžćđ",  # Croatian, Slovene
    "üäöß",  # German
    "éèàêçôîûâùëïœ",  # French
    "óáíéñúü",  # Spanish
    "ãçáéíóêõâàúô",  # Portuguese
    "èàòùéì",  # Italian
    "äöå", "øåæ",  # Swedish, Finnish; Danish, Norwegian
    "ðíáóéöúþæý",  # Icelandic
    "ıüşçğöâî",  # Turkish
    "äõüöšž",  # Estonian
    "āīēšūņļžķčģ",  # Latvian
    "ėųšžąčįūę",  # Lithuanian
    "áčšđžŋŧâ",  # Sami
    "ħżġċàù", "ĝĉŭŝĵĥ",  # Maltese, Esperanto
    "âŵêôŷîáû", "áíéóúḋċḃṫṁġṡḟṗ",  # Welsh; Irish in the old spelling
    "\u0300\u0301\u0323\u0309\u0303đêôươâă",  # Vietnamese, with marks of their own
    "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",  # Russian
    "оанивіетрсклудмпязьбгчйжхцїєюшфщґ",  # Ukrainian
    "аиоетнрвслкдпмзяъгучбцжшщфхюйь",  # Bulgarian
    "αοιετσνηυρπκμλςωίδόάγθχέήφύβώξζψϊ",  # Greek
    "יוהלארמתבשנדחקעפםטגצכזסןךףץ",  # Hebrew
    "اليمونرتبعدسفهكقأحجةشصىخطضإذزثءغئظؤآ",  # Arabic
    "านรอกเงมยลวดตทส่้ัีิคบหปแไใะ็โขจพชำถูุ์ธณซึฟผญภษ",  # Thai
)  # fmt: skip
_KANA = "のにはをたがでとしれさあいうえおかきくけこすせそちつてなぬねひふほまみむもやゆよらりるろわん"
_FREQUENT = {
    "shift_jis": _KANA,
    "euc-jp": _KANA,
    "euc-kr": "이다는에의을가고지하로은를한도사기리자대어나해그아인서시정과일수있보게것부들",
    "gb18030": "的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可",
    "big5": "的一是不了人我在有他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可",
}
_EASTERN_CODECS = {
    "shift_jis": "cp932", "euc-jp": "euc_jp", "euc-kr": "cp949", "gb18030": "gb18030", "big5": "big5hkscs",
}  # fmt: skip
_EASTERN_SHARE = 0.35
"""How much of a text the characters above make up at least."""
_WESTERN = {
    "windows-1252": "cp1252", "windows-1250": "cp1250", "windows-1251": "cp1251", "koi8-r": "koi8_r",
    "iso-8859-2": "iso8859_2", "windows-1253": "cp1253", "iso-8859-7": "iso8859_7", "windows-1254": "cp1254",
    "windows-1255": "cp1255", "windows-1256": "cp1256", "windows-1257": "cp1257", "windows-874": "cp874",
    "koi8-u": "koi8_u", "ibm866": "cp866", "iso-8859-5": "iso8859_5", "iso-8859-6": "iso8859_6",
    "iso-8859-4": "iso8859_4", "iso-8859-13": "iso8859_13", "iso-8859-15": "iso8859_15", "windows-1258": "cp1258",
    "x-mac-cyrillic": "mac_cyrillic", "macintosh": "mac_roman", "iso-8859-3": "iso8859_3",
    "iso-8859-10": "iso8859_10", "iso-8859-14": "iso8859_14", "iso-8859-16": "iso8859_16", "iso-8859-8": "iso8859_8",
}  # fmt: skip
"""Of several that read alike the first."""
_TYPOGRAPHY = frozenset("\u00a0\u2018\u2019\u201a\u201c\u201d\u201e\u2013\u2014\u2026\u2022«»§©®°€№’")
_MARKS = range(0x0300, 0x0370)


def guess_charset(body: bytes, preferred: Sequence[str] = ()) -> str:
    """The charset in which bytes read best; of two that read alike the one named first."""
    sample = _sample(body)
    words = _words_beyond_ascii(sample)
    best, found = -math.inf, "windows-1252"
    known = {**_WESTERN, **_EASTERN_CODECS}
    for name in dict.fromkeys((*(name for name in preferred if name in known), *known)):
        above = best + 0.001
        score = _eastern_score(sample, name) if name in _FREQUENT else _score(words, _WESTERN[name], above)
        if score > above:
            best, found = score, name
    return found


def clearly_better(body: bytes, codec: str, rivals: Sequence[str], margin: float) -> str:
    """The one of several charsets, all of a byte a character, in which bytes read better by so much; else `codec`."""
    words = _words_beyond_ascii(_sample(body))
    least = _score(words, codec, -math.inf) + margin
    best, rival = max((_score(words, rival, least), rival) for rival in rivals)
    return rival if best > least else codec


def _score(sample: bytes, codec: str, above: float) -> float:
    """How much the text beyond ASCII looks like words of one language, about -5 to 1.

    Where it cannot be higher than `above`, anything that is not either.
    """
    try:
        high = _high_words(sample.decode(codec, "replace"))
    except LookupError:
        return -5.0
    letters = {char: number for char, number in Counter(high).items() if char > "\x7f"}
    count = sum(letters.values())
    if not count:
        return 0.0
    broken = letters.get("\ufffd", 0) + sum(number for char, number in letters.items() if char < "\u00a0")
    if 1.0 - (5 * broken - 0.5 * (count - broken)) / count <= above:
        return above
    faults = sum(_fault(before, char) for before, char in zip(" " + high, high, strict=False) if char > "\x7f")
    if 1.0 - faults / count <= above:
        return above
    small = Counter(char for char in high.lower() if char > "\x7f" and (char.isalpha() or ord(char) in _MARKS))
    return _likeness(small, count) - faults / count


def _likeness(letters: Counter[str], count: int) -> float:
    """Half by the share of letters that a language has, half by how they are spread; of the language that fits best."""
    length = math.sqrt(sum(number * number for number in letters.values())) or 1.0
    models = _models()
    found, weighed = [0] * len(models.norms), [0.0] * len(models.norms)
    for char, number in letters.items():
        for language, weight in models.uses.get(char, ()):
            found[language] += number
            weighed[language] += number * weight
    best = 0.0
    for known, weight, norm in zip(found, weighed, models.norms, strict=True):
        share = known / count
        if share > best:
            best = max(best, (share + weight / (length * norm)) / 2)
    return best


class _Models(NamedTuple):
    """By letter, the languages that have it, each with its weight, which falls with its rank; by language, the length
    of all its weights as a vector.
    """

    uses: dict[str, list[tuple[int, float]]]
    norms: list[float]


@cache
def _models() -> _Models:
    models = _Models({}, [])
    for language, letters in enumerate(_LANGUAGES):
        weights = [math.exp(-3 * rank / len(letters)) for rank in range(len(letters))]
        models.norms.append(math.sqrt(sum(weight * weight for weight in weights)))
        for char, weight in zip(letters, weights, strict=True):
            models.uses.setdefault(char, []).append((language, weight))
    return models


def _eastern_score(sample: bytes, name: str) -> float:
    """Bytes by twos: how many of the characters are the usual ones, fewer than a few being impossible."""
    text = sample.decode(_EASTERN_CODECS[name], "replace")
    high = [char for char in text if char > "\u00a0"]
    broken = sum(1 for char in high if char == "\ufffd") - 2  # the sample may cut characters at both ends
    if not high or broken > len(high) / 50:
        return -5.0
    frequent = sum(1 for char in high if char in _FREQUENT[name])
    return min(1.0, frequent / len(high) / _EASTERN_SHARE)


def _sample(body: bytes) -> bytes:
    """A part of the body from its first bytes beyond ASCII on."""
    if len(body) <= _SAMPLE:
        return body
    found = re.search(rb"[\x80-\xff]", body)
    start = max(0, (found.start() if found else 0) - 64)
    return body[start : start + _SAMPLE]


def _words_beyond_ascii(sample: bytes) -> bytes:
    """The words that a charset makes a difference to, where it has ASCII and a byte a character."""
    return b" ".join([word for word in _BYTE_WORD.findall(sample) if not word.isascii()])


def _high_words(text: str) -> str:
    words = (word[0][:_MOST_LETTERS] for word in _WORD.finditer(text) if not word[0].isascii())
    return " ".join(islice(words, _MOST_WORDS))


def _fault(before: str, char: str) -> float:
    """What speaks against a character in its place: controls, marks inside words, capitals after small letters."""
    if char < "\u00a0" or char == "\ufffd":
        return 5.0
    if char.isalpha():
        mixed = before.isascii() and before.isalpha() and char >= "\u0370"
        return 1.0 if mixed or (char.isupper() and before.islower()) else 0.0
    if ord(char) in _MARKS or "\u0e30" <= char <= "\u0e4e" or "\u064b" <= char <= "\u0652":
        return 0.0 if before.isalpha() or ord(before) > 0x300 else 1.0
    if char in _TYPOGRAPHY:
        return 0.5 if before.isalpha() and char in "«©®°§" else -0.5
    return 2.0 if before.isalpha() else 1.0
