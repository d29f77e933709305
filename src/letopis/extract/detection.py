"""What a document is by looking at its bytes: its content type. What the server claims decides only where looks
allow it.
"""

from __future__ import annotations

import re

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
    """The type that the root element tells, or nothing."""
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
