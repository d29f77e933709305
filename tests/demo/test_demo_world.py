"""The simulated web keeps its promises: what it says it planted is what it serves."""

from __future__ import annotations

import tracemalloc
from datetime import datetime, timedelta
from itertools import zip_longest

import pytest
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from letopis.errors import UnknownUrl, UsageError
from letopis.look.robots import RobotsFile
from letopis.model import header
from letopis_demo import World, WorldFact
from letopis_demo.sites import CYCLE, KINDS, child_pages, page_at, page_path, parent_page

MILLI = timedelta(milliseconds=1)
WEB = World(seed=5, hosts=7, pages_per_host=120)
END = WEB.start + timedelta(days=30)


def facts(kind: str) -> list[WorldFact]:
    return [fact for host in WEB.hosts for fact in WEB.facts(host) if fact.kind == kind]


def get(url: str, at: datetime, **headers: str) -> tuple[int, dict[str, str], bytes]:
    authority, slash, rest = url.removeprefix("http://").partition("/")
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = WEB.answer(authority, slash + rest, fields, at)
    return answer.status, dict(answer.headers), answer.body


def test_two_worlds_of_one_seed_are_equal_and_of_two_seeds_differ() -> None:
    again, other = World(5, 7, 120), World(6, 7, 120)
    url = list(WEB.urls(WEB.hosts[0]))[50]
    at = WEB.start + timedelta(days=3)
    assert again.body(url, at) == WEB.body(url, at) != other.body(url, at)
    assert again.events(WEB.start, at) == WEB.events(WEB.start, at) != other.events(WEB.start, at)


@pytest.mark.parametrize("host", range(7))
def test_every_version_changes_the_bytes_and_nothing_else_does(host: int) -> None:
    until = WEB.start + timedelta(days=4)
    for url in WEB.urls(WEB.hosts[host]):
        if WEB.plan(url).noise:
            continue
        versions = WEB.versions(url, until)[:5]
        for moment, following in zip_longest(versions, versions[1:]):
            if moment > WEB.start:
                assert get(url, moment)[2] != get(url, moment - MILLI)[2], (url, moment)
            if following is not None:
                assert get(url, moment)[2] == get(url, following - MILLI)[2], (url, moment)


def test_noise_changes_bytes_without_a_version() -> None:
    noisy = facts("noise")
    assert {fact.detail for fact in noisy} == {"clock", "counter", "ad"}
    for fact in noisy:
        if not (versions := WEB.versions(fact.url, WEB.start + timedelta(days=2))):
            continue
        later = min([*versions[1:], versions[0] + timedelta(hours=1)]) - MILLI
        if later - versions[0] > timedelta(minutes=20):
            assert get(fact.url, versions[0])[2] != get(fact.url, later)[2]


def test_pages_appear_vanish_move_and_are_renamed_at_their_time() -> None:
    events = WEB.events(WEB.start, END, ("appeared", "vanished", "moved", "renamed"))
    assert {event.kind for event in events} == {"appeared", "vanished", "moved", "renamed"}
    assert events == sorted(events)
    for event in events:
        before, after = get(event.url, event.at - MILLI), get(event.url, event.at)
        if event.kind == "appeared":
            assert (before[0], after[0]) == (404, 200)
        elif event.kind == "vanished":
            assert before[0] == 200
            assert after[0] in (404, 410)
        elif event.kind == "moved":
            assert (before[0], after[0]) == (200, 301)
            assert event.detail.endswith(after[1]["Location"])
            assert get(event.detail, event.at - MILLI)[0] == 404
            assert get(event.detail, event.at)[2] == before[2] or WEB.plan(event.url).noise
            assert WEB.versions(event.detail, END)[0] == event.at
        else:
            heading = LexborHTMLParser(after[2].decode(after[1]["Content-Type"].partition("charset=")[2])).css_first(
                "h1"
            )
            assert heading is not None
            assert heading.text() == event.detail == WEB.title(event.url, event.at)
            assert WEB.title(event.url, event.at - MILLI) != event.detail


def test_changed_events_are_the_versions() -> None:
    until = WEB.start + timedelta(days=2)
    changed = {(event.url, event.at) for event in WEB.events(WEB.start, until, ("changed",))}
    for url in WEB.urls(WEB.hosts[0]):
        born, moved = WEB.versions(url, until)[:1], WEB.plan(url).renamed
        for moment in WEB.versions(url, until)[1:]:
            assert (url, moment) in changed or moved < 1 << 62, (url, born, moment)


