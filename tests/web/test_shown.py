"""Every page is there, is whole HTML, holds to its content policy, and escapes what it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from served_archive import HTML, PAGE, Answer, WebClient, at, fill, look, running

from letopis.archive import Archive
from letopis.catalog.queues import AGAIN
from letopis.crawl import CrawlOptions, enqueue_seeds
from letopis.model import Failure, FailureKind, Outcome, rfc3339, stamp14
from letopis.schedule.policies import VisitState
from letopis.web.charts import bars
from letopis_demo import World

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
VOID |= {"rect", "path", "polyline", "circle", "line"}

VIEWS = ("map", "picture", "links", "pages", "changes", "broken", "ranks", "report", "audit")


class Outline(HTMLParser):
    """What a page is made of; unbalanced tags are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def shown(answer: Answer, status: int = 200) -> Outline:
    assert answer.status == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Outline(answer.text)


def all_addresses(world: World) -> list[str]:
    home = world.url(0, 0)
    site = f"/site/{world.hosts[0]}"
    views = [
        f"{site}?view={name}"
        for name in ("map", "picture", "links", "pages", "changes", "broken", "ranks", "report", "audit")
    ]
    compare = [f"/compare/{home}?view={name}" for name in ("words", "sides", "visual", "links", "raw", "source")]
    plain = [
        "/",
        "/search",
        "/search?q=garden",
        "/watches",
        "/crawl",
        "/jobs",
        "/duplicates",
        "/storage",
        "/settings",
        "/login",
    ]
    return [*plain, f"/url/{home}", f"/web/*/{home}", *views, *compare, f"/duplicates?site={world.hosts[0]}"]


def test_every_page_is_whole_and_has_landmarks_title_and_one_heading(pages: WebClient, little_world: World) -> None:
    for address in all_addresses(little_world):
        outline = shown(pages.get(address))
        names = [tag for tag, _ in outline.tags]
        assert (names.count("h1"), names.count("main")) == (1, 1), address
        assert "title" in names
        assert outline.all("html")[0]["lang"] == "en"
        labelled = {found["for"] for found in outline.all("label") if "for" in found}
        bare = [
            f for f in outline.all("input") if f.get("type") != "hidden" and f.get("id") and f["id"] not in labelled
        ]
        assert bare == [], address
        ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
        assert len(ids) == len(set(ids)), address


def test_pages_need_nothing_from_elsewhere_and_nothing_inline(pages: WebClient, little_world: World) -> None:
    for address in all_addresses(little_world):
        answer = pages.get(address)
        outline = shown(answer)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not [attributes for _, attributes in outline.tags if "style" in attributes], address
        assert not [name for _, attributes in outline.tags for name in attributes if name.startswith("on")], address
        for script in outline.all("script"):
            assert script.get("type") == "application/json" or (script["src"] or "").startswith("/"), address
        for link in outline.all("link"):
            assert (link["href"] or "").startswith("/")
        for frame in outline.all("iframe"):
            assert frame["sandbox"] in (None, "")


def test_links_of_the_main_pages_lead_to_pages(pages: WebClient, little_world: World) -> None:
    found = set()
    for address in ("/", f"/url/{little_world.url(0, 0)}", f"/site/{little_world.hosts[0]}"):
        links = shown(pages.get(address)).all("a")
        found |= {link["href"] for link in links if (link.get("href") or "").startswith("/")}
    broken = [link for link in sorted(found) if pages.get(link or "").status not in (200, 302, 303)]
    assert broken == []


EVIL = '<script>alert("x")</script><img src=x onerror=alert(1)>'


@pytest.fixture
def hostile(tmp_path: Path) -> Any:
    url = "http://evil.example/a?q=<b>&x=%22'"
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive:
        archive.put(url, f"<title>{EVIL.replace('<', '&lt;')}</title><p>garden {EVIL}</p>".encode(), at(0))
        archive.put(url, f"<title>{EVIL.replace('<', '&lt;')}</title><p>garden gate &lt;i&gt;</p>".encode(), at(1))
        with running(archive) as web:
            yield web, archive.catalog.recent.changes(1)[0].url


