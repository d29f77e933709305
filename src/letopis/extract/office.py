"""Documents that are ZIP files of XML: Office Open XML (DOCX, XLSX, PPTX), OpenDocument (ODT, ODS, ODP) and EPUB."""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import reduce
from itertools import takewhile
from urllib.parse import unquote

from lxml import etree

from letopis.extract.html import read_embedded_html
from letopis.extract.metadata import primary_language, read_date
from letopis.extract.pages import PageDraft, Source
from letopis.extract.xml import ZipParts, inner_text, local_name, read_properties
from letopis.model import BlockKind, LinkType
from letopis.tuples import NamedTuple

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_X = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_PICTURE = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}docPr"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
HYPERLINK = re.compile(r'\s*HYPERLINK\s+"([^"]{1,4096})"', re.IGNORECASE)
"""The instruction of a field that is a link."""
"""What parts the cells of a row, which is one block."""
_MOST_REPEATS = 999
"""Empty cells in a row, and copies of a cell or row, that are told."""


class _Relation(NamedTuple):
    """What a part refers to: another part of the file by its name, or an address."""

    kind: str
    target: str
    is_external: bool


def _relations(parts: ZipParts, name: str) -> dict[str, _Relation]:
    """The relations of a part by their ids."""
    folder, _, file = name.rpartition("/")
    root = parts.xml_or_none(posixpath.join(folder, "_rels", file + ".rels"))
    found = {}
    for one in root if root is not None else ():
        target, is_external = one.get("Target", ""), one.get("TargetMode") == "External"
        place = target if is_external else posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        found[one.get("Id", "")] = _Relation(one.get("Type", "").rpartition("/")[2], place, is_external)
    return found


def _metadata(parts: ZipParts, draft: PageDraft) -> None:
    about = parts.xml_or_none("docProps/core.xml")
    read_properties(about, draft, created="created", changed="modified", keywords="keywords")


def _link(element: etree._Element, relations: dict[str, _Relation], draft: PageDraft, text: str) -> None:
    """Adds where an element leads to, if it leads out of the file."""
    found = relations.get(element.get(_R + "id", ""))
    if found is not None and found.is_external:
        draft.link(found.target, LinkType.A, text=text)


def read_docx(source: Source, draft: PageDraft) -> None:
    """Reads a DOCX file with its notes. Raises ValueError for a damaged one."""
    parts = ZipParts(source.body)
    root = parts.xml("word/document.xml")
    _metadata(parts, draft)
    styles = _paragraph_styles(parts.xml_or_none("word/styles.xml"))
    _DocxText(draft, styles, _relations(parts, "word/document.xml")).read(root)
    for name in ("word/footnotes.xml", "word/endnotes.xml"):
        notes = parts.xml_or_none(name)
        if notes is not None:
            _DocxText(draft, styles, _relations(parts, name)).read(notes)
    draft.settle_document(source.mode)


def _paragraph_styles(root: etree._Element | None) -> dict[str, BlockKind]:
    """What paragraphs of a style are; the names of styles are English in every language, their ids are not."""
    found: dict[str, BlockKind] = {}
    for style in root.iter(_W + "style") if root is not None else ():
        name = style.find(_W + "name")
        kind = _kind_of_style(name.get(_W + "val", "") if name is not None else "")
        if kind is not None:
            found[style.get(_W + "styleId", "")] = kind
    return found


def _kind_of_style(name: str) -> BlockKind | None:
    plain = name.lower().replace(" ", "")
    if plain.startswith("heading") and plain[7:8] in tuple("123456"):
        return BlockKind("h" + plain[7])
    if plain == "title":
        return BlockKind.H1
    if plain.startswith("list"):
        return BlockKind.ITEM
    return BlockKind.QUOTE if plain.endswith("quote") else None


