"""PDF, RTF and PostScript: text, links, title and dates, by optional libraries."""

from __future__ import annotations

import re
from datetime import datetime
from importlib import import_module
from typing import Any

from letopis.errors import MissingExtra
from letopis.extract.metadata import read_date
from letopis.extract.pages import MAX_BLOCKS, PageDraft, Source
from letopis.extract.simple_formats import link_urls
from letopis.model import BlockKind

_MOST_PAGES = 2000
_PDF_DATE = re.compile(r"(?:D:)?(\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2})?)?")
_PARAGRAPH_ENDS = re.compile(r"\r?\n(?=[ \t]*\r?\n)|(?<=[.!?:])\r?\n(?=\s*[^\W\d_a-z])")


def read_pdf(source: Source, draft: PageDraft) -> None:
    """Reads a PDF file. Raises MissingExtra without its library, ValueError or RuntimeError for a damaged file."""
    try:
        pdfium = import_module("pypdfium2")
    except ImportError:
        raise MissingExtra("PDF files need a library; install letopis[docs-formats]") from None
    document = pdfium.PdfDocument(source.body)
    try:
        said = document.get_metadata_dict()
        draft.head(title=said.get("Title", ""), description=said.get("Subject", ""), keywords=said.get("Keywords", ""))
        draft.published, draft.modified = _pdf_date(said.get("CreationDate", "")), _pdf_date(said.get("ModDate", ""))
        for number in range(min(len(document), _MOST_PAGES)):
            _read_pdf_page(document[number], source, draft)
            if len(draft.blocks) >= MAX_BLOCKS:
                break
    finally:
        document.close()


def _read_pdf_page(page: Any, source: Source, draft: PageDraft) -> None:
    text_page = page.get_textpage()
    # A hyphen at a line's end comes as U+FFFE: the word goes on.
    text = text_page.get_text_bounded().replace("\ufffe", "").replace("\x02", "")
    link_urls(text, draft)
    if source.mode == "full":
        for paragraph in _PARAGRAPH_ENDS.split(text):
            draft.block(BlockKind.PARAGRAPH, paragraph)
    text_page.close()
    page.close()


def _pdf_date(text: str) -> datetime | None:
    found = _PDF_DATE.match(text)
    if not found:
        return None
    year, month, day, hour, minute, second = found.groups(default="00")
    return read_date(f"{year}-{month}-{day}T{hour}:{minute}:{second}Z")


def read_rtf(source: Source, draft: PageDraft) -> None:
    """Reads an RTF text. Raises MissingExtra without its library."""
    try:
        striprtf = import_module("striprtf.striprtf")
    except ImportError:
        raise MissingExtra("RTF files need a library; install letopis[docs-formats]") from None
    text = str(striprtf.rtf_to_text(source.body.decode("latin-1"), errors="replace"))
    draft.charset = "utf-8"
    link_urls(text, draft)
    if source.mode == "full":
        for paragraph in text.split("\n"):
            draft.block(BlockKind.PARAGRAPH, paragraph)


_DSC_COMMENT = re.compile(rb"^%%(Title|For|CreationDate|Pages):[ \t]*(.{1,400}?)\r?$", re.MULTILINE)


def read_postscript(source: Source, draft: PageDraft) -> None:
    """Reads title, author and date; a warning says that the text was left."""
    found = {
        name: value.decode("latin-1").strip(" ()") for name, value in _DSC_COMMENT.findall(source.body[: 64 * 1024])
    }
    draft.head(title=found.get(b"Title", ""), description=found.get(b"For", ""))
    draft.published = read_date(found.get(b"CreationDate", ""))
    draft.warn("PostScript is read for its title only")
