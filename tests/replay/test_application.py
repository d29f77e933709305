"""The replay origin over HTTP: who may read there, and what it answers to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from served_archive import HTML, PAGE, Answer, WebClient, at, fill, look, running

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.model import Outcome, WholePage
from letopis.replay.origin import ReplayOrigin

STAMP = "20240101120000"
PASSWORD = "correct horse"


class ReplayClient(WebClient):
    """Asks the replay origin: its address is that of a socket, its host whatever name is meant."""

    def of(self, url: str, minutes: float = 0, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        """The answer of an archived site."""
        origin = ReplayOrigin("http", urlsplit(self.replay).netloc)
        parts = urlsplit(origin.address(url, int(at(minutes).timestamp() * 1000)) or "")
        return self.ask(method, f"{parts.path}?{parts.query}".rstrip("?"), body, Host=parts.netloc, **headers)

    def base(self, path: str, **headers: str) -> Answer:
        """The answer of the base."""
        return self.get(path, Host=urlsplit(self.replay).netloc, **headers)


def beside(web: WebClient) -> ReplayClient:
    port = urlsplit(web.replay).port or 0
    return ReplayClient(f"http://127.0.0.1:{port}/", port)


@pytest.fixture
def open_sites(make_archive: Callable[..., Archive]) -> Iterator[ReplayClient]:
    archive = make_archive()
    fill(archive)
    with running(archive, replay=True) as web:
        yield beside(web)


@pytest.fixture
def closed(make_archive: Callable[..., Archive]) -> Iterator[tuple[WebClient, ReplayClient]]:
    archive = make_archive(public=False)
    fill(archive)
    accounts_of(archive).add("anna", "guest", PASSWORD, 0)
    with running(archive, replay=True) as web:
        yield web, beside(web)


def test_a_page_comes_with_our_script_before_its_own_and_a_policy_that_reaches_archived_sites_alone(
    open_sites: ReplayClient,
) -> None:
    page = open_sites.of(PAGE, 0, Sec_Fetch_Dest="iframe")
    assert page.status == 200
    assert page.text.index("/.letopis/head.js") < page.text.index("<link")
    assert 'href="style.css"' in page.text, "relative addresses stay as they were"
    policy = page.headers["content-security-policy"]
    assert f"default-src {open_sites.replay.replace('//', '//*.')} data: blob:" in policy
    assert "https:" not in policy
    assert "allow-top-navigation" not in policy
    assert "allow-popups" not in policy


def test_the_nearest_capture_answers_and_what_was_never_captured_is_told_apart(open_sites: ReplayClient) -> None:
    assert b"version 2" in open_sites.of(PAGE, 33, Sec_Fetch_Dest="iframe").body
    assert b"version 1" in open_sites.of(PAGE, 2, Sec_Fetch_Dest="iframe").body
    gone = open_sites.of("http://example.org/never.png", 0, Sec_Fetch_Dest="image")
    assert (gone.status, gone.headers["server-timing"]) == (404, 'missing;desc="http://example.org/never.png"')
    page = open_sites.of("http://example.org/never", 0, Sec_Fetch_Dest="iframe", Accept_Language="cs")
    assert page.status == 404
    assert "V tomto archivu není" in page.text or "archiv" in page.text
    assert "data-missing" in page.text


def test_a_resource_is_the_one_that_the_look_at_its_page_used_before_one_that_lies_nearer(
    make_archive: Callable[..., Archive],
) -> None:
    archive, picture = make_archive(), "http://example.org/pic.png"
    used = look(picture, at(9), b"used", headers=(("Content-Type", "image/png"),))
    archive.record([look(PAGE, at(0), HTML % 1)._replace(whole=WholePage((used,)))])
    archive.put(picture, b"nearer", at(10), content_type="image/png")
    archive.put(picture, b"nearest", at(1) - timedelta(minutes=2), content_type="image/png")
    with running(archive, replay=True) as web:
        sites = beside(web)
        page = ReplayOrigin("http", urlsplit(sites.replay).netloc).address(PAGE, int(at(0).timestamp() * 1000)) or ""
        assert sites.of(picture, 0, Sec_Fetch_Dest="image", Referer=page).body == b"used"
        assert sites.of(picture, 0, Sec_Fetch_Dest="image").body == b"nearest"


def test_a_redirect_leads_to_the_archived_site_it_led_to(open_sites: ReplayClient) -> None:
    answer = open_sites.of("http://example.org/jump", 32, Sec_Fetch_Dest="iframe")
    origin = ReplayOrigin("http", urlsplit(open_sites.replay).netloc)
    assert answer.status == 302
    assert origin.original(answer.headers["location"]) == PAGE


def test_a_page_that_is_opened_by_itself_gets_its_frame(open_sites: ReplayClient) -> None:
    answer = open_sites.of(PAGE, 0, Sec_Fetch_Dest="document")
    assert (answer.status, answer.headers["location"]) == (302, f"{open_sites.replay}/web/{STAMP}/{PAGE}")
    frame = open_sites.base(f"/web/{STAMP}/{PAGE}")
    assert frame.status == 200
    assert 'sandbox="allow-scripts allow-same-origin allow-forms"' in frame.text
    assert "frame-ancestors 'none'" in frame.headers["content-security-policy"]


def test_the_bar_tells_how_far_a_capture_lies_from_the_time_asked_for(open_sites: ReplayClient) -> None:
    assert "asked for" not in open_sites.base(f"/web/{STAMP}br_/{PAGE}").text
    assert "than asked for" not in open_sites.base(f"/web/20240101br_/{PAGE}").text, "a day was asked for"
    assert "2 h earlier than asked for" in open_sites.base(f"/web/20240101144000br_/{PAGE}").text
    missing = open_sites.base(f"/web/{STAMP}br_/http://example.org/never")
    assert missing.status == 404
    assert "/save?url=http%3A%2F%2Fexample.org%2Fnever" in missing.text


def test_nothing_is_registered_as_a_worker_that_outlives_its_page(open_sites: ReplayClient) -> None:
    for url in (PAGE, "http://example.org/.letopis/head.js"):
        assert open_sites.of(url, 0, Service_Worker="script").status == 404


def test_names_that_are_not_ours_and_other_sites_get_nothing(open_sites: ReplayClient) -> None:
    assert open_sites.get("/", Host="evil.example").status == 421
    foreign = open_sites.of(PAGE, 0, Origin="https://evil.example")
    assert "access-control-allow-origin" not in foreign.headers
    assert foreign.headers["cross-origin-resource-policy"] == "same-site"
    sister = ReplayOrigin("http", urlsplit(open_sites.replay).netloc).address("https://cdn.example/", 0) or ""
    assert open_sites.of(PAGE, 0, Origin=sister.rstrip("/")).headers["access-control-allow-credentials"] == "true"


def test_there_are_neither_accounts_nor_an_api(open_sites: ReplayClient) -> None:
    for path in ("/login", "/accounts", "/api/v1/users", "/settings", "/openapi.json"):
        answer = open_sites.base(path)
        assert answer.status == 303, path
        assert answer.headers["location"].startswith("http://127.0.0.1:")
        assert open_sites.ask("POST", path, "", Host=urlsplit(open_sites.replay).netloc).status == 405


def test_the_language_chosen_in_the_service_is_spoken_by_the_bar_of_the_replay(
    closed: tuple[WebClient, ReplayClient],
) -> None:
    web, sites = closed
    form = f"name=anna&password={PASSWORD.replace(' ', '+')}"
    signed = web.ask("POST", "/login", form, Content_Type="application/x-www-form-urlencoded")
    session = next(v for n, v in signed.all_headers if n == "set-cookie" and "session" in v).partition(";")[0]
    chosen = f"{session}; letopis_language=cs"
    entry = web.get(f"/replay/enter?to=/web/{STAMP}/{PAGE}", Cookie=chosen, Accept_Language="en").headers["location"]
    assert parse_qs(urlsplit(entry).query)["language"] == ["cs"]
    entered = sites.base(f"{urlsplit(entry).path}?{urlsplit(entry).query}")
    kept = "; ".join(v.partition(";")[0] for n, v in entered.all_headers if n == "set-cookie")
    assert sites.base(f"/web/{STAMP}/{PAGE}", Cookie=kept, Accept_Language="en").headers["content-language"] == "cs"
    unknown = sites.base(f"/.letopis/enter?language=tlh&to=/web/{STAMP}/{PAGE}")
    assert not [value for _, value in unknown.all_headers if "letopis_language" in value]


def test_a_closed_archive_is_read_with_a_cookie_that_only_lets_read(closed: tuple[WebClient, ReplayClient]) -> None:
    web, sites = closed
    assert sites.of(PAGE, 0, Sec_Fetch_Dest="iframe").status == 401
    led = sites.base(f"/web/{STAMP}/{PAGE}")
    assert (led.status, urlsplit(led.headers["location"]).path) == (303, "/replay/enter")
    form = f"name=anna&password={PASSWORD.replace(' ', '+')}"
    signed = web.ask("POST", "/login", form, Content_Type="application/x-www-form-urlencoded")
    session = next(v for n, v in signed.all_headers if n == "set-cookie" and "session" in v).partition(";")[0]
    entry = web.get(f"/replay/enter?to=/web/{STAMP}/{PAGE}", Cookie=session).headers["location"]
    assert urlsplit(entry).netloc == urlsplit(sites.replay).netloc
    entered = sites.base(f"{urlsplit(entry).path}?{urlsplit(entry).query}")
    assert entered.headers["location"] == f"/web/{STAMP}/{PAGE}"
    replay = next(value for name, value in entered.all_headers if name == "set-cookie" and "letopis_replay" in value)
    assert "httponly" in replay.lower()
    assert "domain=letopis.localhost" in replay.lower()
    cookie = replay.partition(";")[0]
    assert sites.of(PAGE, 0, Sec_Fetch_Dest="iframe", Cookie=cookie).status == 200
    assert parse_qs(urlsplit(entry).query)["code"][0] not in replay
    again = sites.base(f"{urlsplit(entry).path}?{urlsplit(entry).query}")
    assert not [value for name, value in again.all_headers if "letopis_replay" in value], "a code is good for once"
    token = cookie.partition("=")[2]
    assert web.get("/api/v1/users", Cookie=f"{session.partition('=')[0]}={token}").status in (401, 403)
    csrf = web.get("/", Cookie=session).text.partition('name="csrf" value="')[2].partition('"')[0]
    out = web.ask("POST", "/logout", f"csrf={csrf}", Cookie=session, Content_Type="application/x-www-form-urlencoded")
    assert out.status == 303
    assert sites.of(PAGE, 0, Sec_Fetch_Dest="iframe", Cookie=cookie).status == 401, "signing out ends it"


def test_an_uncaptured_page_is_told_of_in_a_page_that_offers_to_save_it(open_sites: ReplayClient) -> None:
    home = WebClient(urlsplit(open_sites.base("/").headers["location"]).geturl())
    answer = home.get(f"/web/{STAMP}/http://example.org/never", Sec_Fetch_Dest="document", Accept="text/html")
    assert answer.status == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "People with an account can save it" in answer.text
    assert 'href="/login?next=/url/' in answer.text
    assert home.get(f"/web/{STAMP}/http://example.org/never").headers["content-type"] == "application/problem+json"


def test_stored_fields_that_act_on_browsers_are_left_out(make_archive: Callable[..., Archive]) -> None:
    archive = make_archive()
    fields = (
        ("Content-Type", "text/html"), ("Set-Cookie", "a=b"), ("Clear-Site-Data", '"*"'), ("X-Frame-Options", "DENY"),
        ("Link", "<https://live.example/x>; rel=preload; as=image"), ("X-Total", "7"), ("Refresh", "0; url=/"),
    )  # fmt: skip
    archive.record([look(PAGE, at(0), HTML % 1, headers=fields, outcome=Outcome.NEW)])
    with running(archive, replay=True) as web:
        answer = beside(web).of(PAGE, 0, Sec_Fetch_Dest="iframe")
    assert answer.headers["x-total"] == "7"
    assert not {"set-cookie", "clear-site-data", "x-frame-options", "link", "refresh"} & answer.headers.keys()


def test_a_query_in_which_a_script_wrote_where_its_page_is_finds_what_it_found_then(
    make_archive: Callable[..., Archive],
) -> None:
    archive = make_archive()
    archive.put("http://frames.example/f?origin=http%3A%2F%2Fexample.org", b"framed", at(1))
    with running(archive, replay=True) as web:
        origin = ReplayOrigin("http", urlsplit(web.replay).netloc)
        here = urlsplit(origin.address("http://example.org/", 0) or "").netloc.replace(":", "%3A")
        found = beside(web).of(f"http://frames.example/f?origin=http%3A%2F%2F{here}", 1)
    assert (found.status, found.body) == (200, b"framed")