class _DocxText:
    """The paragraphs, tables and links of one part of a DOCX file."""

    def __init__(self, draft: PageDraft, styles: dict[str, BlockKind], relations: dict[str, _Relation]) -> None:
        self._draft, self._styles, self._relations = draft, styles, relations

    def read(self, root: etree._Element) -> None:
        """Adds what the part says, in its order; a row of a table is one block."""
        for element in root.iter(_W + "p", _W + "tr"):
            if self._draft.is_full:
                return
            around = _nearest(element, _W + "tr", _FALLBACK)
            if around is None and element.tag == _W + "p":
                self._draft.block(self._kind(element), _docx_text(element))
            elif around is None:
                cells = (one for one in element.iter(_W + "tc") if _nearest(one, _W + "tr") is element)
                self._draft.row([_docx_cell(cell) for cell in cells])
        for element in root.iter(_W + "hyperlink", _W + "fldSimple", _W + "instrText"):
            self._link(element)
        for picture in root.iter(_PICTURE):
            self._draft.block(BlockKind.ALT, picture.get("descr", ""))

    def _link(self, element: etree._Element) -> None:
        if element.tag == _W + "hyperlink":
            _link(element, self._relations, self._draft, _docx_text(element))
            return
        said = element.get(_W + "instr", "") or element.text or ""
        found = HYPERLINK.match(said)
        if found:
            self._draft.link(found[1], LinkType.A, text=_docx_text(element))

    def _kind(self, paragraph: etree._Element) -> BlockKind:
        style = paragraph.find(f"{_W}pPr/{_W}pStyle")
        name = style.get(_W + "val", "") if style is not None else ""
        kind = self._styles.get(name) or _kind_of_style(name)
        if kind is None and paragraph.find(f"{_W}pPr/{_W}numPr") is not None:
            return BlockKind.ITEM
        return kind or BlockKind.PARAGRAPH


def _nearest(element: etree._Element, *tags: str) -> etree._Element | None:
    return next(element.iterancestors(*tags), None)


def _docx_text(element: etree._Element) -> str:
    """The text of a paragraph or a link, without paragraphs in frames that hang in it."""
    own = element if element.tag == _W + "p" else _nearest(element, _W + "p")
    pieces = []
    for node in element.iter(_W + "t", _W + "tab", _W + "br", _W + "cr", _W + "noBreakHyphen"):
        if _nearest(node, _W + "p") is own:
            pieces.append((node.text or "") if node.tag == _W + "t" else "-" if "Hyphen" in node.tag else " ")
    return "".join(pieces)


def _docx_cell(cell: etree._Element) -> str:
    return " ".join(_docx_text(one) for one in cell.iter(_W + "p") if _nearest(one, _FALLBACK) is None)


def read_xlsx(source: Source, draft: PageDraft) -> None:
    """Reads an XLSX file, a block for each row. Raises ValueError for a damaged one."""
    parts = ZipParts(source.body)
    workbook = parts.xml("xl/workbook.xml")
    _metadata(parts, draft)
    relations = _relations(parts, "xl/workbook.xml")
    root = parts.xml_or_none("xl/sharedStrings.xml")
    shared = [_sheet_text(one) for one in root.iter(_X + "si")] if root is not None else []
    starts_1904 = any(one.get("date1904") in ("1", "true") for one in workbook.iter(_X + "workbookPr"))
    styles = parts.xml_or_none("xl/styles.xml")
    cells = _CellReader(shared, _time_styles(styles) if styles is not None else {}, starts_1904=starts_1904)
    for sheet in workbook.iter(_X + "sheet"):
        found = relations.get(sheet.get(_R + "id", ""))
        if found is not None and not found.is_external and found.kind == "worksheet" and not draft.is_full:
            draft.block(BlockKind.H2, sheet.get("name", ""))
            _read_sheet(parts, found.target, cells, draft)
    draft.settle_document(source.mode)


def _read_sheet(parts: ZipParts, name: str, cells: _CellReader, draft: PageDraft) -> None:
    """Adds the rows and links of one sheet; each row is forgotten when it has been read."""
    relations = _relations(parts, name)
    texts: dict[str, str] = {}
    for element in _streamed(parts.data(name), (_X + "row", _X + "hyperlink")):
        if element.tag == _X + "hyperlink":
            _link(element, relations, draft, texts.get(element.get("ref", ""), ""))
        elif not draft.is_full:
            row: list[str] = []
            for cell in element.iter(_X + "c"):
                place, text = cell.get("r", ""), cells.text(cell)
                row += [*[""] * min(_column(place) - len(row), _MOST_REPEATS), text]
                if relations:
                    texts[place] = text
            draft.row(row)


def _column(place: str) -> int:
    """The number of the column of a cell such as B7, counted from 0; -1 where its place is not said."""
    return reduce(lambda number, letter: 26 * number + ord(letter) - 64, takewhile(str.isalpha, place[:3]), 0) - 1


