"""Memento: TimeGate, mementos, TimeMaps, and the cage around replayed pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served_archive import HTML, PAGE, at, look, running

from letopis.archive import Archive
from letopis.model import Outcome
from letopis.model.times import timestamp
from letopis.replay import memento
from letopis.replay.addresses import earliest_millis, http_date, latest_millis, parse_http_date

STAMPS = ["20240101120000", "20240101121000", "20240101122000", "20240101123000", "20240101124000"]


def links(value: str) -> dict[str, list[tuple[str, str]]]:
    """Targets and datetimes of a Link header or TimeMap by each word of their relation."""
    found: dict[str, list[tuple[str, str]]] = {}
    for target, rest in re.findall(r"<([^>]*)>((?:\s*;\s*[\w-]+=\"[^\"]*\")*)", value):
        fields = dict(re.findall(r"([\w-]+)=\"([^\"]*)\"", rest))
        for word in fields["rel"].split():
            found.setdefault(word, []).append((target, fields.get("datetime", "")))
    return found


def test_the_timegate_redirects_to_the_newest_capture(web: Any) -> None:
    answer = web.get(f"/web/{PAGE}")
    assert answer.status == 302
    assert answer.headers["location"] == f"{web.address}/web/{STAMPS[-1]}/{PAGE}"
    assert answer.headers["vary"] == "accept-datetime"
    assert "memento-datetime" not in answer.headers
    named = links(answer.headers["link"])
    assert named["original"][0][0] == PAGE
    assert named["timegate"][0][0] == f"{web.address}/web/{PAGE}"
    assert named["timemap"][0][0] == f"{web.address}/web/timemap/link/{PAGE}"
    assert (f"{web.address}/web/{STAMPS[-1]}/{PAGE}", "Mon, 01 Jan 2024 12:40:00 GMT") in named["memento"]


@pytest.mark.parametrize(
    ("date", "wanted"),
    [
        ("Mon, 01 Jan 2024 12:21:00 GMT", STAMPS[2]),
        ("Mon, 01 Jan 2024 12:26:00 GMT", STAMPS[3]),
        ("Thu, 01 Jan 1970 00:00:00 GMT", STAMPS[0]),
        ("Fri, 01 Jan 2100 00:00:00 GMT", STAMPS[-1]),
    ],
)
def test_the_timegate_picks_the_closest_capture(web: Any, date: str, wanted: str) -> None:
    answer = web.get(f"/web/{PAGE}", Accept_Datetime=date)
    assert answer.headers["location"] == f"{web.address}/web/{wanted}/{PAGE}"


@pytest.mark.parametrize("date", ["yesterday", "", "2024-01-01", "Mon, 31 Feb 2024 12:21:00 GMT", "1704110400"])
def test_a_bad_accept_datetime_is_400(web: Any, date: str) -> None:
    assert web.get(f"/web/{PAGE}", Accept_Datetime=date).status == 400


@pytest.mark.parametrize(
    "form", ["", "20240101/", "20240101120000id_/", "timemap/link/", "timemap/json/", "timemap/cdxj/", "*/"]
)
def test_an_unknown_page_is_404_without_memento_headers(web: Any, form: str) -> None:
    answer = web.get(f"/web/{form}http://unknown.example/")
    assert answer.status == 404
    assert not {"vary", "link", "memento-datetime"} & answer.headers.keys()


def test_a_memento_names_its_neighbours(web: Any) -> None:
    answer = web.get(f"/web/{STAMPS[1]}id_/{PAGE}")
    assert answer.status == 200
    assert answer.headers["memento-datetime"] == "Mon, 01 Jan 2024 12:10:00 GMT"
    assert "accept-datetime" not in answer.headers.get("vary", "")
    found = links(answer.headers["link"])
    named = {word: [target.split("/")[4] for target, when in targets if when] for word, targets in found.items()}
    assert (named["first"], named["prev"]) == ([STAMPS[0]], [STAMPS[0]])
    assert (named["next"], named["last"]) == ([STAMPS[2]], [STAMPS[-1]])
    assert named["memento"] == [STAMPS[0], STAMPS[1], STAMPS[2], STAMPS[-1]]


def test_raw_mementos_are_the_stored_bytes(web: Any) -> None:
    assert web.get(f"/web/{STAMPS[0]}id_/{PAGE}").body == HTML % 1
    assert web.get(f"/web/{STAMPS[2]}id_/{PAGE}").body == HTML % 1
    assert web.get(f"/web/{STAMPS[3]}id_/{PAGE}").body == HTML % 2


@pytest.mark.parametrize(
    ("given_stamp", "wanted"), [("2024", 4), ("20240101", 4), ("202401011209", 1), ("1999", 0), ("9", 4)]
)
def test_an_inexact_timestamp_redirects_to_the_exact_one(web: Any, given_stamp: str, wanted: int) -> None:
    answer = web.get(f"/web/{given_stamp}id_/{PAGE}")
    assert (answer.status, answer.headers["location"]) == (302, f"{web.address}/web/{STAMPS[wanted]}id_/{PAGE}")
    assert "memento-datetime" not in answer.headers


def test_archived_errors_and_redirects_are_mementos_too(web: Any) -> None:
    error = web.get(f"/web/{STAMPS[4]}/{PAGE}")
    assert (error.status, error.headers["memento-datetime"]) == (404, "Mon, 01 Jan 2024 12:40:00 GMT")
    assert b"gone" in error.body
    moved = web.get("/web/20240101123100/http://example.org/moved")
    assert moved.status == 301
    assert moved.headers["location"] == f"{web.address}/web/20240101123100/{PAGE}"
    assert moved.headers["memento-datetime"] == "Mon, 01 Jan 2024 12:31:00 GMT"
    jump = web.get("/web/20240101123200id_/http://example.org/jump")
    assert (jump.status, jump.headers["location"]) == (302, f"{web.address}/web/20240101123200id_/{PAGE}")


def test_a_redirect_to_a_page_we_never_captured_shows_what_it_led_to(web: Any) -> None:
    answer = web.get("/web/20240101123300id_/http://example.org/lost")
    assert (answer.status, answer.body) == (200, b"landed")


def test_the_browsing_view_leads_links_to_the_same_date(web: Any) -> None:
    text = web.get(f"/web/{STAMPS[0]}/{PAGE}").text
    prefix = f"/web/{STAMPS[0]}/"
    assert f'href="{prefix}http://example.org/style.css"' in text
    assert f'href="{prefix}http://example.org/other?a=1&amp;b=2#top"' in text
    assert f'href="{prefix}https://elsewhere.example/"' in text
    assert f'srcset="{prefix}http://example.org/a.png 1x, {prefix}http://example.org/b.png 2x"' in text
    assert 'var a = "src=/x";' in text
    sheet = web.get("/web/20240101120100/http://example.org/style.css")
    assert f"url({'/web/20240101120100/'}http://example.org/bg.png)" in sheet.text


@pytest.mark.parametrize("form", ["", "id_", "if_"])
def test_every_archived_byte_is_caged(web: Any, form: str) -> None:
    answer = web.get(f"/web/{STAMPS[0]}{form}/{PAGE}")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox")
    assert "allow-same-origin" not in policy
    assert "allow-scripts" not in policy
    assert "script-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in answer.headers


def test_stored_headers_come_under_harmless_names(make_archive: Callable[..., Archive]) -> None:
    archive = make_archive()
    fields = (
        ("Content-Type", "text/html"),
        ("Set-Cookie", "session=stolen"),
        ("Clear-Site-Data", '"*"'),
        ("Refresh", "0;url=/"),
    )
    archive.record([look(PAGE, at(0), b"x", headers=fields)])
    with running(archive) as web:
        answer = web.get(f"/web/{STAMPS[0]}id_/{PAGE}")
    assert answer.headers["x-archive-orig-set-cookie"] == "session=stolen"
    assert not {"set-cookie", "clear-site-data", "refresh"} & answer.headers.keys()


def test_browsers_get_a_frame_with_the_page_in_a_sandbox(web: Any) -> None:
    answer = web.get(f"/web/{STAMPS[1]}/{PAGE}", Sec_Fetch_Dest="document")
    assert "<iframe sandbox=" in answer.text
    assert "allow-same-origin" not in answer.text
    assert f"/web/{STAMPS[1]}if_/{PAGE}" in answer.text
    assert b"version" not in answer.body
    assert "<iframe" not in web.get(f"/web/{STAMPS[1]}/{PAGE}", Sec_Fetch_Dest="iframe").text


def test_timemaps_list_every_capture(web: Any) -> None:
    answer = web.get(f"/web/timemap/link/{PAGE}")
    assert answer.headers["content-type"] == "application/link-format"
    named = links(answer.text)
    assert [target for target, _ in named["memento"]] == [f"{web.address}/web/{one}/{PAGE}" for one in STAMPS]
    assert named["first"][0][0].split("/")[4] == STAMPS[0]
    assert named["last"][0][0].split("/")[4] == STAMPS[-1]
    assert {"original", "self", "timegate"} <= named.keys()
    document = web.get(f"/web/timemap/json/{PAGE}").json()
    assert document["original_uri"] == PAGE
    assert [one["uri"].split("/")[4] for one in document["mementos"]["list"]] == STAMPS
    lines = web.get(f"/web/timemap/cdxj/{PAGE}").text.splitlines()
    assert [line.split(" ")[1] for line in lines] == STAMPS
    assert json.loads(lines[0].split(" ", 2)[2])["status"] == "200"


def test_timemaps_of_very_many_captures_come_in_pages(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memento, "TIMEMAP_PAGE", 2)
    address, seen, pages = f"/web/timemap/link/{PAGE}", [], 0
    while address:
        named = links(web.get(address).text)
        seen += [target.split("/")[4] for target, _ in named["memento"]]
        address = named.get("next", [("", "")])[0][0]
        pages += 1
    assert (seen, pages) == (STAMPS, 3)


def test_a_single_capture_is_first_and_last(web: Any) -> None:
    named = links(web.get("/web/timemap/link/http://sub.example.org/a").text)
    assert len(named["memento"]) == len(named["first"]) == len(named["last"]) == 1


@pytest.mark.parametrize("page", [PAGE, "http://sub.example.org/a"])
def test_words_of_a_relation_stand_one_blank_apart(web: Any, page: str) -> None:
    """Some clients look for `first memento` as it is, instead of its words."""
    paths = [f"/web/{page}", f"/web/timemap/link/{page}", *(f"/web/{one}/{page}" for one in STAMPS)]
    answers = [web.get(path) for path in paths]
    told = [answer.headers.get("link", "") for answer in answers] + [answers[1].text]
    relations = [relation for text in told for relation in re.findall(r'rel="([^"]*)"', text)]
    assert {relation for relation in relations if relation != " ".join(relation.split())} == set()
    assert {"first memento", "first last memento"} & set(relations)


def test_of_two_captures_in_one_second_the_later_counts(make_archive: Callable[..., Archive]) -> None:
    from datetime import timedelta

    archive = make_archive()
    archive.put(PAGE, b"first", at(0))
    archive.put(PAGE, b"second", at(0) + timedelta(milliseconds=300))
    with running(archive) as web:
        target = web.get(f"/web/{PAGE}").headers["location"]
        assert web.get(target.replace(STAMPS[0], STAMPS[0] + "id_")).body == b"second"
        assert len(links(web.get(f"/web/timemap/link/{PAGE}").text)["memento"]) == 1


@pytest.mark.parametrize("spelling", ["http:/example.org/page", "example.org/page", "https://www.example.org/page"])
def test_other_spellings_of_the_address_lead_to_the_same_captures(web: Any, spelling: str) -> None:
    assert web.get(f"/web/{spelling}").headers["location"] == f"{web.address}/web/{STAMPS[-1]}/{PAGE}"


def test_a_query_belongs_to_the_archived_address(web: Any) -> None:
    answer = web.get("/web/20240101120600id_/http://www.example.org/page?x=1")
    assert (answer.status, answer.body) == (200, b"query")


def test_head_requests_are_answered_without_a_body(web: Any) -> None:
    answer = web.ask("HEAD", f"/web/{STAMPS[0]}/{PAGE}")
    assert (answer.status, answer.body) == (200, b"")
    assert "memento-datetime" in answer.headers


def test_the_calendar_and_the_difference_are_pages(web: Any) -> None:
    calendar = web.get(f"/web/*/{PAGE}")
    assert all(f"/web/{one}/{PAGE}" in calendar.text for one in STAMPS)
    day = web.get(f"/web/{STAMPS[0][:8]}*/{PAGE}").text
    shown = {one for one in STAMPS if f"/web/{one}/{PAGE}" in day}
    assert shown == {one for one in STAMPS if one[:8] == STAMPS[0][:8]}
    minutes = web.get(f"/web/{STAMPS[1][:12]}*/{PAGE}").text
    assert [f"/web/{one[:12]}*/{PAGE}" in minutes for one in STAMPS[:3]] == [True, True, True], "to those beside it"
    difference = web.get(f"/web/diff/{STAMPS[0]}/{STAMPS[3]}/{PAGE}")
    assert difference.status == 200
    assert "version" in difference.text
    assert difference.headers["content-security-policy"].startswith("sandbox")


@pytest.mark.parametrize("digits", ["20240101000000", "20230601000000"])
def test_a_calendar_of_a_time_without_captures_is_that_of_the_time_around_it(web: Any, digits: str) -> None:
    around = web.get(f"/web/{digits}*/{PAGE}")
    assert around.status == 200
    assert all(f"/web/{one}/{PAGE}" in around.text for one in STAMPS)


@pytest.mark.parametrize(
    "path", ["/web/", "/web/ftp://example.org/", "/web/2024/", "/web/http%3A%2F%2Fexample.org%2F", "/web/2024/%00"]
)
def test_nonsense_addresses_are_refused_politely(web: Any, path: str) -> None:
    assert web.get(path).status in (400, 404)


@settings(max_examples=200, deadline=None)
@given(st.integers(min_value=-30_000_000_000_000, max_value=250_000_000_000_000))
def test_stamps_go_both_ways(millis: int) -> None:
    assert earliest_millis(timestamp(millis)) == millis // 1000 * 1000 == parse_http_date(http_date(millis))


@given(st.text("0123456789", min_size=1, max_size=14))
def test_every_timestamp_has_an_earliest_and_a_latest_moment(digits: str) -> None:
    assert earliest_millis(digits) <= latest_millis(digits)


def test_links_of_pages_in_other_charsets_lead_where_a_browser_would_go(make_archive: Callable[..., Archive]) -> None:
    archive = make_archive()
    page = '<meta charset=windows-1251><p>Все люди рождаются свободными</p><a href="/мир?q=мир">мир</a>'
    body = page.encode("cp1251")
    archive.record([look(PAGE, at(0), body, headers=(("Content-Type", "text/html"),))])
    with running(archive) as web:
        shown = web.get(f"/web/{STAMPS[0]}/{PAGE}").body
    led = b'"/web/20240101120000/http://example.org/%D0%BC%D0%B8%D1%80?q=%EC%E8%F0"'
    assert shown == body.replace('"/мир?q=мир"'.encode("cp1251"), led)


@pytest.mark.parametrize("status", [999, 600])
def test_a_status_that_is_none_of_http_is_shown_as_an_error_of_the_server(make_archive: Any, status: int) -> None:
    archive = make_archive()
    archive.record([look("http://odd.example/", at(0), b"go away", status, outcome=Outcome.UNAVAILABLE)])
    with running(archive) as web:
        for form in ("", "id_", "if_"):
            answer = web.get(f"/web/20240101120000{form}/http://odd.example/")
            assert (answer.status, answer.body) == (502, b"go away")
            assert answer.headers["x-archive-orig-status"] == str(status)
        assert web.get("/web/timemap/link/http://odd.example/").status == 200
        assert web.get("/cdx/search/cdx?url=http://odd.example/").status == 200
