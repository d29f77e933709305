"""What a document is by looking at its bytes: its content type and its character set.

What the server claims decides only where looks allow it. Charsets in this
order: byte order mark, valid UTF-8, the header, the page's own declaration,
detection. A declared one-byte charset is believed unless another gives
clearly better words: mislabelled Czech, Slovak and Russian pages are common.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, NamedTuple

from letopis.lazy import lazy

if TYPE_CHECKING:
    import charset_normalizer
else:
    charset_normalizer = lazy("charset_normalizer")

_MAGIC = (
    (b"%PDF-", "application/pdf"),
    (b"{\\rtf", "application/rtf"),
    (b"%!PS", "application/postscript"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/msword"),
)
_KNOWN_STARTS = (*(start for start, _ in _MAGIC), b"RIFF", b"PK\x03\x04")
_ROOTS = (
    (b"html", "text/html"),
    (b"rss", "application/rss+xml"),
    (b"rdf:RDF", "application/rss+xml"),
    (b"feed", "application/atom+xml"),
    (b"urlset", "application/sitemap+xml"),
    (b"sitemapindex", "application/sitemap+xml"),
    (b"svg", "image/svg+xml"),
)
# What stands before the first element is taken in one way only, or many comments would take for ever.
_MARKUP = re.compile(
    rb"(?>\s|<!--.{0,2000}?-->)*+<(?:!doctype\s+html|html|head|body|title|script|meta|link|base|h[1-6]|div|p|table|br|a"
    rb"|span|style|section|article|header|main|nav|ul|ol|center|font|form|img|iframe)[\s>/]",
    re.IGNORECASE | re.DOTALL,
)
_ROOT = re.compile(
    rb"(?>\s|<\?[^>]{0,500}\?>|<!--.{0,4000}?-->|<!DOCTYPE[^>\[]{0,500}>)*+<([A-Za-z_][\w:.-]{0,60})", re.DOTALL
)
_CONTROL = bytes((*range(0x09), *range(0x0E, 0x1B)))
_TYPE_SAMPLE = 4096
_VAGUE_TYPES = ("", "text/plain", "application/octet-stream", "application/xml", "text/xml", "unknown/unknown", "*/*")
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
OFFICE_TYPES = {
    b"word/": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    b"mimetypeapplication/vnd.oasis.opendocument.text": "application/vnd.oasis.opendocument.text",
}


def bare_type(content_type: str) -> str:
    """`text/html` of `Text/HTML; charset=utf-8`."""
    return content_type.partition(";")[0].strip().lower()


def sniff(body: bytes, claimed: str = "") -> str:
    """The content type of a document, in lower case without parameters."""
    claim = bare_type(claimed)
    found = _by_magic(body, claim)
    if found:
        return found
    if claim in ("text/html", "application/xhtml+xml"):
        return _of_claimed_html(body)
    if claim in _VAGUE_TYPES:
        return _by_text(body, claim)
    return claim


def _by_magic(body: bytes, claim: str) -> str:
    if not body.startswith(_KNOWN_STARTS):
        return ""
    for start, name in _MAGIC:
        if body.startswith(start):
            return name
    if body[8:12] == b"WEBP" and body.startswith(b"RIFF"):
        return "image/webp"
    if body.startswith(b"PK\x03\x04"):
        return _of_zip(body, claim)
    return ""


def _of_zip(body: bytes, claim: str) -> str:
    # The first entries are named near the start; ODF keeps its type there on purpose.
    for mark, name in OFFICE_TYPES.items():
        if mark in body[:_TYPE_SAMPLE] or claim == name:
            return name
    return (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
        if b"word/document.xml" in body
        else "application/zip"
    )


def _of_claimed_html(body: bytes) -> str:
    """HTML as claimed, unless it clearly is a feed, a sitemap, or bytes that are no text."""
    root = _by_root_element(body)
    if root and root != "text/html" and not root.startswith("image/"):
        return root
    return "application/octet-stream" if _is_binary(body) else "text/html"


def _by_text(body: bytes, claim: str) -> str:
    if _is_binary(body):
        return "application/octet-stream" if claim in ("", "text/plain") else claim
    start = body[:_TYPE_SAMPLE].removeprefix(b"\xef\xbb\xbf").lstrip()
    root = _by_root_element(start)
    if root:
        return root
    if start.startswith(b"<?xml"):
        return "application/xml"
    if _MARKUP.match(start) and not claim.endswith("/xml"):
        return "text/html"
    if start[:1] in (b"{", b"[") and claim != "text/plain":
        return "application/json"
    return claim if claim.endswith("/xml") else "text/plain"


def _by_root_element(body: bytes) -> str:
    """The type that the root element tells, or nothing."""
    found = _ROOT.match(body[:_TYPE_SAMPLE].removeprefix(b"\xef\xbb\xbf"))
    if not found:
        return ""
    name = found[1]
    for root, kind in _ROOTS:
        if name == root or (root == b"html" and name.lower() == b"html"):
            return kind
    return ""


def _is_binary(body: bytes) -> bool:
    """Bytes that no text has, UTF-16 aside."""
    head = body[:512]
    return len(head.translate(None, _CONTROL)) < len(head) and not head.startswith(_BOMS)


_CHARSET_SAMPLE = 16 * 1024
_BOM_CHARSETS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META_CHARSET = re.compile(rb"""<meta[^>]{0,400}?charset\s*=\s*["']?\s*([\w.:-]{2,40})""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{2,40})""", re.IGNORECASE)
# Labels that browsers read as a larger set, since pages use the larger set under the smaller name.
_WIDER_CHARSETS = {
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
_GOOD_SCORE = 0.85
_RIVAL_CHARSETS = ("cp1250", "iso8859-2", "cp1251", "koi8-r", "cp1252")
_UNFIT_CHARSETS = (
    "utf-7",
    "utf-16",
    "utf-32",
    "utf-16-le",
    "utf-16-be",
    "unicode_escape",
    "raw_unicode_escape",
    "idna",
    "punycode",
    "undefined",
)
_LANGUAGE_LETTERS = (
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


class DecodedText(NamedTuple):
    """Text and the charset it was written in (as the web names it)."""

    text: str
    charset: str


def decode(body: bytes, declared: str = "") -> DecodedText:
    """The text of a document. Never fails: bytes that fit nothing become U+FFFD."""
    for mark, name in _BOM_CHARSETS:
        if body.startswith(mark):
            return DecodedText(body[len(mark) :].decode(name, "replace"), name)
    if body.isascii():
        return _decoded_ascii(body, declared)
    try:
        return DecodedText(body.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        name = _best_charset(body, declared)
    return DecodedText(body.decode(name, "replace"), web_charset(name))


def web_charset(name: str) -> str:
    """`windows-1250` of Python's `cp1250`, and so on."""
    if name.startswith("cp125"):
        return "windows-" + name[2:]
    return name.replace("iso8859-", "iso-8859-").replace("_", "-")


def python_charset(label: str) -> str:
    """Python's name of a charset label of the web, widened as browsers do; nothing when it is none."""
    try:
        info = codecs.lookup(label.strip().lower().removeprefix("x-"))
    except (LookupError, ValueError):
        return ""
    name = _WIDER_CHARSETS.get(info.name, info.name)
    is_text = getattr(info, "_is_text_encoding", True)
    return name if is_text and name not in _UNFIT_CHARSETS else ""


def _decoded_ascii(body: bytes, declared: str) -> DecodedText:
    name = python_charset(declared) if b"\x1b" in body or b"~{" in body else ""
    if name in _SEVEN_BIT:
        return DecodedText(body.decode(name, "replace"), web_charset(name))
    return DecodedText(body.decode("ascii"), "utf-8")


def _best_charset(body: bytes, declared: str) -> str:
    """The best charset for bytes that are not valid UTF-8."""
    names = [name for name in (python_charset(declared), python_charset(_declared_charset(body))) if name]
    if declared.startswith("utf-16") and body.count(0, 0, _CHARSET_SAMPLE) > len(body[:_CHARSET_SAMPLE]) // 4:
        return "utf-16-be" if "be" in declared else "utf-16-le"
    if _nearly_utf8(body):
        return "utf-8"
    names = [name for name in names if name != "utf-8"]
    if names and _multibyte(names[0]):
        return names[0]
    if names and _charset_score(body, names[0]) > _GOOD_SCORE:
        return names[0]
    best = max(
        (*names, *_RIVAL_CHARSETS), key=lambda name: _charset_score(body, name) * (1.1 if name in names else 1.0)
    )
    if names or _charset_score(body, best) > 0.5:
        return best
    return _detected_charset(body) or best


def _declared_charset(body: bytes) -> str:
    """What the document itself declares near its start."""
    head = body[:4096]
    found = _XML_ENCODING.match(head) or _META_CHARSET.search(head)
    return found[1].decode("ascii", "replace").lower() if found else ""


def _nearly_utf8(body: bytes) -> bool:
    """UTF-8 with a few broken characters, as after a cut or a paste."""
    text = body[:_CHARSET_SAMPLE].decode("utf-8", "replace")
    broken = text.count("\ufffd")
    high = sum(1 for char in text if char > "\x7f")
    return broken <= 1 + (high - broken) // 20 and high > broken


def _multibyte(name: str) -> bool:
    return name.startswith(("gb", "big5", "euc", "cp932", "cp949", "iso2022", "hz", "johab"))


def _charset_score(body: bytes, name: str) -> float:
    """How much the text beyond ASCII looks like words of one language, about -5 to 1 a character."""
    high = _high_words(body.decode(name, "replace") if len(body) <= _CHARSET_SAMPLE else _sample_text(body, name))
    count = sum(1 for char in high if char > "\x7f")
    if not count:
        return 0.0
    faults = sum(_fault(before, char) for before, char in zip(" " + high, high, strict=False) if char > "\x7f")
    lower = high.lower()
    return max(sum(1 for char in lower if char in letters) for letters in _LANGUAGE_LETTERS) / count - faults / count


def _sample_text(body: bytes, name: str) -> str:
    """A part of the body around its first bytes beyond ASCII."""
    found = re.search(rb"[\x80-\xff]", body)
    start = max(0, (found.start() if found else 0) - 64)
    return body[start : start + _CHARSET_SAMPLE].decode(name, "replace")


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


def _detected_charset(body: bytes) -> str:
    found = charset_normalizer.from_bytes(body[:_CHARSET_SAMPLE]).best()
    return python_charset(found.encoding) if found else ""
