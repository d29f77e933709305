"""What a format reads from (Source), the page it fills (PageDraft), and a finished Page as JSON and XML.

The draft is the one place where sizes are bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal

from letopis.extract.charsets import DecodedText, decode
from letopis.lazy import etree
from letopis.model import Block, BlockKind, Headers, Link, LinkType, Page, header, rfc3339
from letopis.model.page import TEXT_CUT, TableCells
from letopis.urls import join

Mode = Literal["skim", "basic", "full"]


@dataclass(frozen=True, slots=True)
class Source:
    """One document. `content_type` is the type found by looking, in lower case, without parameters.

    In mode `basic` a format need only find the title and the links, in mode
    `skim` only the addresses that a crawl may follow.
    """

    body: bytes
    url: str
    content_type: str
    headers: Headers = ()
    mode: Mode = "full"

    def header(self, name: str) -> str:
        """The first value of a header field, or nothing."""
        return header(self.headers, name)

    def decoded(self) -> DecodedText:
        """The body as text, its character set found as browsers find it, and corrected where it lies."""
        return decode(self.body, charset_of(self.header("content-type")))

    def utf8(self) -> tuple[bytes, str]:
        """The body in the one charset that the HTML parser reads (itself when it is), and the charset it came in."""
        if self.body.isascii() and b"\x1b" not in self.body and b"\0" not in self.body:
            return self.body, "utf-8"
        decoded = self.decoded()
        sound = decoded.charset == "utf-8" and "\ufffd" not in decoded.text
        return (self.body if sound else decoded.text.encode("utf-8", "replace")), decoded.charset


def charset_of(content_type: str) -> str:
    """The charset parameter of a Content-Type value, or nothing."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()
    return ""


MAX_BLOCKS = 50_000
MAX_LINKS = 50_000
MAX_TEXT = 8 * 1024 * 1024
"""Characters of text kept of one document, all blocks together."""
MAX_FIELD = 4096
"""Characters kept of a title, a description, a link's text."""
MAX_TITLE = 200
"""Characters of a title that was taken from the text."""


_LONG_TEXT = 100
_CELL_SEPARATOR = " | "
_HEAD_KINDS = (BlockKind.TITLE, BlockKind.DESCRIPTION, BlockKind.KEYWORDS)
_HEAD_NAMES = ("title", "description", "keywords")
_HEADINGS = frozenset((BlockKind.H1, BlockKind.H2, BlockKind.H3, BlockKind.H4, BlockKind.H5, BlockKind.H6))


