"""An index of anchor texts, so that pages are found by what links call them, as of any date.

It is built from the index of links, as a whole: into a separate folder, after which a small file is replaced that names
the valid folder. That is repeated when enough is new, so that it never takes more than a part of the time for indexing
words; until then it is slightly out of date.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from letopis.archive import Archive
from letopis.archive.index_facts import VersionLog
from letopis.index.query_language import QueryClause
from letopis.index.word_queries import QueryBuilder
from letopis.index.word_runs import OPEN_END
from letopis.index.word_snapshot import WordSnapshot, best_documents
from letopis.lazy import FieldType, Occur, Query, lazy, tantivy
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.index import anchors
else:
    anchors = lazy("letopis.index.anchors")

ANCHORS_FORMAT = 4
LAST_MOMENT = OPEN_END - 1
"""Only what is still valid is valid then."""
ANCHOR_WEIGHT = 0.4
"""The weight of a word in the text of a link; a word on the page has 1."""
MAX_PAGES, MAX_PAGES_OF_SEVERAL = 8, 24
"""Pages that links can add for a query of one word, and for each word of several: those whose names match best."""
_CANDIDATES = 3
"""How many times as many names are searched for those of a moment, before it becomes a part of the query."""
_HELD_CLAUSES = 256
"""Clauses whose pages are kept."""
_STALE_SHARE = 20
"""One new version or check in so many rebuilds the index."""


class AnchorIndexMark(NamedTuple):
    """What the index was built from: versions up to `last`, other checks, base forms. Empty if there is none."""

    folder: str = ""
    last: int = 0
    versions: int = 0
    times: int = 0
    checks: int = 0
    bases: str = ""
    format: int = ANCHORS_FORMAT


class AnchorMatch(NamedTuple):
    """How well the texts of links to a page match, and where the best one is stored."""

    score: float
    place: Any


class AnchorReader:
    """The index as it is now. Safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        self.schema = anchor_schema()
        index = tantivy.Index(self.schema, str(folder))
        self._searcher: Any = index.searcher()
        self._words: _AnchorVocabulary | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no link has a text."""
        return not self._searcher.num_docs

    def pages(
        self, snapshot: WordSnapshot, clause: QueryClause, span: tuple[int, int], most: int
    ) -> dict[int, AnchorMatch]:
        """Resources that a link called so at any time of a span, both ends included."""
        if any(term.blocks for term in clause.alternatives):
            return {}
        words = self._words
        if words is None or words.snapshot is not snapshot:
            words = self._words = _AnchorVocabulary(snapshot, self.schema)
        asked = clause, span, most
        found = words.found.get(asked)
        if found is None:
            if len(words.found) >= _HELD_CLAUSES:
                words.found.clear()
            found = words.found[asked] = self._pages(words, *asked)
        return found

    def _pages(
        self, words: _AnchorVocabulary, clause: QueryClause, span: tuple[int, int], most: int
    ) -> dict[int, AnchorMatch]:
        query, enough = QueryBuilder(words).clause(clause), _CANDIDATES * most
        hits = best_documents(self._searcher, query, enough)
        found = self._best(hits, span, most)
        if len(found) < most and len(hits) == enough:
            found = self._best(best_documents(self._searcher, self._timed(query, *span), 4 * enough), span, most)
        return found

    def text(self, name: AnchorMatch) -> str:
        """The text of a link."""
        data: bytes = self._searcher.doc(name.place).get_first("text")
        return data.decode("utf-8", "replace")

    def _timed(self, query: Any, since: int, until: int) -> Any:
        time = Query.range_query(self.schema, "time", FieldType.Integer, None, until)
        end = Query.range_query(self.schema, "until", FieldType.Integer, since + 1, None)
        limits = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in (time, end)]
        return Query.boolean_query([(Occur.Must, query), *limits])

    def _best(self, hits: list[tuple[float, Any]], span: tuple[int, int], most: int) -> dict[int, AnchorMatch]:
        found: dict[int, AnchorMatch] = {}
        for (score, place), page in zip(hits, self._called_pages([place for _, place in hits], *span), strict=True):
            if page and page not in found:
                found[page] = AnchorMatch(ANCHOR_WEIGHT * score, place)
                if len(found) == most:
                    break
        return found

    def _called_pages(self, places: list[Any], since: int, until: int) -> Iterable[int]:
        """The resource of each name that was valid in a span, 0 for others."""
        read = self._searcher.fast_field_values
        pages: list[int] = read("resource", places)
        if since >= LAST_MOMENT:  # As of now: what is open says enough, and each column takes its time.
            return (max(0, page) for page in pages)
        rows = zip(pages, read("time", places), read("until", places), strict=True)
        return (abs(page) if begun <= until and since < ended else 0 for page, begun, ended in rows)


class AnchorIndex:
    """Keeps the index of names of one archive. For the process that has the turn of its `WordIndex`."""

    def __init__(self, archive: Archive, folder: Path) -> None:
        self._archive = archive
        self._log = VersionLog(archive)
        self._folder = folder
        self._settled_for: WordSnapshot | None = None
        self._mark = AnchorIndexMark()
        self.reader: AnchorReader | None = None

    def lag(self) -> int:
        """Versions recorded since, whose links cannot be queried yet."""
        self._see()
        return self._log.count_since(self._mark.last)

    def is_settled(self, snapshot: WordSnapshot) -> bool:
        """Whether nothing was indexed since the last update."""
        return snapshot is self._settled_for

    def settle(self, snapshot: WordSnapshot) -> None:
        """The present state is valid until something is indexed."""
        self._settled_for = snapshot

    def is_stale(self, bases: str) -> bool:
        """Whether so much has changed that the index must be rebuilt."""
        self._see()
        mark = self._mark
        if mark.bases != bases or self._log.mark(mark.last) != (mark.versions, mark.times):
            return True
        new = self._log.count_since(mark.last) + self._log.check_mark().rows - mark.checks
        return new > 0 and new * _STALE_SHARE >= mark.versions + mark.checks

    def make(self, snapshot: WordSnapshot, bases: str) -> None:
        """Rebuilds the index; for one process at a time."""
        folder = os.urandom(8).hex()
        made = anchors.build_anchor_index(self._archive, snapshot, self._folder / folder)
        _write_mark(self._folder, AnchorIndexMark(folder, *made, bases))
        for other in self._folder.iterdir():
            if other.is_dir() and other.name != folder:
                shutil.rmtree(other, ignore_errors=True)
        self._see()

    def remove(self) -> None:
        """The next query rebuilds it."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._settled_for, self._mark, self.reader = None, AnchorIndexMark(), None

    def _see(self) -> None:
        """Reads what another process has built; a missing or damaged index is rebuilt."""
        mark = _read_mark(self._folder)
        if mark == self._mark:
            return
        try:
            reader = AnchorReader(self._folder / mark.folder) if mark.folder else None
        except (ValueError, OSError):
            self._mark, self.reader = AnchorIndexMark(), None
        else:
            self._mark, self.reader = mark, None if reader is None or reader.is_empty else reader


