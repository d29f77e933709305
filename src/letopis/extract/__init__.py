"""Bytes and a content type in, a Page out: metadata, blocks, links. One module a format."""

from typing import TYPE_CHECKING

from letopis.extract.charsets import decode
from letopis.extract.detection import sniff
from letopis.extract.extraction import read_in_own_process, read_page
from letopis.extract.formats import Format, content_types, format_for
from letopis.extract.pages import Mode, PageDraft, Source, page_from_json, page_to_json, page_to_xml
from letopis.lazy import public_names

if TYPE_CHECKING:
    from letopis.extract.feeds import SitemapEntry, sitemap_entries

_HOMES = {"SitemapEntry": "feeds", "sitemap_entries": "feeds"}

__all__ = [
    "Format",
    "Mode",
    "PageDraft",
    "SitemapEntry",
    "Source",
    "content_types",
    "decode",
    "format_for",
    "page_from_json",
    "page_to_json",
    "page_to_xml",
    "read_in_own_process",
    "read_page",
    "sitemap_entries",
    "sniff",
]

# Sitemaps are read by a parser of their own: it is imported at their first use.
__getattr__ = public_names(__name__, _HOMES)
