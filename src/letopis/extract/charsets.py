"""Character sets of the web: their labels, what a document declares, and its text.

Names are those of the WHATWG Encoding Standard. A byte order mark decides, then valid UTF-8, then what the server or
the page declares. A declared charset is believed unless its bytes mean nothing in it; only the few that servers and
editors declare by default (Western and Central European, Russian) are doubted where another one of them reads clearly
better. What declares nothing is guessed.
"""

from __future__ import annotations

import codecs
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from urllib.parse import quote_from_bytes

from letopis.tuples import NamedTuple

_LABELS = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8",
    "ibm866": "866 cp866 csibm866",
    "iso-8859-2": "csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso-8859-3": "csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso-8859-4": "csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso-8859-5": "csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "iso-8859-6": (
        "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i iso-ir-127 "
        "iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987"
    ),
    "iso-8859-7": (
        "csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 "
        "sun_eu_greek"
    ),
    "iso-8859-8": (
        "csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 "
        "visual"
    ),
    "iso-8859-8-i": "csiso88598i logical",
    "iso-8859-10": "csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso-8859-13": "iso8859-13 iso885913",
    "iso-8859-14": "iso8859-14 iso885914",
    "iso-8859-15": "csisolatin9 iso8859-15 iso885915 iso_8859-15 l9",
    "iso-8859-16": "",
    "koi8-r": "cskoi8r koi koi8 koi8_r",
    "koi8-u": "koi8-ru",
    "macintosh": "csmacintosh mac x-mac-roman",
    "windows-874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620",
    "windows-1250": "cp1250 x-cp1250",
    "windows-1251": "cp1251 x-cp1251",
    "windows-1252": (
        "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 "
        "iso_8859-1:1987 l1 latin1 us-ascii x-cp1252"
    ),
    "windows-1253": "cp1253 x-cp1253",
    "windows-1254": (
        "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 x-cp1254"
    ),
    "windows-1255": "cp1255 x-cp1255",
    "windows-1256": "cp1256 x-cp1256",
    "windows-1257": "cp1257 x-cp1257",
    "windows-1258": "cp1258 x-cp1258",
    "x-mac-cyrillic": "x-mac-ukrainian",
    "gbk": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk",
    "gb18030": "",
    "big5": "big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "cseucpkdfmtjapanese x-euc-jp",
    "iso-2022-jp": "csiso2022jp",
    "shift_jis": "csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis",
    "euc-kr": (
        "cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949"
    ),
    "replacement": "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr",
    "utf-16be": "unicodefffe",
    "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16",
    "x-user-defined": "",
}  # fmt: skip
CHARSET_OF_LABEL = {label: name for name, labels in _LABELS.items() for label in (name, *labels.split())}
"""All labels of the standard."""
_CODECS = {
    "ibm866": "cp866", "macintosh": "mac_roman", "x-mac-cyrillic": "mac_cyrillic", "iso-8859-8-i": "iso8859_8",
    "gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932", "euc-kr": "cp949", "windows-874": "cp874",
    "x-user-defined": "x-user-defined",
}  # fmt: skip
# Browsers refuse to read these; an archive has no reason to, where it can.
_SEVEN_BIT = {"iso-2022-jp": "iso2022_jp", "hz-gb-2312": "hz", "iso-2022-kr": "iso2022_kr", "csiso2022kr": "iso2022_kr"}
_MULTIBYTE = ("gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr")
_DOUBTED = ("windows-1250", "iso-8859-2", "windows-1251", "koi8-r", "windows-1252")
"""What is declared by default, and so often wrongly; they are one another's rivals."""
_CLEARLY = 0.12
_MOST_UNDEFINED = 0.02
_SAMPLE = 16 * 1024
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be"))
_TAG = re.compile(rb"<[a-zA-Z!/?]")
_UNDEFINED = re.compile("[\x80-\x9f\ufffd]")
_WHITE = "\t\n\f\r "


