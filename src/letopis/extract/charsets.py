"""Character sets of the web: their labels, what a document declares, and its text.

Names are those of the WHATWG Encoding Standard. A byte order mark decides, then valid UTF-8, then what the server or
the page declares. A declared charset is believed unless its bytes mean nothing in it; only the few that servers and
editors declare by default (Western and Central European, Russian) are doubted where another one of them reads clearly
better. What declares nothing is guessed.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from urllib.parse import quote_from_bytes

from letopis.extract.charset_guess import clearly_better, guess_charset
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
