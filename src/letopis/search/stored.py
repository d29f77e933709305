"""A page as the index keeps it: enough to rebuild the text around any hit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from letopis.model import Block, Page
from letopis.search.schema import KIND_LETTERS
from letopis.search.words import settled

BODY, FRAME = "\t", "\x1f"
"""What stands between the letter of a kind and the text: whether the block is the page's own or part of its frame."""
LEAD = 2
"""Characters before the text of a block; the last of them is no part of a word."""
_KINDS = {letter: kind for kind, letter in KIND_LETTERS.items()}


class Stored(NamedTuple):
    """A stored page. `text` has one line a block: the letter of its kind, `BODY` or `FRAME`, and its text."""

    url: str
    title: str
    language: str
    text: str

    def pack(self) -> bytes:
        """The bytes of the stored field."""
        return "\n".join(self).encode("utf-8", "replace")

    def blocks(self) -> Iterator[Block]:
        """The blocks in document order."""
        return (Block(_KINDS[line[0]], line[LEAD:]) for line in self.text.split("\n") if line)


def unpack_stored(data: bytes) -> Stored:
    """The inverse of `Stored.pack`."""
    return Stored(*data.decode("utf-8", "replace").split("\n", 3))


def lines_of(page: Page) -> list[tuple[Block, str]]:
    """Blocks with settled text, and the line of each."""
    made = [Block(kind, one_line(text)) for kind, text in page.blocks]
    return [
        (block, f"{KIND_LETTERS[block.kind]}{FRAME if at in page.frame else BODY}{block.text}")
        for at, block in enumerate(made)
    ]


def one_line(text: str) -> str:
    """Settled text without line ends, which separate blocks."""
    return settled(text if "\n" not in text else text.replace("\n", " "))