class PageDraft:
    """Collects blocks, links and metadata of one document and makes the Page of them.

    Everything is bounded: what goes over a bound is left out and a warning says so.
    """

    def __init__(self, source: Source) -> None:
        self.url = source.url
        self.base = source.url
        self.content_type = source.content_type
        self.charset = ""
        self.title = ""
        self.description = ""
        self.keywords = ""
        self.language = ""
        self.declared_language = ""
        self.canonical = ""
        self.robots: set[str] = set()
        self.published: datetime | None = None
        self.modified: datetime | None = None
        self.refresh = ""
        self.blocks: list[Block] = []
        self.links: list[Link] = []
        self.warnings: list[str] = []
        self.frame: set[int] = set()
        self.cell_starts: list[int] = []
        self.filled_cells: list[tuple[int, int]] = []
        self._room = MAX_TEXT

    def block(self, kind: BlockKind, text: str) -> None:
        """Adds a run of text, white space folded; empty ones are left out."""
        folded = fold_whitespace(text[: self._room + 1])
        if not folded:
            return
        if len(folded) > self._room or len(self.blocks) >= MAX_BLOCKS:
            self.warn(TEXT_CUT)
            return
        self._room -= len(folded)
        self.blocks.append(Block(kind, folded))

    def row(self, cells: Sequence[str]) -> None:
        """Adds the cells of a row of a table as one block; nothing where all of them are empty."""
        filled = sum(1 << at for at, text in enumerate(cells) if text)
        if filled:
            self.filled_cells.append((len(self.blocks), filled))
            self.block(BlockKind.CELL, _CELL_SEPARATOR.join(cells).strip(_CELL_SEPARATOR))

    def link(self, ref: str, type: LinkType, text: str = "", rel: str = "", title: str = "") -> str:
        """Adds a link relative to `base`; gives its target, or nothing where it cannot be fetched."""
        target = join(self.base, ref)
        if target is None:
            return ""
        if len(self.links) >= MAX_LINKS:
            self.warn("there are more links than are kept; the rest was left out")
            return target
        self.links.append(Link(target, type, fold_whitespace(text[:MAX_FIELD]), rel[:MAX_FIELD], title[:MAX_FIELD]))
        return target

    def head(self, title: str = "", description: str = "", keywords: str = "") -> None:
        """Sets what describes the document and has not been set, each also as a block."""
        for kind, name, value in zip(_HEAD_KINDS, _HEAD_NAMES, (title, description, keywords), strict=True):
            if not value or getattr(self, name):
                continue
            text = fold_whitespace(value[:MAX_FIELD])
            if text:
                setattr(self, name, text)
                self.blocks.append(Block(kind, text))

    @property
    def is_full(self) -> bool:
        """Whether no more text is kept."""
        return self._room <= 0 or len(self.blocks) >= MAX_BLOCKS

    def settle_document(self, mode: Mode) -> None:
        """Calls a document without a title by its first heading; outside of mode `full` nothing but the head stays."""
        if not self.title:
            headings = (text for kind, text in self.blocks if kind in _HEADINGS)
            self.title = next(headings, "")[:MAX_TITLE]
        if mode != "full":
            self.blocks = [block for block in self.blocks if block.kind in _HEAD_KINDS]

    def warn(self, sentence: str) -> None:
        """Adds a warning once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def page(self) -> Page:
        """The finished value."""
        return Page(
            url=self.url,
            content_type=self.content_type,
            charset=self.charset,
            title=self.title,
            description=self.description,
            keywords=self.keywords,
            language=self.language,
            declared_language=self.declared_language,
            canonical=self.canonical,
            robots=frozenset(self.robots),
            published=self.published,
            modified=self.modified,
            refresh=self.refresh,
            blocks=tuple(self.blocks),
            links=tuple(self.links),
            warnings=tuple(self.warnings),
            frame=frozenset(self.frame),
            cells=TableCells(tuple(self.cell_starts), tuple(self.filled_cells)),
        )


def fold_whitespace(text: str) -> str:
    """Text with each run of white space as one blank, none at the ends."""
    text = text.strip()  # first, since most of what is not folded stands at the ends
    return " ".join(text.split()) if "  " in text or has_odd_blank(text) else text


def has_odd_blank(text: str) -> bool:
    """Whether a text may have white space other than the plain blank.

    All of it counts as not printable; in long ASCII texts looking for each sign is several times faster.
    """
    if len(text) < _LONG_TEXT or not text.isascii():
        return not text.isprintable()
    return (
        "\n" in text or "\t" in text or "\r" in text or "\v" in text or "\f" in text
        or "\x1c" in text or "\x1d" in text or "\x1e" in text or "\x1f" in text
    )  # fmt: skip


_TEXT_FIELDS = (
    "url",
    "content_type",
    "charset",
    "title",
    "description",
    "keywords",
    "language",
    "declared_language",
    "canonical",
    "refresh",
)


def page_to_json(page: Page) -> str:
    """One JSON object; blocks as `{"kind", "text"}`, links as `{"target", "type", "text", "rel", "title"}`."""
    data: dict[str, Any] = {name: getattr(page, name) for name in _TEXT_FIELDS}
    data["robots"] = sorted(page.robots)
    data["published"] = rfc3339(page.published) if page.published else None
    data["modified"] = rfc3339(page.modified) if page.modified else None
    data["blocks"] = [block._asdict() for block in page.blocks]
    data["links"] = [link._asdict() for link in page.links]
    data["warnings"] = list(page.warnings)
    data["frame"] = sorted(page.frame)
    # Bits as hexadecimal digits: a row of a wide sheet is a larger number than JSON readers take.
    data["cells"] = {"starts": page.cells.starts, "filled": [(block, f"{row:x}") for block, row in page.cells.filled]}
    return json.dumps(data, ensure_ascii=True)


def page_from_json(text: str | bytes) -> Page:
    """The inverse of `to_json`. Raises ValueError, TypeError or KeyError for anything else."""
    data = json.loads(text)
    metadata: dict[str, Any] = {name: str(data[name]) for name in _TEXT_FIELDS}
    return Page(
        **metadata,
        robots=frozenset(map(str, data["robots"])),
        published=_time_from_json(data["published"]),
        modified=_time_from_json(data["modified"]),
        blocks=tuple(Block(BlockKind(one["kind"]), str(one["text"])) for one in data["blocks"]),
        links=tuple(_link_from_json(one) for one in data["links"]),
        warnings=tuple(map(str, data["warnings"])),
        frame=frozenset(map(int, data["frame"])),
        cells=_cells_from_json(data["cells"]),
    )


def _time_from_json(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _cells_from_json(data: dict[str, Any]) -> TableCells:
    filled = ((int(block), int(row, 16)) for block, row in data["filled"])
    return TableCells(tuple(map(int, data["starts"])), tuple(filled))


def _link_from_json(data: dict[str, str]) -> Link:
    return Link(str(data["target"]), LinkType(data["type"]), str(data["text"]), str(data["rel"]), str(data["title"]))


def page_to_xml(page: Page) -> str:
    """`<page url= ...>` with `<block kind=>`, `<link target= type= ...>` and `<warning>` elements."""
    root = etree.Element("page")
    for name in _TEXT_FIELDS:
        _set_attribute(root, name.replace("_", "-"), getattr(page, name))
    _set_attribute(root, "robots", " ".join(sorted(page.robots)))
    for name, moment in (("published", page.published), ("modified", page.modified)):
        _set_attribute(root, name, rfc3339(moment) if moment else "")
    for at, block in enumerate(page.blocks):
        element = etree.SubElement(root, "block", kind=str(block.kind))
        _set_attribute(element, "frame", "yes" if at in page.frame else "")
        element.text = _fit_for_xml(block.text)
    for link in page.links:
        element = etree.SubElement(root, "link", target=_fit_for_xml(link.target), type=str(link.type))
        _set_attribute(element, "rel", link.rel)
        _set_attribute(element, "title", link.title)
        element.text = _fit_for_xml(link.text)
    for warning in page.warnings:
        etree.SubElement(root, "warning").text = _fit_for_xml(warning)
    return etree.tostring(root, encoding="unicode", pretty_print=True)


def _set_attribute(element: etree._Element, name: str, value: str) -> None:
    if value:
        element.set(name, _fit_for_xml(value))


def _fit_for_xml(text: str) -> str:
    return _unfit_for_xml().sub("\ufffd", text)


@cache  # a set of so many characters takes long to make
def _unfit_for_xml() -> re.Pattern[str]:
    """What XML 1.0 cannot hold, whatever the escape."""
    return re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