def _streamed(data: bytes, tags: tuple[str, ...]) -> Iterator[etree._Element]:
    """Elements of a part, one after another, in the memory of one; no entities, no DTD, no network."""
    found = etree.iterparse(
        io.BytesIO(data), tag=tags, resolve_entities=False, load_dtd=False, no_network=True, recover=True
    )
    try:
        for _, element in found:
            yield element
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
    except etree.XMLSyntaxError:
        return


def _sheet_text(element: etree._Element) -> str:
    """Text of a cell in all its runs, without how it is pronounced."""
    runs = (one for one in element.iter(_X + "t") if _nearest(one, _X + "rPh") is None)
    return "".join(one.text or "" for one in runs)


_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)))
_NO_TIME = re.compile(r"\"[^\"]*\"|\[(?!(?:h+|m+|s+)\])[^\]]*\]|\\.|general", re.IGNORECASE)
_TIME, _SPAN = re.compile("[ymdhs]", re.IGNORECASE), re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)


def _time_styles(root: etree._Element) -> dict[int, bool]:
    """The numbers of cell styles that show a number as a time; True where it is how long something takes."""
    codes = {one.get("numFmtId", ""): one.get("formatCode", "") for one in root.iter(_X + "numFmt")}
    known = dict.fromkeys(map(str, _DATE_FORMATS), "d") | {"46": "[h]"} | codes
    shown = [known.get(one.get("numFmtId", ""), "") for one in root.iterfind(f"{_X}cellXfs/{_X}xf")]
    return {at: bool(_SPAN.search(code)) for at, code in enumerate(shown) if _TIME.search(_NO_TIME.sub("", code))}


class _CellReader:
    """What cells of a spreadsheet show."""

    def __init__(self, shared: list[str], times: dict[int, bool], *, starts_1904: bool) -> None:
        self._shared, self._times = shared, times
        self._start = datetime(1904, 1, 1) if starts_1904 else datetime(1899, 12, 30)

    def text(self, cell: etree._Element) -> str:
        """The text of a cell; numbers with the 15 digits that spreadsheets keep, dates as ISO 8601."""
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return _sheet_text(cell)
        value = cell.findtext(_X + "v") or ""
        if kind == "s":
            at = int(value) if value.isdecimal() else -1
            return self._shared[at] if 0 <= at < len(self._shared) else ""
        if kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        return self._number(value, cell.get("s", "")) if kind == "n" and value else value

    def _number(self, value: str, style: str) -> str:
        try:
            number = float(value)
            is_span = self._times.get(int(style or "0"))
            return f"{number:.15g}" if is_span is None else self._time(round(number * 86400), is_span=is_span)
        except (ValueError, OverflowError):
            return value

    def _time(self, seconds: int, *, is_span: bool) -> str:
        if is_span or 0 <= seconds < 86400:
            return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        # Day 1 is the first of January 1900, and day 61 the first of March, as if that year had a leap day.
        lost = self._start.year == 1899 and 0 < seconds < 60 * 86400
        moment = self._start + timedelta(days=lost, seconds=seconds)
        return moment.isoformat(" ") if seconds % 86400 else moment.date().isoformat()


def read_pptx(source: Source, draft: PageDraft) -> None:
    """Reads a PPTX file with the notes of its speaker. Raises ValueError for a damaged one."""
    parts = ZipParts(source.body)
    presentation = parts.xml("ppt/presentation.xml")
    _metadata(parts, draft)
    relations = _relations(parts, "ppt/presentation.xml")
    for one in presentation.iter(_P + "sldId"):
        found = relations.get(one.get(_R + "id", ""))
        if found is not None and not found.is_external and not draft.is_full:
            _read_slide(parts, found.target, draft)
    draft.settle_document(source.mode)


def _read_slide(parts: ZipParts, name: str, draft: PageDraft) -> None:
    root = parts.xml_or_none(name)
    if root is None:
        draft.warn("a slide could not be read")
        return
    relations = _relations(parts, name)
    _read_shapes(root, relations, draft)
    for one in relations.values():
        part = parts.xml_or_none(one.target) if one.kind in _SLIDE_PARTS and not one.is_external else None
        if part is not None and one.kind == "chart":
            _read_chart(part, draft)
        elif part is not None:
            _read_shapes(part, relations, draft)


