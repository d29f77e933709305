"""A page while it is being read: the one place where sizes are bounded."""

from __future__ import annotations

from datetime import datetime

from letopis.extract.source import Source
from letopis.model import Block, BlockKind, Link, LinkType, Page
from letopis.urls import join

MAX_BLOCKS = 50_000
MAX_LINKS = 50_000
MAX_TEXT = 8 * 1024 * 1024
"""Characters of text kept of one document, all blocks together."""
MAX_FIELD = 4096
"""Characters kept of a title, a description, a link's text."""


_HEAD_KINDS = (BlockKind.TITLE, BlockKind.DESCRIPTION, BlockKind.KEYWORDS)
_HEAD_NAMES = ("title", "description", "keywords")


class Draft:
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
        self._room = MAX_TEXT

    def block(self, kind: BlockKind, text: str) -> None:
        """Adds a run of text, white space folded; empty ones are left out."""
        folded = fold(text[: self._room + 1])
        if not folded:
            return
        if len(folded) > self._room or len(self.blocks) >= MAX_BLOCKS:
            self.warn("the text is longer than what is kept; the rest was left out")
            return
        self._room -= len(folded)
        self.blocks.append(Block(kind, folded))

    def link(self, ref: str, type: LinkType, text: str = "", rel: str = "", title: str = "") -> str:
        """Adds a link relative to `base`; gives its target, or nothing where it cannot be fetched."""
        target = join(self.base, ref)
        if target is None:
            return ""
        if len(self.links) >= MAX_LINKS:
            self.warn("there are more links than are kept; the rest was left out")
            return target
        self.links.append(Link(target, type, fold(text[:MAX_FIELD]), rel[:MAX_FIELD], title[:MAX_FIELD]))
        return target

    def head(self, title: str = "", description: str = "", keywords: str = "") -> None:
        """Sets what describes the document and has not been set, each also as a block."""
        for kind, name, value in zip(_HEAD_KINDS, _HEAD_NAMES, (title, description, keywords), strict=True):
            if not value or getattr(self, name):
                continue
            text = fold(value[:MAX_FIELD])
            if text:
                setattr(self, name, text)
                self.blocks.append(Block(kind, text))

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
        )


def fold(text: str) -> str:
    """Text with each run of white space as one blank, none at the ends."""
    # All white space but the plain blank counts as not printable: most text needs no splitting.
    if "  " in text or not text.isprintable():
        return " ".join(text.split())
    return text.strip(" ")