def test_what_archived_pages_say_is_escaped_everywhere(hostile: tuple[WebClient, str]) -> None:
    web, url = hostile
    inner = quote(url, safe="/:@!$&'()*+,;=-._~[]")
    addresses = ["/", f"/url/{inner}", "/search?q=garden", f"/search?q={quote(EVIL)}", "/site/evil.example"]
    addresses += [f"/compare/{inner}?view={name}" for name in ("words", "sides", "visual", "links", "raw", "source")]
    addresses += [
        f"/site/evil.example?view={name}" for name in ("picture", "links", "pages", "changes", "ranks", "report")
    ]
    for address in addresses:
        answer = web.get(address)
        assert answer.status in (200, 400), (address, answer.text)
        outline = Outline(answer.text)
        assert outline.all("img") == [], address
        assert all(script.get("src") or script.get("type") == "application/json" for script in outline.all("script"))
        assert "<b>" not in answer.text


def test_the_rendered_comparison_has_no_origin_and_runs_nothing(hostile: tuple[WebClient, str]) -> None:
    web, url = hostile
    inner = quote(url, safe="/:@!$&'()*+,;=-._~[]")
    answer = web.get(f"/compare/{inner}?view=frame")
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert "allow-" not in policy
    body = re.sub(r"<title>.*?</title>", "", answer.text, flags=re.DOTALL)
    assert "onerror" not in body
    assert "<script" not in body


def test_unknown_things_are_told_on_a_page_with_the_right_status(pages: WebClient, little_world: World) -> None:
    assert "This address has not been checked yet" in pages.get("/url/http://nowhere.example/").text
    shown(pages.get("/url/http://nowhere.example/"), 404)
    shown(pages.get("/site/nowhere.example"), 404)
    shown(pages.get(f"/site/{little_world.hosts[0]}?view=nonsense"), 400)
    shown(pages.get(f"/site/{little_world.hosts[0]}?at=nonsense"), 400)
    shown(pages.get(f"/compare/{little_world.url(0, 0)}?from=never"), 400)
    shown(pages.get(f"/compare/{little_world.url(0, 0)}?view=nonsense"), 400)
    shown(pages.get('/search?q="open'), 400)


def test_an_unknown_address_is_told_as_it_was_asked_with_what_is_known_with_fewer_parameters(
    pages: WebClient, little_world: World
) -> None:
    url = little_world.url(0, 0)
    for asked in (f"/url/{url}?utm_source=x&at=2026-01-01", f"/web/2026*/{url}?utm_source=x"):
        told = pages.get(asked, Sec_Fetch_Dest="document", Accept="text/html").text
        assert f'<span class="url">{url}?utm_source=x</span>' in told, asked
        assert re.search(
            rf'The archive has it with fewer parameters: <a class="page" href="/url/{re.escape(url)}"', told
        ), asked


def test_an_empty_archive_shows_friendly_pages(make_pages: Callable[..., Any]) -> None:
    with make_pages() as web:
        for address in ("/", "/watches", "/search", "/search?q=x", "/crawl", "/jobs", "/duplicates", "/storage"):
            shown(web.get(address))
        assert "Watching a first page takes two steps." in web.get("/").text


@pytest.fixture
def make_pages(tmp_path: Path) -> Callable[..., Any]:
    from contextlib import contextmanager

    @contextmanager
    def make(filled: bool = False) -> Any:
        with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive:
            if filled:
                fill(archive)
            with running(archive) as web:
                yield web

    return make


def test_a_page_shows_its_checks_its_failures_and_where_it_was_redirected(make_pages: Callable[..., Any]) -> None:
    with make_pages(filled=True) as web:
        text = web.get(f"/url/{PAGE}").text
        assert "Connection refused." in text
        assert "unavailable" in text
        assert ">404<" in text
        assert 'class="down"' in text
        assert "301 → /page" in web.get("/url/http://example.org/moved").text