class DecodedText(NamedTuple):
    """Text and the charset it was written in."""

    text: str
    charset: str


def find_charset(label: str) -> str:
    """The charset that a label means; nothing when it is none."""
    return CHARSET_OF_LABEL.get(label.strip(_WHITE).lower(), "")


def python_codec(charset: str) -> str:
    """Python's name of a charset."""
    return _CODECS.get(charset, charset)


def decode(body: bytes, declared: str = "") -> DecodedText:
    """The text of a document. Never fails: bytes that fit nothing become U+FFFD."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return DecodedText(body[len(mark) :].decode(name, "replace"), name)
    wide = find_charset(declared)
    if wide.startswith("utf-16") and _is_wide(body):
        return DecodedText(body.decode(wide, "replace"), wide)
    if body.isascii():
        return _decoded_ascii(body, declared)
    try:
        return DecodedText(body.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        name = _best_charset(body, declared)
    return DecodedText(_text(body, name), name)


def _text(body: bytes, name: str) -> str:
    if name == "x-user-defined":
        return "".join([chr(byte if byte < 0x80 else 0xF700 + byte) for byte in body])
    text = body.decode(python_codec(name), _CONTROLS_HANDLER)
    # The standard has the two letters of Belarusian here, Python lines for drawing.
    return text.replace("\u255d", "\u045e").replace("\u256c", "\u040e") if name == "koi8-u" else text


def _controls(error: UnicodeError) -> tuple[str, int]:
    """Bytes from 0x80 to 0x9F that a Windows charset leaves open are the control characters of that number."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    byte = error.object[error.start]
    is_control = 0x80 <= byte < 0xA0 and error.encoding.startswith(("cp125", "cp874", "charmap"))
    return (chr(byte) if is_control else "\ufffd"), error.start + 1 if is_control else max(error.end, error.start + 1)


_CONTROLS_HANDLER = "letopis-controls"
codecs.register_error(_CONTROLS_HANDLER, _controls)


def _is_wide(body: bytes) -> bool:
    """Whether bytes can be UTF-16 at all: markup in it has zeros, and whatever is ASCII without them is ASCII."""
    head = body[:_SAMPLE]
    return 0 in head or not (head.isascii() or _TAG.search(head))


def _decoded_ascii(body: bytes, declared: str) -> DecodedText:
    if b"\x1b" in body or b"~{" in body:
        for label in (declared, declared_charset(body, labels=_seven_bit_label)):
            if name := _SEVEN_BIT.get(_seven_bit_label(label)):
                return DecodedText(body.decode(name, "replace"), _seven_bit_label(label))
    return DecodedText(body.decode("ascii"), "utf-8")


def _seven_bit_label(label: str) -> str:
    name = find_charset(label)
    return label.strip(_WHITE).lower() if name == "replacement" else name


def _best_charset(body: bytes, declared: str) -> str:
    """The best charset for bytes that are not valid UTF-8."""
    named = [name for name in (find_charset(declared), declared_charset(body)) if name and name != "replacement"]
    if _nearly_utf8(body):
        return "utf-8"
    named = [name for name in named if name != "utf-8" and not name.startswith("utf-16")]
    possible = [name for name in named if _is_possible(body, name)]
    if not possible:
        return guess_charset(body, [*named, *_DOUBTED])
    if possible[0] not in _DOUBTED:
        return possible[0]
    # Declared by default: unless one of its rivals gives clearly better words.
    return clearly_better(body, possible[0], [name for name in _DOUBTED if name != possible[0]], _CLEARLY)


def _is_possible(body: bytes, name: str) -> bool:
    """Whether bytes mean something in a charset: hardly any are undefined in it, or controls that no text has."""
    if name == "x-user-defined":
        return True
    found = re.search(rb"[\x80-\xff]", body)
    start = max(0, (found.start() if found else 0) - 64)
    text = body[start : start + _SAMPLE].decode(python_codec(name), "replace")
    cut = 1 if name in _MULTIBYTE else 0  # a character at the end of the sample
    return len(_UNDEFINED.findall(text)) <= cut + _high_count(text) * _MOST_UNDEFINED


