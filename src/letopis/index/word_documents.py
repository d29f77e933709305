"""The documents of the word index: its fields, and how a version and its page become one, here or on a cluster.

One document stands for a run of versions with the same words. Text fields hold words joined by blanks:
all cutting and all finding of base forms happens before.

    base       base forms, with frequencies: what plain words of a query are matched with
    placed     `kind=word`, with positions: words of newest versions as they stand, in all their forms; phrases,
               prefixes, kinds of blocks
    stood      words of older versions as they stand that are not their own base form, and `=base` where a base form
               does not stand itself: so every other base form does; `:kind=word` for titles and headings. Phrases
               and other kinds of blocks are looked for in texts
    forms      `>form=base` and `<base=form`: the dictionary in both directions, in documents of its own
    page       stored: URL, title and language, then one line a block; of older versions as `old_texts` says

`id`, `number` and `newest` are those of the last version of the run, `first` and `time` of the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from letopis import extract
from letopis.archive import Archive
from letopis.archive.index_facts import WordRow, title_only_pages, word_forms
from letopis.config import SearchSettings
from letopis.errors import LetopisError
from letopis.index.base_forms import BaseForms
from letopis.index.old_texts import OldTextWriter
from letopis.index.page_text import StoredPage, one_line, pack_older_page, split_words, stored_lines
from letopis.index.word_runs import OPEN_END, Content, VersionRun
from letopis.lazy import tantivy
from letopis.model import BlockKind, LinkType, Page, Version
from letopis.tuples import NamedTuple
from letopis.urls import host

WORDS_FORMAT = 7
STATE_NOW, STATE_OLD, STATE_MARK, STATE_FORMS = range(4)


class WordIndexMark(NamedTuple):
    """How far the index has come, and of what: kept in it, so that one commit changes both.

    `versions` and `times` are the mark of the log up to `last`; `bases` names what base forms were taken from. Whatever
    differs later tells what to do. Of several marks the one with the highest serial holds.
    """

    last: int = 0
    versions: int = 0
    times: int = 0
    bases: str = ""
    serial: int = 0

    def pack(self) -> str:
        """For the stored field of the marking document."""
        return json.dumps(self._asdict())


def unpack_mark(data: str) -> WordIndexMark:
    """The inverse of `WordIndexMark.pack`."""
    return WordIndexMark(**json.loads(data))


def word_schema() -> Any:
    """The schema of the index."""
    builder = tantivy.SchemaBuilder()
    for name in ("id", "resource"):
        builder.add_integer_field(name, fast=True, indexed=True)
    for name in ("first", "number", "time", "newest", "until"):
        builder.add_integer_field(name, fast=True, indexed=False)
    for name in ("site", "language", "type"):
        builder.add_text_field(name, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("state", fast=False, indexed=True)
    for name, option in _WORD_FIELDS.items():
        builder.add_text_field(name, tokenizer_name="whitespace", index_option=option)
    # As bytes it would take three times as long to read.
    builder.add_text_field("page", stored=True, tokenizer_name=_WORDLESS, index_option="basic")
    return builder.build()


def open_word_index(schema: Any, folder: Path) -> Any:
    """The index of a folder; an empty one where there is none."""
    index = tantivy.Index(schema, str(folder))
    wordless = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.remove_long(0)).build()
    index.register_tokenizer(_WORDLESS, wordless)
    return index


_WORDLESS = "wordless"
"""Of a text that is stored and in which nothing is looked for."""
_WORD_FIELDS = {"base": "freq", "placed": "position", "stood": "basic", "forms": "basic"}
HIDDEN = "hidden"
"""The kind, besides `link`, of texts in no other block: what a link shows when the mouse is over it."""
PHRASE_STARTS = tuple(f"{kind}=" for kind in (*BlockKind, HIDDEN) if kind != BlockKind.LINK)
"""The prefix of words of `placed` in a separate block; texts of links are inside others."""
ANY_START = f"({'|'.join(PHRASE_STARTS)})"
"""The same as a regular expression."""

ABSENT = "="
"""The prefix of a base form in `stood` that is not written on the page."""

HEADING_KINDS = frozenset(kind for kind in BlockKind if kind in ("title", "h1", "h2", "h3", "h4", "h5", "h6"))
"""Kinds of few words, whose places are in the index."""

BLOCK_WEIGHTS = {BlockKind.TITLE: 3, BlockKind.H1: 2}
"""How often words of a kind count: weight by repetition costs a question nothing."""

_TEXT_LINKS = (LinkType.A, LinkType.AREA)


def with_title_alone(page: Page) -> Page:
    """The page as if nothing but its title stood on it."""
    titles = tuple(block for block in page.blocks if block.kind is BlockKind.TITLE)
    return page._replace(blocks=titles, links=(), frame=frozenset())


def document_content(url: str, page: Page, bases: Mapping[str, str]) -> Content:
    """The fields of a document with the text of the page."""
    lines = stored_lines(page)
    blocks = [(block.kind, split_words(block.text)) for block, _ in lines]
    links = [split_words(one_line(link.text)) for link in page.links if link.text and link.type in _TEXT_LINKS]
    stored = StoredPage(url, one_line(page.title), page.language, "\n".join(line for _, line in lines))
    return {
        "site": host(url),
        "language": page.language,
        "type": page.content_type,
        "page": stored.pack(),
        "links": list(dict.fromkeys(" ".join(words) for words in links if words)),
        **_word_fields(blocks, links, bases),
    }


def run_document(schema: Any, run: VersionRun, content: Content, texts: OldTextWriter) -> Any:
    """The document of a run; what is learned from its words about forms is stored once, elsewhere."""
    last, page = run.last, content["page"]
    fields = {**content, **run.numbers._asdict(), "resource": last.resource, "state": STATE_NOW}
    is_newest = last.until is None
    if not is_newest:
        fields["state"] = STATE_OLD
        fields["page"] = texts.keep(last.resource, last.number, last.id, pack_older_page(page, content["links"]))
    for name in ("forms", "links", "stood" if is_newest else "placed"):
        del fields[name]
    return tantivy.Document.from_dict(fields, schema)


def _word_fields(
    blocks: list[tuple[BlockKind, list[str]]], links: list[list[str]], bases: Mapping[str, str]
) -> dict[str, list[str]]:
    """Each block is a separate value: between values is a gap that no phrase spans.

    Texts of links are already inside other blocks, so they only mark where words are.
    """
    fields: dict[str, list[str]] = {"base": [], "placed": [], "forms": []}
    pairs: dict[str, str] = {}
    for kind, words in blocks:
        found = [bases[word] for word in words]
        pairs.update(zip(words, found, strict=True))
        fields["base"] += [" ".join(found)] * BLOCK_WEIGHTS.get(kind, 1)
        fields["placed"].append(_placed(kind, words))
        if kind is BlockKind.LINK:
            fields["placed"].append(_placed(HIDDEN, words))
    fields["placed"] += [_placed(BlockKind.LINK, words) for words in links]
    # A repeated text, such as that of a link, is found by its first place.
    fields["placed"] = list(dict.fromkeys(fields["placed"]))
    fields["forms"] = _form_entries(pairs.items())
    headings = (f":{kind}={word}" for kind, words in blocks if kind in HEADING_KINDS for word in words)
    fields["stood"] = [*_beside_bases(pairs), *dict.fromkeys(headings)]
    return fields


def _beside_bases(pairs: Mapping[str, str]) -> list[str]:
    """What tells, together with the base forms of a page, which words stand on it."""
    return [word for word, base in pairs.items() if word != base] + [
        f"{ABSENT}{base}" for base in dict.fromkeys(pairs.values()) if base not in pairs
    ]


def _placed(kind: str, words: list[str]) -> str:
    start = f"{kind}="
    return " ".join([start + word for word in words])


def _form_entries(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """The dictionary entries of inflected words, both ways."""
    return [text for form, base in pairs if form != base for text in (f">{form}={base}", f"<{base}={form}")]


def mark_document(schema: Any, mark: WordIndexMark) -> Any:
    """The document that is no page and says how far the index has come; its id is 0, which no version has."""
    return _timeless_document(schema, {"id": 0, "number": mark.serial, "state": STATE_MARK, "page": mark.pack()})


def forms_document(schema: Any, entries: Iterable[str]) -> Any:
    """The document that is no page and has entries of the dictionary; it stays as long as the index."""
    fields = {"id": _FORMS_ID, "number": 0, "state": STATE_FORMS, "forms": " ".join(entries), "page": ""}
    return _timeless_document(schema, fields)


_FORMS_ID = -1


def _timeless_document(schema: Any, fields: dict[str, Any]) -> Any:
    never = {"resource": 0, "first": 0, "time": OPEN_END, "newest": OPEN_END, "until": 0}
    return tantivy.Document.from_dict({**never, "site": "", "language": "", "type": "", **fields}, schema)


PIECE = 100
"""Versions of one piece."""


def contents_of_runs(
    archive: Archive, runs: Iterable[VersionRun], bases: BaseForms
) -> Iterator[tuple[VersionRun, Content]]:
    """The content of each run of which a version can still be read."""
    titles = title_only_pages(archive)
    for run in runs:
        version = _readable_version(archive, run)
        if version is None:
            continue
        page = extract.read_page(version.body, version.url, version.headers)
        if run.last.resource in titles:
            page = with_title_alone(page)
        yield run, document_content(run.last.url, page, bases.of(page.language))


def _readable_version(archive: Archive, run: VersionRun) -> Version | None:
    """None when all were dropped meanwhile or their bytes are lost: there is nothing to find in them."""
    for number in dict.fromkeys((run.last.id, run.first.id)):
        with suppress(LetopisError):
            return archive.answers.by_id(number)
    return None


def contents_on_worker(archive: Archive, runs: tuple[VersionRun, ...]) -> list[tuple[VersionRun, Content]]:
    """A piece, on a worker that knows nothing yet but the archive."""
    bases = _cached_base_forms(archive.settings.search, tuple(word_forms(archive)))
    return list(contents_of_runs(archive, runs, bases))


@lru_cache(maxsize=4)
def _cached_base_forms(settings: SearchSettings, settled: tuple[WordRow, ...]) -> BaseForms:
    """Kept from piece to piece: the tables of a language take a while to load."""
    return BaseForms(settings, settled)
