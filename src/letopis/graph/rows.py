"""Answers as rows with the names that people's scripts rely on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import numpy as np

from letopis.errors import UnknownUrl
from letopis.graph.columns import Ints
from letopis.graph.graph import Graph, Snapshot
from letopis.graph.ranking import Ranked
from letopis.graph.states import ERROR, NEVER, REDIRECT
from letopis.model import from_millis
from letopis.urls import parse_user
from letopis.urls import site as site_of


class LinkRow(NamedTuple):
    """One link; redirects have the type `redirect` and no text."""

    source: str
    target: str
    type: str
    text: str
    rel: str = ""
    title: str = ""


class BrokenRow(NamedTuple):
    """A link to an address that answers with an error; status 0 when there was no answer at all.

    `since` is the first failed check in a row, `last_good` the last good one
    before it. `final` is the address that fails, where redirects lead there.
    """

    source: str
    target: str
    status: int
    since: datetime | None
    text: str
    last_good: datetime | None
    type: str = "a"
    final: str = ""


class RankRow(NamedTuple):
    """A page and its rank."""

    url: str
    rank: float


def known_number(moment: Snapshot, url: str) -> int:
    """The number of an address; UnknownUrl when no page ever was there or linked to it."""
    number = moment.graph.addresses.find(url)
    if number < 0:
        raise UnknownUrl(f"{url} was never archived nor linked to; try 'letopis check {url}'")
    return number


def links_out(moment: Snapshot, url: str) -> list[LinkRow]:
    """The links of a page in document order; of an address that redirects, where it leads."""
    number = known_number(moment, url)
    place = int(np.searchsorted(moment.pages, number))
    rows = _redirects(moment, np.array([number]))
    if place < len(moment.pages) and moment.pages[place] == number:
        rows += _rows(moment, np.arange(moment.bounds[place], moment.bounds[place + 1]))
    return rows


def links_in(moment: Snapshot, url: str) -> list[LinkRow]:
    """The links to an address, by page, and the addresses that redirect to it."""
    number = known_number(moment, url)
    redirecting = np.flatnonzero((moment.redirect == number) & (moment.kind == REDIRECT))
    return _rows(moment, np.flatnonzero(moment.targets == number)) + _redirects(moment, redirecting)


def links_asked(graph: Graph, what: str, time: int, *, inward: bool = False, outward: bool = False) -> list[LinkRow]:
    """The links of a page, the links to it, or, where only a host is named, all links of a site; at a time."""
    if "://" not in what and "/" not in what and not inward:
        return links_of_site(graph.as_of(time, site_of(what)), site_of(what))
    moment, address = graph.as_of(time), parse_user(what)
    rows = links_out(moment, address) if outward or not inward else []
    return rows + (links_in(moment, address) if inward else [])


def links_of_site(moment: Snapshot, site: str) -> list[LinkRow]:
    """All links that stand on the pages of a site."""
    return _rows(moment, np.flatnonzero(moment.graph.of_site(site)[moment.sources]))


def _redirects(moment: Snapshot, numbers: Ints) -> list[LinkRow]:
    return [
        LinkRow(moment.url(number), moment.url(moment.redirect[number]), "redirect", "")
        for number in numbers
        if moment.kind[number] == REDIRECT
    ]


def _rows(moment: Snapshot, links: Ints) -> list[LinkRow]:
    texts = moment.graph.texts(moment.places(links))
    return [
        LinkRow(moment.url(moment.sources[link]), moment.url(moment.targets[link]), moment.type_name(link), *text)
        for link, text in zip(links, texts, strict=True)
    ]


def broken_links(moment: Snapshot, site: str | None = None) -> Iterator[BrokenRow]:
    """Links on the live pages of a site that lead to an error or into a loop, each pair of addresses once."""
    return broken_rows(moment, bad_links(moment, site))


def bad_links(moment: Snapshot, site: str | None = None) -> Ints:
    """The same by their numbers in the snapshot."""
    is_bad = (moment.kind == ERROR) | (moment.redirect >= 0)
    links = np.flatnonzero(is_bad[moment.ends][moment.targets])
    if site is not None:
        links = links[moment.graph.of_site(site)[moment.sources[links]]]
    pairs = moment.sources[links].astype(np.int64) * len(moment.kind) + moment.targets[links]
    found: Ints = links[np.sort(np.unique(pairs, return_index=True)[1])]
    return found


def broken_rows(moment: Snapshot, links: Ints) -> Iterator[BrokenRow]:
    """What there is to say of some links that are broken."""
    texts = moment.graph.texts(moment.places(links))
    for link, (text, _, _) in zip(links, texts, strict=True):
        yield _broken(moment, int(link), int(moment.ends[moment.targets[link]]), text)


def _broken(moment: Snapshot, link: int, end: int, text: str) -> BrokenRow:
    target = int(moment.targets[link])
    states = moment.graph.states
    state = int(moment.state[end])
    return BrokenRow(
        source=moment.url(moment.sources[link]),
        target=moment.url(target),
        status=int(moment.status[end]),
        since=moment_of(states.since[state]) if state >= 0 else None,
        text=text,
        last_good=moment_of(states.good[state]) if state >= 0 else None,
        type=moment.type_name(link),
        final=moment.url(end) if end != target else "",
    )


def moment_of(millis: int) -> datetime | None:
    """A stored time; None for NEVER."""
    return None if millis == NEVER else from_millis(int(millis))


def rank_rows(moment: Snapshot, ranked: Ranked, top: int | None = None) -> list[RankRow]:
    """Pages by rank, highest first; equal ranks by address number, which is the order of discovery."""
    order = np.lexsort((ranked.pages, -ranked.ranks))[:top]
    return [RankRow(moment.url(ranked.pages[at]), round(float(ranked.ranks[at]), 6)) for at in order]