def test_aba_pages_return_to_their_first_bytes() -> None:
    assert facts("aba")
    for fact in facts("aba"):
        if WEB.plan(fact.url).noise:
            continue
        bodies = [get(fact.url, moment)[2] for moment in WEB.versions(fact.url, END)[:4]]
        assert bodies[0] == bodies[2] != bodies[1] == bodies[3]


def test_twins_share_nearly_all_paragraphs_and_mirrors_all_bytes() -> None:
    assert facts("twin")
    for fact in facts("twin"):
        pages = [LexborHTMLParser(get(url, WEB.start)[2]) for url in (fact.url, fact.detail)]
        texts = [{node.text() for node in page.css("main > p") if not node.attributes.get("class")} for page in pages]
        assert len(texts[0] & texts[1]) >= 5
        assert get(fact.url, WEB.start)[2] != get(fact.detail, WEB.start)[2]
    (mirror,) = facts("mirror")
    for page in ("", "lide/", "katedra-fyziky/"):
        assert get(mirror.url + page, END)[2] == get(mirror.detail + page, END)[2]


def test_planted_links_stand_on_their_pages_and_lead_where_they_should() -> None:
    assert facts("broken")
    for fact in facts("broken"):
        at = max(WEB.start, *WEB.versions(fact.url, END)[:1])
        assert fact.detail.split("/", 3)[3].encode() in get(fact.url, at)[2]
        assert get(fact.detail, at)[0] == 404
    for fact in facts("chain"):
        hops, url = 0, fact.detail
        while (answer := get(url, WEB.start))[0] in (301, 302, 303, 307, 308):
            url = "/".join(url.split("/")[:3]) + answer[1]["Location"]
            hops += 1
        assert answer[0] == 200
        assert 2 <= hops <= 6
    base = f"http://{WEB.hosts[0]}"
    assert get(base + "/r/loop/a", END)[1]["Location"] == "/r/loop/b"
    assert get(base + "/r/loop/b", END)[1]["Location"] == "/r/loop/a"


@pytest.mark.parametrize("host", range(7))
def test_every_page_that_lives_can_be_reached_from_the_home_page(host: int) -> None:
    name = WEB.hosts[host]
    seen, queue = {"/"}, ["/"]
    while queue:
        answer = WEB.answer(name, queue.pop(), (), END)
        if answer.status in (301, 302, 303, 307, 308):
            targets = [header(answer.headers, "Location")]
        elif "html" in header(answer.headers, "Content-Type"):
            targets = [node.attributes.get("href") or "" for node in LexborHTMLParser(answer.body).css("a")]
        else:
            targets = []
        new = [target for target in targets if target.startswith("/") and target not in seen]
        seen.update(new)
        queue += new
    assert {url.split(name)[1] for url in WEB.urls(name) if WEB.versions(url, END)} <= seen


def test_validators_answer_304_only_while_nothing_changed() -> None:
    checked = 0
    for url in WEB.urls(WEB.hosts[3]):
        versions = WEB.versions(url, END)
        if not versions or WEB.plan(url).noise:
            continue
        _, fields, _ = get(url, versions[0])
        if "ETag" in fields:
            assert get(url, versions[0] + MILLI, If_None_Match=fields["ETag"])[0] == 304
        if "Last-Modified" in fields and WEB.plan(url).dating == "honest":
            assert get(url, versions[0] + MILLI, If_Modified_Since=fields["Last-Modified"])[0] == 304
        for moment in versions[1:2]:
            checked += 1
            headers = {"If_None_Match": fields["ETag"]} if "ETag" in fields else {}
            assert get(url, moment, **headers)[0] == 200
            assert get(url, moment, If_Modified_Since=fields.get("Last-Modified", "rubbish"))[0] == 200
    assert checked > 10


def test_some_servers_lie_about_the_last_change() -> None:
    plans = {WEB.plan(url).dating: url for url in WEB.urls(WEB.hosts[0]) if WEB.versions(url, WEB.start)}
    at = WEB.start + timedelta(days=9, seconds=1)
    assert set(plans) == {"honest", "none", "now", "frozen"}
    assert "Last-Modified" not in get(plans["none"], at)[1]
    assert get(plans["now"], at)[1]["Last-Modified"] == "Wed, 14 Jan 2026 08:00:01 GMT"
    assert get(plans["frozen"], at)[1]["Last-Modified"] == "Mon, 05 Jan 2026 08:00:00 GMT"


