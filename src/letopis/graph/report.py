"""What a webmaster wants to know of a site besides its map: orphans, redirect chains, duplicates, depths."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from letopis.graph.graph import MOST_HOPS, Snapshot
from letopis.graph.hierarchy import documents, edges_between
from letopis.graph.segment import Int32
from letopis.graph.site_map import SiteMap

_LONG_CHAIN = 2
"""Redirects in a row from which a chain is worth a row."""


class ReportRow(NamedTuple):
    """One finding about a site; `urls` in an order that fits its kind."""

    finding: str
    detail: str
    urls: tuple[str, ...]


def report(found: SiteMap) -> Iterator[ReportRow]:
    """All findings: orphan, unreachable, chain, loop, duplicate-title, duplicate-content, depth."""
    moment = found.moment
    pages = documents(moment, moment.graph.of_site(found.site))
    yield from _alone(found, pages)
    yield from _chains(moment, found.site)
    segment = moment.graph.segment
    titles = [segment.titles[int(moment.version[page])] for page in pages]
    yield from _repeated("duplicate-title", moment, pages, titles)
    yield from _repeated("duplicate-content", moment, pages, segment.digests[moment.version[pages]].tolist())
    for depth, count in enumerate(np.bincount(found.tree.depths)):
        yield ReportRow("depth", f"{depth}: {count} pages", ())


def _alone(found: SiteMap, pages: Int32) -> Iterator[ReportRow]:
    """Pages that no page of the site links to, and those that are linked but not from the home page on."""
    moment = found.moment
    sources, targets = edges_between(moment, moment.live)
    linked = np.zeros(len(moment.kind), bool)
    linked[targets[sources != targets]] = True
    outside = np.setdiff1d(pages, found.tree.pages)
    for page in outside:
        finding = "unreachable" if linked[page] else "orphan"
        yield ReportRow(finding, "", (moment.url(page),))


def _chains(moment: Snapshot, site: str) -> Iterator[ReportRow]:
    """Redirects over more than one step that start on the site and are linked to."""
    starts = np.flatnonzero((moment.redirect >= 0) & moment.graph.of_site(site))
    linked = np.intersect1d(starts, moment.targets)
    for start in linked:
        steps = [int(start)]
        while len(steps) <= MOST_HOPS and moment.redirect[steps[-1]] >= 0:
            steps.append(int(moment.redirect[steps[-1]]))
        urls = tuple(moment.url(step) for step in steps)
        if moment.redirect[steps[-1]] >= 0:
            yield ReportRow("loop", "leads to no page", urls[: len(dict.fromkeys(urls)) + 1])
        elif len(steps) > _LONG_CHAIN:
            yield ReportRow("chain", f"{len(steps) - 1} redirects", urls)


def _repeated(finding: str, moment: Snapshot, pages: Int32, values: Sequence[Hashable]) -> Iterator[ReportRow]:
    groups: dict[Hashable, list[int]] = {}
    for page, value in zip(pages, values, strict=True):
        groups.setdefault(value, []).append(int(page))
    for value, members in groups.items():
        if len(members) > 1 and value != "":
            detail = str(value) if isinstance(value, str) else f"{len(members)} pages"
            yield ReportRow(finding, detail, tuple(moment.url(page) for page in members))
