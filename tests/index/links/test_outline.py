"""What pages show of a large site: parts of the whole answers, which are right in all their numbers."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import numpy as np
import pytest
from chronicle import DATES, WORLD, Archived

from letopis.archive.activity import DAY, activity_of
from letopis.errors import NotFound
from letopis.index.link_graph import GraphTimes
from letopis.index.link_reports import broken_link_numbers, broken_links, broken_rows, site_findings, site_report
from letopis.index.site_events import EVENT_KINDS, SiteDifference, map_difference, site_changes
from letopis.index.site_maps import SiteMap, map_outline, site_map
from letopis.model import to_millis

HOSTS = list(WORLD.hosts)


def maps(archived: Archived, at: datetime, depth: int | None = None) -> list[SiteMap]:
    found = []
    for host in HOSTS:
        try:
            found.append(site_map(archived.graph, host, to_millis(at), depth=depth))
        except NotFound:
            continue
    return found


def descendants(found: SiteMap) -> Counter[int]:
    """How many pages lie below each, one by one."""
    above = dict(zip(found.tree.pages.tolist(), found.tree.parents.tolist(), strict=True))
    counts: Counter[int] = Counter()
    for start in above:
        page = start
        while above[page] != page:
            page = above[page]
            counts[page] += 1
    return counts


@pytest.mark.parametrize("most", [1, 2, 7, 10_000])
def test_an_outline_is_the_upper_part_of_the_map_with_the_numbers_of_the_whole(archived: Archived, most: int) -> None:
    for found in maps(archived, DATES[-1]) + maps(archived, DATES[1], depth=2):
        whole = {node.page: (node, page) for node, page in found.named_pages()}
        upper, below = map_outline(found, most), descendants(found)
        shown = set(found.tree.pages[:most].tolist())
        assert upper.total == len(whole)
        assert [row.number for row in upper.rows] == [page for page in whole if page in shown]
        assert [(row.page, row.depth, row.below) for row in upper.rows] == [
            (whole[row.number][1], whole[row.number][0].depth, below[row.number]) for row in upper.rows
        ]
        leaves = sum(max(page.bytes, 1) for node, page in whole.values() if not node.children)
        assert sum(row.weight for row in upper.rows) == leaves


def test_every_date_shows_what_the_last_change_before_it_does(archived: Archived) -> None:
    moments = GraphTimes(archived.graph)
    times = {to_millis(at) + step for at in DATES for step in (-1, 0, 1, 40_000)}
    for time in times:
        last = moments.last(time)
        assert last <= time
        one, other = archived.graph.as_of(time), archived.graph.as_of(last)
        for name in ("version", "kind", "status", "redirect", "state", "pages", "targets"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), (name, time)
    assert moments.last(0) == -1


@pytest.mark.parametrize("most", [1, 3, 10_000])
def test_events_are_counted_in_all_and_listed_from_the_first(archived: Archived, most: int) -> None:
    for host in HOSTS:
        old, new = (archived.graph.as_of(to_millis(DATES[place]), host) for place in (0, -1))
        found, rows = SiteDifference(old, new, host), map_difference(old, new, host)
        assert found.counts() == Counter(row.event for row in rows)
        listed = [row for event in EVENT_KINDS for row in found.rows(event, most)]
        assert listed == [row for event in EVENT_KINDS for row in [one for one in rows if one.event == event][:most]]
        assert rows == sorted(rows, key=lambda row: (EVENT_KINDS.index(row.event), row.url))


def test_changes_from_the_index_are_those_of_the_catalogue(archived: Archived) -> None:
    first, last = to_millis(DATES[1]) // DAY, to_millis(DATES[-1]) // DAY + 1
    counted = 0
    for host in HOSTS:
        found = site_changes(archived.graph, host, first * DAY, last * DAY)
        days = zip(found.pages.tolist(), (found.times // DAY).tolist(), strict=True)
        counts = Counter((archived.graph.addresses[page], day) for page, day in days)
        rows = activity_of(archived.archive).changes(host, first * DAY, last * DAY)
        assert counts == {(row.url, row.day): row.changes for row in rows}
        counted += counts.total()
    assert counted > 20


def test_parts_of_reports_and_broken_links_are_those_of_the_whole(archived: Archived) -> None:
    for found in maps(archived, DATES[-1]):
        rows = [row for row in site_report(found) if row.finding != "depth"]
        parts = [(kind, detail, tuple(map(found.moment.url, pages))) for kind, detail, pages in site_findings(found)]
        assert parts == [tuple(row) for row in rows]
        links = broken_link_numbers(found.moment, found.site)
        assert list(broken_rows(found.moment, links[:2])) == list(broken_links(found.moment, found.site))[:2]
