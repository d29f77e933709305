"""Bytes and a content type in, a Page out: metadata, blocks, links. One module a format."""

from typing import TYPE_CHECKING

from letopis.extract.charsets import decode
from letopis.extract.extraction import read_in_own_process, read_page, sniff
from letopis.extract.formats import Format, content_types, format_for
from letopis.extract.pages import Mode, PageDraft, Source, page_from_json, page_to_json, page_to_xml
from letopis.lazy import homes, public_names

if TYPE_CHECKING:
    from letopis.extract.feeds import SitemapEntry, sitemap_entries
    from letopis.extract.main_content import ContentForm, content_text

_HOMES = homes({
    "feeds": ("SitemapEntry", "sitemap_entries"),
    "main_content": ("ContentForm", "content_text"),
})  # fmt: skip

__all__ = [
    "ContentForm", "Format", "Mode", "PageDraft", "SitemapEntry", "Source", "content_text", "content_types",
    "decode", "format_for", "page_from_json", "page_to_json", "page_to_xml", "read_in_own_process", "read_page",
    "sitemap_entries", "sniff",
]  # fmt: skip

# Few commands read sitemaps or write Markdown: what does so is imported at its first use.
__getattr__ = public_names(__name__, _HOMES)
