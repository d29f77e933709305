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


class Finding(NamedTuple):
    """The same with the numbers of its pages, whose addresses have not been looked up."""

    finding: str
    detail: str
    pages: Sequence[int]


def report(found: SiteMap) -> Iterator[ReportRow]:
    """All findings: orphan, unreachable, chain, loop, duplicate-title, duplicate-content, depth."""
    for finding, detail, pages in findings(found):
        yield ReportRow(finding, detail, tuple(found.moment.url(page) for page in pages))
    for depth, count in enumerate(np.bincount(found.tree.depths)):
        yield ReportRow("depth", f"{depth}: {count} pages", ())


def findings(found: SiteMap) -> Iterator[Finding]:
    """All findings but the depths, in the same order."""
    moment = found.moment
    pages = documents(moment, moment.graph.of_site(found.site))
    yield from _alone(found, pages)
    yield from _chains(moment, found.site)
    segment, versions = moment.graph.segment, moment.version[pages]
    yield from _repeated("duplicate-title", pages, [segment.titles[version] for version in versions.tolist()])
    yield from _repeated("duplicate-content", pages, segment.digests[versions].tolist())


def _alone(found: SiteMap, pages: Int32) -> Iterator[Finding]:
    """Pages that no page of the site links to, and those that are linked but not from the home page on."""
    moment = found.moment
    sources, targets = edges_between(moment, moment.live)
    linked = np.zeros(len(moment.kind), bool)
    linked[targets[sources != targets]] = True
    on_map = np.zeros(len(moment.kind), bool)
    on_map[found.tree.pages] = True
    outside = pages[~on_map[pages]]
    for page, is_linked in zip(outside.tolist(), linked[outside].tolist(), strict=True):
        yield Finding("unreachable" if is_linked else "orphan", "", (page,))


def _chains(moment: Snapshot, site: str) -> Iterator[Finding]:
    """Redirects over more than one step that start on the site and are linked to."""
    linked = np.zeros(len(moment.kind), bool)
    linked[moment.targets] = True
    for start in np.flatnonzero((moment.redirect >= 0) & moment.graph.of_site(site) & linked).tolist():
        steps = [start]
        while len(steps) <= MOST_HOPS and moment.redirect[steps[-1]] >= 0:
            steps.append(int(moment.redirect[steps[-1]]))
        if moment.redirect[steps[-1]] >= 0:
            yield Finding("loop", "leads to no page", steps[: len(dict.fromkeys(steps)) + 1])
        elif len(steps) > _LONG_CHAIN:
            yield Finding("chain", f"{len(steps) - 1} redirects", steps)


def _repeated(finding: str, pages: Int32, values: Sequence[Hashable]) -> Iterator[Finding]:
    first: dict[Hashable, int] = {}
    groups: dict[Hashable, list[int]] = {}
    for page, value in zip(pages.tolist(), values, strict=True):
        before = first.setdefault(value, page)
        if before != page and value != "":
            groups.setdefault(value, [before]).append(page)
    for value, members in sorted(groups.items(), key=lambda group: group[1][0]):
        yield Finding(finding, value if isinstance(value, str) else f"{len(members)} pages", members)
