"""Redirects and refreshing pages on replay lead to what readers saw."""

from __future__ import annotations

from typing import Any

import pytest
from served_archive import at, look, running

from letopis.archive import Archive
from letopis.model import Hop, Outcome

MOVED = (("Location", "http://www.example.org/"), ("Content-Type", "text/html"))


def moved(url: str, minutes: float, headers: Any = MOVED) -> Any:
    return look(url, at(minutes), b"moved", 301, headers=headers, outcome=Outcome.UNCHANGED)


def test_a_redirect_to_its_own_key_leads_to_the_nearest_capture_that_answers(make_archive: Any) -> None:
    archive = make_archive()
    archive.record([look("http://www.example.org/", at(1), b"one")])
    archive.record([moved("http://example.org/", 8), look("http://www.example.org/", at(10), b"two")])
    with running(archive) as web:
        answer = web.get("/web/20240101120800/http://example.org/")
        assert (answer.status, answer.headers["location"]) == (
            301,
            f"{web.address}/web/20240101121000/http://www.example.org/",
        )


def test_a_redirect_to_itself_with_nothing_behind_it_is_shown_and_leads_nowhere(make_archive: Any) -> None:
    archive = make_archive()
    archive.record([moved("http://example.org/", 0)])
    with running(archive) as web:
        answer = web.get("/web/20240101120000/http://example.org/")
        assert (answer.status, answer.body, answer.headers.get("location")) == (301, b"moved", None)
        assert answer.headers["x-archive-orig-location"] == "http://www.example.org/"


def test_a_redirect_leads_to_the_capture_that_followed_it(make_archive: Any) -> None:
    archive: Archive = make_archive()
    url = "http://example.org/page"
    archive.record([moved(url, 0, (("Location", "/login"), ("Content-Type", "text/html")))])
    archive.record([moved("http://example.org/login", 0.02, (("Location", "/page"), ("Content-Type", "text/html")))])
    archive.record([look(url, at(0.05), b"page")])
    with running(archive) as web:
        assert (
            web.get(f"/web/20240101120000/{url}")
            .headers["location"]
            .endswith("/20240101120001/http://example.org/login")
        )
        on = web.get("/web/20240101120001/http://example.org/login").headers["location"]
        assert web.get(on).body == b"page"


def test_a_check_that_was_redirected_within_its_key_holds_the_page_itself(make_archive: Any) -> None:
    archive = make_archive()
    hop = Hop("http://example.org/", 301, "https://www.example.org/", "127.0.0.1", (("Location", "x"),))
    archive.record([look("http://example.org/", at(0), b"page", hops=(hop,), final_url="https://www.example.org/")])
    with running(archive) as web:
        answer = web.get("/web/20240101120000id_/http://example.org/")
        assert (answer.status, answer.body) == (200, b"page")
        assert web.get("/cdx/search/cdx?url=example.org&fl=statuscode,length").text == "200 4\n"


@pytest.mark.parametrize("path", ["http%3A//example.org/a%3Fb%3D1%2520c", "http%3A%2F%2Fexample.org%2Fa%3Fb%3D1%2520c"])
@pytest.mark.parametrize("form", ["20240101120000/", "2024id_/", "", "timemap/link/", "*/"])
def test_escaped_addresses_are_the_addresses_they_were_made_of(make_archive: Any, path: str, form: str) -> None:
    archive = make_archive()
    archive.record([look("http://example.org/a?b=1%20c", at(0), b"page")])
    with running(archive) as web:
        assert web.get(f"/web/{form}{path}").status in (200, 302)
        assert web.get(f"/web/20240101120000id_/{path}").body == b"page"
        assert web.get(f"/feed/{path}").status == 200


@pytest.mark.parametrize("stamp", ["2024", "20240101120000", ""])
def test_redirects_let_pages_without_an_origin_follow_them(make_archive: Any, stamp: str) -> None:
    archive = make_archive()
    url = "http://example.org/font.woff2"
    archive.record([moved(url, 0, (("Location", "/new.woff2"),))])
    with running(archive) as web:
        answer = web.get(f"/web/{stamp + '/' if stamp else ''}{url}", Origin="null", Sec_Fetch_Dest="font")
    assert answer.status in (301, 302)
    assert answer.headers["access-control-allow-origin"] == "*"


