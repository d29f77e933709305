"""Plain text: paragraphs by blank lines, addresses as links."""

from __future__ import annotations

import re
from itertools import islice

from letopis.extract.draft import MAX_LINKS, Draft
from letopis.extract.source import Source
from letopis.model import BlockKind, LinkType

ADDRESS = re.compile(r"https?://[^\s<>\"'`{}|\\^]{1,2000}", re.IGNORECASE)
_GAP = re.compile(r"\n[ \t\r]*\n")


def read(source: Source, draft: Draft) -> None:
    """Reads a text: its first line is the title where it is short."""
    decoded = source.decoded()
    draft.charset = decoded.charset
    first = decoded.text.lstrip()[:300].partition("\n")[0].strip()
    if len(first) <= 120:
        draft.title = " ".join(first.split())
    if source.mode == "full":
        for paragraph in _GAP.split(decoded.text):
            draft.block(BlockKind.PARAGRAPH, paragraph)
    link_addresses(decoded.text, draft)


def link_addresses(text: str, draft: Draft) -> None:
    """Adds the addresses that stand in a text, without the punctuation of its sentences."""
    for found in islice(ADDRESS.finditer(text), MAX_LINKS + 1):
        ref = found[0].rstrip(".,;:!?")
        if ref.endswith(")") and "(" not in ref:
            ref = ref.rstrip(").,;:!?")
        draft.link(ref, LinkType.A)
