"""Links in pages and style sheets, each rewritten to lead elsewhere.

One pass over the text, tag by tag; everything that is no address stays byte for byte as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape, unescape
from typing import Any

from letopis.extract.charsets import decode, in_page_charset, python_codec
from letopis.extract.pages import charset_of
from letopis.urls import joiner

RewriteLink = Callable[[str, bool], str | None]
"""From an absolute address, and whether the page cannot be shown without it, to where it leads now; None: nowhere."""

# Every pattern here runs on hostile pages: each takes its text in one way only, so that time grows with size.
ATTRIBUTE_VALUE = r"(\s*+=\s*+)(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>\"']++))"
_ENDS = r"(?>[^>\"']++|\"[^\"]*+\"|'[^']*+')*+>?"
_LINKING = (
    "a|area|audio|base|blockquote|body|button|del|embed|form|frame|iframe|image|img|input|ins|link|meta|object|q|source"
    "|table|td|th|track|use|video"
)


def _tag_pattern(names: str) -> re.Pattern[str]:
    """Tags of these names, and the parts of a page in which nothing looks like a tag."""
    return re.compile(
        r"<(?:!--.*?(?:-->|\Z)"
        rf"|(?P<raw>script|textarea|title|xmp|noembed)\b(?P<head>{_ENDS})(?P<body>.*?)(?=</(?P=raw)|\Z)"
        rf"|(?P<style>style)\b{_ENDS}(?P<css>.*?)(?=</style|\Z)"
        rf"|(?P<name>{names})\s{_ENDS})",
        re.IGNORECASE | re.DOTALL,
    )


_FEW_TAGS = _tag_pattern(_LINKING)
_ALL_TAGS = _tag_pattern("[a-z][a-z0-9]*")
_ATTRIBUTE = re.compile(
    r"([\s\"'/])(href|src|srcset|imagesrcset|action|formaction|poster|background|cite|longdesc|lowsrc|style|integrity)"
    + ATTRIBUTE_VALUE,
    re.IGNORECASE,
)
_DATA = re.compile(r"([\s\"'/])(data)" + ATTRIBUTE_VALUE, re.IGNORECASE)
_CONTENT = re.compile(r"([\s\"'/])(content)" + ATTRIBUTE_VALUE, re.IGNORECASE)
_CSS = re.compile(
    r"(url\(\s*+)(?:\"([^\"\n\\]*+(?>\\.[^\"\n\\]*+)*+)\"|'([^'\n\\]*+(?>\\.[^'\n\\]*+)*+)'|([^\"'()\s]++))(\s*+\))"
    r"|(@import\s*+)(?:\"([^\"\n]*+)\"|'([^'\n]*+)')",
    re.IGNORECASE | re.DOTALL,
)
_REFRESH = re.compile(r"(\s*+[\d.]++\s*+[;,]\s*+(?>url\s*+=\s*+)?+[\"']?+)([^\"']*+)(.*+)", re.IGNORECASE | re.DOTALL)
# A URL that ends with a comma has no width after it: the next URL follows.
_CANDIDATE = re.compile(r"([^\s,]\S*+)((?>(?<!,)[^,]++)?+)")
_BASE = re.compile(r"<base\s", re.IGNORECASE)
_BASE_TAGS = _tag_pattern("base")
_BASE_HREF = re.compile(r"[\s\"'/]href" + ATTRIBUTE_VALUE, re.IGNORECASE)
_LEFT_ALONE = ("#", "data:", "javascript:", "mailto:", "tel:", "about:", "blob:")
_SPECIAL = re.compile("[&<>\"']")
_USUAL = frozenset({"a", "img", "link", "script"})
_NEEDED_BY_TAG = frozenset(
    {"img", "script", "iframe", "frame", "source", "video", "audio", "track", "embed", "input", "image"}
)
_REL = re.compile(r"[\s\"'/]rel" + ATTRIBUTE_VALUE, re.IGNORECASE)
_NEEDED_RELS = ("stylesheet", "icon", "preload")


class Rewriter:
    """Rewrites one page or style sheet that was found at `url`.

    `read` makes of a reference that is not ASCII what a browser asks for: the text may stand for other letters, and
    the charset of a page is that of its queries.
    """

    def __init__(self, url: str, lead: RewriteLink, read: Callable[[str], str] = str) -> None:
        self._url = url
        self._read = read
        self._lead = lead
        self._join = joiner(url)
        self._known: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._needed = False

    def html(self, text: str) -> str:
        """A page."""
        base = _base_of(text)
        if base is not None:
            self._join = joiner(self._join(base) or self._url)
            self._known = ({}, {})
        # Any tag may have a style; few pages put addresses there.
        styled = "style=" in text and "url(" in text
        return (_ALL_TAGS if styled else _FEW_TAGS).sub(self._tag, text)

    def css(self, text: str) -> str:
        """A style sheet, or a style attribute."""
        return _CSS.sub(self._css_part, text) if "url(" in text or "@import" in text or "URL(" in text else text

    def link(self, address: str, needed: bool = False) -> str:
        """One URL as it is in a page."""
        known = self._known[needed]
        led = known.get(address)
        if led is None:
            led = known[address] = self._linked(address, needed)
        return led

    def _linked(self, address: str, needed: bool) -> str:
        plain = address.strip()
        if not plain or plain.lower().startswith(_LEFT_ALONE):
            return address
        page, mark, fragment = plain.partition("#")
        target = self._join(page if page.isascii() else self._read(page))
        return f"{self._lead(target, needed) or target}{mark}{fragment}" if target else address

    def _tag(self, match: re.Match[str]) -> str:
        whole: str = match[0]
        raw, style, name = match.group("raw", "style", "name")
        if name:
            return self._attributes(whole, name)
        if style:
            start = match.start("css") - match.start()
            return whole[:start] + self.css(match["css"])
        if raw:
            start = match.start("body") - match.start()
            return self._attributes(whole[:start], raw) + match["body"]
        return whole

    def _attributes(self, tag: str, name: str) -> str:
        """A tag with its addresses led elsewhere."""
        if "=" not in tag:
            return tag
        kind = name.lower()
        self._needed = kind in _NEEDED_BY_TAG or (kind == "link" and _is_needed(tag))
        if name in _USUAL:
            return _ATTRIBUTE.sub(self._attribute, tag)
        if kind == "object":
            tag = _DATA.sub(self._attribute, tag)
        elif kind == "meta" and "refresh" in tag.lower():
            tag = _CONTENT.sub(self._refreshed, tag)
        return _ATTRIBUTE.sub(self._attribute, tag)

    def _attribute(self, match: re.Match[str]) -> str:
        lead, name, equals, double, single, bare = match.groups()
        value = double if double is not None else single if single is not None else bare
        plain = unescape(value) if "&" in value else value
        change = _CHANGES.get(name) or _CHANGES.get(name.lower(), Rewriter._one)
        if change is None:
            return lead if name.lower() == "integrity" else str(match[0])
        changed = change(self, plain)
        if changed is plain or changed == plain:
            return str(match[0])
        return f"{lead}{name}{equals}{quoted_attribute(changed)}"

    def _one(self, value: str) -> str:
        return self.link(value, self._needed)

    def _picture(self, value: str) -> str:
        return self.link(value, True)

    def _refreshed(self, match: re.Match[str]) -> str:
        lead, name, equals, double, single, bare = match.groups()
        value = unescape(double if double is not None else single if single is not None else bare)
        return f"{lead}{name}{equals}{quoted_attribute(self._refresh(value))}"

    def _refresh(self, value: str) -> str:
        match = _REFRESH.fullmatch(value)
        return match[1] + self.link(match[2]) + match[3] if match and match[2] else value

    def _srcset(self, value: str) -> str:
        return _CANDIDATE.sub(lambda part: self._candidate(part[1]) + part[2], value)

    def _candidate(self, address: str) -> str:
        bare = address.rstrip(",")
        return self.link(bare, True) + address[len(bare) :]

    def _css_part(self, match: re.Match[str]) -> str:
        place = next(at for at in (2, 3, 4, 7, 8) if match[at] is not None)
        start, end = match.start(place) - match.start(), match.end(place) - match.start()
        whole: str = match[0]
        return whole[:start] + self.link(match[place], True) + whole[end:]


def rewrite_under(folder: str, url: str, text: str, read: Callable[[str], str] = str, *, page: bool) -> str:
    """A page or style sheet found at `url` whose links lead to a folder, with their whole addresses behind it.

    `read` decodes a reference of the text, if its characters are bytes.
    """
    rewriter = Rewriter(url, lambda target, _: folder + target, read)
    return rewriter.html(text) if page else rewriter.css(text)


def rewrite_for_another(order: Mapping[str, Any], body: bytes) -> bytes:
    """`rewrite_under` for the calling process."""
    text, carrier, read = carried_text(body, order["content_type"])
    rewritten = rewrite_under(order["folder"], order["url"], text, read, page=order["page"])
    return rewritten.encode(carrier, "surrogateescape")


def carried_text(body: bytes, content_type: str) -> tuple[str, str, Callable[[str], str]]:
    """The body as text that gives every byte back, the codec that does, and what its references mean.

    UTF-8 is read as it is. Of all other charsets a character is a byte, and only references are read.
    """
    try:
        return body.decode("utf-8"), "utf-8", str
    except UnicodeDecodeError:
        charset = decode(body, charset_of(content_type)).charset
    if charset == "utf-8":
        return body.decode("utf-8", "surrogateescape"), "utf-8", str

    def read(reference: str) -> str:
        try:
            meant = reference.encode("latin-1").decode(python_codec(charset), "replace")
        except (UnicodeEncodeError, LookupError):  # it was written with character references
            meant = reference
        return in_page_charset(meant, charset)

    return body.decode("latin-1"), "latin-1", read


def with_absolute_base(url: str, body: bytes, content_type: str) -> bytes:
    """A page found at `url` whose `<base>` does not lean on that address; all other bytes stay."""
    text, carrier, read = carried_text(body, content_type)
    found = _base_in(text)
    if found is None:
        return body
    tag, href = found
    value = unescape(_value(href.groups()[1:]))
    target = joiner(url)(read(value))
    if target is None or value.lower().startswith(("http://", "https://")):
        return body
    start, end = tag.start() + href.start(1), tag.start() + href.end()
    return f"{text[:start]}={quoted_attribute(target)}{text[end:]}".encode(carrier, "surrogateescape")


def _base_of(text: str) -> str | None:
    """What the first `<base>` with an address says; None where there is none."""
    found = _base_in(text)
    return unescape(_value(found[1].groups()[1:])) if found else None


def _base_in(text: str) -> tuple[re.Match[str], re.Match[str]] | None:
    """The first `<base>` with an address, and that attribute in it."""
    if not _BASE.search(text):
        return None
    for tag in _BASE_TAGS.finditer(text):
        href = _BASE_HREF.search(tag[0]) if tag["name"] else None
        if href:
            return tag, href
    return None


def _is_needed(link: str) -> bool:
    """Whether a `<link>` names what the page cannot be shown without."""
    rel = _REL.search(link)
    value = _value(rel.groups()[1:]).lower() if rel else ""
    return any(word in value for word in _NEEDED_RELS)


def _value(found: Sequence[str | None]) -> str:
    """The value of an attribute, whichever way it is quoted."""
    return next((value for value in found if value is not None), "")


def quoted_attribute(value: str) -> str:
    """The value of an attribute, in quotes."""
    return f'"{escape(value) if _SPECIAL.search(value) else value}"'


_CHANGES: dict[str, Callable[[Rewriter, str], str] | None] = {
    "href": Rewriter._one,
    "src": Rewriter._one,
    "style": Rewriter.css,
    "srcset": Rewriter._srcset,
    "imagesrcset": Rewriter._srcset,
    "poster": Rewriter._picture,
    "background": Rewriter._picture,
    "integrity": None,
}
"""What becomes of an attribute's value; most hold one address. A changed file would not fit its checksum."""
