"""A site with more pages than anybody reads: its views are bounded, right in their numbers, and nobody waits."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bench.serving.large_site import HOST, fill_site
from served_archive import WebClient, at, look, running

from letopis.archive import Archive
from letopis.index.link_index import LinkIndex
from letopis.operations import Context
from letopis.operations.site_listings import MOST_LISTED, upper_map
from letopis.web.cache import PageCache
from letopis.web.sites import SiteQuery, SiteView

END = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAGES = 5_400
SECTIONS = 54
ARTICLES = PAGES - SECTIONS - 1
EARLIER = "&at=2026-02-09"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebClient]:
    with Archive(tmp_path_factory.mktemp("large") / "archive", clock=lambda: END) as archive:
        fill_site(archive, PAGES, lambda text: None)
        LinkIndex(archive).catch_up()
        with running(archive) as web:
            yield web


def settled(web: WebClient, query: str, host: str = HOST) -> str:
    """A view when it is there: a server that is busy may ask for patience."""
    for _ in range(60):
        answer = web.get(f"/site/{host}?view={query}")
        assert answer.status == 200, answer.text
        if "data-again" not in answer.text:
            break
    return answer.text


def chips(text: str) -> dict[str, int]:
    """The kinds that a list can be cut to, and how many there are of each."""
    found = re.findall(r'kind=([a-z-]+)"[^>]*>[^<]* <span class="count">([^<]+)</span>', text)
    return {kind: int(count.replace("\u202f", "")) for kind, count in found}


def test_the_map_shows_its_upper_part_and_counts_all(large: WebClient) -> None:
    text = settled(large, "map")
    pages = f"{PAGES:,}".replace(",", "\u202f")
    assert f"The first 350 of {pages} pages are shown." in text
    assert text.count('class="leaf"') == 350
    below = f"{PAGES - 1:,}".replace(",", "\u202f")
    assert f"{below} addresses below it" in text


def test_the_picture_is_filled_by_its_largest_parts(large: WebClient) -> None:
    text = settled(large, "picture")
    sides = [
        tuple(map(float, found))
        for found in re.findall(r'<rect class="area[^>]* width="([\d.]+)" height="([\d.]+)"/>', text)
    ]
    assert 20 < len(sides) <= 500
    assert sides[0] == (1000.0, 620.0)
    assert sum(width * height for width, height in sides[1:]) > 0.8 * 1000 * 620


def test_changes_are_counted_by_kind_listed_in_parts_and_cut_to_a_kind(large: WebClient) -> None:
    text = settled(large, "changes")
    assert chips(text) == {"appeared": PAGES // 100, "renamed": 54, "changed": 481}
    renamed = settled(large, "changes&kind=renamed")
    assert renamed.count('class="badge renamed"') == 20
    assert 'class="badge changed"' not in renamed
    assert settled(large, "changes&kind=renamed&page=3").count('class="badge renamed"') == 14
    assert "501–520 of 589" in settled(large, "changes&page=26")
    assert "kind=renamed&amp;page=2" in renamed


def test_changes_by_day_and_hour_are_shown_for_a_large_site_too(large: WebClient) -> None:
    text = settled(large, "changes")
    assert '<table class="heat">' in text
    assert text.count('class="cells"') == 30
    assert re.search(r"535 changes, 535 pages, 42 days\.\s+The 30 most active are shown", text)
    counts = re.findall(r'<td class="right heat[0-4]">(\d+)</td>', text)
    assert sum(map(int, counts)) == 16 * 10


def test_findings_are_counted_by_kind_and_name_some_of_their_pages(large: WebClient) -> None:
    text = settled(large, "report")
    assert chips(text) == {"orphan": 54, "chain": 77, "duplicate-title": 1}
    title = settled(large, "report&kind=duplicate-title")
    assert "Notice | Large" in title
    assert f"and {len(range(7, ARTICLES, 40)) - 8} more" in title
    assert settled(large, "report&kind=nothing").count("No matches.") == 1


def test_a_list_that_is_cut_says_so_and_leads_to_all_of_it(large: WebClient) -> None:
    since = (END - timedelta(days=40)).date().isoformat()
    text = settled(large, f"changes&since={since}")
    assert f"The first {MOST_LISTED:,} of {PAGES + PAGES // 100:,} are".replace(",", "\u202f") in text
    link = re.search(r'href="(/api/v1/map/diff[^"]+)">All of them as JSON', text)
    assert link
    events = large.get(link[1].replace("&amp;", "&")).json()["events"]
    assert len(events) == PAGES + PAGES // 100


def test_another_date_has_its_own_views(large: WebClient) -> None:
    assert chips(settled(large, f"changes{EARLIER}")) == {}
    assert "Nothing appeared, vanished, moved or changed" in settled(large, f"changes{EARLIER}")
    assert chips(settled(large, f"report{EARLIER}")) == {"chain": 77, "duplicate-title": 1}
    assert "Article 0 now" in settled(large, "map")
    assert "Article 0 now" not in settled(large, f"map{EARLIER}")


def test_other_views_are_parts_of_the_whole(large: WebClient) -> None:
    assert "1–20 of 500" in settled(large, "ranks")
    assert "481–500 of 500" in settled(large, "ranks&page=99")
    assert f"The top 60 of {PAGES + PAGES // 100:,} pages".replace(",", "\u202f") in settled(large, "links")
    assert "197 broken links." in settled(large, "broken")
    assert "151–197 of 197" in settled(large, "broken&page=4")
    assert f"{PAGES + PAGES // 100 + 4 * 200:,} addresses known".replace(",", "\u202f") in settled(large, "pages")


def test_nobody_waits_for_the_index_and_the_answer_comes_by_itself(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive", clock=lambda: at(10)) as archive:
        archive.record([look("http://example.org/", at(0), b"<title>Home</title>")])
        (archive.folder / "index" / "links").mkdir(parents=True)
        with running(archive) as web:
            with (archive.folder / "index" / "links" / "lock").open("ab") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                text = web.get("/site/example.org").text
                assert "data-again" in text
                assert "Check again" in text
                assert "1 address known" in text
            assert "Home" in settled(web, "map", "example.org")


def test_a_page_is_on_the_map_as_soon_as_its_links_are_looked_at_again(tmp_path: Path) -> None:
    seconds = [0.0]
    with Archive(tmp_path / "archive", clock=lambda: at(10)) as archive:
        known = PageCache(lambda: seconds[0])

        def titles() -> list[str]:
            query = SiteQuery("map", "", "", "", "")
            view = SiteView(Context(archive), known, "example.org", at(10), at(0), query)
            found = view.now("map", lambda graph, site, moment: upper_map(graph, site, moment, 12, 1500))
            assert found
            return [row.page.title for row in found.rows]

        archive.record([look("http://example.org/", at(0), b'<title>Home</title><a href="/new">new</a>')])
        assert titles() == ["Home"]
        archive.record([look("http://example.org/new", at(1), b"<title>New</title>")])
        seconds[0] = 5.0
        assert titles() == ["Home", "New"]
