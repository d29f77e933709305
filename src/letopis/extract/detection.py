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
        return _of_claimed_html(body, claimed)
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


def _of_claimed_html(body: bytes, claimed: str) -> str:
    """HTML as claimed, unless it clearly is a feed, a sitemap, or bytes that are no text; UTF-16 is full of zeros."""
    root = _by_root_element(body)
    if root and root != "text/html" and not root.startswith("image/"):
        return root
    is_binary = _is_binary(body) and "utf-16" not in claimed.lower()
    return "application/octet-stream" if is_binary else "text/html"


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
