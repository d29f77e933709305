"""Maps in all forms, redirects, errors, reports, and the verbs and routes that show them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from lxml import etree, html

from letopis import Archive, Put
from letopis.cli import main
from letopis.errors import NotFound, UsageError
from letopis.index import map_formats
from letopis.index.link_index import LinkIndex
from letopis.index.link_reports import broken_links, links_in, links_out, rank_rows, site_report
from letopis.index.map_formats import MAP_FORMATS, sitemap_files
from letopis.index.page_ranks import rank_site, site_diagram
from letopis.index.site_events import map_difference
from letopis.index.site_maps import SiteMap, site_map
from letopis.jobs.xslt import XsltLimits, run_xslt
from letopis.model import Failure, FailureKind, Observation, Outcome, Response, to_millis

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NOW = to_millis(START + 30 * DAY)


def page(title: str, *targets: str, more: str = "") -> bytes:
    links = "".join(f'<a href="{target}">to {target}</a>' for target in targets)
    return f'<!DOCTYPE html><html lang="en"><title>{title}</title><body>{links}{more}</body></html>'.encode()


class Site:
    """A site whose answers are recorded by hand."""

    def __init__(self, folder: Path) -> None:
        self.archive = Archive(folder, clock=lambda: START + 30 * DAY)
        self.index = LinkIndex(self.archive)

    def answers(self, path: str, body: bytes = b"", status: int = 200, *, day: float = 0, to: str = "") -> None:
        url = f"http://x.org{path}"
        kind = "text/css" if path.endswith(".css") else "text/html"
        headers = (("Content-Type", kind), *((("Location", to),) if to else ()))
        good = Outcome.UNCHANGED if to else Outcome.NEW
        failure = None if status else Failure(FailureKind.TIMEOUT, "too slow")
        response = Response(url, url, status, headers, body, START + day * DAY, failure=failure)
        self.archive.record([Observation(response, Outcome.UNAVAILABLE if not 0 < status < 400 else good)])

    def map(self, site: str = "x.org", **options: object) -> SiteMap:
        return site_map(self.index.graph(), site, NOW, **options)  # type: ignore[arg-type]

    def tree(self, **options: object) -> list[str]:
        shown = "".join(MAP_FORMATS["text"].write(self.map(**options)))
        return [line.split("  [")[0].replace("http://x.org", "") for line in shown.splitlines()]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "a")
    yield made
    made.archive.close()


@pytest.fixture
def small(site: Site) -> Site:
    site.answers("/", page("Home & <all>", "/a", "/b", more='<img src="/i.png"><link rel=stylesheet href="/s.css">'))
    site.answers("/a", page("A", "/c", "/b"))
    site.answers("/b", page("B", "/c", "/gone"))
    site.answers("/c", page("C", "/"))
    site.answers("/gone", status=404)
    site.answers("/s.css", b"a{}")
    return site


def test_a_page_hangs_under_the_first_page_that_links_to_it(small: Site) -> None:
    assert small.tree() == ["Home & <all>  /", "  A  /a", "    C  /c", "  B  /b"]


def test_depth_bounds_the_map(small: Site) -> None:
    assert small.tree(depth=1) == ["Home & <all>  /", "  A  /a", "  B  /b"]
    assert small.tree(depth=0) == ["Home & <all>  /"]


def test_error_pages_are_left_out_unless_asked_for(small: Site) -> None:
    assert small.tree(errors=True)[-1] == "    to /gone  /gone"


def test_what_has_no_title_is_called_what_the_link_to_it_says(site: Site) -> None:
    links = ('<a href="/paper"> </a><a href="/paper">The <b>yearly</b>\n paper</a><a href="/paper">again</a>'
             '<a href="/bare"></a><a href="/moved">moved text</a><a href="/b">B?</a>')  # fmt: skip
    site.answers("/", page("Home", more=links))
    site.answers("/b", page("B", more='<a href="/paper">from elsewhere</a>'))
    for path in ("/paper", "/bare", "/end"):
        site.answers(path, b"<p>words</p>")
    site.answers("/moved", status=301, to="/end")
    assert site.tree() == [
        "Home  /",
        "  The yearly paper  /paper",
        "  (no title)  /bare",
        "  moved text  /end",
        "  B  /b",
    ]
    # Programs are told the title, which it has not.
    root = json.loads("".join(MAP_FORMATS["json"].write(site.map())))
    assert [child["title"] for child in root["children"]] == ["", "", "", "B"]


def test_json_is_nested_with_the_promised_fields(small: Site) -> None:
    root = json.loads("".join(MAP_FORMATS["json"].write(small.map())))
    assert {"url", "title", "status", "lang", "bytes", "children"} <= set(root)
    assert (root["status"], root["lang"], root["images"]) == (200, "en", 1)
    assert [child["url"] for child in root["children"]] == ["http://x.org/a", "http://x.org/b"]


def test_xml_is_nested_pages_under_a_map(small: Site) -> None:
    root = etree.fromstring("".join(MAP_FORMATS["xml"].write(small.map())).encode())
    assert (root.tag, root.get("site"), root.get("at")) == ("map", "x.org", "2026-01-31T00:00:00Z")
    assert root.xpath("string(/map/page/@title)") == "Home & <all>"
    assert root.xpath("/map/page/page/@url") == ["http://x.org/a", "http://x.org/b"]
    assert root.xpath("/map/page/page/page/@title") == ["C"]


@pytest.mark.parametrize("form", ["html", "snippet"])
def test_pages_for_people_are_nested_lists_of_links(small: Site, form: str) -> None:
    tree = html.fromstring("".join(MAP_FORMATS[form].write(small.map())))
    links = tree.xpath("//li//a/@href")
    assert links == [f"http://x.org{path}" for path in ("/", "/a", "/c", "/b")]
    assert tree.xpath("//ul/li//ul/li//ul/li/a/text()") == ["C"]
    assert tree.xpath("count(//ul[not(li)])") == 0


def test_the_page_tells_the_site_in_numbers_and_folds(small: Site) -> None:
    tree = html.fromstring("".join(MAP_FORMATS["html"].write(small.map())))
    told = dict(zip(tree.xpath("//dt/text()"), tree.xpath("//dd/text()"), strict=True))
    assert (told["pages"], told["levels"], told["languages"], told["images shown"]) == ("4", "3", "en 4", "1")
    assert tree.xpath("//details/summary/a/@href") == ["http://x.org/", "http://x.org/a"]
    assert tree.xpath("count(//details[not(@open)])") == 0
    assert "http" not in "".join(tree.xpath("//style/text()"))


def test_the_page_leaves_out_what_all_titles_say(site: Site) -> None:
    titles = ["University", "People | University", "Courses | University", "Courses - old | University", "Gallery"]
    bodies = [page(title, "/1", "/2", "/3", "/4") for title in titles]
    addresses = [f"http://x.org/{number or ''}" for number in range(5)]
    list(site.archive.put_many(Put(url, body, START) for url, body in zip(addresses, bodies, strict=True)))
    tree = html.fromstring("".join(MAP_FORMATS["html"].write(site.map())))
    assert tree.xpath("//li//a/text()") == ["University", "People", "Courses", "Courses - old", "Gallery"]
    assert tree.xpath("//a/@title") == titles[1:4]


def test_pictures_are_well_formed_and_hold_every_page(small: Site) -> None:
    tree = etree.fromstring("".join(MAP_FORMATS["svg"].write(small.map())).encode())
    assert len(tree.findall(".//{*}rect")) == 4
    dot = "".join(MAP_FORMATS["dot"].write(small.map()))
    assert dot.count(" -> ") == 3
    assert 'label="Home & <all>"' in dot


def test_a_chain_of_thousands_of_pages_is_no_problem(site: Site) -> None:
    addresses = [f"http://x.org/{number or ''}" for number in range(3000)]
    bodies = [page(f"P{number}", f"/{number + 1}") for number in range(3000)]
    list(site.archive.put_many(Put(url, body, START) for url, body in zip(addresses, bodies, strict=True)))
    found = site.map()
    for form in MAP_FORMATS.values():
        assert "P1999" in "".join(form.write(found)) or form is MAP_FORMATS["sitemap"]
    assert int(found.tree.depths.max()) == 2999


def test_a_sitemap_is_split_by_the_protocols_rule(small: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = etree.fromstring("".join(MAP_FORMATS["sitemap"].write(small.map())).encode())
    assert len(whole.findall("{*}url/{*}loc")) == 4
    monkeypatch.setattr(map_formats, "SITEMAP_URLS", 3)
    files = sitemap_files(small.map(), "sitemap.xml")
    assert [file.name for file in files] == ["sitemap.xml", "sitemap-1.xml", "sitemap-2.xml"]
    index = etree.fromstring(files[0].text.encode())
    assert index.xpath("//*[local-name()='loc']/text()")[0] == "http://x.org/sitemap-1.xml"
    assert [len(etree.fromstring(file.text.encode())) for file in files[1:]] == [3, 1]
    with pytest.raises(UsageError, match="-o"):
        "".join(MAP_FORMATS["sitemap"].write(small.map()))


XSLT = (
    '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/>'
    "{}</xsl:stylesheet>"
)


def test_a_stylesheet_makes_of_the_map_what_it_likes(small: Site) -> None:
    style = XSLT.format('<xsl:template match="/"><xsl:value-of select="count(//page)"/> pages</xsl:template>')
    document = "".join(MAP_FORMATS["xml"].write(small.map())).encode()
    assert run_xslt(document, style.encode()) == b"4 pages"


@pytest.mark.parametrize(
    "template",
    [
        '<xsl:template match="/"><xsl:value-of select="document(\'/etc/hostname\')"/></xsl:template>',
        '<xsl:template name="t" match="/"><xsl:call-template name="t"/></xsl:template>',
        '<xsl:include href="/etc/hostname"/>',
        "<not closed",
    ],
)
def test_stylesheets_that_reach_out_or_never_end_are_refused(template: str) -> None:
    with pytest.raises(UsageError, match="stylesheet"):
        run_xslt(b"<map/>", XSLT.format(template).encode(), XsltLimits(seconds=5))


def test_a_redirect_stands_for_where_it_leads(site: Site) -> None:
    site.answers("/", page("Home", "/old", "/chain"))
    site.answers("/old", status=301, to="/new")
    site.answers("/chain", status=302, to="/old")
    site.answers("/new", page("New"))
    assert site.tree() == ["Home  /", "  New  /new"]
    moment = site.map().moment
    assert [(row.source, row.type) for row in links_in(moment, "http://x.org/new")] == [
        ("http://x.org/old", "redirect")
    ]
    assert links_out(moment, "http://x.org/old")[0].target == "http://x.org/new"
    chains = [row for row in site_report(site.map()) if row.finding == "chain"]
    assert [len(row.urls) for row in chains] == [3]


def test_a_home_page_that_redirects_is_where_the_map_starts(site: Site) -> None:
    site.answers("/", status=302, to="/en/")
    site.answers("/en/", page("English"))
    assert site.tree() == ["English  /en/"]


def test_broken_links_say_since_when_and_when_it_was_good(site: Site) -> None:
    site.answers("/", page("Home", "/p", "/slow", "/via", "/loop", "/fine"))
    site.answers("/p", page("P"))
    for day, status in ((2, 200), (4, 500), (5, 404)):
        site.answers("/p", page("P") if status == 200 else b"", status, day=day)
    site.answers("/slow", status=0)
    site.answers("/via", status=301, to="/p")
    site.answers("/loop", status=302, to="/loop2")
    site.answers("/loop2", status=302, to="/loop")
    site.answers("/fine", status=503)
    site.answers("/fine", page("F"), day=1)
    rows = {row.target.removeprefix("http://x.org"): row for row in broken_links(site.map().moment, "x.org")}
    assert set(rows) == {"/p", "/slow", "/via", "/loop"}
    assert (rows["/p"].status, rows["/p"].since, rows["/p"].last_good) == (404, START + 4 * DAY, START + 2 * DAY)
    assert (rows["/slow"].status, rows["/slow"].last_good) == (0, None)
    assert (rows["/via"].status, rows["/via"].final) == (404, "http://x.org/p")
    assert rows["/p"].text == "to /p"
    assert rows["/loop"].status == 302


def test_what_robots_forbids_is_not_broken(site: Site) -> None:
    site.answers("/", page("Home", "/private"))
    response = Response("http://x.org/private", "http://x.org/private", 0, (), b"", START)
    site.archive.record([Observation(response, Outcome.REFUSED)])
    assert list(broken_links(site.map().moment, "x.org")) == []


def test_external_pages_are_ranked_only_when_asked_for(small: Site) -> None:
    small.answers("/c", page("C", "/", "http://other.org/"), day=1)
    moment = small.map().moment
    inside = [row.url for row in rank_rows(moment, rank_site(moment, "x.org"))]
    assert sorted(inside) == [f"http://x.org/{path}" for path in ("", "a", "b", "c")]
    outside = {row.url for row in rank_rows(moment, rank_site(moment, "x.org", external=True))} - set(inside)
    assert outside == {"http://other.org/"}


def test_a_warm_start_gives_the_same_ranks(small: Site) -> None:
    moment = small.map().moment
    first = rank_site(moment, "x.org")
    assert rank_site(moment, "x.org", start=first).ranks == pytest.approx(first.ranks, abs=1e-7)


def events(site: Site, first: float, second: float) -> set[tuple[str, str]]:
    graph = site.index.graph()
    old, new = (graph.as_of(to_millis(START + day * DAY), "x.org") for day in (first, second))
    return {(row.event, row.url.removeprefix("http://x.org")) for row in map_difference(old, new, "x.org")}


def test_the_difference_names_what_broke_and_what_was_mended(site: Site) -> None:
    site.answers("/", page("Home", "/p", "/q"))
    for path in ("/p", "/q", "/r"):
        site.answers(path, page("Same"))
    site.answers("/p", status=500, day=2)
    site.answers("/q", status=410, day=2)
    site.answers("/r", status=0, day=2)
    site.answers("/p", page("Same"), day=4)
    assert events(site, 0, 2) == {("broken", "/p"), ("vanished", "/q"), ("broken", "/r")}
    assert events(site, 2, 4) == {("mended", "/p")}
    assert events(site, 0, 1) == set()


def test_a_page_found_again_under_another_address_has_moved(site: Site) -> None:
    site.answers("/", page("Home", "/p"))
    site.answers("/p", page("P", "/only-here"))
    site.answers("/p", status=404, day=1)
    site.answers("/new", page("P", "/only-here"), day=1)
    assert events(site, 0, 2) == {("moved", "/p")}


def test_versions_judged_as_noise_are_no_change(site: Site) -> None:
    for day, body in enumerate((b"<title>T</title>one", b"<title>T</title>two")):
        site.answers("/", body, day=day)
    assert events(site, 0, 1) == {("changed", "/")}
    with site.archive.catalog.transaction() as cursor:
        cursor.run("UPDATE version SET meaningful = 0 WHERE number = 1")
    site.index = LinkIndex(site.archive)
    (site.archive.folder / "index" / "links" / "links.log").unlink()
    assert events(site, 0, 1) == set()


def test_the_report_finds_orphans_duplicates_and_depths(small: Site) -> None:
    small.answers("/alone", page("A", "/island"))
    small.answers("/island", page("Island", "/island"))
    small.answers("/twin", page("A", "/c", "/b"))
    rows = {(row.finding, row.detail): row.urls for row in site_report(small.map())}
    found = {finding for finding, _ in rows}
    assert {"orphan", "unreachable", "duplicate-title", "duplicate-content", "depth"} <= found
    assert rows["duplicate-content", "2 pages"] == ("http://x.org/a", "http://x.org/twin")
    assert ("depth", "1: 2 pages") in rows


def test_an_unknown_site_is_not_found(small: Site) -> None:
    with pytest.raises(NotFound, match="crawl"):
        small.map("unknown.org")


def run(capfd: pytest.CaptureFixture[str], site: Site, *words: str) -> tuple[int, str]:
    status = main(["--archive", str(site.archive.folder), *words])
    return status, capfd.readouterr().out


def test_verbs_print_rows_for_programs(small: Site, capfd: pytest.CaptureFixture[str]) -> None:
    _, shown = run(capfd, small, "links", "http://x.org/a", "--json")
    assert {"source", "target", "type", "text"} <= set(json.loads(shown.splitlines()[0]))
    _, shown = run(capfd, small, "links", "http://x.org/c", "--in", "--json")
    assert [json.loads(line)["source"] for line in shown.splitlines()] == ["http://x.org/a", "http://x.org/b"]
    _, shown = run(capfd, small, "broken", "x.org", "--json")
    row = json.loads(shown)
    assert (row["source"], row["target"], row["status"]) == ("http://x.org/b", "http://x.org/gone", 404)
    assert row["since"] == "2026-01-01T00:00:00Z"
    _, shown = run(capfd, small, "rank", "x.org", "--top", "1", "--json")
    assert json.loads(shown)["url"] == "http://x.org/c"
    _, shown = run(capfd, small, "map", "http://x.org/", "--json", "--at", "2026-01-02")
    assert json.loads(shown)["children"][0]["title"] == "A"
    _, shown = run(capfd, small, "map", "diff", "x.org", "2025-12-01", "2026-01-02", "--json")
    assert {json.loads(line)["event"] for line in shown.splitlines()} == {"appeared"}


def test_verbs_explain_what_is_wrong(small: Site, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, small, "map", "nowhere.org")[0] == 3
    assert run(capfd, small, "links", "http://nowhere.org/")[0] == 3
    assert run(capfd, small, "map", "diff", "x.org")[0] == 2
    assert run(capfd, small, "map", "x.org", "--at", "2020-01-01")[0] == 3


def test_map_writes_files_and_uses_stylesheets(small: Site, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, small, "map", "x.org", "--format", "sitemap", "-o", str(tmp_path / "s.xml"))[0] == 0
    assert len(etree.parse(str(tmp_path / "s.xml")).getroot()) == 4
    (tmp_path / "mine.xsl").write_text(XSLT.format('<xsl:template match="/">hello</xsl:template>'))
    assert run(capfd, small, "map", "x.org", "--xslt", str(tmp_path / "mine.xsl")) == (0, "hello")


def test_a_sketch_has_the_pages_of_highest_rank_and_the_links_between_them(tmp_path: Path) -> None:
    site = Site(tmp_path / "a")
    home, hub, leaf, lone = (f"http://a.example/{name}" for name in ("", "hub", "leaf", "lone"))
    site.archive.put(home, page("Home", "/hub", "/hub", "/", "http://b.example/"), START)
    site.archive.put(hub, page("Hub", "/", "/leaf"), START)
    site.archive.put(leaf, page("Leaf", "/hub"), START)
    site.archive.put(lone, page("Lone", "/hub"), START)
    moment = site.index.graph().as_of(NOW)
    found = site_diagram(moment, "a.example", 3)
    assert found.urls == [row.url for row in rank_rows(moment, rank_site(moment, "a.example"), 3)]
    assert found.total == 4
    named = [(found.urls[source], found.urls[target]) for source, target in found.links]
    assert sorted(named) == sorted([(home, hub), (hub, home), (hub, leaf), (leaf, hub)])
    assert site_diagram(moment, "nowhere.example", 3) == ([], [], [], 0)
    site.archive.close()