_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_SLIDE_PARTS = ("chart", "diagramData", "notesSlide")


def _read_chart(root: etree._Element, draft: PageDraft) -> None:
    """Adds the titles of a chart, and its numbers as the rows of a table."""
    for title in root.iter(_C + "title"):
        draft.block(BlockKind.PARAGRAPH, _slide_text(title))
    known: list[str] = []
    for series in root.iter(_C + "ser"):
        labels = _chart_values(series, "cat", "xVal")
        if labels != known:
            draft.row(labels)
            known = labels
        name = " ".join(_chart_values(series, "tx"))
        draft.row([name, *_chart_values(series, "val", "yVal")])


def _chart_values(series: etree._Element, *names: str) -> list[str]:
    return [one.text or "" for name in names for part in series.iterfind(_C + name) for one in part.iter(_C + "v")]


def _read_shapes(root: etree._Element, relations: dict[str, _Relation], draft: PageDraft) -> None:
    """Adds the paragraphs of all shapes and the rows of all tables, in their order."""
    for element in root.iter(_A + "p", _A + "tr"):
        if _nearest(element, _FALLBACK) is not None:
            continue
        if element.tag == _A + "tr":
            draft.row([_slide_text(cell) for cell in element.iter(_A + "tc")])
        elif _nearest(element, _A + "tr") is None:
            kind = _shape_kind(_nearest(element, _P + "sp"))
            if kind is not None:
                draft.block(kind, _slide_text(element))
        for link in element.iter(_A + "hlinkClick"):
            run = _nearest(link, _A + "r")
            _link(link, relations, draft, _slide_text(run) if run is not None else "")
    for picture in root.iter(_P + "pic"):
        draft.block(BlockKind.ALT, next((one.get("descr", "") for one in picture.iter(_P + "cNvPr")), ""))


def _shape_kind(shape: etree._Element | None) -> BlockKind | None:
    """What the text of a shape is; None for numbers of pages and what all slides have."""
    place = next(shape.iter(_P + "ph"), None) if shape is not None else None
    kind = place.get("type", "body") if place is not None else ""
    if kind in ("sldNum", "dt", "ftr", "hdr"):
        return None
    return BlockKind.H2 if kind in ("title", "ctrTitle") else BlockKind.PARAGRAPH


def _slide_text(element: etree._Element) -> str:
    pieces = []
    for node in element.iter():
        name = local_name(node)
        pieces.append((node.text or "") if name == "t" else " " if name in ("br", "p", "tab") else "")
    return "".join(pieces).strip()


_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_CLASS = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}class"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_DEEPEST = 100
_BLANKS = ("s", "tab", "line-break")
_NOT_SAID = ("tracked-changes", "annotation", "note-citation", "forms", "event-listeners")


def read_opendocument(source: Source, draft: PageDraft) -> None:
    """Reads an ODT, ODS or ODP file. Raises ValueError for a damaged one."""
    parts = ZipParts(source.body)
    root = parts.xml("content.xml")
    about = parts.xml_or_none("meta.xml")
    read_properties(about, draft, created="creation-date", changed="date", keywords="keyword")
    for element in root.iter(_TEXT + "p", _TEXT + "h", _TABLE + "table-row", _TABLE + "table"):
        if draft.is_full:
            break
        _read_element(element, draft)
    for link in root.iter(_TEXT + "a", _DRAW + "a"):
        draft.link(link.get(_XLINK, "#"), LinkType.A, text=inner_text(link))
    draft.settle_document(source.mode)


def _read_element(element: etree._Element, draft: PageDraft) -> None:
    """Adds a paragraph, a heading, the name of a sheet, or a row with all its cells."""
    names = [local_name(above) for above in element.iterancestors()]
    if "table-row" in names or any(name in names for name in _NOT_SAID):
        return
    if element.tag == _TABLE + "table":
        if "spreadsheet" in names:
            draft.block(BlockKind.H2, element.get(_TABLE + "name", ""))
    elif element.tag == _TABLE + "table-row":
        row = [text for cell in element if "table-cell" in local_name(cell) for text in _repeated(cell)]
        for _ in range(_repeats(element, "rows") if any(row) else 0):
            draft.row(row)
    else:
        draft.block(_kind(element, names), _paragraph_text(element))


