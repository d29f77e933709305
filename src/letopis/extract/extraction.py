"""From bytes to a Page: detect the type, choose the format, read, add what the headers say.

The bytes tell what a document is; what the server claims decides only where looks allow it.

Risky formats, and HTML that could keep the parser busy for minutes, are read in a process of their own, bounded in time
and memory (`letopis.bounded`).

An entry point of the group `letopis.formats` names a `Format`: new ones come in without touching this package. Those
that ship with Letopis stand in a table; a module is imported when the first document of its type arrives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from letopis.bounded import MAX_SECONDS, run_bounded
from letopis.errors import MissingExtra, TooCostly
from letopis.extract.metadata import language_of, primary_language, read_date, robots_directives
from letopis.extract.pages import Mode, PageDraft, Source, charset_of, page_from_json, page_to_json
from letopis.model import Headers, Page, header
from letopis.plugins import entry_points_of
from letopis.tuples import NamedTuple

ENTRY_POINT_GROUP = "letopis.formats"

FormatReader = Callable[[Source, PageDraft], None]


@dataclass(frozen=True, slots=True)
class Format:
    """How documents of some types are read.

    `read` fills the draft from the source; whatever it raises becomes a warning of the page. A `risky` format is read
    in a process of its own that can be killed: everything that hands hostile bytes to large libraries.
    """

    types: tuple[str, ...]
    read: FormatReader
    risky: bool = False


class _BuiltInFormat(NamedTuple):
    module: str
    reader: str
    types: tuple[str, ...]
    risky: bool = False


_OFFICE = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."
_BUILT_IN_FORMATS = (
    _BuiltInFormat("html", "read_html", ("text/html", "application/xhtml+xml")),
    _BuiltInFormat(
        "simple_formats",
        "read_plain_text",
        ("text/plain", "text/markdown", "text/csv", "text/tab-separated-values", "text/x-log"),
    ),
    _BuiltInFormat("simple_formats", "read_css", ("text/css",)),
    _BuiltInFormat("simple_formats", "read_json", ("application/json", "application/ld+json", "text/json")),
    _BuiltInFormat("feeds", "read_json_feed", ("application/feed+json",)),
    _BuiltInFormat("feeds", "read_feed", ("application/rss+xml", "application/atom+xml")),
    _BuiltInFormat("feeds", "read_sitemap", ("application/sitemap+xml", "application/gzip", "application/x-gzip")),
    _BuiltInFormat("xml", "read_xml", ("application/xml", "text/xml", "image/svg+xml")),
    _BuiltInFormat("simple_formats", "read_image", ("image/png", "image/jpeg", "image/gif", "image/webp")),
    _BuiltInFormat("pdf", "read_postscript", ("application/postscript",)),
    _BuiltInFormat("pdf", "read_pdf", ("application/pdf",), risky=True),
    _BuiltInFormat("office", "read_docx", (_OFFICE + "wordprocessingml.document",), risky=True),
    _BuiltInFormat("office", "read_xlsx", (_OFFICE + "spreadsheetml.sheet",), risky=True),
    _BuiltInFormat("office", "read_pptx", (_OFFICE + "presentationml.presentation",), risky=True),
    _BuiltInFormat(
        "office", "read_opendocument", (_ODF + "text", _ODF + "spreadsheet", _ODF + "presentation"), risky=True
    ),
    _BuiltInFormat("office", "read_epub", ("application/epub+zip",), risky=True),
    _BuiltInFormat("mail", "read_message", ("message/rfc822", "multipart/related"), risky=True),
    _BuiltInFormat("mail", "read_mailbox", ("application/mbox",), risky=True),
    _BuiltInFormat("rtf", "read_rtf", ("application/rtf", "text/rtf"), risky=True),
)


@lru_cache(maxsize=256)
def format_for(content_type: str) -> Format | None:
    """The format of a type, or None if there is no reader. Installed formats come before the table."""
    for found in _installed_formats():
        if content_type in found.types:
            return found
    for entry in _BUILT_IN_FORMATS:
        if content_type in entry.types:
            return _load(entry)
    return _family(content_type)


def content_types() -> tuple[str, ...]:
    """All types that can be read, sorted."""
    names = {name for entry in _BUILT_IN_FORMATS for name in entry.types}
    return tuple(sorted(names.union(*(found.types for found in _installed_formats()))))


def _family(content_type: str) -> Format | None:
    """Formats of whole families: anything written in XML, in JSON, as text."""
    if content_type.endswith("+xml"):
        return format_for("application/xml")
    if content_type.endswith("+json"):
        return format_for("application/json")
    return format_for("text/plain") if content_type.startswith("text/") else None


def _load(entry: _BuiltInFormat) -> Format:
    module = import_module(f"letopis.extract.{entry.module}")
    return Format(entry.types, getattr(module, entry.reader), entry.risky)


@lru_cache(maxsize=1)
def _installed_formats() -> tuple[Format, ...]:
    found = [point.load() for point in entry_points_of(ENTRY_POINT_GROUP)]
    return tuple(one for one in found if isinstance(one, Format))


# What a document is

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
# What precedes the first element is matched in one way only, or many comments would take forever.
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
HTML_TYPES = ("text/html", "application/xhtml+xml")
_OOXML = "application/vnd.openxmlformats-officedocument."
_ZIPPED_TYPES = (
    (b"mimetypeapplication/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
    (b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet", "application/vnd.oasis.opendocument.spreadsheet"),
    (b"mimetypeapplication/vnd.oasis.opendocument.presentation", "application/vnd.oasis.opendocument.presentation"),
    (b"mimetypeapplication/epub+zip", "application/epub+zip"),
)
"""What a zip archive is by its first entry, which these formats keep there on purpose."""
_ZIPPED_PARTS = (
    (b"word/document.xml", _OOXML + "wordprocessingml.document"),
    (b"ppt/presentation.xml", _OOXML + "presentationml.presentation"),
    (b"xl/workbook.xml", _OOXML + "spreadsheetml.sheet"),
    (b"META-INF/container.xml", "application/epub+zip"),
)
"""What it is by a part that it has; texts and slides may hold sheets."""
_MAILBOX = re.compile(rb"From [^\r\n]{1,200} [12]\d{3}\r?\n[!-9;-~]+:")
_MESSAGE = re.compile(
    rb"(?:return-path|received|delivered-to|message-id|mime-version|from|date|subject|to|x-[\w-]+):", re.IGNORECASE
)
_MESSAGE_FIELD = re.compile(rb"^(from|date|subject|message-id|mime-version|received):", re.IGNORECASE | re.MULTILINE)
_NEEDED_FIELDS = 3
_JSON_FEED = b"jsonfeed.org/version/"


def bare_type(content_type: str) -> str:
    """`text/html` of `Text/HTML; charset=utf-8`."""
    return content_type.partition(";")[0].strip().lower()


def sniff(body: bytes, claimed: str = "") -> str:
    """The content type of a document, in lower case without parameters."""
    claim = bare_type(claimed)
    found = _by_magic(body, claim)
    if found:
        return found
    if claim in HTML_TYPES:
        return _of_claimed_html(body, claimed)
    if claim in _VAGUE_TYPES:
        return _by_text(body, claim)
    return _of_json(body[:_TYPE_SAMPLE]) if claim == "application/json" else claim


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
    for mark, name in _ZIPPED_TYPES:
        if mark in body[:_TYPE_SAMPLE]:
            return name
    if any(claim == name for _, name in (*_ZIPPED_TYPES, *_ZIPPED_PARTS)):
        return claim
    return next((name for part, name in _ZIPPED_PARTS if part in body), "application/zip")


def _of_json(start: bytes) -> str:
    return "application/feed+json" if _JSON_FEED in start else "application/json"


def _of_mail(start: bytes) -> str:
    """The type of a message or a mailbox, or nothing: a head of at least three fields that mail has."""
    if _MAILBOX.match(start):
        return "application/mbox"
    if not _MESSAGE.match(start):
        return ""
    head = re.split(rb"\r?\n\r?\n", start, maxsplit=1)[0]
    fields = {name.lower() for name in _MESSAGE_FIELD.findall(head)}
    return "message/rfc822" if len(fields) >= _NEEDED_FIELDS else ""


def _of_claimed_html(body: bytes, claimed: str) -> str:
    """HTML as claimed, unless it clearly is a feed, a sitemap, or bytes that are no text; UTF-16 is full of zeros."""
    root = _by_root_element(body)
    if root and root != "text/html" and not root.startswith("image/"):
        return root
    is_binary = _is_binary(body) and "utf-16" not in claimed.lower() and not _MARKUP.match(_start(body))
    return "application/octet-stream" if is_binary else "text/html"


def _by_text(body: bytes, claim: str) -> str:
    start = _start(body)
    if _is_binary(body) and not _MARKUP.match(start):
        return "application/octet-stream" if claim in ("", "text/plain") else claim
    known = _by_root_element(start) or _of_mail(start)
    if known:
        return known
    if start.startswith(b"<?xml"):
        return "application/xml"
    if _MARKUP.match(start) and not claim.endswith("/xml"):
        return "text/html"
    if start[:1] in (b"{", b"[") and claim != "text/plain":
        return _of_json(start)
    return claim if claim.endswith("/xml") else "text/plain"


def _by_root_element(body: bytes) -> str:
    """The type according to the root element, or nothing."""
    found = _ROOT.match(body[:_TYPE_SAMPLE].removeprefix(b"\xef\xbb\xbf"))
    if not found:
        return ""
    name = found[1]
    for root, kind in _ROOTS:
        if name == root or (root == b"html" and name.lower() == b"html"):
            return kind
    return ""


def _start(body: bytes) -> bytes:
    return body[:_TYPE_SAMPLE].removeprefix(b"\xef\xbb\xbf").lstrip()


def _is_binary(body: bytes) -> bool:
    """Bytes that no text has, UTF-16 aside; a page that begins with markup may have some by mistake."""
    head = body[:512]
    return len(head.translate(None, _CONTROL)) < len(head) and not head.startswith(_BOMS)


# What takes long to read

_SMALL_PAGE = 64 * 1024
_LARGE_PAGE = 256 * 1024
_FEW_TAGS = 8192
_MOST_TAGS = 200_000
_MOST_DEPTH = 512
_MOST_ATTRIBUTES = 256
_CLIMBED = 32
_LONG_TAG = re.compile(rb"<[a-zA-Z][^>]{4096}")
_TAG = re.compile(rb"""<(?:(!--)|(/?)([a-z][^\s/>]*)([^>"']*+(?>"[^"]*+"[^>"']*+|'[^']*+'[^>"']*+)*+))""")
_OPENED = re.compile(rb"<[a-z]")
_BLANKS = re.compile(rb"[\s/]+")
_RAW_ELEMENTS = frozenset(b"script style title textarea xmp iframe noembed noframes".split())
# An end tag closes nothing beyond one of these.
_BARRIERS = frozenset(b"applet caption html marquee object select table template".split())
# Never open for long: without content, or closed by the next of their kind.
_FLAT_ELEMENTS = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dt dd tr td th".split()
)


def needs_own_process(body: bytes) -> bool:
    """Whether a page could take more than about a second to parse."""
    if len(body) <= _SMALL_PAGE:
        return False
    tags = body.count(b"<")
    if tags > _MOST_TAGS:
        return True
    suspect = tags > _FEW_TAGS or len(body) > _LARGE_PAGE or _LONG_TAG.search(body) is not None
    return suspect and _is_deep_or_wide(body.lower())


def _is_deep_or_wide(body: bytes) -> bool:
    """Counts open elements and attributes as far as plain looks can tell; doubt counts as danger.

    Where the parser may see a comment or a script and we may not, or the other way round, what opens there counts
    as opened and what closes there does not count.
    """
    stack: list[bytes] = []
    hidden = at = 0
    while (found := _TAG.search(body, at)) is not None:
        comment, slash, name, rest = found.groups()
        at = found.end()
        if comment or (name in _RAW_ELEMENTS and not slash):
            end = body.find(b"-->" if comment else b"</" + name, at)
            inside = body[at : end if end >= 0 else len(body)]
            if name == b"script" and b"<!--" in inside and b"<script" in inside:
                return True
            hidden += len(_OPENED.findall(inside))
            at += len(inside)
        elif rest and _is_wide(rest):
            return True
        elif slash:
            _close(stack, name)
        elif name not in _FLAT_ELEMENTS:
            stack.append(name)
        if len(stack) + hidden > _MOST_DEPTH:
            return True
    return False


def _close(stack: list[bytes], name: bytes) -> None:
    """Takes what an end tag closes off the stack, if it closes anything for certain."""
    for place in range(len(stack) - 1, max(-1, len(stack) - 1 - _CLIMBED), -1):
        if stack[place] == name:
            del stack[place:]
            return
        if stack[place] in _BARRIERS:
            return


def _is_wide(attributes: bytes) -> bool:
    """More attributes than any honest tag has; blanks and slashes inside quotes do not count."""
    if len(attributes) <= 2 * _MOST_ATTRIBUTES or len(_BLANKS.findall(attributes)) <= _MOST_ATTRIBUTES:
        return False
    bare = re.sub(rb"""=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'>]++)""", b" ", attributes)
    return len(_BLANKS.sub(b" ", bare).split()) > _MOST_ATTRIBUTES


def read_in_own_process(source: Source, *, detect_language: bool = True, seconds: float = MAX_SECONDS) -> Page:
    """The Page of a document; a crash, a hang or a memory bomb gives a Page with a warning."""
    order = {
        "url": source.url,
        "content_type": source.content_type,
        "headers": source.headers,
        "mode": source.mode,
        "detect_language": detect_language,
    }
    try:
        return page_from_json(run_bounded("letopis.extract.extraction:read_for_another", order, source.body, seconds))
    except TooCostly as error:
        return _failed(source, str(error))
    except (ValueError, TypeError, KeyError):
        return _failed(source, "reading it gave no usable answer")


def read_for_another(order: Mapping[str, Any], body: bytes) -> bytes:
    """The Page of a document as JSON, for the calling process."""
    headers = tuple((name, value) for name, value in order["headers"])
    source = Source(body, order["url"], order["content_type"], headers, order["mode"])
    found = format_for(source.content_type)
    if found is None:
        raise ValueError("no extractor reads this type")
    return page_to_json(read_in_this_process(source, found, detect_language=order["detect_language"])).encode()


def _failed(source: Source, reason: str) -> Page:
    draft = PageDraft(source)
    draft.warn(f"the document was not read: {reason}")
    return draft.page()


def read_page(
    body: bytes,
    url: str,
    headers: Headers = (),
    *,
    detect_language: bool = True,
    mode: Mode = "full",
    apart: bool = True,
) -> Page:
    """The common form of a document of any format; never raises for what the document holds.

    `url` is its absolute, normalised address. What cannot be read gives a Page without blocks and with a warning. Mode
    `basic` finds title and links only, mode `skim` just the links to other documents, without their texts. With `apart`
    false nothing is read in a process of its own.
    """
    source = Source(body, url, sniff(body, header(headers, "content-type")), headers, mode)
    found = format_for(source.content_type)
    if found is None:
        draft = PageDraft(source)
        draft.charset = charset_of(source.header("content-type"))
        return _finished(source, draft, detect_language=False)
    if apart and (found.risky or (source.content_type in HTML_TYPES and needs_own_process(body))):
        return read_in_own_process(source, detect_language=detect_language)
    return read_in_this_process(source, found, detect_language=detect_language)


def read_in_this_process(source: Source, found: Format, *, detect_language: bool) -> Page:
    """Reads a document in this process. A fault of its format becomes a warning."""
    draft = PageDraft(source)
    try:
        found.read(source, draft)
    except MissingExtra as fault:
        draft.warn(str(fault))
    except Exception as fault:
        # Whatever a library raises for a hostile document, the crawl continues.
        draft.warn(f"the document is damaged or unusual ({type(fault).__name__}: {str(fault)[:200]})")
    return _finished(source, draft, detect_language=detect_language and source.mode == "full")


def _finished(source: Source, draft: PageDraft, *, detect_language: bool) -> Page:
    """Adds what the headers say, and the language."""
    if source.headers:
        _settle_robots(source, draft)
        if source.mode != "skim":
            _settle_headers(source, draft)
    draft.language = language_of(draft.blocks, draft.declared_language) if detect_language else draft.declared_language
    return draft.page()


def _directives_for_all(value: str) -> set[str]:
    """The directives of an X-Robots-Tag value, none when it speaks to one robot by name."""
    name, colon, _ = value.partition(":")
    named = colon and "," not in name and not name.strip().lower().startswith(("max-", "unavailable_after"))
    return set() if named else robots_directives(value)


def _settle_robots(source: Source, draft: PageDraft) -> None:
    for name, value in source.headers:
        if name.lower() == "x-robots-tag":
            draft.robots.update(_directives_for_all(value))


def _settle_headers(source: Source, draft: PageDraft) -> None:
    if not draft.declared_language:
        draft.declared_language = primary_language(source.header("content-language"))
    if draft.modified is None and source.mode == "full":
        draft.modified = read_date(source.header("last-modified"))
