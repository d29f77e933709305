"""Map, links, broken links and ranks of five dates equal a slow computation that shares no code with them."""

from __future__ import annotations

import json
from datetime import datetime
from urllib.parse import urlsplit

import pytest
from chronicle import DATES, WORLD, Archived, Seen

from letopis.index.link_reports import broken_links, links_in, links_out, rank_rows
from letopis.index.map_formats import MAP_FORMATS
from letopis.index.page_ranks import rank_site
from letopis.index.site_events import map_difference
from letopis.index.site_maps import site_map
from letopis.model import to_millis

HOSTS = WORLD.hosts


def end_of(web: dict[str, Seen], url: str) -> str:
    """Where redirects lead, the address itself when they lead nowhere."""
    steps = [url]
    while steps[-1] in web and web[steps[-1]].location:
        if len(steps) > 31:
            return url
        steps.append(web[steps[-1]].location)
    return steps[-1]


def is_live(web: dict[str, Seen], url: str) -> bool:
    return url in web and web[url].status == 200


def followed(web: dict[str, Seen], url: str, host: str) -> list[str]:
    """Live pages of the host that a page links to, in document order."""
    ends = [end_of(web, target) for target, kind, _ in web[url].links if kind == "a"]
    return [end for end in ends if is_live(web, end) and urlsplit(end).netloc == host]


def slow_tree(web: dict[str, Seen], host: str) -> dict[str, list[str]]:
    root = f"http://{host}/"
    below: dict[str, list[str]] = {root: []}
    queue = [root]
    for page in queue:
        for end in followed(web, page, host):
            if end not in below:
                below[end] = []
                below[page].append(end)
                queue.append(end)
    return below


def flattened(node: dict[str, object], into: dict[str, list[str]]) -> dict[str, list[str]]:
    children = node["children"]
    assert isinstance(children, list)
    into[str(node["url"])] = [child["url"] for child in children]
    for child in children:
        flattened(child, into)
    return into


@pytest.mark.parametrize("at", DATES)
@pytest.mark.parametrize("host", HOSTS)
def test_the_map_of_a_date_is_the_breadth_first_tree_of_that_date(archived: Archived, host: str, at: datetime) -> None:
    web = archived.chronicle.at(at)
    found = json.loads("".join(MAP_FORMATS["json"].write(site_map(archived.graph, host, to_millis(at)))))
    assert flattened(found, {}) == slow_tree(web, host)
    assert found["title"] == web[f"http://{host}/"].title


@pytest.mark.parametrize("at", DATES)
def test_the_links_of_every_page_are_those_that_stood_on_it(archived: Archived, at: datetime) -> None:
    web = archived.chronicle.at(at)
    moment = archived.graph.as_of(to_millis(at))
    pages = [url for url, seen in web.items() if seen.status == 200 and seen.is_html]
    assert len(pages) > 300
    for url in pages:
        found = [(row.target, row.type, row.text) for row in links_out(moment, url)]
        assert found == list(web[url].links)


def test_links_to_a_page_are_found_from_the_other_end(archived: Archived) -> None:
    web = archived.chronicle.at(DATES[2])
    moment = archived.graph.as_of(to_millis(DATES[2]))
    url = list(WORLD.urls(HOSTS[0]))[20]
    wanted = [(page, url) for page, seen in web.items() for target, _, _ in seen.links if target == url]
    found = [(row.source, row.target) for row in links_in(moment, url) if not row.source.endswith("/sitemap.xml")]
    assert sorted(found) == sorted(wanted)
    assert len(wanted) >= 2


def slow_broken(archived: Archived, host: str, at: datetime) -> list[tuple[object, ...]]:
    web = archived.chronicle.at(at)
    rows = []
    for page, seen in web.items():
        if urlsplit(page).netloc == host and seen.status == 200:
            firsts = {target: text for target, _, text in reversed(seen.links)}
            for target, text in firsts.items():
                end = end_of(web, target)
                if end in web and (web[end].status >= 400 or web[end].location):
                    rows.append((page, target, web[end].status, *span(archived, end, at), text))
    return sorted(rows, key=str)


def span(archived: Archived, url: str, at: datetime) -> tuple[datetime | None, datetime | None]:
    """Since when it fails without a break, and when it was last good; a loop never was an error."""
    since = good = None
    for seen in archived.chronicle.seen[url]:
        if seen.at <= at:
            failing = seen.status >= 400
            since = (since or seen.at) if failing else None
            good = good if failing else seen.at
    return since, good if since else None