def test_robots_forbid_and_the_shop_asks_for_a_delay() -> None:
    shop = next(host for host in WEB.hosts if WEB.kind(host).name == "shop")
    rules = RobotsFile(get(f"http://{shop}/robots.txt", WEB.start)[2].decode(), "Letopis")
    assert not rules.allowed(f"http://{shop}/private/notes.html")
    assert rules.allowed(f"http://{shop}/")
    assert rules.crawl_delay == 1.0
    assert list(rules.sitemaps) == [f"http://{shop}/sitemap.xml"]


def test_sitemap_and_feed_tell_the_last_meaningful_change() -> None:
    host, at = WEB.hosts[1], WEB.start + timedelta(days=1)
    tree = etree.fromstring(get(f"http://{host}/sitemap.xml", at)[2])
    rows = {row[0].text: row[1].text for row in tree}
    alive = {url for url in WEB.urls(host) if WEB.versions(url, at) and get(url, at)[0] == 200}
    assert alive <= set(rows)
    for url in alive:
        stamp = datetime.fromisoformat(str(rows[url]))
        assert abs(stamp - WEB.versions(url, at)[-1]) < timedelta(seconds=1)
    feed = etree.fromstring(get(f"http://{host}/feed.atom", at)[2])
    links = [node.get("href") for node in feed.iter("{*}entry") for node in node.iter("{*}link")]
    assert len(links) == 20
    assert all(get(str(link), at)[0] == 200 for link in links)


def test_a_large_host_has_an_index_of_sitemaps() -> None:
    world = World(1, 1, 2500)
    name = world.hosts[0]
    assert world.answer(name, "/sitemap.xml", (), END).body.count(b"<sitemap>") == 3
    assert world.answer(name, "/sitemap-2.xml", (), world.start).body.count(b"<url>") in range(400, 501)
    assert world.answer(name, "/sitemap-3.xml", (), END).status == 404


def test_the_busy_page_means_its_retry_after() -> None:
    url = f"http://{WEB.hosts[2]}/busy.html"
    seen = set()
    for second in range(0, 480, 7):
        at = WEB.start + timedelta(seconds=second)
        status, fields, _ = get(url, at)
        seen.add(status)
        if status != 200:
            assert get(url, at + timedelta(seconds=int(fields["Retry-After"])))[0] == 200
    assert seen == {200, 429, 503}


def test_front_page_of_the_news_lists_the_newest_articles() -> None:
    news = next(host for host in WEB.hosts if WEB.kind(host).name == "news")
    versions = WEB.versions(f"http://{news}/", WEB.start + timedelta(days=1))
    assert len(versions) >= 24
    first = LexborHTMLParser(get(f"http://{news}/", versions[20])[2]).css_first("ol.newest a")
    assert first is not None
    assert get(f"http://{news}{first.attributes['href']}", versions[20])[0] == 200


def test_pages_are_whole_html_in_their_language_and_charset() -> None:
    for host in WEB.hosts:
        status, fields, body = get(f"http://{host}/", END)
        charset = fields["Content-Type"].partition("charset=")[2]
        tree = LexborHTMLParser(body.decode(charset))
        root, title = tree.css_first("html"), tree.css_first("title")
        assert status == 200
        assert root is not None
        assert title is not None
        assert root.attributes["lang"] == WEB.kind(host).language.code
        assert title.text() == WEB.kind(host).brand
    assert {WEB.kind(host).charset for host in WEB.hosts} == {"utf-8", "windows-1250"}


def test_addresses_and_numbers_of_pages_are_one_to_one() -> None:
    for kind in KINDS:
        for page in range(400):
            assert page_at(kind, page_path(kind, page)) == (page, False)
            assert page == 0 or page in child_pages(parent_page(page), 400)
        assert page_at(kind, page_path(kind, 77, True)) == (77, True)
        for wrong in ("/nowhere/", "/x/y-12.html", "//", "", "/" + "9" * 40 + ".html", page_path(kind, 77) + "/"):
            assert page_at(kind, wrong) is None
    assert CYCLE == 7


def test_a_world_of_a_million_pages_costs_no_memory() -> None:
    tracemalloc.start()
    world = World(1, 1000, 1000)
    for host in range(0, 1000, 25):
        world.body(world.url(host, 999 - host % 7), END)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_what_is_not_of_this_world_is_an_error() -> None:
    with pytest.raises(UnknownUrl):
        WEB.answer("elsewhere.example", "/", (), END)
    with pytest.raises(UnknownUrl):
        WEB.versions(f"http://{WEB.hosts[0]}/nothing.html", END)
    with pytest.raises(UsageError):
        World(hosts=0)
    with pytest.raises(UsageError):
        World(hosts=2, authorities=("one",))
    with pytest.raises(UsageError):
        World(start=datetime(2026, 1, 1))
