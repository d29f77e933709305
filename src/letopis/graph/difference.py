"""What happened to a site between two dates: pages that appeared, vanished, moved, broke, changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from letopis.errors import NotFound
from letopis.graph.columns import Ints
from letopis.graph.graph import Graph, Mask, Snapshot
from letopis.graph.segment import Bytes
from letopis.graph.states import ERROR
from letopis.urls import site as site_of

GONE = (404, 410)
"""Statuses that say that a page is no more, rather than that something is wrong."""
EVENTS = ("appeared", "vanished", "moved", "renamed", "broken", "mended", "changed")


class EventRow(NamedTuple):
    """One event. `to` is the new address of a moved page, `before` the old title of a renamed one.

    `status` is that of an address that vanished or broke, `links` counts the
    pages of the site that still link to it.
    """

    event: str
    url: str
    title: str = ""
    to: str = ""
    before: str = ""
    status: int | None = None
    links: int | None = None

    def row(self) -> dict[str, Any]:
        """The fields that say something."""
        return {name: value for name, value in self._asdict().items() if value not in ("", None)}


def map_difference(old: Snapshot, new: Snapshot, site: str) -> list[EventRow]:
    """Events between two snapshots of one graph, by kind and then by address. See docs/guide/map.md for the rules."""
    here = old.graph.of_site(site)
    was, now = old.live & here, new.live & here
    moves = _moves(old, new, was & ~now, now & ~was)
    rows = [*_moved(old, new, moves), *_lost(old, new, was & ~now, moves), *_found(old, new, now & ~was, moves)]
    for page in np.flatnonzero(was & now):
        rows += _altered(old, new, int(page), int(page))
    return sorted(rows, key=lambda row: (EVENTS.index(row.event), row.url))


def site_difference(graph: Graph, where: str, first: int, second: int) -> list[EventRow]:
    """Events of a SITE between two times in milliseconds, in any order; NotFound when none of its pages is known."""
    name = site_of(where)
    if not graph.of_site(name).any():
        raise NotFound(f"no page of {name} is known; try 'letopis crawl {where}'")
    old, new = sorted((first, second))
    return map_difference(graph.as_of(old, name), graph.as_of(new, name), name)


def _moves(old: Snapshot, new: Snapshot, lost: Mask, found: Mask) -> dict[int, int]:
    """Pages that went to another address: it redirects there, or the same content is there and nowhere else."""
    moves = {}
    for page in np.flatnonzero(lost):
        end = int(new.ends[page])
        if end != page and new.live[end] and not old.live[end]:
            moves[int(page)] = end
    taken = set(moves.values())
    there = _by_content(new, found)
    for digest, pages in _by_content(old, lost).items():
        targets = [page for page in there.get(digest, []) if page not in taken]
        if len(pages) == 1 and len(targets) == 1 and pages[0] not in moves:
            moves[pages[0]] = targets[0]
    return moves


def _by_content(moment: Snapshot, pages: Mask) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for page in np.flatnonzero(pages):
        found.setdefault(_digest(moment, int(page)), []).append(int(page))
    return found


def _digest(moment: Snapshot, page: int) -> int:
    return int(moment.graph.segment.digests[moment.version[page]])


def _title(moment: Snapshot, page: int) -> str:
    return moment.graph.segment.titles[int(moment.version[page])]


def _moved(old: Snapshot, new: Snapshot, moves: dict[int, int]) -> Iterator[EventRow]:
    for page, target in moves.items():
        yield EventRow("moved", old.url(page), _title(new, target), to=new.url(target))
        yield from _altered(old, new, page, target)


def _lost(old: Snapshot, new: Snapshot, lost: Mask, moves: dict[int, int]) -> Iterator[EventRow]:
    """Pages that are no longer there: gone, redirected to a page that was there already, or failing."""
    for page in np.flatnonzero(lost):
        if int(page) in moves:
            continue
        end = int(new.ends[page])
        url, title = old.url(page), _title(old, int(page))
        if end != page and new.live[end]:
            yield EventRow("moved", url, title, to=new.url(end))
        else:
            status = int(new.status[end])
            event = "vanished" if status in GONE else "broken"
            yield EventRow(event, url, title, status=status, links=_linking(new, int(page)))


def _linking(moment: Snapshot, page: int) -> int:
    return len(np.unique(moment.sources[moment.targets == page]))


def _found(old: Snapshot, new: Snapshot, found: Mask, moves: dict[int, int]) -> Iterator[EventRow]:
    """Pages that are there now: for the first time, or again after an error."""
    targets = set(moves.values())
    for page in np.flatnonzero(found):
        if int(page) not in targets:
            was_good = old.kind[page] == ERROR and old.version[page] >= 0
            yield EventRow("mended" if was_good else "appeared", new.url(page), _title(new, int(page)))


def _altered(old: Snapshot, new: Snapshot, page: int, target: int) -> Iterator[EventRow]:
    """Whether a page that is there at both dates has another title or another content."""
    before, after = _title(old, page), _title(new, target)
    if before != after:
        yield EventRow("renamed", new.url(target), after, before=before)
    elif _digest(old, page) != _digest(new, target) and _meant(new, target, old.time):
        yield EventRow("changed", new.url(target), after)


def _meant(moment: Snapshot, page: int, after: int) -> bool:
    """Whether some version since was a change that a person would call one, or was not judged."""
    history = moment.graph.history
    versions: Ints = history.of(page).astype(np.int64)
    times = moment.graph.history.times[np.searchsorted(history.pages, page) :][: len(versions)]
    judged: Bytes = moment.graph.segment.judged[versions[(times > after) & (times <= moment.time)]]
    return bool((judged != 0).any())
