"""The page about storage: how the archive grew, which sites take most, and whether all is well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_archive import WebClient, at, look, running
from signed_in import Person

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.activity import stored_at_once
from letopis.web.charts import growth_line


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as opened:
        text = b"<p>" + b"The harbour of a small town, and what it took in. " * 40 + b"</p>"
        pages = [look(f"http://a.example/{n}", at(n * 1440), text + b"%d" % n) for n in range(3)]
        opened.record([*pages, look("http://b.example/", at(2 * 1440), text + b"0")])
        accounts_of(opened).add("olga", "owner", "a long password", 0)
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def owner(archive: Archive) -> dict[str, str]:
    accounts = accounts_of(archive)
    return {"Authorization": f"Bearer {accounts.create_token('o', accounts.user('olga'), 'write', 0)}"}


def test_a_content_counts_on_the_day_at_which_it_was_first_seen(web: WebClient) -> None:
    days = web.get("/api/v1/storage/growth").json()["days"]
    assert [row["contents"] for row in days] == [1, 1, 1]
    assert len({row["day"] for row in days}) == 3


def test_a_content_that_two_sites_have_counts_for_each(web: WebClient) -> None:
    sites = {row["site"]: row["contents"] for row in web.get("/api/v1/storage/sites").json()["sites"]}
    assert sites == {"a.example": 3, "b.example": 1}
    assert len(web.get("/api/v1/storage/sites?limit=1").json()["sites"]) == 1


def test_the_page_draws_growth_and_lists_sites_and_tells_owners_of_health(web: WebClient, archive: Archive) -> None:
    page = web.get("/storage", Accept="text/html").text
    assert re.search(r'<polyline class="line" points="0,100 ', page)
    assert 'href="/site/a.example"' in page
    assert '<span class="keys">contents: ' in page, "so that the days stand at the ends of a narrow chart"
    assert "Verify checks every byte" not in page
    shown = web.get("/storage", Accept="text/html", **owner(archive)).text
    assert "Verify checks every byte" in shown
    assert "OK" in shown


def test_a_line_rises_from_nothing_to_all_of_it_however_many_days() -> None:
    assert growth_line([]) == ""
    assert growth_line([("2026-01-01", 10), ("2026-01-03", 30)]) == (
        "0,100 0.0,100.0 0.0,75.0 1000.0,75.0 1000.0,0.0 1000,0"
    )
    many = growth_line([(f"{2000 + year}-01-{day:02d}", 5) for year in range(200) for day in range(1, 29)])
    assert len(many.split()) < 1300
    assert many.endswith(" 1000,0")


def test_sizes_are_told_by_kind_as_servers_called_them(web: WebClient, archive: Archive) -> None:
    kinds = ("image/png", "text/css; charset=utf-8", "application/javascript", "application/pdf", "font/woff2", "")
    for number, kind in enumerate(kinds):
        url = f"http://a.example/of/{number}"
        archive.put(url, b"%d" % number * 50, content_type=kind)
    rows = {row["kind"]: row for row in web.get("/api/v1/storage/kinds").json()["kinds"]}
    assert {kind: row["contents"] for kind, row in rows.items()} == {
        "html": 3, "images": 1, "styles": 1, "scripts": 1, "pdf": 1, "other": 2,
    }  # fmt: skip
    assert rows["images"]["raw_bytes"] == 50
    assert sum(row["contents"] for row in rows.values()) == archive.stats().contents


def test_figures_of_storage_see_one_moment_however_much_is_recorded_meanwhile(archive: Archive) -> None:
    with stored_at_once(archive) as (totals, stored):
        archive.put("http://a.example/later", b"<p>It came while others were being counted</p>")
        methods, days = stored.methods(), stored.growth()
    assert totals.contents == sum(row.contents for row in methods) == sum(day.contents for day in days) == 3
    assert archive.stats().contents == 4


def test_no_two_figures_of_the_page_contradict_each_other_while_pages_are_recorded(
    web: WebClient, archive: Archive
) -> None:
    for number in range(3):
        page = web.get("/storage", Accept="text/html").text
        total, *kinds = map(int, re.findall(r"(\d+) distinct contents?", page.partition('id="by-site"')[0]))
        methods = page.partition('id="methods"')[2].partition("</table>")[0]
        listed = map(int, re.findall(r'<tr><th scope="row">[^<]*</th><td class="right"[^>]*>(\d+)</td>', methods))
        assert total == sum(kinds) == sum(listed) >= 3
        archive.put(f"http://a.example/later/{number}", b"<p>%d</p>" % number * 9)


def test_owners_have_the_archive_verified_from_the_page(web: WebClient, archive: Archive) -> None:
    olga = Person(web, "olga")
    page = olga.see("/storage")
    assert "HTML pages" in page
    assert 'name="kind" value="verify"' in page
    assert olga.send("/jobs/start", kind="verify") == (303, "/jobs/1")
    assert 'value="verify"' not in web.get("/storage", Accept="text/html").text


def test_an_archive_that_takes_more_than_was_fetched_says_by_how_much_and_why(web: WebClient, archive: Archive) -> None:
    stats = archive.stats()
    assert stats.raw_bytes < stats.disk_bytes
    page = web.get("/storage", Accept="text/html").text
    more = re.search(r"([\d.]+)\xa0% more than was fetched: [^<]+ of contents, [^<]+ of catalogue and index<", page)
    assert more
    assert float(more[1]) == pytest.approx(100 * (stats.disk_bytes / stats.raw_bytes - 1), rel=0.2)
    saved = re.search(r"<dt>Saved on contents</dt><dd>(-?[\d.]+)\xa0%</dd>", page)
    assert saved
    assert float(saved[1]) == pytest.approx(100 * (1 - stats.pack_bytes / stats.raw_bytes), rel=0.2)
    units = {"B": 1, "kB": 1000}
    said = page.partition("<dt>On disk</dt>")[2].partition("</div>")[0]
    whole, contents, rest = (float(size) * units[unit] for size, unit in re.findall(r"([\d.]+) (k?B)", said))
    assert whole == pytest.approx(contents + rest, abs=200)
    assert "are set in <code>letopis.toml</code>" in page
