"""Anchor texts: what links call the pages they lead to, each text with the times in which a link had it.

A text is valid as long as any page that shows itself at the time has a link with it, by the same rules as
`Graph.as_of`. Links of a page to itself do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from letopis.archive import Archive
from letopis.archive.index_facts import VersionLog, page_ids
from letopis.archive.link_cache import TYPE_CODES
from letopis.binary import make_private_folder
from letopis.errors import NotReady
from letopis.index.anchor_index import anchor_schema
from letopis.index.link_graph import Graph
from letopis.index.link_index import LinkIndex
from letopis.index.link_storage import Int32, Ints
from letopis.index.page_text import nfc, split_words
from letopis.index.url_table import GOOD
from letopis.index.word_snapshot import WordSnapshot
from letopis.lazy import tantivy
from letopis.model import LinkType
from letopis.tuples import NamedTuple

OPEN_END = 1 << 62
"""The end of what is still valid."""
MAX_TEXTS = 32
"""Stored texts of one page, those of the most links first."""
MAX_SPANS = 64
"""Spans in which one text was valid; further ones are stored as one."""
_MAX_TEXT_LENGTH = 200
"""Characters of a text that count."""
_LINKS_AT_ONCE = 1 << 20
"""Links that are in memory with their texts at a time."""
_ANCHOR_TYPES = (TYPE_CODES[LinkType.A], TYPE_CODES[LinkType.AREA])

TimeSpan = tuple[int, int]
"""From a time in milliseconds until another, at which it is no longer valid."""


class AnchorText(NamedTuple):
    """A text about a URL, when it was valid, and how many links had it at any time."""

    target: int
    text: str
    spans: tuple[TimeSpan, ...]
    links: int


class _ValidLinks(NamedTuple):
    """Versions, by their positions in the segment, with a time in which their links were valid."""

    versions: Int32
    since: Ints
    until: Ints


def anchor_texts(graph: Graph) -> Iterator[AnchorText]:
    """All texts about all URLs; in parts, so that memory is bounded however many links there are."""
    standing = _valid_links(graph)
    total = int(graph.history.counts[standing.versions].sum())
    parts = 1 + total // _LINKS_AT_ONCE
    for part in range(parts):
        yield from _most_frequent(_collected(graph, standing, part, parts))


def _valid_links(graph: Graph) -> _ValidLinks:
    history = graph.history
    until = np.full(len(history.order), OPEN_END, np.int64)
    follows = history.pages[1:] == history.pages[:-1]
    until[:-1][follows] = history.times[1:][follows]
    finals = graph.segment.finals[history.order]
    followed = (finals >= 0) & (finals != history.pages)
    wanted = history.counts[history.order] > 0
    if graph.ruled is not None:
        wanted &= ~np.isin(history.pages, graph.ruled.urls)
    special = wanted & (followed | np.isin(history.pages, graph.states.urls))
    plain = wanted & ~special
    rows = [row for at in np.flatnonzero(special) for row in _irregular_spans(graph, int(at), int(until[at]))]
    table = np.array(rows, np.int64).reshape(-1, 3)
    usual = _merged(graph, _ValidLinks(history.order[plain], history.times[plain], until[plain]))
    return _ValidLinks(
        np.concatenate([usual.versions, table[:, 0].astype(np.int32)]),
        np.concatenate([usual.since, table[:, 1]]),
        np.concatenate([usual.until, table[:, 2]]),
    )


def _merged(graph: Graph, rows: _ValidLinks) -> _ValidLinks:
    """Versions of one page that share their links, one after the other, as one."""
    pages, starts = graph.segment.pages[rows.versions], graph.history.starts[rows.versions]
    is_first = np.ones(len(pages), bool)
    is_first[1:] = (pages[1:] != pages[:-1]) | (starts[1:] != starts[:-1]) | (rows.until[:-1] != rows.since[1:])
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(pages)) - 1
    return _ValidLinks(rows.versions[firsts], rows.since[firsts], rows.until[lasts[: len(firsts)]])


def _irregular_spans(graph: Graph, at: int, until: int) -> Iterator[tuple[int, int, int]]:
    """The times of a version whose URL did not always answer successfully, or showed the page of another URL."""
    history = graph.history
    version, page = int(history.order[at]), int(history.pages[at])
    spans = common_spans([(int(history.times[at]), until)], _good_spans(graph, page))
    final = int(graph.segment.finals[version])
    if final >= 0 and final != page:
        # The page of the other URL counts if it is known.
        spans = common_spans(spans, _other_spans(_good_spans(graph, final)))
    return ((version, since, end) for since, end in spans)


def _good_spans(graph: Graph, page: int) -> list[TimeSpan]:
    """When a URL showed a page."""
    history, states = graph.history, graph.states
    low, high = np.searchsorted(states.urls, [page, page + 1])
    times, kinds = states.times[low:high].tolist(), states.kinds[low:high].tolist()
    first = times[0] if times else OPEN_END
    start = int(np.searchsorted(history.pages, page))
    known = start < len(history.pages) and history.pages[start] == page
    spans = [(int(history.times[start]), first)] if known and int(history.times[start]) < first else []
    stretches = zip(times, [*times[1:], OPEN_END], kinds, strict=False)
    return joined_spans(spans + [(since, until) for since, until, kind in stretches if kind == GOOD])


def common_spans(some: Iterable[TimeSpan], others: list[TimeSpan]) -> list[TimeSpan]:
    """The times that are in both."""
    pairs = ((max(a, c), min(b, d)) for a, b in some for c, d in others)
    return [span for span in pairs if span[0] < span[1]]


def _other_spans(spans: list[TimeSpan]) -> list[TimeSpan]:
    """All other times; the spans are in order and apart."""
    bounds = [-OPEN_END, *(time for span in spans for time in span), OPEN_END]
    return [(a, b) for a, b in zip(bounds[::2], bounds[1::2], strict=True) if a < b]


def joined_spans(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """The same times in order, none touching another."""
    found: list[TimeSpan] = []
    for since, until in sorted(spans):
        if found and since <= found[-1][1]:
            found[-1] = found[-1][0], max(until, found[-1][1])
        else:
            found.append((since, until))
    return found


def _collected(graph: Graph, standing: _ValidLinks, part: int, parts: int) -> dict[int, dict[str, list[TimeSpan]]]:
    """Texts and their times, by URL, of one part of all URLs."""
    found: dict[int, dict[str, list[TimeSpan]]] = {}
    places, targets, rows = _links(graph, standing, part, parts)
    lines, since, until = graph.lines(places), standing.since, standing.until
    for target, row, line in zip(targets.tolist(), rows.tolist(), lines, strict=True):
        text = line.partition("\t")[0][:_MAX_TEXT_LENGTH]
        if text:
            spans = found.setdefault(target, {}).setdefault(text, [])
            spans.append((int(since[row]), int(until[row])))
    return found


def _links(graph: Graph, standing: _ValidLinks, part: int, parts: int) -> tuple[Ints, Int32, Ints]:
    """Place, target and row of each link that leads a reader elsewhere."""
    segment, history = graph.segment, graph.history
    chosen: list[tuple[Ints, Int32, Ints]] = []
    step = max(1, _LINKS_AT_ONCE // 64)
    for first in range(0, len(standing.versions), step):
        versions = standing.versions[first : first + step]
        counts = history.counts[versions].astype(np.int64)
        begun = np.cumsum(counts) - counts
        places = np.repeat(history.starts[versions] - begun, counts) + np.arange(int(counts.sum()))
        rows = np.repeat(np.arange(first, first + len(versions)), counts)
        targets = segment.targets[places]
        wanted = np.isin(segment.kinds[places], _ANCHOR_TYPES) & (targets % parts == part)
        wanted &= targets != segment.pages[standing.versions[rows]]
        chosen.append((places[wanted], targets[wanted], rows[wanted]))
    if not chosen:
        return np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64)
    return tuple(np.concatenate(column) for column in zip(*chosen, strict=True))  # type: ignore[return-value]


def _most_frequent(found: dict[int, dict[str, list[TimeSpan]]]) -> Iterator[AnchorText]:
    for target, texts in sorted(found.items()):
        most = sorted(texts.items(), key=lambda item: (-len(item[1]), item[0]))[:MAX_TEXTS]
        for text, spans in most:
            yield AnchorText(target, text, _bounded_spans(joined_spans(spans)), len(spans))


def _bounded_spans(spans: list[TimeSpan]) -> tuple[TimeSpan, ...]:
    """The latest spans as they are, all before them as one."""
    if len(spans) <= MAX_SPANS:
        return tuple(spans)
    early = spans[: len(spans) - MAX_SPANS + 1]
    return ((early[0][0], early[-1][1]), *spans[len(early) :])


_WRITER_BYTES = 50_000_000
_LOOKUP_BATCH = 10_000
"""Names whose pages are looked up at a time."""


def build_anchor_index(archive: Archive, snapshot: WordSnapshot, folder: Path) -> tuple[int, int, int, int]:
    """Writes the index to a new folder; returns its sources: last version, versions, their times, other checks."""
    index, log = LinkIndex(archive), VersionLog(archive)
    checks = log.check_mark().rows
    graph = index.graph()
    counted = log.mark(index.last)
    try:
        make_private_folder(folder)
        _write(folder, archive, graph, snapshot)
    except (ValueError, OSError) as error:
        raise NotReady(f"cannot write the index of words ({error}); check the free disk space") from None
    return index.last, *counted, checks


def _write(folder: Path, archive: Archive, graph: Graph, snapshot: WordSnapshot) -> None:
    schema = anchor_schema()
    writer = tantivy.Index(schema, str(folder)).writer(_WRITER_BYTES, 1)
    for made in _documents(archive, graph, snapshot, schema):
        writer.add_document(made)
    writer.commit()
    writer.wait_merging_threads()


def _documents(archive: Archive, graph: Graph, snapshot: WordSnapshot, schema: Any) -> Iterator[Any]:
    """One document for each time in which a text stood."""
    known: dict[str, str] = {}
    texts = anchor_texts(graph)
    while some := list(islice(texts, _LOOKUP_BATCH)):
        urls = {text.target: graph.addresses[text.target] for text in some}
        pages = page_ids(archive, list(urls.values()), captured=True)
        for text in some:
            page = pages.get(urls[text.target])
            if page is not None:
                yield from _documents_of_text(text, page, snapshot, known, schema)


def _documents_of_text(
    name: AnchorText, resource: int, snapshot: WordSnapshot, known: dict[str, str], schema: Any
) -> Iterator[Any]:
    text = nfc(name.text)
    words = split_words(text)
    for word in words:
        if word not in known:
            known[word] = " ".join(snapshot.find_bases(word))
    fields = {
        "base": " ".join([known[word] for word in words]),
        "exact": " ".join(words),
        "text": text.encode("utf-8", "replace"),
    }
    if words:
        yield from (
            tantivy.Document.from_dict({**fields, "resource": page, "time": since, "until": until}, schema)
            for since, until in name.spans
            for page in (resource if until == OPEN_END else -resource,)
        )
