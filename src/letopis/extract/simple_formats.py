"""Formats that need no library: plain text, style sheets, JSON, sizes of images."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator
from itertools import chain, groupby, islice, pairwise

from letopis.extract.pages import MAX_BLOCKS, MAX_LINKS, PageDraft, Source
from letopis.model import BlockKind, LinkType

URL_IN_TEXT = re.compile(r"https?://[^\s<>\"'`{}|\\^]{1,2000}", re.IGNORECASE)
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_LEAST_WIDTH, _FULL, _RUNNING = 40, 0.8, 0.3
"""Of prose that was broken into lines: letters of the longest, and the shares of full and of running lines."""


def read_plain_text(source: Source, draft: PageDraft) -> None:
    """Reads a text: its first line is the title where it is short."""
    decoded = source.decoded()
    draft.charset = decoded.charset
    first = decoded.text.lstrip()[:300].partition("\n")[0].strip()
    if len(first) <= 120:
        draft.title = " ".join(first.split())
    if source.content_type == "text/tab-separated-values":
        for line in decoded.text.splitlines() if source.mode == "full" else ():
            draft.row([cell.strip() for cell in line.split("\t")])
    elif source.mode == "full":
        paragraphs = _BLANK_LINE.split(decoded.text)
        by_line = decoded.text.count("\n") < MAX_BLOCKS
        for block in chain.from_iterable(map(_text_blocks, paragraphs)) if by_line else paragraphs:
            draft.block(BlockKind.PARAGRAPH, block)
    link_urls(decoded.text, draft)


def _text_blocks(paragraph: str) -> list[str]:
    """The lines of a log, a list or a table; a paragraph of prose that was broken where its lines were full is one.

    So is a line that repeats: how often it does is what it says, while blocks that repeat are taken for a banner.
    """
    lines = [line for each in paragraph.split("\n") if (line := each.strip())]
    following = list(pairwise(lines))
    width = max(map(len, lines), default=0)
    full = sum(len(line) + 1 + len(after.partition(" ")[0]) > width for line, after in following)
    running = sum(after[:1].islower() for _, after in following)
    is_prose = width >= _LEAST_WIDTH and full >= _FULL * len(following) and running >= _RUNNING * len(following)
    return [paragraph] if is_prose else ["\n".join(run) for _, run in groupby(lines)]


def link_urls(text: str, draft: PageDraft) -> None:
    """Adds the addresses that stand in a text, without the punctuation of its sentences."""
    for found in islice(URL_IN_TEXT.finditer(text), MAX_LINKS + 1):
        ref = found[0].rstrip(".,;:!?")
        if ref.endswith(")") and "(" not in ref:
            ref = ref.rstrip(").,;:!?")
        draft.link(ref, LinkType.A)


_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
# Both begin with plain characters: the search then runs at the speed of memory.
_CSS_URL = re.compile(r"""url\(\s*(?:"([^"\n]{0,8192})"|'([^'\n]{0,8192})'|([^"'()\s]{1,8192}))\s*\)""")
_CSS_IMPORT = re.compile(r"""@import\s+(?:"([^"\n]{1,8192})"|'([^'\n]{1,8192})')""")
_MOST_CSS_REFS = 10_000


def css_refs(text: str) -> list[str]:
    """The references of a style sheet, imports first; embedded data left out."""
    if "/*" in text:
        text = _CSS_COMMENT.sub(" ", text)
    matches = islice(chain(_CSS_IMPORT.finditer(text), _CSS_URL.finditer(text)), _MOST_CSS_REFS)
    found = (next(filter(None, match.groups()), "") for match in matches)
    return [ref for ref in found if ref and not ref.startswith("data:")]


def read_css(source: Source, draft: PageDraft) -> None:
    """Reads a style sheet: its links, no text."""
    decoded = source.decoded()
    draft.charset = decoded.charset
    for ref in css_refs(decoded.text):
        draft.link(ref, LinkType.CSS)


_MOST_VALUES = 500_000
_TITLE_KEYS = ("title", "name", "headline")


def read_json(source: Source, draft: PageDraft) -> None:
    """Reads a JSON text. Raises ValueError when it is none."""
    decoded = source.decoded()
    draft.charset = decoded.charset
    data = json.loads(decoded.text)
    if isinstance(data, dict):
        draft.head(title=next((data[key] for key in _TITLE_KEYS if isinstance(data.get(key), str)), ""))
    for name, text in _values(data):
        if URL_IN_TEXT.fullmatch(text):
            draft.link(text, LinkType.A)
        if source.mode == "full":
            named = name != "" and len(text) <= _LONGEST_NAMED
            draft.block(BlockKind.CELL if named else BlockKind.PARAGRAPH, f"{name}: {text}" if named else text)


_LONGEST_NAMED = 80
"""Letters up to which a value says nothing without its name; a longer text is compared with that of other documents."""


def _values(data: object) -> Iterator[tuple[str, str]]:
    """All values in document order with the names nearest to them, whatever the nesting."""
    waiting: list[tuple[str, object]] = [("", data)]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(reversed(value.items()))
        elif isinstance(value, list):
            waiting.extend((name, part) for part in reversed(_runs(value)))
        elif value not in ("", None):
            yield name, value if isinstance(value, str) else json.dumps(value)


_RUN = 32


def _runs(values: list[object]) -> list[object]:
    """The parts of a list, its numbers so many at a time: tables of data would be a block a number otherwise."""
    if len(values) <= _RUN or not all(isinstance(value, int | float) for value in values):
        return values
    return [" ".join(map(json.dumps, values[at : at + _RUN])) for at in range(0, len(values), _RUN)]


_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset((0x01, *range(0xD0, 0xD9)))


def read_image(source: Source, draft: PageDraft) -> None:
    """Reads a picture: a description such as `1024 x 768 pixels`."""
    size = image_size(source.body, source.content_type)
    if size is None:
        draft.warn("the picture's size could not be read")
        return
    draft.block(BlockKind.DESCRIPTION, f"{size[0]} x {size[1]} pixels")
    draft.description = f"{size[0]} x {size[1]} pixels"


def image_size(body: bytes, content_type: str) -> tuple[int, int] | None:
    """Width and height, or None for what is damaged or unknown."""
    reader = _SIZE_READERS.get(content_type)
    try:
        return reader(body) if reader else None
    except (struct.error, IndexError):
        return None


def _png(body: bytes) -> tuple[int, int] | None:
    width, height = struct.unpack_from(">II", body, 16)
    return width, height


def _gif(body: bytes) -> tuple[int, int] | None:
    width, height = struct.unpack_from("<HH", body, 6)
    return width, height


def _jpeg(body: bytes) -> tuple[int, int] | None:
    """Walks the segments up to the first frame header."""
    at = 2
    while at < len(body):
        if body[at] != 0xFF:
            return None
        marker = body[at + 1]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", body, at + 5)
            return width, height
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        else:
            at += 2 + max(2, struct.unpack_from(">H", body, at + 2)[0])
    return None


def _webp(body: bytes) -> tuple[int, int] | None:
    kind = body[12:16] if len(body) >= 25 else b""
    if kind == b"VP8X":
        return 1 + int.from_bytes(body[24:27], "little"), 1 + int.from_bytes(body[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(body[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", body, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_SIZE_READERS: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png,
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
}
