"""Makes the index of names: what links call pages, taken from the index of links."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import tantivy

from letopis.archive import Archive
from letopis.catalog.lookup import checked
from letopis.catalog.troubles import check_mark, log_mark
from letopis.errors import NotReady
from letopis.graph import Graph, LinkIndex, Name, names
from letopis.search.names import name_schema
from letopis.search.snapshot import Snapshot
from letopis.search.words import settled, words_of

_HEAP = 50_000_000
_ASKED = 10_000
"""Names whose pages are looked up at a time."""


def make_names(archive: Archive, snapshot: Snapshot, folder: Path) -> tuple[int, int, int, int]:
    """Writes the index to a new folder; answers of what: last version, versions, their times, other checks."""
    index = LinkIndex(archive)
    checks = check_mark(archive.catalog.database).rows
    graph = index.graph()
    counted = log_mark(archive.catalog.database, index.last)
    try:
        folder.mkdir(parents=True)
        _write(folder, archive, graph, snapshot)
    except (ValueError, OSError) as error:
        raise NotReady(f"cannot write the index of words ({error}); is there room on the disk?") from None
    return index.last, *counted, checks


def _write(folder: Path, archive: Archive, graph: Graph, snapshot: Snapshot) -> None:
    schema = name_schema()
    writer = tantivy.Index(schema, str(folder)).writer(_HEAP, 1)
    for made in _documents(archive, graph, snapshot, schema):
        writer.add_document(made)
    writer.commit()
    writer.wait_merging_threads()


def _documents(archive: Archive, graph: Graph, snapshot: Snapshot, schema: Any) -> Iterator[Any]:
    """One document for each time in which a text stood."""
    known: dict[str, str] = {}
    told = names(graph)
    while some := list(islice(told, _ASKED)):
        urls = {name.target: graph.addresses[name.target] for name in some}
        pages = checked(archive.catalog.database, list(urls.values()))
        for name in some:
            page = pages.get(urls[name.target])
            if page is not None and page.newest is not None:
                yield from _stood(name, page.resource, snapshot, known, schema)


def _stood(name: Name, resource: int, snapshot: Snapshot, known: dict[str, str], schema: Any) -> Iterator[Any]:
    text = settled(name.text)
    words = words_of(text)
    for word in words:
        if word not in known:
            known[word] = " ".join(snapshot.find_bases(word))
    fields = {
        "resource": resource,
        "base": " ".join([known[word] for word in words]),
        "exact": " ".join(words),
        "text": text.encode("utf-8", "replace"),
    }
    if words:
        yield from (
            tantivy.Document.from_dict({**fields, "time": since, "until": until}, schema) for since, until in name.spans
        )
