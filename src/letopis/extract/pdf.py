"""PDF: text by paragraphs, links, title and dates, by pypdfium2."""

from __future__ import annotations

import re
from datetime import datetime
from importlib import import_module
from typing import Any

from letopis.errors import MissingExtra
from letopis.extract.dates import read_date
from letopis.extract.draft import MAX_BLOCKS, Draft
from letopis.extract.plain import link_addresses
from letopis.extract.source import Source
from letopis.model import BlockKind

_MOST_PAGES = 2000
_STAMP = re.compile(r"(?:D:)?(\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2})?)?")
_ENDS = re.compile(r"\r?\n(?=[ \t]*\r?\n)|(?<=[.!?:])\r?\n(?=\s*[^\W\d_a-z])")


def read(source: Source, draft: Draft) -> None:
    """Reads a PDF file. Raises MissingExtra without its library, ValueError or RuntimeError for a damaged file."""
    try:
        pdfium = import_module("pypdfium2")
    except ImportError:
        raise MissingExtra("PDF files need a library; install letopis[docs-formats]") from None
    document = pdfium.PdfDocument(source.body)
    try:
        said = document.get_metadata_dict()
        draft.head(title=said.get("Title", ""), description=said.get("Subject", ""), keywords=said.get("Keywords", ""))
        draft.published, draft.modified = _date(said.get("CreationDate", "")), _date(said.get("ModDate", ""))
        for number in range(min(len(document), _MOST_PAGES)):
            _page(document[number], source, draft)
            if len(draft.blocks) >= MAX_BLOCKS:
                break
    finally:
        document.close()


def _page(page: Any, source: Source, draft: Draft) -> None:
    text_page = page.get_textpage()
    # A hyphen at a line's end comes as U+FFFE: the word goes on.
    text = text_page.get_text_bounded().replace("\ufffe", "").replace("\x02", "")
    link_addresses(text, draft)
    if source.mode == "full":
        for paragraph in _ENDS.split(text):
            draft.block(BlockKind.PARAGRAPH, paragraph)
    text_page.close()
    page.close()


def _date(text: str) -> datetime | None:
    found = _STAMP.match(text)
    if not found:
        return None
    year, month, day, hour, minute, second = found.groups(default="00")
    return read_date(f"{year}-{month}-{day}T{hour}:{minute}:{second}Z")
