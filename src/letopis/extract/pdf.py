"""PDF by an optional library: text, outline, links, title and dates. PostScript: title and date."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from ctypes import POINTER, byref, c_int, c_ushort, cast, create_string_buffer
from datetime import datetime
from importlib import import_module
from typing import Any

from letopis.errors import MissingExtra
from letopis.extract.metadata import primary_language, read_date
from letopis.extract.pages import MAX_LINKS, MAX_TITLE, PageDraft, Source, fold_whitespace
from letopis.extract.simple_formats import link_urls
from letopis.model import BlockKind, LinkType

_MOST_PAGES = 2000
_MOST_OUTLINED = 5000
_MOST_LINKS_A_PAGE = 2000
_TITLE_SIGNS = 1500
_MOST_ADDRESS = 8192
_PDF_DATE = re.compile(r"(?:D:)?(\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2})?)?")
_PARAGRAPH_ENDS = re.compile(r"\r?\n(?=[ \t]*\r?\n)|(?<=[.!?:])\r?\n(?=\s*[^\W\d_a-z])")
_MAKERS_TITLE = re.compile(
    r"(?:microsoft (?:word|powerpoint|excel) - .*|untitled.*|.*\.(?:docx?|dvi|tex|indd|pdf|pptx?|xlsx?|rtf|odt|ps))",
    re.IGNORECASE,
)
"""Titles that programs give: the name of the file that a document was made from."""


def read_pdf(source: Source, draft: PageDraft) -> None:
    """Reads a PDF file. Raises MissingExtra without its library, ValueError or RuntimeError for a damaged file."""
    try:
        pdfium = import_module("pypdfium2")
    except ImportError:
        raise MissingExtra("PDF files need a library; install letopis[docs-formats]") from None
    document = pdfium.PdfDocument(source.body)
    try:
        _metadata(document, pdfium.raw, draft)
        outline = _outline(document)
        for number in range(min(len(document), _MOST_PAGES)):
            _PdfPage(document, number, pdfium.raw, draft).read(outline.get(number, []))
            if draft.is_full:
                break
    finally:
        document.close()
    draft.settle_document(source.mode)


def _metadata(document: Any, raw: Any, draft: PageDraft) -> None:
    said = document.get_metadata_dict()
    title = fold_whitespace(said.get("Title", ""))
    draft.head("" if _MAKERS_TITLE.fullmatch(title) else title, said.get("Subject", ""), said.get("Keywords", ""))
    draft.published, draft.modified = _pdf_date(said.get("CreationDate", "")), _pdf_date(said.get("ModDate", ""))
    language = create_string_buffer(64)
    raw.FPDFCatalog_GetLanguage(document, cast(language, POINTER(c_ushort)), len(language))
    draft.declared_language = primary_language(language.raw.decode("utf-16-le", "ignore").partition("\0")[0])


def _outline(document: Any) -> dict[int, list[tuple[BlockKind, str]]]:
    """The headings that the outline has for each page."""
    found: dict[int, list[tuple[BlockKind, str]]] = defaultdict(list)
    for _, mark in zip(range(_MOST_OUTLINED), document.get_toc(max_depth=6), strict=False):
        target = mark.get_dest()
        page = target.get_index() if target is not None else None
        found[page or 0].append((BlockKind(f"h{min(6, mark.level + 1)}"), fold_whitespace(mark.get_title())))
    return found


class _PdfPage:
    """One page of a document. Used once."""

    def __init__(self, document: Any, number: int, raw: Any, draft: PageDraft) -> None:
        self._document, self._number, self._raw, self._draft = document, number, raw, draft

    def read(self, headings: list[tuple[BlockKind, str]]) -> None:
        """Adds text and links; what the outline names is a heading, where it stands or else before the page."""
        page = self._document[self._number]
        signs = page.get_textpage()
        try:
            # A hyphen at the end of a line is read as U+FFFE: the word continues.
            text = signs.get_text_bounded().replace("\ufffe", "").replace("\x02", "")
            if self._number == 0 and not self._draft.title:
                self._draft.title = self._largest_line(signs)
            self._add_text(text, headings)
            known = len(self._draft.links)
            for target, shown in self._annotated(page, signs):
                self._draft.link(target, LinkType.A, text=shown)
            self._add_written(text, {link.target for link in self._draft.links[known:]})
        finally:
            signs.close()
            page.close()

    def _add_text(self, text: str, headings: list[tuple[BlockKind, str]]) -> None:
        named = {heading: kind for kind, heading in headings}
        paragraphs = [fold_whitespace(part) for part in _PARAGRAPH_ENDS.split(text)]
        for kind, heading in headings:
            if heading not in paragraphs:
                self._draft.block(kind, heading)
        for paragraph in paragraphs:
            self._draft.block(named.get(paragraph, BlockKind.PARAGRAPH), paragraph)

    def _add_written(self, text: str, known: set[str]) -> None:
        """Addresses in the text, but for those that are links already."""
        before = len(self._draft.links)
        link_urls(text, self._draft)
        self._draft.links[before:] = [link for link in self._draft.links[before:] if link.target not in known]

    def _annotated(self, page: Any, signs: Any) -> Iterator[tuple[str, str]]:
        """The addresses of the page's links, each with the text that it covers."""
        raw, place, link = self._raw, c_int(0), self._raw.FPDF_LINK()
        for _ in range(min(_MOST_LINKS_A_PAGE, MAX_LINKS)):
            if not raw.FPDFLink_Enumerate(page, byref(place), byref(link)):
                return
            action = raw.FPDFLink_GetAction(link)
            if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
                continue
            address = create_string_buffer(_MOST_ADDRESS)
            if raw.FPDFAction_GetURIPath(self._document, action, address, len(address)) <= len(address):
                yield address.value.decode("utf-8", "replace"), self._covered(link, signs)

    def _covered(self, link: Any, signs: Any) -> str:
        around = self._raw.FS_RECTF()
        if not self._raw.FPDFLink_GetAnnotRect(link, byref(around)):
            return ""
        return str(signs.get_text_bounded(around.left, around.bottom, around.right, around.top))

    def _largest_line(self, signs: Any) -> str:
        """The first run of the largest letters of the page: what a reader takes for its title."""
        raw, found, largest, run, before = self._raw, "", 0.0, "", 0.0
        count = min(_TITLE_SIGNS, signs.count_chars())
        for at in range(count + 1):
            sign = chr(raw.FPDFText_GetUnicode(signs, at)) if at < count else ""
            size = round(raw.FPDFText_GetFontSize(signs, at), 1) if at < count else -1.0
            if sign.isspace() or (sign and size == before):
                run += sign
                continue
            if before > largest and len(run.strip()) > 3:
                found, largest = run, before
            run, before = sign, size
        return fold_whitespace(found.replace("\ufffe", "").replace("\x02", ""))[:MAX_TITLE]


def _pdf_date(text: str) -> datetime | None:
    found = _PDF_DATE.match(text)
    if not found:
        return None
    year, month, day, hour, minute, second = found.groups(default="00")
    return read_date(f"{year}-{month}-{day}T{hour}:{minute}:{second}Z")


_DSC_COMMENT = re.compile(rb"^%%(Title|For|CreationDate|Pages):[ \t]*(.{1,400}?)\r?$", re.MULTILINE)


def read_postscript(source: Source, draft: PageDraft) -> None:
    """Reads title, author and date; a warning says that the text was left."""
    found = {
        name: value.decode("latin-1").strip(" ()") for name, value in _DSC_COMMENT.findall(source.body[: 64 * 1024])
    }
    draft.head(title=found.get(b"Title", ""), description=found.get(b"For", ""))
    draft.published = read_date(found.get(b"CreationDate", ""))
    draft.warn("PostScript is read for its title only")
