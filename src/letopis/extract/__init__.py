"""Bytes and a content type in, a Page out: metadata, blocks, links. One module a format."""

from letopis.extract.charset import decode
from letopis.extract.draft import Draft
from letopis.extract.formats import Format, content_types, format_for
from letopis.extract.isolated import read_apart
from letopis.extract.reading import page
from letopis.extract.render import page_from_json, to_json, to_xml
from letopis.extract.sitemaps import SitemapEntry, sitemap_entries
from letopis.extract.sniff import sniff
from letopis.extract.source import Mode, Source

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