REFRESH = (
    b'<!-- <meta http-equiv=refresh content="0;url=/no"> --><META HTTP-EQUIV="Refresh" CONTENT="%d; URL=\'/next\'">'
)


def test_a_refresh_is_done_by_the_frame_since_the_sandbox_forbids_it(make_archive: Any) -> None:
    archive = make_archive()
    archive.record([look("http://example.org/", at(0), REFRESH % 5), look("http://example.org/next", at(1), b"next")])
    with running(archive) as web:
        on = f"{web.address}/web/20240101120100/http://example.org/next"
        framed = web.get("/web/20240101120000/http://example.org/", Sec_Fetch_Dest="document")
        assert framed.headers["refresh"] == f"5; url={on}"
        assert web.get("/web/20240101120000if_/http://example.org/", Sec_Fetch_Dest="iframe").status == 200
        assert "refresh" not in web.get("/web/20240101120000/http://example.org/").headers


def test_a_page_in_a_frame_that_refreshes_at_once_is_passed_over(make_archive: Any) -> None:
    archive = make_archive()
    archive.record([look("http://example.org/", at(0), REFRESH % 0), look("http://example.org/next", at(1), b"next")])
    with running(archive) as web:
        answer = web.get("/web/20240101120000if_/http://example.org/", Sec_Fetch_Dest="iframe")
        assert (answer.status, answer.headers["location"]) == (
            302,
            f"{web.address}/web/20240101120100if_/http://example.org/next",
        )
        assert web.get("/web/20240101120000id_/http://example.org/").body == REFRESH % 0


@pytest.mark.parametrize("target", ["/", "/never-captured", "http://"])
def test_a_refresh_that_leads_nowhere_else_is_left_out(make_archive: Any, target: str) -> None:
    archive = make_archive()
    page = f'<meta http-equiv="refresh" content="0; url={target}">'.encode()
    archive.record([look("http://example.org/", at(0), page)])
    with running(archive) as web:
        answer = web.get("/web/20240101120000if_/http://example.org/", Sec_Fetch_Dest="iframe")
        assert (answer.status, answer.headers.get("refresh")) == (200, None)


def test_the_bar_tells_how_far_a_capture_is_from_the_time_in_its_address(make_archive: Any) -> None:
    archive = make_archive()
    page = b"<title>Page</title><p>Text of it</p>"
    archive.record([look("http://example.org/", at(0), page)])
    with running(archive) as web:
        near = web.get("/web/20240101110000/http://example.org/", Sec_Fetch_Dest="document")
        assert (near.status, near.headers["memento-datetime"]) == (200, "Mon, 01 Jan 2024 12:00:00 GMT")
        assert "1 h later than asked for" in near.text
        exact = web.get("/web/20240101120000/http://example.org/", Sec_Fetch_Dest="document").text
        assert "asked for" not in exact
        programs = web.get("/web/20240101110000/http://example.org/")
        assert programs.headers["location"].endswith("/web/20240101120000/http://example.org/")


@pytest.mark.parametrize(
    ("language", "said"), [("en", "This redirect is a loop"), ("cs", "Toto přesměrování vede v kruhu")]
)
def test_a_redirect_in_a_circle_is_told_to_readers_and_left_to_programs(
    make_archive: Any, language: str, said: str
) -> None:
    archive = make_archive()
    archive.record([moved("http://example.org/a", 0, (("Location", "/b"), ("Content-Type", "text/html")))])
    archive.record([moved("http://example.org/b", 0.02, (("Location", "/a"), ("Content-Type", "text/html")))])
    with running(archive, replay=True) as web:
        for path in ("/web/20240101120000if_/http://example.org/a", "/web/20240101120001if_/http://example.org/b"):
            inside = web.get(path, Sec_Fetch_Dest="iframe", Accept_Language=language)
            assert (inside.status, inside.headers.get("location")) == (404, None)
            assert said in inside.text
        framed = web.get("/web/20240101120000/http://example.org/a", Sec_Fetch_Dest="document")
        assert (framed.status, framed.headers.get("location"), "<iframe" in framed.text) == (200, None, True)
        assert web.get("/web/20240101120000/http://example.org/a").headers["location"].endswith("/http://example.org/b")