@pytest.mark.parametrize("at", DATES)
@pytest.mark.parametrize("host", HOSTS)
def test_broken_links_of_a_date_stand_with_their_dates(archived: Archived, host: str, at: datetime) -> None:
    found = broken_links(archived.graph.as_of(to_millis(at), host), host)
    rows = [(row.source, row.target, row.status, row.since, row.last_good, row.text) for row in found]
    wanted = slow_broken(archived, host, at)
    assert sorted((row for row in rows if not str(row[0]).endswith(".xml")), key=str) == wanted
    planted = {(fact.url, fact.detail) for fact in WORLD.facts(host) if fact.kind == "broken"}
    web = archived.chronicle.at(at)
    shown = {(end_of(web, url), detail) for url, detail in planted if is_live(web, end_of(web, url))}
    assert shown or host == HOSTS[1]  # nothing is planted on the news site
    assert shown <= {(row[0], row[1]) for row in rows}


def slow_ranks(web: dict[str, Seen], host: str) -> dict[str, float]:
    pages = [url for url, seen in web.items() if seen.status == 200 and urlsplit(url).netloc == host]
    out = {url: set(followed(web, url, host)) - {url} for url in pages}
    linked = set().union(*out.values())
    pages = [url for url in pages if web[url].is_html or url in linked]
    ranks = dict.fromkeys(pages, 1.0)
    for _ in range(150):
        following = dict.fromkeys(pages, 0.15)
        for url in pages:
            for target in out[url]:
                following[target] += 0.85 * ranks[url] / len(out[url])
        ranks = following
    return ranks


@pytest.mark.parametrize("at", DATES)
@pytest.mark.parametrize("host", HOSTS)
def test_ranks_of_a_date_follow_the_formula(archived: Archived, host: str, at: datetime) -> None:
    moment = archived.graph.as_of(to_millis(at), host)
    found = {row.url: row.rank for row in rank_rows(moment, rank_site(moment, host))}
    assert found == pytest.approx(slow_ranks(archived.chronicle.at(at), host), abs=2e-6)


def planted_events(host: str, first: datetime, second: datetime) -> set[tuple[str, str, str]]:
    """What the world says happened, as rows (event, url, new address)."""
    rows: set[tuple[str, str, str]] = set()
    events = [event for event in WORLD.events(first, second) if urlsplit(event.url).netloc == host]
    renamed = {event.url for event in events if event.kind == "renamed"}
    moves = {event.url: event.detail for event in events if event.kind == "moved"}
    born = {event.url for event in events if event.kind == "appeared"}
    gone = {event.url for event in events if event.kind == "vanished"}
    rows |= {(event.kind, event.url, moves.get(event.url, "")) for event in events if event.kind != "changed"}
    for page in WORLD.urls(host):
        old = WORLD.url(HOSTS.index(host), WORLD.plan(page).page, WORLD.plan(page).moves <= to_millis(first))
        new = moves.get(page, old)
        there = WORLD.plan(page).born <= to_millis(first) and WORLD.plan(page).dies > to_millis(second)
        if there and page not in born | gone | renamed and WORLD.body(old, first) != WORLD.body(new, second):
            rows.add(("changed", new, ""))
    return rows


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 2), (2, 4), (0, 4), (3, 4)])
def test_the_difference_of_two_dates_lists_exactly_what_happened(archived: Archived, first: int, second: int) -> None:
    kinds = set()
    for host in HOSTS:
        old, new = (archived.graph.as_of(to_millis(DATES[place]), host) for place in (first, second))
        found = map_difference(old, new, host)
        assert all(row.event == "moved" and row.parent_before not in ("", row.parent) for row in found if row.parent)
        # Where a page hangs on the map follows from the links of all pages: what was planted says nothing of it.
        rows = {(row.event, row.url, row.to) for row in found if not row.parent}
        listed = {("changed", f"http://{host}/sitemap.xml", "")}
        assert rows - listed == planted_events(host, DATES[first], DATES[second])
        kinds |= {event for event, _, _ in rows}
    assert kinds >= {"appeared", "changed"}


def test_all_kinds_of_planted_events_occur_in_the_tested_history() -> None:
    kinds = {event.kind for event in WORLD.events(DATES[0], DATES[-1])}
    assert kinds == {"appeared", "vanished", "moved", "renamed", "changed"}
