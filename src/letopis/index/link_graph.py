"""All links of all versions in memory, and the web that they make on any date."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from letopis.archive.link_cache import LINK_TYPES, TYPE_CODES
from letopis.index.link_storage import SAME_LINKS, Bytes, Int32, Ints, LinkSegment
from letopis.index.url_table import GOOD, REDIRECT, UNKNOWN, UrlCheck, UrlRuleTargets, UrlStates, UrlTable
from letopis.lazy import np, npt
from letopis.model import LinkType

Mask: TypeAlias = "npt.NDArray[np.bool_]"

MAX_REDIRECTS = 30
"""Redirects in a row that still lead somewhere."""
NAVIGATION_TYPES = (LinkType.A, LinkType.AREA, LinkType.IFRAME)
"""Links that lead a reader to another page."""
DROPPED = -(2**63)
"""The time of a version that is no longer kept."""
_CHUNK = 1 << 18
"""Pages whose links are gathered at once."""


class GraphHistory:
    """Which version of each page is valid when, and where its links are."""

    def __init__(self, segment: LinkSegment, times: Ints) -> None:
        kept = np.flatnonzero(times != DROPPED)
        order = kept[np.lexsort((times[kept], segment.pages[kept]))]
        self.order = order.astype(np.int32)
        self.pages: Int32 = segment.pages[order]
        self.times: Ints = times[order]
        self.starts, self.counts = _link_places(segment)

    def at(self, time: int) -> Int32:
        """Positions in the segment of the versions valid at a time, by page."""
        known = self.times <= time
        is_last = known.copy()
        is_last[:-1] &= ~(known[1:] & (self.pages[1:] == self.pages[:-1]))
        return self.order[is_last]

    def of(self, page: int) -> Int32:
        """Positions of all versions of a page, oldest first."""
        low, high = np.searchsorted(self.pages, [page, page + 1])
        return self.order[low:high]


def _link_places(segment: LinkSegment) -> tuple[Ints, Int32]:
    """Where the links of each version begin and how many there are; "the same" is looked up."""
    own = np.where(segment.counts == SAME_LINKS, 0, segment.counts).astype(np.int64)
    starts = np.cumsum(own) - own
    order = np.argsort(segment.pages, kind="stable")
    has_own = segment.counts[order] != SAME_LINKS
    giver = np.maximum.accumulate(np.where(has_own, np.arange(len(order)), 0)) if len(order) else order
    source = np.empty(len(order), np.int64)
    source[order] = order[giver]
    return starts[source], own[source].astype(np.int32)


class Graph:
    """Everything known about links when it was made; does not change any more."""

    def __init__(
        self, segment: LinkSegment, history: GraphHistory, addresses: UrlTable, states: UrlStates,
        read_lines: Callable[[LinkSegment, int], list[str]], ruled: UrlRuleTargets | None = None,
        seeds: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """`read_lines` reads a frame of texts by its number.

        `seeds` are where crawls began: maps of sites without a home page do as well.
        """
        self.segment = segment
        self.history = history
        self.addresses = addresses
        self.states = states
        self._read_lines = read_lines
        self.ruled = ruled
        self.seeds = seeds
        self.hosts: Int32 = addresses.hosts()

    @property
    def nbytes(self) -> int:
        """Memory of the columns of links and versions, addresses aside."""
        held = [self.segment.targets, self.segment.kinds, *vars(self.history).values(), *self.states]
        return sum(column.nbytes for column in held)

    def of_site(self, site: str) -> Mask:
        """Which addresses are on a host."""
        found: Mask = self.hosts == self.addresses.host_number(site)
        return found

    def as_of(self, time: int, site: str | None = None) -> LinkSnapshot:
        """The web at a time in milliseconds; with `site` only the links on its pages."""
        return link_snapshot(self, time, None if site is None else self.of_site(site))

    def around(self, time: int, number: int) -> LinkSnapshot:
        """The web at a time with no links but those of an address and of the pages that ever linked to it."""
        own = np.cumsum(np.where(self.segment.counts == SAME_LINKS, 0, self.segment.counts))
        holding = np.searchsorted(own, np.flatnonzero(self.segment.targets == number), side="right")
        wanted = np.zeros(len(self.addresses), bool)
        wanted[[number, *self.segment.pages[holding].tolist()]] = True
        return link_snapshot(self, time, wanted)

    def texts(self, places: Ints) -> list[tuple[str, str, str]]:
        """Text, rel and title of links by their place in the segment, in the given order."""
        return [_split_link_text(line) for line in self.lines(places)]

    def lines(self, places: Ints) -> list[str]:
        """The same, each link's text with rel and title after tabs."""
        found = [""] * len(places)
        ends = np.cumsum(self.segment.text_links)
        frames = np.searchsorted(ends, places, side="right")
        order = np.argsort(frames, kind="stable")
        ordered = frames[order]
        # Plain numbers: `unique` loads a part of numpy that takes as long as the rest of an answer.
        for frame in sorted(set(frames.tolist())):
            low, high = np.searchsorted(ordered, [frame, frame + 1])
            lines = self._read_lines(self.segment, frame)
            first = int(ends[frame] - self.segment.text_links[frame])
            for at in order[low:high].tolist():
                found[at] = lines[int(places[at]) - first]
        return found


def _split_link_text(line: str) -> tuple[str, str, str]:
    text, _, rest = line.partition("\t")
    rel, _, title = rest.partition("\t")
    return text, rel, title


