"""RTF: its text by striprtf."""

from __future__ import annotations

from importlib import import_module

from letopis.errors import MissingExtra
from letopis.extract.draft import Draft
from letopis.extract.plain import link_addresses
from letopis.extract.source import Source
from letopis.model import BlockKind


def read(source: Source, draft: Draft) -> None:
    """Reads an RTF text. Raises MissingExtra without its library."""
    try:
        striprtf = import_module("striprtf.striprtf")
    except ImportError:
        raise MissingExtra("RTF files need a library; install letopis[docs-formats]") from None
    text = str(striprtf.rtf_to_text(source.body.decode("latin-1"), errors="replace"))
    draft.charset = "utf-8"
    link_addresses(text, draft)
    if source.mode == "full":
        for paragraph in text.split("\n"):
            draft.block(BlockKind.PARAGRAPH, paragraph)