def test_a_page_with_a_query_is_found_as_typed_and_as_our_links_write_it(make_pages: Callable[..., Any]) -> None:
    url = "http://www.example.org/page?x=1"
    with make_pages(filled=True) as web:
        for address in (f"/url/{url}", f"/url/{quote(url, safe='/:')}", f"/url/{url}&v.page=2"):
            answer = web.get(address)
            assert answer.status == 200, address
            assert "www.example.org/page?x=1" in answer.text
        assert web.get(f"/compare/{url}&view=raw").status == 200


def test_comparisons_show_what_went_and_came_and_can_be_shared(
    pages: WebClient, remembered: Archive, little_world: World
) -> None:
    url = little_world.url(0, 0)
    first, *_, last = remembered.versions(url)
    times = f"from={rfc3339(first.time)}&to={rfc3339(last.time)}"
    text = pages.get(f"/compare/{url}?{times}").text
    assert "<ins>" in text
    assert "<del>" in text
    assert f"{times}&amp;view=words".replace("&to", "&amp;to") in text
    assert f"v{first.number}" in text
    same = pages.get(f"/compare/{url}?from={rfc3339(last.time)}&to={rfc3339(last.time)}").text
    assert "identical, byte for byte" in same


def test_a_site_is_shown_as_of_the_date_that_is_asked_for(pages: WebClient, little_world: World) -> None:
    site = f"/site/{little_world.hosts[0]}"
    early = (little_world.start + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert f'As of <time datetime="{early}"' in pages.get(f"{site}?at={early}").text
    first = little_world.start.strftime("%Y-%m-%d")
    answer = pages.get(f"{site}?at={first}&view=changes&since=2025-01-01")
    assert answer.status == 200
    assert "appeared" in answer.text
    assert pages.get(f"{site}?at=2001-01-01").status == 404


def test_a_site_is_shown_as_soon_as_it_is_recorded_however_old_the_links_at_hand_are(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive, running(archive) as web:
        for number in range(3):
            archive.put(f"http://new{number}.example/", b"<a href='http://new%d.example/'>" % (number + 1), at(number))
            for view in ("map", "changes"):
                assert web.get(f"/site/new{number}.example?view={view}").status == 200, view
        archive.record([look("http://dead.example/", at(9), status=404)])
        assert web.get("/site/dead.example").status == 404


def test_the_find_box_leads_to_pages_sites_and_words(pages: WebClient, little_world: World) -> None:
    host, home = little_world.hosts[0], little_world.url(0, 0)
    leads = {
        home: f"/url/{home}",
        home.removeprefix("http://"): f"/url/{home}",
        host + ":80/nowhere": f"/site/{host}",
        "two words": "/search?q=two+words",
        "garden": "/search?q=garden",
        "": "/search?q=",
    }
    for text, target in leads.items():
        answer = pages.get(f"/find?q={quote(text)}")
        assert (answer.status, answer.headers["location"]) == (303, target)


def test_long_lists_are_paged_on_the_server(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive", clock=lambda: at(9999)) as archive:
        for minute in range(120):
            archive.put(PAGE, HTML % minute, at(minute))
        with running(archive) as web:
            text = web.get(f"/url/{PAGE}").text
            assert len(re.findall(r"<span>v\d+</span>", text)) == 15
            assert "16–30 of 120" in web.get(f"/url/{PAGE}?v.page=2").text
            assert "106–120 of 120" in web.get(f"/url/{PAGE}?c.page=8").text
            assert "106–120 of 120" in web.get(f"/url/{PAGE}?v.page=999").text
            older = re.search(r'rel="next" href="(/\?before=\d+)"', web.get("/").text)
            assert older
            assert "v89" in web.get(older[1]).text


def test_the_hosts_of_a_crawl_are_sorted_filtered_and_taken_along(pages: WebClient) -> None:
    rows = pages.get("/crawl?as=csv&sort=-name").text.split()
    assert rows[0].startswith("name,fetched,waiting,due,failures,crawl_delay")
    assert [row.partition(",")[0] for row in rows[1:]] == ["university0.example", "news1.example"]
    shown = pages.get("/crawl?filter=news").text
    assert ("1 of 2" in shown, 'href="/site/news1.example"' in shown) == (True, True)


def test_live_figures_of_a_crawl_are_counted(pages: WebClient) -> None:
    answer = pages.get("/crawl/figures")
    assert answer.headers["cache-control"] == "no-store"
    figures = answer.json()
    assert figures["fetched"] == 999
    assert figures["new"] == 2
    assert {host["name"] for host in figures["hosts"]} == {"university0.example", "news1.example"}


def test_live_figures_tell_hosts_that_may_be_asked_and_how_fresh_copies_are(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive", clock=lambda: at(0)) as archive:
        enqueue_seeds(archive, CrawlOptions(("http://a.example/", "http://b.example/1", "http://b.example/2")))
        with running(archive) as web:
            figures = web.get("/crawl/figures").json()
            assert (figures["ready"], figures["freshness"]) == (2, None)
            assert "Hosts ready" in web.get("/crawl").text
        _has_been_visited(archive, "http://a.example/")
        with running(archive) as web:
            figures = web.get("/crawl/figures").json()
            assert (figures["ready"], figures["freshness"]) == (1, 1.0)
            assert "100&nbsp;%" in web.get("/crawl").text


def test_a_page_whose_visits_fail_says_why_in_the_readers_language_and_that_they_come_later(tmp_path: Path) -> None:
    url, said = "http://a.example/", "no connection could be made (Connection refused)"
    with Archive(tmp_path / "archive", clock=lambda: at(0)) as archive:
        enqueue_seeds(archive, CrawlOptions((url,)))
        failure = Failure(FailureKind.CONNECT, said)
        archive.record([look(url, at(-1), b"", 0, headers=(), failure=failure, outcome=Outcome.UNAVAILABLE)])
        _has_been_visited(archive, url, failures=3, interval=400.0)
        with running(archive) as web:
            czech, english = web.get(f"/url/{url}", Accept_Language="cs").text, web.get(f"/url/{url}").text
    assert czech.count("Nepodařilo se navázat spojení (Connection refused).") == 2  # above, and in the list of checks
    assert said not in czech
    assert "No connection could be made (Connection refused)." in english
    assert ("later after 3 failed visits" in english, "every 6 min" in english.partition("</dl>")[0]) == (True, False)


def _has_been_visited(archive: Archive, url: str, failures: int = 0, interval: float = 0.0) -> None:
    """Now and an hour ago without news, and again an hour from now."""
    now = at(0).timestamp()
    state = VisitState(visits=2, failures=failures, last_visit=now, quiet=3600.0, interval=interval).to_bytes()
    resource = archive.catalog.resources.find(url)
    assert resource is not None
    with archive.catalog.database.transaction() as cursor:
        archive.catalog.queues.finish(cursor, [(AGAIN, int(1000 * now) + 3_600_000, state, resource.id)])


def test_broken_links_tell_since_when_and_lead_to_the_last_good_version(tmp_path: Path) -> None:
    home, gone, never = (f"http://a.example/{name}" for name in ("", "gone?x=1&y=2", "never"))
    text = f'<title>Home</title><a href="{gone.replace("&", "&amp;")}">the old page</a> <a href="/never">another</a>'
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive:
        archive.record([look(home, at(0), text.encode()), look(gone, at(1), HTML % 1)])
        archive.record([look(gone, at(30), status=410), look(never, at(31), status=404)])
        with running(archive) as web:
            answer = web.get("/site/a.example?view=broken")
            links = [link["href"] for link in shown(answer).all("a")]
            copy = next(link for link in links if link and "/web/2024" in link)
            assert copy == f"{web.address}/web/20240101120100/{gone}"
            assert b"1" in web.get(copy.removeprefix(web.address)).body
    assert "2 broken links." in answer.text
    assert ">410<" in answer.text
    assert '<td data-label="Since"><time datetime="2024-01-01T12:30:00Z"' in answer.text
    assert "the old page" in answer.text, "in the line that is to be changed"
    assert answer.text.count("none: it has never worked") == 1
    assert "Its pages link to 2 addresses, here and on other sites, all of them checked." in answer.text


def test_changes_are_shown_by_section_and_hour_as_a_table(pages: WebClient, little_world: World) -> None:
    answer = pages.get(f"/site/{little_world.hosts[0]}?view=changes")
    shown(answer)
    assert "Sections by hour of the day" in answer.text
    table = answer.text.partition('<table class="hours">')[2].partition("</table>")[0]
    rows = re.findall(r'<tr><th scope="row">/[^<]*</th>(.*?)</tr>', table)
    assert rows
    for row in rows:
        total, *hours = (int(cell.replace("·", "0")) for cell in re.findall(r">([\d·]+)</td>", row))
        assert len(hours) == 24
        assert sum(hours) == total


def test_the_links_of_a_site_are_drawn_on_the_server(pages: WebClient, little_world: World) -> None:
    answer = pages.get(f"/site/{little_world.hosts[0]}?view=links")
    outline = shown(answer)
    dots = [found for found in outline.all("circle") if found["class"] == "reach"]
    assert 5 <= len(dots) <= 60
    assert len(outline.all("line")) >= len(dots) - 1
    assert "circle" not in pages.get(f"/site/{little_world.hosts[0]}?view=links&at=2001-01-01").text


def test_the_frame_of_the_replay_speaks_the_language_of_the_reader(pages: WebClient, remembered: Archive) -> None:
    url = remembered.catalog.recent.changes(1)[0].url
    first, *_, last = remembered.versions(url)
    assert last.number > first.number
    address = f"/web/{stamp14(first.time)}/{url}"
    english = pages.get(address, Sec_Fetch_Dest="document", Accept_Language="en")
    czech = pages.get(address, Sec_Fetch_Dest="document", Accept_Language="cs")
    assert '<html lang="en">' in english.text
    assert re.findall(r">(Earlier|Later|Newest|All captures|History)</a>", english.text)[-2:] == [
        "All captures",
        "History",
    ]
    assert "Jak vypadala" in czech.text
    assert czech.headers["content-language"] == "cs"
    assert "accept-language" in czech.headers["vary"]
    assert "unsafe-inline" not in czech.headers["content-security-policy"]
    assert Outline(czech.text).all("iframe")[0]["sandbox"] == ""
    assert "All captures" not in pages.get(address).text


def test_where_a_day_towers_over_the_others_all_are_drawn_as_square_roots() -> None:
    days = [(f"2026-03-{day:02}", 4, 0) for day in range(1, 10)] + [("2026-03-10", 399, 1)]
    drawn = bars(days, rooted=True)
    assert all(one.rooted for one in drawn)
    assert (drawn[0].lower_height, drawn[-1].lower_height, drawn[-1].upper_height) == (10.0, 99.75, 0.25)
    assert not any(one.rooted for one in bars(days))
    assert not any(one.rooted for one in bars(days[-3:], rooted=True))


@pytest.mark.parametrize(("pages", "named"), [(2, False), (40, True)])
def test_the_overview_names_a_scale_that_is_not_straight(tmp_path: Path, pages: int, named: bool) -> None:
    with Archive(tmp_path / "archive", clock=lambda: at(9 * 1440)) as archive, running(archive) as web:
        archive.record([look(f"http://a.example/{day}", at(day * 1440), HTML % day) for day in range(8)])
        archive.record([look(f"http://a.example/more/{n}", at(8 * 1440), HTML % n) for n in range(pages)])
        assert ("square-root scale" in web.get("/").text) is named


def test_a_redirect_in_a_circle_is_called_so_and_cards_without_actions_name_none(tmp_path: Path) -> None:
    home, first, second = (f"http://a.example/{name}" for name in ("", "first", "second"))
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive:
        archive.record([look(home, at(0), b'<title>Home</title><a href="/first">round</a>')])
        archive.record([
            look(first, at(1), status=302, headers=(("Location", second),)),
            look(second, at(2), status=302, headers=(("Location", first),)),
        ])  # fmt: skip
        with running(archive) as web:
            page = web.get("/site/a.example?view=broken").text
    assert ">redirect loop</span>" in page
    assert ">302<" not in page
    assert '<td data-label="Actions"><div></div></td>' in page, "which a phone leaves out"