class _AnchorVocabulary:
    """The words of the main index over the fields of this one."""

    phrases: tuple[str, tuple[str, ...]] = ("exact", ("",))
    any_start = ""
    has_older = False

    def __init__(self, snapshot: WordSnapshot, schema: Any) -> None:
        self.schema = schema
        self.snapshot = snapshot
        self.bases_of = snapshot.bases_of
        self.other_bases = snapshot.other_bases
        self.forms_of = snapshot.forms_of
        self.further_bases = snapshot.further_bases
        self.further_forms = snapshot.further_forms
        self.having = snapshot.having
        self.sources = snapshot.sources
        self.found: dict[tuple[QueryClause, tuple[int, int], int], dict[int, AnchorMatch]] = {}
        """What clauses have found: one question asks for its hits, their number and their facets."""

    def places_of(self, word: str) -> tuple[str, ...]:
        """Texts of links are blocks of one kind."""
        return (word,)

    def older_with(self, word: str) -> None:
        """All are in one field."""


def anchor_schema() -> Any:
    """One document for each time in which a text was valid; `resource` is negative where no link has it any more."""
    builder = tantivy.SchemaBuilder()
    for name in ("resource", "time", "until"):
        builder.add_integer_field(name, fast=True, indexed=False)
    builder.add_text_field("base", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("exact", tokenizer_name="whitespace", index_option="position")
    builder.add_bytes_field("text", stored=True, indexed=False)
    return builder.build()


def _read_mark(folder: Path) -> AnchorIndexMark:
    try:
        fields: Mapping[str, Any] = json.loads((folder / "current.json").read_bytes())
        mark = AnchorIndexMark(**fields)
    except (OSError, ValueError, TypeError):
        return AnchorIndexMark()
    return mark if mark.format == ANCHORS_FORMAT else AnchorIndexMark()


def _write_mark(folder: Path, mark: AnchorIndexMark) -> None:
    fresh = folder / f"current.{mark.folder}"
    fresh.write_text(json.dumps(mark._asdict()))
    fresh.replace(folder / "current.json")
