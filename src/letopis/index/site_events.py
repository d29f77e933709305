"""What happened to a site over time: pages that appeared, vanished, moved, broke or changed between two dates."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from heapq import nsmallest

from letopis.errors import NotFound, crawl_remedy
from letopis.index.link_graph import Graph, LinkSnapshot, Mask
from letopis.index.link_reports import time_or_none
from letopis.index.link_storage import Int32, Ints
from letopis.index.site_maps import map_root, page_tree, urls_on_map
from letopis.index.url_table import ERROR, NEVER
from letopis.lazy import np
from letopis.tuples import NamedTuple
from letopis.urls import site as site_of

GONE_STATUSES = (404, 410)
"""Statuses that say that a page is no more, rather than that something is wrong."""
EVENT_KINDS = ("appeared", "vanished", "moved", "renamed", "broken", "mended", "changed")


class SiteEvent(NamedTuple):
    """One event. `to` is the new address of a moved page, `before` the old title of a renamed one.

    A page that kept its address and hangs under another one on the map has moved as well: `parent` is that page,
    `parent_before` the one it was under. `status` is that of an address that vanished or broke, `links` counts the
    pages of the site that still link to it. `time` is when that was first seen, of a page that changed several times
    the last change; nobody knows it of a page that only hangs under another one. Of a page that changed, `removed` and
    `added` are the first text that went and the first that came between the two dates, and `verdict` is what is said of
    the two versions, where somebody asks for them: unchanged, noise or changed.
    """

    event: str
    url: str
    title: str = ""
    to: str = ""
    before: str = ""
    status: int | None = None
    links: int | None = None
    parent: str = ""
    parent_before: str = ""
    time: datetime | None = None
    removed: str = ""
    added: str = ""
    verdict: str = ""


class SiteDifference:
    """Events between two snapshots of one graph, kept as numbers: rows are made for those that are asked for."""

    def __init__(self, old: LinkSnapshot, new: LinkSnapshot, site: str) -> None:
        self._old, self._new = old, new
        self._pages: dict[str, list[tuple[int, int]]] = {event: [] for event in EVENT_KINDS}
        here = old.graph.of_site(site)
        was, now = old.live & here, new.live & here
        lost, found = np.flatnonzero(was & ~now).astype(np.int32), np.flatnonzero(now & ~was).astype(np.int32)
        moves = _moves(old, new, lost, found)
        left, reached = np.array(list(moves), np.int32), np.array(list(moves.values()), np.int32)
        both = np.flatnonzero(was & now).astype(np.int32)
        self._pages["moved"] += moves.items()
        self._note_lost(lost[~np.isin(lost, left)])
        self._note_found(found[~np.isin(found, reached)])
        self._note_altered(np.concatenate([both, left]), np.concatenate([both, reached]))
        self._parents = _new_parents(old, new, site, was & now)
        self._note("moved", np.array(list(self._parents), np.int32))

    def counts(self) -> dict[str, int]:
        """How many events of each kind there are; kinds without any are left out."""
        return {event: len(pages) for event, pages in self._pages.items() if pages}

    def rows(self, event: str, most: int | None = None) -> list[SiteEvent]:
        """Events of a kind by address, the first ones when there are more than `most`."""
        found = self._pages[event]
        shown = nsmallest(len(found) if most is None else most, found, lambda pair: (self._old.url(pair[0]), pair[1]))
        if event in ("vanished", "broken"):
            return self._lost_rows(event, [page for page, _ in shown])
        return [self._row(event, page, other)._replace(time=self._time(event, page, other)) for page, other in shown]

    def _time(self, event: str, page: int, other: int) -> datetime | None:
        """When it was first seen: by the version that showed it, or by the first check that was answered so."""
        graph, state = self._new.graph, int(self._new.state[page])
        if event == "moved" and page == other:
            return None
        if event == "appeared":
            seen = graph.segment.times[graph.history.of(page)]
            return next(map(time_or_none, seen[seen > self._old.time]), None)
        if event in ("changed", "renamed") or state < 0:
            return time_or_none(graph.segment.times[self._new.version[page]])
        since = graph.states.since[state]
        return time_or_none(graph.states.times[state] if since == NEVER else since)

    def _row(self, event: str, page: int, other: int) -> SiteEvent:
        url = self._old.url(page)
        if event == "moved" and page == other:
            above, parent = self._parents[page]
            title = _title(self._new, page)
            return SiteEvent(event, url, title, parent=self._new.url(parent), parent_before=self._old.url(above))
        if event == "moved":
            title = _title(self._old, page) if self._old.live[other] else _title(self._new, other)
            return SiteEvent(event, url, title, to=self._new.url(other))
        before = _title(self._old, other) if event == "renamed" else ""
        return SiteEvent(event, url, _title(self._new, page), before=before)

    def _lost_rows(self, event: str, pages: list[int]) -> list[SiteEvent]:
        linking = _linking_pages(self._new, pages)
        return [
            SiteEvent(
                event, self._old.url(page), _title(self._old, page),
                status=int(self._new.status[self._new.ends[page]]), links=linking[page],
                time=self._time(event, page, page),
            )
            for page in pages
        ]  # fmt: skip

    def _note_lost(self, pages: Int32) -> None:
        """Pages that are no longer there: redirected to a page that was there already, gone, or failing."""
        ends = self._new.ends[pages]
        led = (ends != pages) & self._new.live[ends]
        gone = np.isin(self._new.status[ends], GONE_STATUSES) & ~led
        self._pages["moved"] += zip(pages[led].tolist(), ends[led].tolist(), strict=True)
        self._note("vanished", pages[gone])
        self._note("broken", pages[~gone & ~led])

    def _note_found(self, pages: Int32) -> None:
        """Pages that are there now: for the first time, or again after an error."""
        was_good = (self._old.kind[pages] == ERROR) & (self._old.version[pages] >= 0)
        self._note("mended", pages[was_good])
        self._note("appeared", pages[~was_good])

    def _note_altered(self, before: Int32, after: Int32) -> None:
        """Pages that are there at both dates with another title, or with another content that means something."""
        other = self._old.version[before] != self._new.version[after]
        before, after = before[other], after[other]
        digests = self._new.graph.segment.digests
        differ = digests[self._old.version[before]] != digests[self._new.version[after]]
        changed = differ & _meaningfully_changed(self._new, self._old.time)[after]
        for old, new, is_changed in zip(before.tolist(), after.tolist(), changed.tolist(), strict=True):
            if _title(self._old, old) != _title(self._new, new):
                self._pages["renamed"].append((new, old))
            elif is_changed:
                self._pages["changed"].append((new, old))

    def _note(self, event: str, pages: Int32) -> None:
        self._pages[event] += ((page, page) for page in pages.tolist())


def _new_parents(old: LinkSnapshot, new: LinkSnapshot, site: str, both: Mask) -> dict[int, tuple[int, int]]:
    """Pages of both maps that hang under another page on the second: their parents before and now."""
    try:
        before, now = (
            page_tree(moment, map_root(moment, site), urls_on_map(moment, site, errors=False)) for moment in (old, new)
        )
    except NotFound:
        return {}
    parent = np.full(len(both), -1, np.int32)
    parent[before.pages[1:]] = before.parents[1:]
    pages, parents = now.pages[1:], now.parents[1:]
    # A page that hangs under a new page, or hung under a removed one, has not moved.
    moved = (parent[pages] >= 0) & (parent[pages] != parents) & both[parents] & both[np.maximum(parent[pages], 0)]
    return {
        int(page): (int(parent[page]), int(after)) for page, after in zip(pages[moved], parents[moved], strict=True)
    }


def map_difference(old: LinkSnapshot, new: LinkSnapshot, site: str) -> list[SiteEvent]:
    """Events between two snapshots of one graph, by kind and then by address. See docs/guide/map.md for the rules."""
    found = SiteDifference(old, new, site)
    return [row for event in EVENT_KINDS for row in found.rows(event)]


def site_difference(graph: Graph, where: str, first: int, second: int) -> list[SiteEvent]:
    """Events of a SITE between two times in milliseconds, in any order; NotFound when none of its pages is known."""
    name = site_of(where)
    if not graph.of_site(name).any():
        raise NotFound(f"no page of {name} is known", crawl_remedy(where))
    old, new = sorted((first, second))
    return map_difference(graph.as_of(old, name), graph.as_of(new, name), name)


def _moves(old: LinkSnapshot, new: LinkSnapshot, lost: Int32, found: Int32) -> dict[int, int]:
    """Pages that went to another address: it redirects there, or the same content is there and nowhere else."""
    ends = new.ends[lost]
    led = (ends != lost) & new.live[ends] & ~old.live[ends]
    moves = dict(zip(lost[led].tolist(), ends[led].tolist(), strict=True))
    taken = set(moves.values())
    common = np.intersect1d(_digests(old, lost), _digests(new, found))
    there = _by_content(new, found, common)
    for digest, pages in _by_content(old, lost, common).items():
        targets = [page for page in there[digest] if page not in taken]
        if len(pages) == 1 and len(targets) == 1 and pages[0] not in moves:
            moves[pages[0]] = targets[0]
    return moves


def _digests(moment: LinkSnapshot, pages: Int32) -> Ints:
    return moment.graph.segment.digests[moment.version[pages]]


def _by_content(moment: LinkSnapshot, pages: Int32, wanted: Ints) -> dict[int, list[int]]:
    """Those of some pages that have one of the wanted contents."""
    digests = _digests(moment, pages)
    here = np.isin(digests, wanted)
    found: dict[int, list[int]] = {}
    for page, digest in zip(pages[here].tolist(), digests[here].tolist(), strict=True):
        found.setdefault(digest, []).append(page)
    return found


def _title(moment: LinkSnapshot, page: int) -> str:
    return moment.graph.segment.titles[int(moment.version[page])]


def _linking_pages(moment: LinkSnapshot, pages: Iterable[int]) -> dict[int, int]:
    """How many pages link to each of some addresses."""
    wanted: Mask = np.zeros(len(moment.kind), bool)
    wanted[list(pages)] = True
    links = np.flatnonzero(wanted[moment.targets])
    pairs = np.unique(moment.targets[links].astype(np.int64) * len(moment.kind) + moment.sources[links])
    counts = np.bincount(pairs // len(moment.kind), minlength=len(moment.kind)) if len(pairs) else wanted * 0
    return {page: int(counts[page]) for page in np.flatnonzero(wanted).tolist()}


def _meaningfully_changed(moment: LinkSnapshot, after: int) -> Mask:
    """Addresses of which some version since was a change that a person would call one, or was not judged."""
    history = moment.graph.history
    recent = (history.times > after) & (history.times <= moment.time)
    found: Mask = np.zeros(len(moment.kind), bool)
    found[history.pages[recent & (moment.graph.segment.judged[history.order] != 0)]] = True
    return found


class SiteChanges(NamedTuple):
    """One entry a change: the number of its page and its time."""

    pages: Int32
    times: Ints


def site_changes(graph: Graph, site: str, since: int, until: int) -> SiteChanges:
    """Changes on the pages of a site between two times, first versions and noise aside; by page, then by time."""
    history = graph.history
    kept = (history.times >= since) & (history.times <= until) & graph.of_site(site)[history.pages]
    kept[:1] = False
    kept[1:] &= history.pages[1:] == history.pages[:-1]
    kept &= graph.segment.judged[history.order] != 0
    return SiteChanges(history.pages[kept], history.times[kept])
