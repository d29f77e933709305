"""Which module reads which type. New formats come in by entry points, without touching this package.

An entry point of the group `letopis.formats` names a `Format`. Those that
ship with Letopis stand in the table below; a module is imported when the
first document of its type arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module

from letopis.extract.pages import PageDraft, Source
from letopis.plugins import entry_points_of
from letopis.tuples import NamedTuple

ENTRY_POINT_GROUP = "letopis.formats"

FormatReader = Callable[[Source, PageDraft], None]


@dataclass(frozen=True, slots=True)
class Format:
    """How documents of some types are read.

    `read` fills the draft from the source; whatever it raises becomes a
    warning of the page. A `risky` format is read in a process of its own
    that can be killed: everything that hands hostile bytes to large libraries.
    """

    types: tuple[str, ...]
    read: FormatReader
    risky: bool = False


class _BuiltInFormat(NamedTuple):
    module: str
    reader: str
    types: tuple[str, ...]
    risky: bool = False


_OOXML = "application/vnd.openxmlformats-officedocument."
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
    _BuiltInFormat("office", "read_docx", (_OOXML + "wordprocessingml.document",), risky=True),
    _BuiltInFormat("office", "read_xlsx", (_OOXML + "spreadsheetml.sheet",), risky=True),
    _BuiltInFormat("office", "read_pptx", (_OOXML + "presentationml.presentation",), risky=True),
    _BuiltInFormat(
        "office", "read_opendocument", (_ODF + "text", _ODF + "spreadsheet", _ODF + "presentation"), risky=True
    ),
    _BuiltInFormat("epub", "read_epub", ("application/epub+zip",), risky=True),
    _BuiltInFormat("mail", "read_message", ("message/rfc822", "multipart/related"), risky=True),
    _BuiltInFormat("mail", "read_mailbox", ("application/mbox",), risky=True),
    _BuiltInFormat("rtf", "read_rtf", ("application/rtf", "text/rtf"), risky=True),
)


@lru_cache(maxsize=256)
def format_for(content_type: str) -> Format | None:
    """The format of a type, or None when nobody reads it. Installed formats come before the table."""
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
