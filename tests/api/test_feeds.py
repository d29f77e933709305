"""Feeds, metrics and the description of the interface."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from served_archive import PAGE, at, fill, look, running

from letopis.api.app import create_app
from letopis.archive.accounts import projects_of
from letopis.errors import NotReady
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList

ATOM = "{http://www.w3.org/2005/Atom}"


def test_a_page_has_an_atom_feed_with_the_difference_inside(web: Any) -> None:
    answer = web.get(f"/feed/{PAGE}")
    assert answer.headers["content-type"].startswith("application/atom+xml")
    root = ElementTree.fromstring(answer.body)
    entries = root.findall(f"{ATOM}entry")
    assert len(entries) == 2
    shown = entries[0].findtext(f"{ATOM}content") or ""
    assert "-version 1" in shown
    assert "+version 2" in shown
    link = entries[0].find(f"{ATOM}link")
    assert link is not None
    assert link.get("href") == f"{web.address}/web/20240101123000/{PAGE}"


def test_the_same_as_rss(web: Any) -> None:
    answer = web.get(f"/feed/rss/{PAGE}")
    assert answer.headers["content-type"].startswith("application/rss+xml")
    channel = ElementTree.fromstring(answer.body).find("channel")
    assert channel is not None
    assert [item.findtext("pubDate") for item in channel.findall("item")] == [
        "Mon, 01 Jan 2024 12:30:00 GMT",
        "Mon, 01 Jan 2024 12:00:00 GMT",
    ]


def test_the_same_as_json_feed_with_absolute_links(web: Any) -> None:
    answer = web.get(f"/feed/json/{PAGE}")
    assert answer.headers["content-type"].startswith("application/feed+json")
    found = answer.json()
    assert (found["version"], found["home_page_url"]) == ("https://jsonfeed.org/version/1.1", PAGE)
    assert found["feed_url"] == f"{web.address}/feed/json/{PAGE}"
    assert [(item["url"], item["date_published"]) for item in found["items"]] == [
        (f"{web.address}/web/20240101123000/{PAGE}", "2024-01-01T12:30:00Z"),
        (f"{web.address}/web/20240101120000/{PAGE}", "2024-01-01T12:00:00Z"),
    ]
    assert len({item["id"] for item in found["items"]}) == 2


def test_every_link_of_every_feed_is_absolute(make_archive: Any) -> None:
    archive = make_archive()
    fill(archive)
    projects_of(archive).add("news", "", [PAGE], 0)
    with running(archive) as web:
        for subject in (PAGE, "site/example.org", "project/news", "search?q=version"):
            feed = web.get(f"/feed/json/{subject}").json()
            links = [feed["home_page_url"], feed["feed_url"], *(item["url"] for item in feed["items"])]
            links += re.findall(r'href="([^"]*)"', "".join(item["content_html"] for item in feed["items"]))
            assert [link for link in links if not link.startswith(("http://", "https://"))] == []
            for form in ("", "rss/"):
                text = web.get(f"/feed/{form}{subject}").text
                named = re.findall(r'href="([^"]*)"|<link>([^<]*)<', text)
                assert [one for pair in named for one in pair if one and not one.startswith("http")] == []


def test_sites_and_projects_have_feeds(make_archive: Any) -> None:
    archive = make_archive()
    fill(archive)
    projects_of(archive).add("news", "", [PAGE, "http://sub.example.org/a"], 0)
    with running(archive) as web:
        site = ElementTree.fromstring(web.get("/feed/site/example.org").body)
        project = ElementTree.fromstring(web.get("/feed/rss/project/news").body)
        found = ElementTree.fromstring(web.get("/feed/search?q=version").body)
        assert web.get("/feed/search").status == 400
        assert web.get("/feed/site/unknown.example").status == 404
        assert web.get("/feed/project/unknown").status == 404
        assert web.get("/feed/http://unknown.example/").status == 404
    assert PAGE in [(entry.findtext(f"{ATOM}content") or "").split('"')[1] for entry in found.findall(f"{ATOM}entry")]
    assert len(site.findall(f"{ATOM}entry")) == 5
    assert len(project.findall("channel/item")) == 3
    assert project.findtext("channel/link") == f"{web.address}/projects/news"


def test_the_site_of_a_feed_may_be_written_as_an_address(make_archive: Any) -> None:
    archive = make_archive()
    fill(archive)
    archive.record([look("http://gone.example/", at(9), b"", 404)])
    with running(archive) as web:
        plain, whole = (web.get(f"/feed/site/{name}") for name in ("example.org", "HTTP://Example.ORG/page"))
        assert [len(ElementTree.fromstring(one.body).findall(f"{ATOM}entry")) for one in (plain, whole)] == [5, 5]
        # Known, but it never was there: a feed without entries.
        assert ElementTree.fromstring(web.get("/feed/site/gone.example").body).findall(f"{ATOM}entry") == []


def test_a_page_that_was_only_planned_has_no_feed(make_archive: Any) -> None:
    archive = make_archive()
    fill(archive)
    with archive.catalog.transaction() as cursor:
        archive.catalog.resources.ensure(cursor, "http://example.org/planned")
    with running(archive) as web:
        assert web.get("/feed/http://example.org/planned").status == 404


def test_a_reader_that_has_the_feed_gets_304(web: Any) -> None:
    etag = web.get(f"/feed/{PAGE}").headers["etag"]
    assert web.get(f"/feed/{PAGE}", If_None_Match=etag).status == 304


def test_feeds_leave_out_what_nobody_would_call_a_change(make_archive: Any) -> None:
    archive = make_archive()
    fill(archive)
    with archive.catalog.transaction() as cursor:
        cursor.run("UPDATE version SET meaningful = 0 WHERE number = 1")
    with running(archive) as web:
        assert len(ElementTree.fromstring(web.get(f"/feed/{PAGE}").body).findall(f"{ATOM}entry")) == 1


def test_odd_characters_in_pages_do_not_break_feeds(make_archive: Any) -> None:
    archive = make_archive()
    archive.put(PAGE, "<p>a\x00\x08 ]]> & <![CDATA[ ž \ufffe</p>".encode(), at(0))
    archive.put(PAGE, b"<p>b\x00\x0b ]]> &amp; <script>alert(1)</script></p>", at(1))
    with running(archive) as web:
        feeds = [ElementTree.fromstring(web.get(f"/feed/{form}{PAGE}").body) for form in ("", "rss/")]
    assert len(feeds[0].findall(f"{ATOM}entry")) == len(feeds[1].findall("channel/item")) == 2


def test_odd_characters_in_a_question_do_not_break_its_feed(web: Any) -> None:
    feeds = [ElementTree.fromstring(web.get(f"/feed/{form}search?q=version%01").body) for form in ("", "rss/")]
    assert [feed.tag for feed in feeds] == [f"{ATOM}feed", "rss"]


def test_metrics_count_requests(web: Any) -> None:
    web.get(f"/web/{PAGE}")
    text = web.get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {name: family.type for name, family in families.items()} == {
        "letopis_requests": "counter", "letopis_request_seconds": "histogram", "letopis_archive": "gauge",
    }  # fmt: skip
    answered = {(one.labels["family"], one.labels["status"]): one.value for one in families["letopis_requests"].samples}
    assert answered["web", "302"] >= 1.0
    counts = [one.value for one in families["letopis_request_seconds"].samples if one.labels.get("family") == "web"]
    assert counts[:8] == sorted(counts[:8])
    assert counts[7] == counts[8] == answered["web", "302"]
    totals = dict(re.findall(r'letopis_archive\{what="(\w+)"\} ([\d.e+]+)', text))
    stats = web.get("/api/v1/stats").json()
    assert {name: float(totals[name]) for name in ("documents", "versions", "checks", "contents", "links")} == {
        name: float(stats[name]) for name in ("documents", "versions", "checks", "contents", "links")
    }


def test_the_interface_describes_itself_without_help_from_elsewhere(web: Any) -> None:
    document = web.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert {"/api/v1/check", "/cdx/search/cdx", "/web/{timestamp}/{url}"} <= document["paths"].keys()
    page = web.get("/docs").text
    assert "/api/v1/check" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/nothing"])
def test_unknown_paths_are_problems(web: Any, path: str) -> None:
    answer = web.get(path)
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")


def test_watches_of_a_tag_have_a_feed(make_archive: Any) -> None:
    archive = make_archive()
    fill(archive)
    WatchList(archive).add([PAGE], WatchSpec(), "press room")
    with running(archive) as web:
        found = ElementTree.fromstring(web.get("/feed/tag/press%20room").body)
        assert web.get("/feed/tag/unknown").status == 404
    assert len(found.findall(f"{ATOM}entry")) == 2


def test_every_request_leaves_a_line_that_cannot_be_forged(make_archive: Any, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with running(make_archive(access_log=str(log))) as web:
        web.get("/healthz", User_Agent='evil" 200 0 "x')
        web.get("/login?setup=secret&next=/")
    first, second = log.read_text().splitlines()
    assert first.startswith("127.0.0.1 - - [01/Jan/2024:13:40:00 +0000] ")
    assert r'"GET /healthz HTTP/1.1" 200 ' in first
    assert first.endswith(r'"-" "evil\x22 200 0 \x22x"')
    assert "secret" not in second
    assert '"GET /login?setup=...&next=/ HTTP/1.1" 200 ' in second


def test_an_access_log_that_cannot_be_written_is_told_at_once(make_archive: Any, tmp_path: Path) -> None:
    archive = make_archive(access_log=str(tmp_path / "no" / "log"))
    with pytest.raises(NotReady, match="access_log"):
        create_app(archive)