@dataclass(frozen=True)
class LinkSnapshot:
    """The web as it was at a time.

    `version`, `kind`, `status`, `redirect` and `state` have one entry an address: the position of its version (-1:
    none), how it answers, with which status, where it leads (-1: nowhere), and the row of its state (-1). Links go from
    `pages[i]` to `targets[bounds[i]:bounds[i + 1]]`, in document order; `starts[i]` is the place of the first in the
    segment.
    """

    graph: Graph
    time: int
    version: Int32
    kind: Bytes
    status: npt.NDArray[np.int16]
    redirect: Int32
    state: Int32
    pages: Int32
    starts: Ints
    bounds: Ints
    targets: Int32
    types: Bytes

    @cached_property
    def live(self) -> Mask:
        """URLs that show their own page."""
        found: Mask = self.kind == GOOD
        return found

    @cached_property
    def sources(self) -> Int32:
        """The page of each link."""
        return np.repeat(self.pages, np.diff(self.bounds))

    @cached_property
    def ends(self) -> Int32:
        """Where each URL leads in the end: to itself, or the end of its redirects; a loop leads to a redirect."""
        end = np.arange(len(self.redirect), dtype=np.int32)
        moving = np.flatnonzero(self.redirect >= 0)
        for _ in range(MAX_REDIRECTS):
            end[moving] = self.redirect[end[moving]]
            moving = moving[self.redirect[end[moving]] >= 0]
        return end

    def of_types(self, types: tuple[LinkType, ...]) -> Mask:
        """Which links are of one of these types."""
        wanted = np.zeros(256, bool)
        wanted[[TYPE_CODES[kind] for kind in types]] = True
        return wanted[self.types]

    def places(self, links: Ints) -> Ints:
        """Places in the segment of links of this snapshot, for their texts."""
        page = np.searchsorted(self.bounds, links, side="right") - 1
        found: Ints = self.starts[page] + (links - self.bounds[page])
        return found

    def url(self, number: int | np.integer[Any]) -> str:
        """The address with a number."""
        return self.graph.addresses[int(number)]

    def type_name(self, link: int) -> str:
        """The type of a link."""
        return str(LINK_TYPES[self.types[link]])


def link_snapshot(graph: Graph, time: int, sites: Mask | None) -> LinkSnapshot:
    """Chooses the versions valid at a time, settles how addresses answer, and gathers the links of live pages."""
    count = len(graph.addresses)
    chosen = graph.history.at(time)
    version = np.full(count, -1, np.int32)
    version[graph.segment.pages[chosen]] = chosen
    kind = np.full(count, UNKNOWN, np.uint8)
    status = np.zeros(count, np.int16)
    redirect = np.full(count, -1, np.int32)
    state = np.full(count, -1, np.int32)
    kind[graph.segment.pages[chosen]] = GOOD
    status[graph.segment.pages[chosen]] = graph.segment.statuses[chosen]
    _apply_states(graph.states, time, kind, status, redirect, state)
    _apply_followed_redirects(graph.segment, chosen, kind, redirect)
    if graph.ruled is not None:
        graph.ruled.settle(kind, redirect)
    kind[(kind == GOOD) & (version < 0)] = UNKNOWN
    pages = np.flatnonzero(kind == GOOD if sites is None else (kind == GOOD) & sites).astype(np.int32)
    links = _gather_links(graph, version[pages])
    return LinkSnapshot(graph, time, version, kind, status, redirect, state, pages, *links)


def _apply_states(
    states: UrlStates, time: int, kind: Bytes, status: npt.NDArray[np.int16], redirect: Int32, state: Int32
) -> None:
    rows = states.rows_at(time)
    urls = states.urls[rows]
    kind[urls], status[urls], state[urls] = states.kinds[rows], states.statuses[rows], rows
    redirect[urls] = states.targets[rows]


def _apply_followed_redirects(segment: LinkSegment, chosen: Int32, kind: Bytes, redirect: Int32) -> None:
    """A check that followed redirects shows the page of another URL, which counts instead if it is known."""
    followed = chosen[segment.finals[chosen] >= 0]
    pages, finals = segment.pages[followed], segment.finals[followed]
    leads = (kind[pages] == GOOD) & (kind[finals] == GOOD) & (pages != finals)
    kind[pages[leads]] = REDIRECT
    redirect[pages[leads]] = finals[leads]


def _gather_links(graph: Graph, versions: Int32) -> tuple[Ints, Ints, Int32, Bytes]:
    """Starts, bounds, targets and types of the links of some versions, gathered piece by piece to save memory."""
    starts, counts = graph.history.starts[versions], graph.history.counts[versions]
    bounds = np.zeros(len(versions) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    targets = np.empty(bounds[-1], np.int32)
    types = np.empty(bounds[-1], np.uint8)
    for first in range(0, len(versions), _CHUNK):
        part = slice(first, first + _CHUNK)
        low, high = bounds[first], bounds[min(first + _CHUNK, len(versions))]
        places = np.repeat(starts[part] - bounds[:-1][part], counts[part]) + np.arange(low, high)
        targets[low:high] = graph.segment.targets[places]
        types[low:high] = graph.segment.kinds[places]
    return starts, bounds, targets, types


def good_checks(segment: LinkSegment, history: GraphHistory, page: int) -> list[UrlCheck]:
    """The checks that brought a version of a page."""
    found = history.of(page)
    times = history.times[np.searchsorted(history.pages, page) :][: len(found)]
    return [UrlCheck(int(time), GOOD, int(segment.statuses[at])) for time, at in zip(times, found, strict=True)]


BEFORE_FIRST = -1
"""A time before everything."""


class GraphTimes:
    """The times at which anything in a graph begins to hold."""

    def __init__(self, graph: Graph) -> None:
        self._times = np.sort(np.concatenate([graph.history.times, graph.states.times]))

    def last(self, time: int) -> int:
        """The last of them up to a time: `as_of` shows the same there; NEVER when nothing was known yet."""
        place = int(np.searchsorted(self._times, time, side="right"))
        return int(self._times[place - 1]) if place else BEFORE_FIRST