def _high_count(text: str) -> int:
    """How many characters are beyond ASCII."""
    return len(text) - len(text.encode("ascii", "ignore"))


def _nearly_utf8(body: bytes) -> bool:
    """UTF-8 with a few broken characters, as after a cut or a paste."""
    text = body[:_SAMPLE].decode("utf-8", "replace")
    broken = text.count("\ufffd")
    high = _high_count(text)
    return broken <= 1 + (high - broken) // 20 and high > broken


_PRESCANNED = 4096
_XML_ENCODING = re.compile(rb"""<\?xml\s[^>]{0,200}?encoding\s*=\s*(["'])\s*([\w.:-]{2,40})\s*\1""", re.IGNORECASE)
_SKIPPED = re.compile(rb"<!--.*?-->|<!-->|</?[a-zA-Z](?:[^>\"']|\"[^\"]*\"|'[^']*')*>|<[!/?][^>]*>", re.DOTALL)
_META = re.compile(rb"<meta[\s/]", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""([^\s/>=][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+)))?""")
_CONTENT_CHARSET = re.compile(rb"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"'][^\s;]*))""", re.IGNORECASE)


def declared_charset(body: bytes, labels: Callable[[str], str] = find_charset) -> str:
    """What a page declares near its start, as browsers read it: tag by tag, comments and other texts aside."""
    head = body[:_PRESCANNED]
    xml = _XML_ENCODING.match(head)
    if xml and (name := labels(xml[2].decode("ascii"))):
        return "utf-8" if name.startswith("utf-16") else name
    for tag in _SKIPPED.finditer(head):
        if _META.match(tag[0]) and (name := labels(_meta_label(tag[0][5:].rstrip(b">")))):
            # What could be read this far is no UTF-16, and nobody declares a set of one's own on purpose.
            return "utf-8" if name.startswith("utf-16") else "windows-1252" if name == "x-user-defined" else name
    return ""


def _meta_label(attributes: bytes) -> str:
    """The label in a `<meta>`: of its charset, else of its content where that stands for a header field."""
    found: dict[bytes, bytes] = {}
    for attribute in _ATTRIBUTE.finditer(attributes):
        value = next((value for value in attribute.groups()[1:] if value is not None), b"")
        found.setdefault(attribute[1].lower(), value)
    label = found.get(b"charset")
    if label is None and found.get(b"http-equiv", b"").strip().lower() == b"content-type":
        content = _CONTENT_CHARSET.search(found.get(b"content", b""))
        label = next((value for value in content.groups() if value is not None), b"") if content else b""
    return (label or b"").decode("ascii", "replace")


def in_page_charset(reference: str, charset: str) -> str:
    """A reference as a browser asks for it: its query is in the charset of the page, all else in UTF-8."""
    if reference.isascii() or charset in ("", "utf-8") or charset.startswith("utf-16"):
        return reference
    rest, hash_sign, fragment = reference.partition("#")
    path, mark, query = rest.partition("?")
    if query.isascii():
        return reference
    return path + mark + "".join([_escaped(char, charset) for char in query]) + hash_sign + fragment


def _escaped(char: str, charset: str) -> str:
    """One character of a query; a character reference stands for what the charset lacks."""
    if char.isascii():
        return char
    try:
        return quote_from_bytes(char.encode(python_codec(charset)), safe="")
    except (UnicodeEncodeError, LookupError):
        return f"%26%23{ord(char)}%3B"


# What declares nothing: the charset in which it looks most like words of a language. Each reading is scored by how much
# its letters beyond ASCII are those of one language, how much they are spread like them, and by what no text has:
# controls, marks inside words, capitals behind small letters.

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
