"""Versions to the fields of their documents, a piece of the log at a time: here, or on a worker of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from letopis import extract
from letopis.archive import Archive
from letopis.catalog.indexing import title_only
from letopis.catalog.spans import Span
from letopis.catalog.wordforms import WordRow, word_rows
from letopis.config import SearchSettings
from letopis.errors import LetopisError
from letopis.search.bases import Bases
from letopis.search.documents import fields_of, with_title_alone

PIECE = 100
"""Versions of one piece."""


def fields_in(archive: Archive, spans: Iterable[Span], bases: Bases) -> Iterator[dict[str, Any]]:
    """The fields of each version that can still be read."""
    titles = title_only(archive.catalog.database)
    for span in spans:
        try:
            version = archive.answers.by_id(span.id)
        except LetopisError:
            # Dropped meanwhile, or its bytes are lost: there is nothing to find in it.
            continue
        page = extract.page(version.body, version.url, version.headers)
        if span.resource in titles:
            page = with_title_alone(page)
        yield fields_of(span, page, bases.of(page.language))


def fields_there(archive: Archive, spans: tuple[Span, ...]) -> list[dict[str, Any]]:
    """A piece, on a worker that knows nothing yet but the archive."""
    bases = _bases(archive.settings.search, tuple(word_rows(archive.catalog.database)))
    return list(fields_in(archive, spans, bases))


@lru_cache(maxsize=4)
def _bases(settings: SearchSettings, settled: tuple[WordRow, ...]) -> Bases:
    """Kept from piece to piece: the tables of a language take a while to load."""
    return Bases(settings, settled)
