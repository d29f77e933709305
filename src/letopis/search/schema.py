"""The fields of the index, and the mark that says how far it has come.

One document stands for one version. Text fields hold words joined by blanks:
all cutting and all finding of base forms happens before.

    base       base forms, with frequencies: what plain words of a question are matched with
    exact      words as they stand, with positions: phrases and prefixes
    placed     `kind=word`, with positions: phrases in a kind of block
    placed_base  `kind=base`
    forms      `>form=base` and `<base=form`: the dictionary in both directions
    page       stored: URL, title and language, then one line a block
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import tantivy

from letopis.model import BlockKind

FORMAT = 1
OPEN = 1 << 62
"""The end of a version that is still valid."""
NOW, OLD, MARK = "now", "old", "mark"

KIND_LETTERS = {
    BlockKind.TITLE: "t",
    BlockKind.KEYWORDS: "k",
    BlockKind.DESCRIPTION: "d",
    BlockKind.H1: "1",
    BlockKind.H2: "2",
    BlockKind.H3: "3",
    BlockKind.H4: "4",
    BlockKind.H5: "5",
    BlockKind.H6: "6",
    BlockKind.PARAGRAPH: "p",
    BlockKind.ITEM: "i",
    BlockKind.CELL: "c",
    BlockKind.QUOTE: "q",
    BlockKind.CODE: "x",
    BlockKind.LINK: "l",
    BlockKind.ALT: "a",
}


class Mark(NamedTuple):
    """How far the index has come, and of what: kept in it, so that one commit changes both.

    `versions` and `times` are the mark of the log up to `last`; `bases` names
    what base forms were taken from. Whatever differs later tells what to do.
    Of several marks the one with the highest serial holds.
    """

    last: int = 0
    versions: int = 0
    times: int = 0
    bases: str = ""
    serial: int = 0

    def pack(self) -> bytes:
        """For the stored field of the marking document."""
        return json.dumps(self._asdict()).encode()


def unpack_mark(data: bytes) -> Mark:
    """The inverse of `Mark.pack`."""
    return Mark(**json.loads(data))


def build_schema() -> Any:
    """The schema of the index."""
    builder = tantivy.SchemaBuilder()
    for name in ("id", "resource"):
        builder.add_integer_field(name, fast=True, indexed=True)
    for name in ("number", "time", "until"):
        builder.add_integer_field(name, fast=True, indexed=False)
    for name in ("site", "language", "type"):
        builder.add_text_field(name, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("state", tokenizer_name="raw", index_option="basic")
    for name, option in _WORD_FIELDS.items():
        builder.add_text_field(name, tokenizer_name="whitespace", index_option=option)
    builder.add_bytes_field("page", stored=True, indexed=False)
    return builder.build()


_WORD_FIELDS = {"base": "freq", "exact": "position", "placed": "position", "placed_base": "freq", "forms": "basic"}
