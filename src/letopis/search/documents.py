"""From a version and its page to a document of the index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import tantivy

from letopis.catalog.spans import Span
from letopis.model import BlockKind, LinkType, Page
from letopis.search.schema import MARK, NOW, OLD, OPEN, Mark
from letopis.search.stored import Stored, lines_of, one_line
from letopis.search.words import words_of
from letopis.urls import host

WEIGHTS = {BlockKind.TITLE: 3, BlockKind.H1: 2}
"""How often words of a kind count: weight by repetition costs a question nothing."""

_TEXTUAL = (LinkType.A, LinkType.AREA)


def with_title_alone(page: Page) -> Page:
    """The page as if nothing but its title stood on it."""
    titles = tuple(block for block in page.blocks if block.kind is BlockKind.TITLE)
    return replace(page, blocks=titles, links=(), frame=frozenset())


def fields_of(span: Span, page: Page, bases: Mapping[str, str]) -> dict[str, Any]:
    """The fields of the document that stands for one version."""
    lines = lines_of(page)
    blocks = [(block.kind, words_of(block.text)) for block, _ in lines]
    links = [words_of(one_line(link.text)) for link in page.links if link.text and link.type in _TEXTUAL]
    stored = Stored(span.url, one_line(page.title), page.language, "\n".join(line for _, line in lines))
    return {
        "id": span.id,
        "resource": span.resource,
        "number": span.number,
        "time": span.time,
        "until": OPEN if span.until is None else span.until,
        "state": NOW if span.until is None else OLD,
        "site": host(span.url),
        "language": page.language,
        "type": page.content_type,
        "page": stored.pack(),
        **_word_fields(blocks, links, bases),
    }


def _word_fields(
    blocks: list[tuple[BlockKind, list[str]]], links: list[list[str]], bases: Mapping[str, str]
) -> dict[str, list[str]]:
    """Each block is a value of its own: between values lies a gap that no phrase spans.

    Texts of links stand inside other blocks already, so they only say where words stand.
    """
    fields: dict[str, list[str]] = {"base": [], "exact": [], "placed": [], "placed_base": [], "forms": []}
    pairs: dict[str, str] = {}
    for kind, words in blocks:
        found = [bases[word] for word in words]
        pairs.update(zip(words, found, strict=True))
        fields["exact"].append(" ".join(words))
        fields["base"] += [" ".join(found)] * WEIGHTS.get(kind, 1)
        _place(fields, kind, words, found)
    for words in links:
        _place(fields, BlockKind.LINK, words, [bases[word] for word in words])
    fields["forms"].append(" ".join(_directions(pairs.items())))
    return fields


def _place(fields: dict[str, list[str]], kind: BlockKind, words: list[str], bases: list[str]) -> None:
    start = kind.value + "="
    fields["placed"].append(" ".join([start + word for word in words]))
    fields["placed_base"].append(" ".join([start + base for base in bases]))


def _directions(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """The dictionary entries of inflected words, both ways."""
    return [text for form, base in pairs if form != base for text in (f">{form}={base}", f"<{base}={form}")]


def mark_document(schema: Any, mark: Mark) -> Any:
    """The document that is no page and says how far the index has come; its id is 0, which no version has."""
    never = {"resource": 0, "time": OPEN, "until": 0, "site": "", "language": "", "type": ""}
    fields = {"id": 0, "number": mark.serial, "state": MARK, "page": mark.pack(), **never}
    return tantivy.Document.from_dict(fields, schema)
