"""What links call the pages they lead to: texts about a page, each with the times in which a link said it.

A text stands as long as any page that shows itself at the time carries a
link with it, by the same rules as `Graph.as_of`. Links of a page to itself
say nothing about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from letopis.archive.leads import TYPE_CODES
from letopis.graph.columns import Ints
from letopis.graph.graph import Graph
from letopis.graph.segment import Int32
from letopis.graph.states import GOOD
from letopis.model import LinkType

OPEN = 1 << 62
"""The end of what still stands."""
MOST_TEXTS = 32
"""Texts of one page that are told, those of the most links first."""
MOST_SPANS = 64
"""Times that one text came and went; further ones are told as one."""
_LONGEST = 200
"""Characters of a text that count."""
_AT_ONCE = 1 << 20
"""Links that are held with their texts at a time."""
_CODES = (TYPE_CODES[LinkType.A], TYPE_CODES[LinkType.AREA])

Span = tuple[int, int]
"""From a time in milliseconds until another, at which it no longer holds."""


class Name(NamedTuple):
    """A text about an address, when it stood, and how many links said it at any time."""

    target: int
    text: str
    spans: tuple[Span, ...]
    links: int


class _Standing(NamedTuple):
    """Versions, by their positions in the segment, with a time in which their links stood."""

    versions: Int32
    since: Ints
    until: Ints


def names(graph: Graph, at_once: int = _AT_ONCE) -> Iterator[Name]:
    """All texts about all addresses; in parts of addresses, so that memory is bounded however many links there are."""
    standing = _standing(graph)
    total = int(graph.history.counts[standing.versions].sum())
    parts = 1 + total // at_once
    for part in range(parts):
        yield from _chosen(_collected(graph, standing, part, parts))


def _standing(graph: Graph) -> _Standing:
    history = graph.history
    until = np.full(len(history.order), OPEN, np.int64)
    follows = history.pages[1:] == history.pages[:-1]
    until[:-1][follows] = history.times[1:][follows]
    finals = graph.segment.finals[history.order]
    followed = (finals >= 0) & (finals != history.pages)
    wanted = history.counts[history.order] > 0
    if graph.ruled is not None:
        wanted &= ~np.isin(history.pages, graph.ruled.urls)
    special = wanted & (followed | np.isin(history.pages, graph.states.urls))
    plain = wanted & ~special
    rows = [row for at in np.flatnonzero(special) for row in _special(graph, int(at), int(until[at]))]
    table = np.array(rows, np.int64).reshape(-1, 3)
    usual = _merged(graph, _Standing(history.order[plain], history.times[plain], until[plain]))
    return _Standing(
        np.concatenate([usual.versions, table[:, 0].astype(np.int32)]),
        np.concatenate([usual.since, table[:, 1]]),
        np.concatenate([usual.until, table[:, 2]]),
    )


def _merged(graph: Graph, rows: _Standing) -> _Standing:
    """Versions of one page that share their links, one after the other, as one."""
    pages, starts = graph.segment.pages[rows.versions], graph.history.starts[rows.versions]
    is_first = np.ones(len(pages), bool)
    is_first[1:] = (pages[1:] != pages[:-1]) | (starts[1:] != starts[:-1]) | (rows.until[:-1] != rows.since[1:])
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(pages)) - 1
    return _Standing(rows.versions[firsts], rows.since[firsts], rows.until[lasts[: len(firsts)]])


def _special(graph: Graph, at: int, until: int) -> Iterator[tuple[int, int, int]]:
    """The times of a version whose address did not always answer well, or that showed another address's page."""
    history = graph.history
    version, page = int(history.order[at]), int(history.pages[at])
    spans = common([(int(history.times[at]), until)], _good(graph, page))
    final = int(graph.segment.finals[version])
    if final >= 0 and final != page:
        # The page of the other address speaks for itself where it is known.
        spans = common(spans, _rest(_good(graph, final)))
    return ((version, since, end) for since, end in spans)


