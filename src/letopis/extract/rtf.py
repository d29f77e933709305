"""RTF texts: paragraphs, headings, rows, links of fields, title and dates; no library is needed."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from letopis.extract.office import HYPERLINK
from letopis.extract.pages import PageDraft, Source
from letopis.extract.simple_formats import link_urls
from letopis.model import BlockKind, LinkType
from letopis.tuples import NamedTuple

_TOKEN = re.compile(
    r"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}\r\n]+)|[\r\n]+", re.DOTALL
)
_DEEPEST = 1000
_SIGNS = {
    "tab": "\t", "emdash": "\u2014", "endash": "\u2013", "bullet": "\u2022", "lquote": "\u2018", "rquote": "\u2019",
    "ldblquote": "\u201c", "rdblquote": "\u201d", "emspace": " ", "enspace": " ", "qmspace": " ", "line": " ",
}  # fmt: skip
_ESCAPES = {"~": "\u00a0", "_": "-", "-": "", "\\": "\\", "{": "{", "}": "}", "\n": "\n", "\r": "\n"}
_PARAGRAPH_ENDS = frozenset(("par", "sect", "page", "column"))
_NOT_TEXT = frozenset((
    "fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "themedata", "colorschememapping", "listtable",
    "listoverridetable", "rsidtbl", "generator", "latentstyles", "datastore", "xmlnstbl", "filetbl", "revtbl",
    "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf", "nonshppict", "shpinst",
    "bkmkstart", "bkmkend", "listtext", "pntext", "pnseclvl", "fldinst", "atnid", "atnauthor", "annotation",
))  # fmt: skip
_INFO = {"title": "title", "subject": "description", "keywords": "keywords"}
_TIMES = {"creatim": "published", "revtim": "modified"}
_FIELD_NAMES = {"yr": "year", "mo": "month", "dy": "day", "hr": "hour", "min": "minute"}
_CODE_PAGES = {
    0: 1252, 2: 1252, 77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255,
    178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250, 255: 437,
}  # fmt: skip
"""Code pages by the numbers of character sets that fonts are declared with."""


class _Group(NamedTuple):
    """What holds between a pair of braces: where its text goes, the code page, how many signs stand for another."""

    destination: str = ""
    code_page: str = "cp1252"
    stand_ins: int = 1


def read_rtf(source: Source, draft: PageDraft) -> None:
    """Reads an RTF text as far as possible."""
    draft.charset = "utf-8"
    _RtfReader(draft).read(source.body.decode("latin-1"))
    draft.settle_document(source.mode)


def _codec(number: int) -> str:
    name = {10000: "mac-roman", 65001: "utf-8"}.get(number, f"cp{number}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


class _RtfReader:
    """Goes through a text sign by sign. Used once."""

    def __init__(self, draft: PageDraft) -> None:
        self._draft = draft
        self._group = _Group()
        self._stack: list[_Group] = []
        self._ignored = False
        self._skipped = self._binary = 0
        self._bytes = bytearray()
        self._pieces: list[str] = []
        self._kept: dict[str, list[str]] = {}
        self._fonts: dict[int, str] = {}
        self._font = -1
        self._level = -1
        self._is_item = self._in_row = False
        self._row: list[str] = []
        self._link, self._linked = "", -1
        self._time: dict[str, int] = {}
        self._words: dict[str, Callable[[int], None]] = {
            "ansicpg": self._set_code_page, "f": self._set_font, "fcharset": self._set_font_charset,
            "uc": self._set_stand_ins, "u": self._add_unicode, "outlinelevel": self._set_level, "pard": self._reset,
            "intbl": self._set_in_row, "cell": self._end_cell, "nestcell": self._end_cell, "row": self._end_row,
            "bin": self._add_binary,
        }  # fmt: skip

    def read(self, text: str) -> None:
        """Adds all blocks, links and facts to the draft."""
        at = 0
        while (found := _TOKEN.match(text, at)) is not None and not self._draft.is_full:
            self._binary = 0
            word, number, code, escape, brace, plain = found.groups()
            if code:
                self._add_byte(int(code, 16))
            elif plain:
                self._add_plain(plain)
            else:
                self._settle_bytes()
                if word:
                    self._take_word(word, int(number) if number else None)
                elif brace:
                    self._open() if brace == "{" else self._close()
                elif escape == "*":
                    self._ignored = True
                elif escape:
                    self._add(_ESCAPES.get(escape, ""))
            at = found.end() + self._binary
        self._settle_bytes()
        self._end_paragraph()
        self._settle_facts()

    def _open(self) -> None:
        if len(self._stack) >= _DEEPEST:
            raise ValueError("groups are nested too deeply")
        self._stack.append(self._group)
        self._ignored = False

    def _close(self) -> None:
        ended = self._group.destination
        if not self._stack:
            return
        self._group = self._stack.pop()
        if ended == self._group.destination:
            return
        if ended == "fldinst":
            found = HYPERLINK.match("".join(self._kept.pop("fldinst", ())))
            self._link, self._linked = (found[1], len(self._pieces)) if found else ("", -1)
        elif ended == "fldrslt" and self._link:
            self._draft.link(self._link, LinkType.A, text="".join(self._pieces[max(0, self._linked) :]))
            self._link = ""
        elif ended in _TIMES:
            self._settle_time(_TIMES[ended])

    def _take_word(self, word: str, number: int | None) -> None:
        self._skipped = 0
        if word in _NOT_TEXT or word in _INFO or word in _TIMES or word == "fldrslt" or self._ignored:
            is_item = word in ("listtext", "pntext")
            self._is_item = self._is_item or is_item
            self._group = self._group._replace(destination=word if word in _NOT_TEXT | _KNOWN else "unknown")
            self._ignored = False
        elif word in _PARAGRAPH_ENDS:
            self._end_paragraph()
        elif word in _SIGNS:
            self._add(_SIGNS[word])
        elif word in _FIELD_NAMES:
            self._time[_FIELD_NAMES[word]] = number or 0
        elif word in self._words:
            self._words[word](number if number is not None else 1)

    def _set_code_page(self, number: int) -> None:
        self._group = self._group._replace(code_page=_codec(number))

    def _set_font(self, number: int) -> None:
        self._font = number
        if number in self._fonts and self._group.destination != "fonttbl":
            self._group = self._group._replace(code_page=self._fonts[number])

    def _set_font_charset(self, number: int) -> None:
        if self._group.destination == "fonttbl" and number in _CODE_PAGES and number > 0:
            self._fonts[self._font] = _codec(_CODE_PAGES[number])

    def _set_stand_ins(self, number: int) -> None:
        self._group = self._group._replace(stand_ins=max(0, min(number, 16)))

    def _add_unicode(self, number: int) -> None:
        self._add(chr(number & 0xFFFF))
        self._skipped = self._group.stand_ins

    def _set_level(self, number: int) -> None:
        self._level = number

    def _reset(self, number: int) -> None:
        self._level, self._is_item, self._in_row = -1, False, False

    def _set_in_row(self, number: int) -> None:
        self._in_row = True

    def _add_binary(self, number: int) -> None:
        self._binary = max(0, number)

    def _add_byte(self, byte: int) -> None:
        if self._skipped:
            self._skipped -= 1
        else:
            self._bytes.append(byte)

    def _add_plain(self, text: str) -> None:
        if self._skipped:
            text, self._skipped = text[self._skipped :], max(0, self._skipped - len(text))
        self._bytes += text.encode("latin-1")

    def _settle_bytes(self) -> None:
        if self._bytes:
            text = self._bytes.decode(self._group.code_page, "replace")
            self._bytes.clear()
            self._add(text)

    def _add(self, text: str) -> None:
        """Adds text where its group says."""
        destination = self._group.destination
        if destination in ("", "fldrslt"):
            self._pieces.append(text)
        elif destination in _INFO or destination == "fldinst":
            self._kept.setdefault(destination, []).append(text)

    def _end_cell(self, number: int) -> None:
        self._row.append(" ".join(self._taken().split()))

    def _end_row(self, number: int) -> None:
        self._draft.row(self._row)
        self._row.clear()

    def _end_paragraph(self) -> None:
        if self._in_row:  # continues inside its cell
            self._add(" ")
            return
        text = self._taken()
        link_urls(text, self._draft)
        kind = BlockKind.ITEM if self._is_item else BlockKind.PARAGRAPH
        if 0 <= self._level < 6:
            kind = BlockKind(f"h{self._level + 1}")
        self._draft.block(kind, text)

    def _taken(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        self._linked = 0
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _settle_time(self, name: str) -> None:
        """Sets a date of the draft; one without year, month or day is none."""
        with suppress(ValueError, TypeError, OverflowError):
            setattr(self._draft, name, datetime(**self._time, tzinfo=UTC))
        self._time.clear()

    def _settle_facts(self) -> None:
        said = {_INFO[name]: "".join(parts) for name, parts in self._kept.items() if name in _INFO}
        self._draft.head(**said)


_KNOWN = frozenset((*_INFO, *_TIMES, "fldrslt"))
