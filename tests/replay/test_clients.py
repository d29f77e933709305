"""Clients that other people wrote, doing their job against a real server."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from served_archive import HTML, PAGE, at, running


def test_memento_client_negotiates_a_date(make_archive: Any, scripted_site: Any) -> None:
    memento_client = pytest.importorskip("memento_client")
    # It asks the page itself first, so there has to be one.
    url = scripted_site.set("/page", b"now")
    archive = make_archive()
    for minute in (0, 10, 40):
        archive.put(url, b"version of minute %d" % minute, at(minute))
    with running(archive) as web:
        client = memento_client.MementoClient(timegate_uri=f"{web.address}/web/", check_native_timegate=False)
        found = client.get_memento_info(url, datetime(2024, 1, 1, 12, 12))
        client.session.close()
        closest = found["mementos"]["closest"]
        assert closest["uri"] == [f"{web.address}/web/20240101121000/{url}"]
    assert closest["http_status_code"] == 200
    assert found["mementos"]["first"]["datetime"] == datetime(2024, 1, 1, 12, 0)
    assert found["mementos"]["last"]["datetime"] == datetime(2024, 1, 1, 12, 40)


def test_wayback_searches_and_fetches(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wayback = pytest.importorskip("wayback")
    from wayback import _client, _utils

    # The package knows one archive; it is led to ours by the constants in which it names it.
    monkeypatch.setattr(_client, "CDX_SEARCH_URL", f"{web.address}/cdx/search/cdx")
    monkeypatch.setattr(_utils, "MEMENTO_URL_PATTERN", re.compile(re.escape(web.address) + r"/web/(\d+)(\w\w_)?/(.+)"))
    monkeypatch.setattr(_utils, "MEMENTO_URL_TEMPLATE", web.address + "/web/{timestamp}{mode}/{url}")
    session = wayback.WaybackSession(search_calls_per_second=0, memento_calls_per_second=0)
    with wayback.WaybackClient(session) as client:
        rows = list(client.search(PAGE, limit=2))
        memento = client.get_memento(rows[0])
    assert [row.timestamp.minute for row in rows] == [0, 10, 20, 30, 40]
    assert (rows[0].statuscode, rows[0].mimetype, rows[4].statuscode) == (200, "text/html", 404)
    assert memento.content == HTML % 1
    assert memento.timestamp == datetime(2024, 1, 1, 12, 0, tzinfo=UTC)
    assert memento.headers["Content-Type"] == "text/html; charset=utf-8"


def test_cdx_toolkit_walks_through_the_index(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cdx_toolkit = pytest.importorskip("cdx_toolkit")
    from cdx_toolkit import myrequests

    monkeypatch.setitem(myrequests.retry_info["default"], "minimum_interval", 0)
    for source in (f"{web.address}/cdx/search/cdx", f"{web.address}/web/cdx"):
        cdx = cdx_toolkit.CDXFetcher(source=source)
        found = list(cdx.iter("example.org/*", limit=50))
        assert len(found) == 10
        assert {one["timestamp"] for one in cdx.get("example.org/page", limit=3)} == {
            "20240101120000",
            "20240101121000",
            "20240101122000",
        }


def test_feedparser_has_no_complaint(web: Any) -> None:
    feedparser = pytest.importorskip("feedparser")
    for form in ("", "rss/"):
        parsed = feedparser.parse(web.get(f"/feed/{form}{PAGE}").body)
        assert parsed.bozo == 0
        assert len(parsed.entries) == 2


def test_raw_bytes_survive_the_way_to_a_client(web: Any) -> None:
    requests = pytest.importorskip("requests")
    answer = requests.get(f"{web.address}/web/2023id_/{PAGE}", timeout=300)
    assert answer.content == HTML % 1
    assert answer.history[0].status_code == 302