def _good(graph: Graph, page: int) -> list[Span]:
    """When an address showed a page."""
    history, states = graph.history, graph.states
    low, high = np.searchsorted(states.urls, [page, page + 1])
    times, kinds = states.times[low:high].tolist(), states.kinds[low:high].tolist()
    first = times[0] if times else OPEN
    start = int(np.searchsorted(history.pages, page))
    known = start < len(history.pages) and history.pages[start] == page
    spans = [(int(history.times[start]), first)] if known and int(history.times[start]) < first else []
    stretches = zip(times, [*times[1:], OPEN], kinds, strict=False)
    return joined(spans + [(since, until) for since, until, kind in stretches if kind == GOOD])


def common(some: Iterable[Span], others: list[Span]) -> list[Span]:
    """The times that lie in both."""
    pairs = ((max(a, c), min(b, d)) for a, b in some for c, d in others)
    return [span for span in pairs if span[0] < span[1]]


def _rest(spans: list[Span]) -> list[Span]:
    """All other times; the spans are in order and apart."""
    bounds = [-OPEN, *(time for span in spans for time in span), OPEN]
    return [(a, b) for a, b in zip(bounds[::2], bounds[1::2], strict=True) if a < b]


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same times in order, none touching another."""
    found: list[Span] = []
    for since, until in sorted(spans):
        if found and since <= found[-1][1]:
            found[-1] = found[-1][0], max(until, found[-1][1])
        else:
            found.append((since, until))
    return found


def _collected(graph: Graph, standing: _Standing, part: int, parts: int) -> dict[int, dict[str, list[Span]]]:
    """Texts and their times, by address, of one part of all addresses."""
    found: dict[int, dict[str, list[Span]]] = {}
    places, targets, rows = _links(graph, standing, part, parts)
    lines, since, until = graph.lines(places), standing.since, standing.until
    for target, row, line in zip(targets.tolist(), rows.tolist(), lines, strict=True):
        text = line.partition("\t")[0][:_LONGEST]
        if text:
            spans = found.setdefault(target, {}).setdefault(text, [])
            spans.append((int(since[row]), int(until[row])))
    return found


def _links(graph: Graph, standing: _Standing, part: int, parts: int) -> tuple[Ints, Int32, Ints]:
    """Place, target and row of each link that leads a reader elsewhere."""
    segment, history = graph.segment, graph.history
    chosen: list[tuple[Ints, Int32, Ints]] = []
    step = max(1, _AT_ONCE // 64)
    for first in range(0, len(standing.versions), step):
        versions = standing.versions[first : first + step]
        counts = history.counts[versions].astype(np.int64)
        begun = np.cumsum(counts) - counts
        places = np.repeat(history.starts[versions] - begun, counts) + np.arange(int(counts.sum()))
        rows = np.repeat(np.arange(first, first + len(versions)), counts)
        targets = segment.targets[places]
        wanted = np.isin(segment.kinds[places], _CODES) & (targets % parts == part)
        wanted &= targets != segment.pages[standing.versions[rows]]
        chosen.append((places[wanted], targets[wanted], rows[wanted]))
    if not chosen:
        return np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64)
    return tuple(np.concatenate(column) for column in zip(*chosen, strict=True))  # type: ignore[return-value]


def _chosen(found: dict[int, dict[str, list[Span]]]) -> Iterator[Name]:
    for target, texts in sorted(found.items()):
        most = sorted(texts.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST_TEXTS]
        for text, spans in most:
            yield Name(target, text, _bounded(joined(spans)), len(spans))


def _bounded(spans: list[Span]) -> tuple[Span, ...]:
    """The latest spans as they are, all before them as one."""
    if len(spans) <= MOST_SPANS:
        return tuple(spans)
    early = spans[: len(spans) - MOST_SPANS + 1]
    return ((early[0][0], early[-1][1]), *spans[len(early) :])
