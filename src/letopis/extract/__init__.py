"""Bytes and a content type in, a Page out: metadata, blocks, links. One module a format."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from letopis.extract.charset import decode
from letopis.extract.draft import Draft
from letopis.extract.formats import Format, content_types, format_for
from letopis.extract.isolated import read_apart
from letopis.extract.reading import page
from letopis.extract.render import page_from_json, to_json, to_xml
from letopis.extract.sniff import sniff
from letopis.extract.source import Mode, Source

if TYPE_CHECKING:
    from letopis.extract.sitemaps import SitemapEntry, sitemap_entries

_HOMES = dict.fromkeys(("SitemapEntry", "sitemap_entries"), "sitemaps")

__all__ = [
    "Draft",
    "Format",
    "Mode",
    "SitemapEntry",
    "Source",
    "content_types",
    "decode",
    "format_for",
    "page",
    "page_from_json",
    "read_apart",
    "sitemap_entries",
    "sniff",
    "to_json",
    "to_xml",
]


def __getattr__(name: str) -> Any:
    """Sitemaps are read by a parser of their own: it is imported at their first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'letopis.extract' has no attribute {name!r}")
    return getattr(import_module(f"letopis.extract.{_HOMES[name]}"), name)
