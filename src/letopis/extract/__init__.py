"""Bytes and a content type in, a Page out: metadata, blocks, links. One module a format."""

from letopis.extract.charsets import decode
from letopis.extract.extraction import Format, content_types, format_for, read_in_own_process, read_page, sniff
from letopis.extract.pages import Mode, PageDraft, Source, page_from_json, page_to_json, page_to_xml

__all__ = [
    "Format", "Mode", "PageDraft", "Source", "content_types", "decode", "format_for", "page_from_json", "page_to_json",
    "page_to_xml", "read_in_own_process", "read_page", "sniff",
]  # fmt: skip
