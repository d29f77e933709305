"""Bytes to text: what the page says, what its bytes can be, and which of the two to believe.

Order: byte order mark, valid UTF-8, the header, the page's own declaration,
detection. A declared one-byte charset is believed unless another gives
clearly better words: mislabelled Czech, Slovak and Russian pages are common.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

_SAMPLE = 16 * 1024
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META = re.compile(rb"""<meta[^>]{0,400}?charset\s*=\s*["']?\s*([\w.:-]{2,40})""", re.IGNORECASE)
_XML = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{2,40})""", re.IGNORECASE)
# Labels that browsers read as a larger set, since pages use the larger set under the smaller name.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_SEVEN_BIT = ("iso2022_jp", "hz")
_GOOD = 0.85
_RIVALS = ("cp1250", "iso8859-2", "cp1251", "koi8-r", "cp1252")
_UNFIT = (
    "utf-7",
    "utf-16",
    "utf-32",
    "utf-16-le",
    "utf-16-be",
    "unicode_escape",
    "raw_unicode_escape",
    "idna",
    "punycode",
)
_LETTERS = (
    frozenset("áčďéěíňóřšťúůýž"),
    frozenset("áäčďéíĺľňóôŕšťúýž"),
    frozenset("ąćęłńóśźż"),
    frozenset("áéíóöőúüű"),
    frozenset("äöüßéà"),
    frozenset("àâçéèêëîïôûùœ"),
    frozenset("áéíóúñüãâàêõôç"),
    frozenset("åäöæø"),
    frozenset("абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґў"),
)
_CYRILLIC = "\u0400"
_TYPOGRAPHY = frozenset("\u00a0\u2018\u2019\u201a\u201c\u201d\u201e\u2013\u2014\u2026\u2022«»§©®°€№’")


class Decoded(NamedTuple):
    """Text and the charset it was written in (as the web names it)."""

    text: str
    charset: str


def decode(body: bytes, declared: str = "") -> Decoded:
    """The text of a document. Never fails: bytes that fit nothing become U+FFFD."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return Decoded(body[len(mark) :].decode(name, "replace"), name)
    if body.isascii():
        return _ascii(body, declared)
    try:
        return Decoded(body.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        name = _charset(body, declared)
    return Decoded(body.decode(name, "replace"), web_name(name))


def web_name(name: str) -> str:
    """`windows-1250` of Python's `cp1250`, and so on."""
    if name.startswith("cp125"):
        return "windows-" + name[2:]
    return name.replace("iso8859-", "iso-8859-").replace("_", "-")


def known(label: str) -> str:
    """Python's name of a charset label of the web, widened as browsers do; nothing when it is none."""
    try:
        info = codecs.lookup(label.strip().lower().removeprefix("x-"))
    except (LookupError, ValueError):
        return ""
    name = _WIDER.get(info.name, info.name)
    is_text = getattr(info, "_is_text_encoding", True)
    return name if is_text and name not in _UNFIT else ""


def _ascii(body: bytes, declared: str) -> Decoded:
    name = known(declared) if b"\x1b" in body or b"~{" in body else ""
    if name in _SEVEN_BIT:
        return Decoded(body.decode(name, "replace"), web_name(name))
    return Decoded(body.decode("ascii"), "utf-8")


def _charset(body: bytes, declared: str) -> str:
    """The best charset for bytes that are not valid UTF-8."""
    names = [name for name in (known(declared), known(_said(body))) if name]
    if declared.startswith("utf-16") and body.count(0, 0, _SAMPLE) > len(body[:_SAMPLE]) // 4:
        return "utf-16-be" if "be" in declared else "utf-16-le"
    if _nearly_utf8(body):
        return "utf-8"
    names = [name for name in names if name != "utf-8"]
    if names and _multibyte(names[0]):
        return names[0]
    if names and _score(body, names[0]) > _GOOD:
        return names[0]
    best = max((*names, *_RIVALS), key=lambda name: _score(body, name) * (1.1 if name in names else 1.0))
    if names or _score(body, best) > 0.5:
        return best
    return _detected(body) or best


def _said(body: bytes) -> str:
    """What the document itself declares near its start."""
    head = body[:4096]
    found = _XML.match(head) or _META.search(head)
    return found[1].decode("ascii", "replace").lower() if found else ""


def _nearly_utf8(body: bytes) -> bool:
    """UTF-8 with a few broken characters, as after a cut or a paste."""
    text = body[:_SAMPLE].decode("utf-8", "replace")
    broken = text.count("\ufffd")
    high = sum(1 for char in text if char > "\x7f")
    return broken <= 1 + (high - broken) // 20 and high > broken


def _multibyte(name: str) -> bool:
    return name.startswith(("gb", "big5", "euc", "cp932", "cp949", "iso2022", "hz", "johab"))


def _score(body: bytes, name: str) -> float:
    """How much the text beyond ASCII looks like words of one language, about -5 to 1 a character."""
    high = _high_words(body.decode(name, "replace") if len(body) <= _SAMPLE else _sample(body, name))
    count = sum(1 for char in high if char > "\x7f")
    if not count:
        return 0.0
    faults = sum(_fault(before, char) for before, char in zip(" " + high, high, strict=False) if char > "\x7f")
    lower = high.lower()
    return max(sum(1 for char in lower if char in letters) for letters in _LETTERS) / count - faults / count


def _sample(body: bytes, name: str) -> str:
    """A part of the body around its first bytes beyond ASCII."""
    found = re.search(rb"[\x80-\xff]", body)
    start = max(0, (found.start() if found else 0) - 64)
    return body[start : start + _SAMPLE].decode(name, "replace")


def _high_words(text: str) -> str:
    return " ".join([word[:40] for word in text.split() if not word.isascii()][:400])


def _fault(before: str, char: str) -> float:
    """What speaks against a character in its place: controls, marks inside words, capitals after small letters."""
    if char < "\u00a0" or char == "\ufffd":
        return 5.0
    if char.isalpha():
        mixed = before.isascii() and before.isalpha() and char >= _CYRILLIC
        return 1.0 if mixed or (char.isupper() and before.islower()) else 0.0
    if char in _TYPOGRAPHY:
        return 0.5 if before.isalpha() and char in "«©®°§" else -0.5
    return 2.0 if before.isalpha() else 1.0


def _detected(body: bytes) -> str:
    # Loaded late on purpose: few pages need it, and every crawl starts.
    from charset_normalizer import from_bytes  # noqa: PLC0415

    found = from_bytes(body[:_SAMPLE]).best()
    return known(found.encoding) if found else ""