def _repeated(cell: etree._Element) -> list[str]:
    """The text of all paragraphs of a cell, for each column that has it."""
    return [" ".join(_paragraph_text(one) for one in cell.iter(_TEXT + "p", _TEXT + "h"))] * _repeats(cell, "columns")


def _repeats(element: etree._Element, kind: str) -> int:
    """How many `columns` or `rows` are the same as this one, with it; one where the rest of a sheet is filled."""
    said = element.get(f"{_TABLE}number-{kind}-repeated", "")
    return int(said) if re.fullmatch(r"[1-9]\d{0,2}", said, re.ASCII) else 1


def _paragraph_text(element: etree._Element, depth: int = 0) -> str:
    """Text with the blanks, tabs and line breaks that ODF writes as elements, without paragraphs in notes."""
    parts: list[str] = [element.text or ""]
    for child in element:
        name = local_name(child)
        if name in _BLANKS:
            parts.append(" ")
        elif depth < _DEEPEST and name not in (*_NOT_SAID, "note", "frame", "p", "h"):
            parts.append(_paragraph_text(child, depth + 1))
        parts.append(child.tail or "")
    return "".join(parts)


def _kind(element: etree._Element, around: list[str]) -> BlockKind:
    if element.tag == _TEXT + "h":
        level = element.get(_TEXT + "outline-level", "1")
        return BlockKind("h" + level) if level in tuple("123456") else BlockKind.H6
    frame = next(element.iterancestors(_DRAW + "frame"), None)
    if frame is not None and frame.get(_CLASS) == "title":
        return BlockKind.H2
    return BlockKind.ITEM if "list-item" in around[:2] else BlockKind.PARAGRAPH


_MOST_CHAPTERS = 5000
_CHAPTER_TYPES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")
_INSIDE = "http://book.invalid/"
"""Where chapters stand while they are read: what they link to there is inside the book."""


def read_epub(source: Source, draft: PageDraft) -> None:
    """Reads a book: its metadata, then the text and the outward links of its chapters. ValueError for a damaged one."""
    parts = ZipParts(source.body)
    name = _package_name(parts)
    package = parts.xml(name)
    draft.charset = "utf-8"
    _book_metadata(package, draft)
    for chapter in _book_chapters(package, name)[:_MOST_CHAPTERS]:
        if draft.is_full:
            break
        try:
            body = parts.data(chapter)
        except ValueError as fault:
            draft.warn(str(fault))
            continue
        read_embedded_html(body, _INSIDE + chapter, draft, _CHAPTER_TYPES[0], inside=_INSIDE)
    draft.settle_document(source.mode)


def _package_name(parts: ZipParts) -> str:
    """The file that lists what the book is made of."""
    container = parts.xml("META-INF/container.xml")
    names = (unquote(one.get("full-path", "")) for one in container.iter() if local_name(one) == "rootfile")
    return next(filter(None, names), "content.opf")


def _book_metadata(package: etree._Element, draft: PageDraft) -> None:
    said: dict[str, list[str]] = {}
    for element in package.iter():
        if element.text and element.text.strip():
            said.setdefault(_book_property(element), []).append(element.text.strip())
    about = said.get("description") or [", ".join(said.get("creator", []))]
    draft.head(said.get("title", [""])[0], about[0], ", ".join(said.get("subject", [])))
    draft.published = read_date(said.get("date", [""])[0])
    draft.modified = read_date(said.get("dcterms:modified", [""])[0])
    draft.declared_language = primary_language(said.get("language", [""])[0])


def _book_property(element: etree._Element) -> str:
    """What an element of the metadata tells: its name, or what it says that it is."""
    name = local_name(element)
    return element.get("property", "") if name == "meta" else name


def _book_chapters(package: etree._Element, name: str) -> list[str]:
    """The names of the chapters in the order of reading."""
    folder = posixpath.dirname(name)
    files = {
        one.get("id", ""): posixpath.normpath(posixpath.join(folder, unquote(one.get("href", ""))))
        for one in package.iter()
        if local_name(one) == "item" and one.get("media-type", _CHAPTER_TYPES[0]) in _CHAPTER_TYPES
    }
    order = (one.get("idref", "") for one in package.iter() if local_name(one) == "itemref")
    return [files[one] for one in order if one in files]
