"""What the pages of a site, of an address, of a project and of the crawl tell: links, times, plans."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from served_archive import WebClient, at, look, running
from signed_in import Person, add_people

from letopis.archive import Archive
from letopis.change.verdict import compare
from letopis.crawl import CrawlOptions, enqueue_seeds
from letopis.extract import read_page
from letopis.index.link_index import LinkIndex
from letopis.index.link_reports import links_for, links_in, links_out
from letopis.model import Failure, FailureKind, Hop, Outcome, rfc3339, stamp14, to_millis
from letopis.operations import Context
from letopis.operations.projects import AddToProjectCommand, add_to_project

HOME, NEWS, OLD, LATE = (f"http://a.example/{name}" for name in ("", "news", "old", "late"))
ELSEWHERE = "http://b.example/"


def text(title: str, *targets: str, word: str = "") -> bytes:
    links = "".join(f'<a href="{target}">to {target[-5:]}</a> ' for target in targets)
    return f"<html><title>{title}</title><p>{word or title}</p>{links}</html>".encode()


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """A site of which one page changes, one vanishes and one comes; a page elsewhere links to it."""
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as opened:
        add_people(opened)
        first = [look(HOME, at(0), text("Home", NEWS, OLD)), look(NEWS, at(1), text("News", HOME))]
        opened.record([*first, look(OLD, at(2), text("Old")), look(ELSEWHERE, at(3), text("Else", NEWS))])
        old, new = text("News", HOME), text("News", HOME, LATE, "http://never.example/", word="Other words")
        change = compare(read_page(new, NEWS), [read_page(old, NEWS)], same_bytes=False)
        opened.record([look(NEWS, at(40), new)._replace(change=change)])
        opened.record([look(OLD, at(50), status=404), look(LATE, at(60), text("Late"))])
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def rows(web: WebClient, address: str) -> list[dict[str, Any]]:
    """The table as data, once what it is made from is there."""
    until = monotonic() + 300
    while (answer := web.get(address)).headers["content-type"] != "application/json":
        assert monotonic() < until, address
    found: list[dict[str, Any]] = json.loads(answer.text)
    return found


def test_every_change_of_a_site_has_the_time_at_which_it_was_first_seen(web: WebClient) -> None:
    since = rfc3339(at(10))
    found = rows(web, f"/site/a.example?view=changes&since={since}&as=json")
    assert [(row["event"], row["url"], row["time"]) for row in found] == [
        ("appeared", LATE, rfc3339(at(60))), ("vanished", OLD, rfc3339(at(50))), ("changed", NEWS, rfc3339(at(40))),
    ], "the newest first"  # fmt: skip
    shown = web.get(f"/site/a.example?view=changes&since={since}").text
    assert "<del>News</del> <ins>Other words</ins>" in shown
    told = web.get(f"/api/v1/map/diff?site=a.example&from={since}").json()["events"]
    assert {row["url"]: row["time"] for row in told} == {row["url"]: row["time"] for row in found}


def test_a_row_of_changes_names_all_that_went_and_came(tmp_path: Path) -> None:
    """Two at once, the others when they are asked for; what replaced what is told by its words."""
    url = "http://shop.example/chair"
    facts = [("Price", "199", "189"), ("Stock", "many", "none"), ("Colour", "red", "blue")]
    old, new = (
        b"<title>Chair</title>" + "".join(f"<p>{row[0]} of this chair is {row[at]}</p>" for row in facts).encode()
        for at in (1, 2)
    )
    with Archive(tmp_path / "shop", clock=lambda: at(100)) as opened:
        opened.record([look(url, at(0), old)])
        opened.record([look(url, at(40), new + b"<p>New: it can be sent to you.</p>")])
        with running(opened) as client:
            (row,) = rows(client, f"/site/shop.example?view=changes&since={rfc3339(at(10))}&as=json")
            shown = client.get(f"/site/shop.example?view=changes&since={rfc3339(at(10))}").text
    said = [f"{name} of this chair is <del>{was}</del> <ins>{is_}</ins>" for name, was, is_ in facts]
    first, others = shown.partition("<summary>and 2 more</summary>")[::2]
    assert [one in first for one in said] == [True, True, False]
    assert [one in others for one in said] == [False, False, True]
    assert "<ins>New: it can be sent to you.</ins>" in others
    assert "Stock of this chair is many → Stock of this chair is none" in row["details"], "files name them too"


def test_changes_and_ranks_of_a_site_come_in_short_pages(tmp_path: Path) -> None:
    with Archive(tmp_path / "many", clock=lambda: at(100)) as opened:
        opened.record([look(f"http://many.example/{number}", at(50), text(f"Page {number}")) for number in range(25)])
        with running(opened) as client:
            rows(client, f"/site/many.example?view=changes&since={rfc3339(at(10))}&as=json")
            pages = [
                client.get(f"/site/many.example?view=changes&since={rfc3339(at(10))}&page={n}").text for n in (1, 2)
            ]
            rows(client, "/site/many.example?view=ranks&as=json")
            ranks = client.get("/site/many.example?view=ranks").text
            rows(client, f"/site/many.example?view=ranks&since={rfc3339(at(60))}&as=json")
            still = client.get(f"/site/many.example?view=ranks&since={rfc3339(at(60))}").text
    assert [page.count('class="badge appeared"') for page in pages] == [20, 5]
    assert "1–20 of 25" in ranks
    assert ["No rank has changed since" in ranks, still.count("No rank has changed since"), "the same" in still] == [
        False, 1, False,
    ]  # fmt: skip
    assert 'value="2024-01-01T13:00"' in still, "a site is compared with an hour of a day"
    assert "page=2#events" in pages[0], "the next page begins where the list does"
    assert [page.count("<div></div>") for page in pages] == [20, 5], (
        "a card has no label for details that there are not"
    )


def test_the_pages_of_a_site_stand_with_status_clicks_links_and_size_as_of_any_time(web: WebClient) -> None:
    found = {row["url"]: row for row in rows(web, "/site/a.example?view=pages&hide=none&as=json")}
    news = found[NEWS]
    assert (news["status"], news["clicks"], news["links_in"], news["links_out"]) == (200, 1, 1, 2)
    assert (found[OLD]["status"], found[LATE]["clicks"], found[LATE]["type"]) == (404, 2, "text/html")
    assert news["bytes"] > 0
    then = {row["url"]: row for row in rows(web, f"/site/a.example?view=pages&at={rfc3339(at(30))}&as=json")}
    assert set(then) == {HOME, NEWS, OLD}, "the late one was not there"
    assert (then[OLD]["status"], then[NEWS]["links_out"], then[NEWS]["changed"]) == (200, 1, rfc3339(at(1)))


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[WebClient]:
    """A site with two pages that hang together, one that nothing leads to, a redirect, an error and a list."""
    with Archive(tmp_path / "mixed", clock=lambda: at(100)) as opened:
        home = text("Home", NEWS, "http://a.example/moved", "http://never.example/")
        hop = Hop("http://a.example/moved", 301, NEWS, "127.0.0.1", (("Location", NEWS),))
        moved = look(hop.url, at(2), text("News", HOME), final_url=NEWS, hops=(hop,))
        feed = look("http://a.example/sitemap.xml", at(3), b"<urlset/>", headers=(("Content-Type", "application/xml"),))
        opened.record([look(HOME, at(0), home), look(NEWS, at(1), text("News", HOME)), moved, feed])
        opened.record([look(LATE, at(4), text("Late")), look(OLD, at(5), status=404)])
        with running(opened) as client:
            yield client


def test_the_head_of_a_site_counts_its_addresses_by_what_answers_and_the_list_of_pages_agrees(mixed: WebClient) -> None:
    kinds = {"page": 3, "file": 1, "redirect": 1, "error": 1}
    for kind, count in kinds.items():
        assert len(rows(mixed, f"/site/a.example?view=pages&kind={kind}&as=json")) == count, kind
    shown = mixed.get("/site/a.example?view=pages&kind=redirect").text
    said = re.sub(r"<[^>]*>", "", shown[shown.index('<p class="address">') :].partition("</p>")[0])
    assert said.startswith("6 addresses known: 3 pages, 1 other file, 1 redirect, 1 error.")
    assert re.search(r'→ <a class="page" href="/url/http://a.example/news"', shown), "where it leads"
    names = [re.sub(r"<[^>]*>", "", one) for one in re.findall(r'aria-current="true">(all|errors|redirects) ', shown)]
    assert names == ["redirects"]


def test_a_page_as_of_a_time_is_shown_as_it_was_seen_last_up_to_then(tmp_path: Path) -> None:
    """Its links stay near the chosen time, and the capture is no later one."""
    with Archive(tmp_path / "seen", clock=lambda: at(100)) as opened:
        for minute, word in ((0, "old"), (20, "old"), (40, "new")):
            opened.put(NEWS, text("News", HOME, word=word), at(minute))
        with running(opened) as client:
            button = '<a class="button" href="/web/{}/' + NEWS + '">Show version 0'
            assert button.format(stamp14(at(20))) in client.get(f"/url/{NEWS}?at={rfc3339(at(39))}").text
            assert button.format(stamp14(at(0))) in client.get(f"/url/{NEWS}?at={rfc3339(at(10))}").text


def test_pages_as_of_a_time_have_no_figures_of_now(mixed: WebClient) -> None:
    (*_, row) = rows(mixed, f"/site/a.example?view=pages&at={rfc3339(at(3))}&as=json")
    assert not {"versions", "checked"} & set(row)
    assert {"versions", "checked"} <= set(rows(mixed, "/site/a.example?view=pages&as=json")[0])


@pytest.mark.parametrize("view", ["map", "picture"])
def test_a_map_tells_how_many_pages_it_cannot_show(mixed: WebClient, view: str) -> None:
    rows(mixed, "/site/a.example?view=pages&as=json")
    shown = mixed.get(f"/site/a.example?view={view}").text
    assert "2 pages." in shown
    assert "1 more page is not on the map" in shown
    found = mixed.get("/site/a.example?view=report&kind=orphan").text
    assert re.search(r'href="/url/http://a.example/late"[^>]*>Late</a><span class="where">/late<', found)


@pytest.mark.parametrize("view", ["map", "changes", "ranks"])
def test_a_site_is_compared_with_any_minute_and_those_of_its_changes_are_offered(web: WebClient, view: str) -> None:
    rows(web, f"/site/a.example?view=changes&since={rfc3339(at(10))}&as=json")
    shown = web.get(f"/site/a.example?view={view}&since={rfc3339(at(10))}").text
    assert 'type="datetime-local" name="since" value="2024-01-01T12:10"' in shown
    offered = re.findall(r'<option value="([^"]+)">', shown.partition('<datalist id="moments">')[2])
    assert offered == sorted(offered, reverse=True)
    assert "2024-01-01T12:41" in offered, "the minute after the change of a page, which it was found by"
    told = rows(web, "/site/a.example?view=changes&since=2024-01-01T12:41&as=json")
    assert {row["event"] for row in told} == {"appeared", "vanished"}


def test_the_head_of_a_site_names_parts_that_add_up(tmp_path: Path) -> None:
    with Archive(tmp_path / "parts", clock=lambda: at(100)) as opened:
        opened.record([look(HOME, at(0), text("Home", NEWS)), look(NEWS, at(1), text("News"))])
        failure = Failure(FailureKind.ROBOTS, "robots.txt forbids it")
        lost = look(LATE, at(3), status=0, headers=(), failure=failure, outcome=Outcome.REFUSED)
        opened.record([look(OLD, at(2), status=404), lost])
        with running(opened) as client:
            told = rows(client, "/site/a.example?view=pages&as=json")
            head = (
                client.get("/site/a.example?view=pages").text.partition('<p class="address">')[2].partition("</p>")[0]
            )
    known, *parts = (int(one) for one in re.findall(r">(\d+) ", head))
    assert known == len(told) == sum(parts) == 4
    assert 'kind=none">1 without an answer yet</a>.' in head


def test_broken_links_tell_how_many_addresses_nobody_has_looked_at(mixed: WebClient) -> None:
    rows(mixed, "/site/a.example?view=pages&as=json")
    shown = mixed.get("/site/a.example?view=broken").text
    assert "Its pages link to 4 addresses, here and on other sites, 1 of them is without an answer yet." in shown
    assert "No link of this site is known to be broken." in shown
    unanswered = shown.partition("Addresses without an answer yet")[2].partition("</ul>")[0]
    assert re.findall(r'href="/url/([^"]+)"', unanswered) == ["http://never.example/", HOME]


def test_an_address_that_is_not_here_leads_to_its_site(mixed: WebClient) -> None:
    for path in (
        "/url/http://a.example/nothing",
        "/web/2024/http://a.example/nothing",
        "/save?url=http://a.example/no",
    ):
        answer = mixed.get(path, Accept="text/html")
        assert "The archive knows 6 addresses of its site:" in answer.text, path
        assert 'href="/search?site=a.example"' in answer.text
    assert "addresses of its site" not in mixed.get("/url/http://b.example/", Accept="text/html").text


def test_a_search_that_finds_nothing_shows_what_narrows_it_and_asks_everything(mixed: WebClient) -> None:
    shown = mixed.get("/search?q=nowhere&site=a.example").text
    assert 'aria-label="Without a.example"' in shown
    assert 'href="/search?q=nowhere"' in shown
    assert "Search all current pages" in shown
    assert "/as-of?back=" in mixed.get("/search?q=nowhere&at=2024-01-01").text, "a day that is kept is forgotten too"
    assert "Search all current pages" not in mixed.get("/search?q=nowhere").text


def test_ranks_tell_how_they_rose_since_another_time(web: WebClient) -> None:
    found = {row["url"]: row for row in rows(web, f"/site/a.example?view=ranks&since={rfc3339(at(30))}&as=json")}
    assert found[LATE]["rise"] is None, "it is new"
    then = {row["url"]: row for row in rows(web, f"/site/a.example?view=ranks&at={rfc3339(at(30))}&as=json")}
    assert found[NEWS]["rise"] == pytest.approx(found[NEWS]["rank"] - then[NEWS]["rank"])
    assert sorted(row["place"] for row in found.values()) == [1, 2, 3]
    assert (found[NEWS]["links_in"], found[NEWS]["clicks"]) == (1, 1)
    page = web.get(f"/site/a.example?view=ranks&since={rfc3339(at(99))}").text
    assert '<span class="soft none">–</span>' in page, "cards leave out what says nothing"


@pytest.mark.parametrize("view", ["map", "changes", "ranks"])
def test_a_link_to_a_view_keeps_both_of_its_dates(web: WebClient, view: str) -> None:
    shown = web.get(f"/site/a.example?view={view}&since=2024-05-01&at=2024-05-03").text
    (link,) = re.findall(r'<a class="share" href="([^"]+)"', shown)
    assert parse_qs(urlsplit(unescape(link)).query) == {
        "view": [view], "at": ["2024-05-03T23:59:59.999Z"], "since": ["2024-05-01T00:00:00Z"],
    }  # fmt: skip


def test_a_page_lists_the_links_to_it_and_its_own_as_of_any_time(web: WebClient) -> None:
    shown = web.get(f"/url/{NEWS}").text
    assert "2 links to this page" in shown
    assert "3 links on this page" in shown
    assert 'href="/save?url=http%3A//never.example/"' in shown, "what nobody looked at can be saved"
    assert 'href="/url/http://never.example/"' not in shown
    out = rows(web, f"/url/{NEWS}?out.as=json")
    assert [(row["target"], row["status"]) for row in out] == [
        (HOME, 200),
        (LATE, 200),
        ("http://never.example/", None),
    ]
    assert [row["source"] for row in rows(web, f"/url/{NEWS}?in.as=json")] == [HOME, ELSEWHERE]
    assert [row["target"] for row in rows(web, f"/url/{NEWS}?out.as=json&at={rfc3339(at(30))}")] == [HOME]
    assert [row["status"] for row in rows(web, f"/url/{HOME}?out.as=json")] == [200, 404]


def test_the_links_around_a_page_are_those_of_the_whole_web_then(archive: Archive) -> None:
    graph = LinkIndex(archive).graph()
    for url in (HOME, NEWS, OLD, LATE, ELSEWHERE, "http://never.example/"):
        for minute in (0, 30, 99):
            moment, time = graph.as_of(to_millis(at(minute))), to_millis(at(minute))
            assert links_for(graph, url, time) == links_out(moment, url)
            assert links_for(graph, url, time, inward=True) == links_in(moment, url)


def test_the_crawl_page_tells_what_comes_next_and_a_host_can_be_dropped(archive: Archive) -> None:
    enqueue_seeds(archive, CrawlOptions(("http://c.example/", "http://c.example/2", "http://d.example/")))
    with archive.catalog.transaction() as cursor:
        host = archive.catalog.resources.ensure_host(cursor, "c.example")
        archive.catalog.queues.set_hosts(cursor, [("127.0.0.9", 0, 0, 1.0, 5, 0, host)])
        known = archive.catalog.resources.find(HOME)
        assert known is not None
        archive.catalog.queues.finish(cursor, [(2, to_millis(at(90)), b"", known.id)])
    with running(archive) as web:
        olga = Person(web, "olga")
        status = web.get("/api/v1/crawls").json()
        assert [(row["name"], row["waiting"], row["due"]) for row in status["hosts"]] == [("c.example", 2, 0)]
        assert status["next"] == [{"url": HOME, "due": rfc3339(at(90))}]
        shown = olga.get("/crawl").text
        assert "Next: 3 pages never visited, then 1 overdue page." in shown
        assert "1 more page that was never visited is on a host that no crawl has asked yet." in shown
        assert HOME.partition("://")[2] in shown.partition("Visited next")[2]
        assert Person(web, "uwe").send("/crawl", host="c.example", action="drop")[0] == 403
        assert olga.send("/crawl", host="c.example", action="drop") == (303, "/crawl?dropped=c.example")
        assert "No more visits to c.example are planned" in olga.get("/crawl?dropped=c.example").text
        assert web.get("/api/v1/crawls").json()["new"] == 1


def test_a_project_shows_what_changed_in_it_and_what_is_unavailable(archive: Archive, web: WebClient) -> None:
    add_to_project(Context(archive, user="olga", rights=7), AddToProjectCommand(name="mine", sites=("a.example",)))
    shown = web.get("/projects/mine").text
    latest = shown.partition('id="latest"')[2].partition("</section>")[0]
    assert "<del>News</del> <ins>Other words</ins>" in latest
    assert latest.index("/late") < latest.index("/news"), "the newest first"
    assert ELSEWHERE not in latest
    assert '<span class="state down">1</span>' in shown


def test_copies_whose_title_is_only_a_number_are_called_by_their_address(tmp_path: Path) -> None:
    with Archive(tmp_path / "copies", clock=lambda: at(100)) as opened:
        opened.record([look(f"http://a.example/{name}", at(1), text("200")) for name in ("one", "two")])
        with running(opened) as client:
            (row,) = rows(client, "/duplicates?as=json")
            shown = client.get("/duplicates").text
    assert row["keep"] == "http://a.example/one"
    assert re.search(r'href="/url/http://a.example/one"[^>]*>a\.example/one<', shown)


def test_the_steps_of_a_circle_of_redirects_are_joined_by_arrows(tmp_path: Path) -> None:
    circle = [f"http://a.example/{name}" for name in "abc"]
    with Archive(tmp_path / "circle", clock=lambda: at(100)) as opened:
        opened.record([look(HOME, at(0), text("Home", circle[0]))])
        for url, to in zip(circle, [*circle[1:], circle[0]], strict=True):
            head = (("Location", to), ("Content-Type", "text/html"))
            opened.record([look(url, at(1), b"moved", 302, headers=head, outcome=Outcome.UNCHANGED)])
        with running(opened) as client:
            rows(client, "/site/a.example?view=pages&as=json")
            shown = client.get("/site/a.example?view=report&kind=loop").text
    steps = shown.partition('<td data-label="Pages">')[2].partition("</td>")[0]
    assert steps.count("</a> → <a") == steps.count('class="page"') - 1 > 0


def test_a_search_is_narrowed_by_kinds_and_languages_in_words(mixed: WebClient) -> None:
    shown = mixed.get("/search?q=text&type=text/html").text
    assert 'aria-label="Without HTML"' in shown
    shown = mixed.get("/search?q=a&lang=cs").text
    assert 'aria-label="Without čeština"' in shown


def test_a_search_takes_the_dates_of_the_http_interface(mixed: WebClient) -> None:
    for name in ("from", "to"):
        refused = mixed.get(f"/search?q=news&{name}=bad", Accept="text/html")
        assert (refused.status, "bad" in refused.text.partition("<main")[2]) == (400, True), name
    asked = mixed.get("/search?q=news&from=2024-01-01").text
    assert "also in versions since 2024-01-01" in asked


def test_the_filter_of_a_table_finds_what_its_cells_say(mixed: WebClient) -> None:
    audit = "/site/a.example?view=audit&as=json"
    assert {row["url"] for row in rows(mixed, f"{audit}&filter=no+links+to+it")} == {LATE}
    czech = mixed.get(f"{audit}&filter={quote('nikdo na ni')}", Accept_Language="cs")
    assert [row["url"] for row in json.loads(czech.text)] == [LATE]


def test_an_audited_page_bears_how_grave_its_issues_are(mixed: WebClient) -> None:
    rows(mixed, "/site/a.example?view=audit&as=json")
    pages = mixed.get("/site/a.example?view=audit").text.partition('id="pages"')[2]
    assert '<span class="badge">canonical address missing</span>' in pages
    assert '<span class="badge changed">no links to it</span>' in pages
