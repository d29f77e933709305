"""REST: checks, reading, changes, accounts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from served_archive import HTML, PAGE, STYLE, WebClient, at, fill, running

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts
from letopis.config import FetchSettings, Settings


@pytest.fixture
def own(make_archive: Any) -> Iterator[tuple[Archive, WebClient, dict[str, str]]]:
    """An archive of one's own, a client, and the header of a token that may write."""
    archive = make_archive()
    fill(archive)
    token = Accounts(archive.catalog.database).create_token("t", None, "write", 0)
    with running(archive) as web:
        yield archive, web, {"Authorization": f"Bearer {token}"}


def test_versions_and_history_tell_what_the_command_line_tells(web: Any) -> None:
    versions = web.get(f"/api/v1/versions?url={PAGE}").json()["versions"]
    assert [row["number"] for row in versions] == [0, 1]
    assert versions[0]["time"] == "2024-01-01T12:00:00Z"
    assert versions[0]["valid_until"] == "2024-01-01T12:30:00Z"
    history = web.get(f"/api/v1/history?url={PAGE}").json()["history"]
    assert [row["status"] for row in history] == [200, 200, 304, 200, 404, 0]
    assert [row["available"] for row in history] == [True, True, True, True, False, False]


def test_long_lists_come_in_parts(web: Any) -> None:
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        part = web.get(f"/api/v1/history?url={PAGE}&limit=4" + (f"&cursor={cursor}" if cursor else "")).json()
        seen += [row["time"] for row in part["history"]]
        cursor = part["cursor"]
    assert len(seen) == len(set(seen)) == 6


def test_times_cut_lists_at_both_ends(web: Any) -> None:
    tail = "from=2024-01-01T12:05:00Z&to=2024-01-01T12:35:00Z"
    assert len(web.get(f"/api/v1/history?url={PAGE}&{tail}").json()["history"]) == 3


def test_contents_are_the_bytes_in_a_cage(web: Any) -> None:
    newest = web.get(f"/api/v1/content?url={PAGE}")
    assert newest.body == HTML % 2
    assert newest.headers["content-security-policy"].startswith("sandbox")
    assert web.get(f"/api/v1/content?url={PAGE}&at=2024-01-01T12:05:00Z").body == HTML % 1
    assert web.get(f"/api/v1/content?url={PAGE}&version=0").body == HTML % 1
    again = web.get(f"/api/v1/content?url={PAGE}", If_None_Match=newest.headers["etag"])
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("form", ["unified", "words", "chars", "html", "visual", "links", "json", "binary"])
def test_differences_in_every_format(web: Any, form: str) -> None:
    answer = web.get(f"/api/v1/diff?url={PAGE}&format={form}")
    assert answer.status == 200
    assert answer.headers["content-security-policy"].startswith("sandbox")


def test_the_last_difference_is_the_default(web: Any) -> None:
    text = web.get(f"/api/v1/diff?url={PAGE}").text
    assert "-version 1" in text
    assert "+version 2" in text


def test_links_of_a_page_at_a_time(web: Any) -> None:
    found = web.get(f"/api/v1/links?url={PAGE}&at=2024-01-01T12:05:00Z").json()
    assert (PAGE, STYLE, "link", "") in {
        (row["source"], row["target"], row["type"], row["text"]) for row in found["links"]
    }


def test_totals(web: Any) -> None:
    stats = web.get("/api/v1/stats").json()
    assert stats["checks"] == 12
    assert stats["documents"] == 7


@pytest.mark.parametrize("route", ["versions", "history", "content", "diff", "links"])
def test_unknown_pages_are_404_problems(web: Any, route: str) -> None:
    answer = web.get(f"/api/v1/{route}?url=http://unknown.example/")
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")


def test_reading_never_asks_the_web(own: Any, scripted_site: Any) -> None:
    _, web, _ = own
    url = scripted_site.set("/never", b"x")
    for path in (
        f"/api/v1/content?url={url}",
        f"/web/{url}",
        f"/api/v1/diff?url={url}",
        f"/feed/{url}",
        f"/api/v1/links?url={url}",
    ):
        assert web.get(path).status == 404
    assert scripted_site.log == []


def test_a_check_through_http_does_not_reach_private_addresses(own: Any, scripted_site: Any) -> None:
    _, web, token = own
    for url in (
        scripted_site.set("/x", b"x"),
        "http://169.254.169.254/latest/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://localhost:1/",
    ):
        answer = web.post("/api/v1/check", {"url": url}, **token)
        assert (answer.status, answer.headers["content-type"]) == (403, "application/problem+json"), url
    assert scripted_site.log == []


def test_an_owner_may_allow_private_addresses(tmp_path: Any, scripted_site: Any) -> None:
    url = scripted_site.set("/a", b"hello")
    settings = Settings(fetch=FetchSettings(private="always"))
    with Archive(tmp_path / "a", settings=settings) as archive:
        token = Accounts(archive.catalog.database).create_token("t", None, "write", 0)
        with running(archive) as web:
            head = {"Authorization": f"Bearer {token}"}
            first = web.post("/api/v1/check", {"url": url, "as": "anna"}, **head)
            scripted_site.set("/a", b"hello again")
            cached = web.post("/api/v1/check", {"url": url, "as": "anna"}, **head).json()
            second = web.post("/api/v1/check", {"url": url, "as": "anna", "now": True}, **head).json()
            gone = web.post("/api/v1/check", {"url": scripted_site.url("/gone")}, **head).json()
    assert first.status == 200
    assert (first.json()["outcome"], first.json()["changed_for_you"]) == ("new", None)
    assert cached["cached"]
    assert (second["outcome"], second["changed_for_you"]) == ("changed", True)
    assert (gone["available"], gone["status"], gone["outcome"]) == (False, 404, "unavailable")


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".example", "only-the-proxy-knows.invalid"])
def test_a_check_by_a_proxy_is_refused_for_names_that_are_not_known_here(
    tmp_path: Any, scripted_site: Any, host: str
) -> None:
    settings = Settings(fetch=FetchSettings(proxy=scripted_site.url(""), retries=0))
    with Archive(tmp_path / "a", settings=settings) as archive, running(archive) as web:
        token = Accounts(archive.catalog.database).create_token("t", None, "write", 0)
        answer = web.post("/api/v1/check", {"url": f"http://{host}/"}, Authorization=f"Bearer {token}")
        assert answer.status < 500, answer.text
    assert scripted_site.log == []


def test_a_redirect_to_a_private_address_is_refused_too(own: Any, scripted_site: Any) -> None:
    _archive, web, token = own
    inner = scripted_site.set("/inner", b"secret")
    outer = scripted_site.redirect("/outer", inner)
    assert web.post("/api/v1/check", {"url": outer}, **token).status == 403
    assert scripted_site.log == []
    assert web.get(f"/api/v1/content?url={outer}").status == 404


@pytest.mark.parametrize(
    "body", [{}, {"url": 1}, {"url": PAGE, "nonsense": 1}, {"url": PAGE, "now": "maybe"}, [], "x", {"url": ""}]
)
def test_a_body_that_does_not_fit_is_422(own: Any, body: Any) -> None:
    answer = own[1].post("/api/v1/check", body, **own[2])
    assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json")


def test_broken_json_is_422_with_credentials_and_401_without(own: Any) -> None:
    _, web, token = own
    assert web.ask("POST", "/api/v1/check", b"{", Content_Type="application/json", **token).status == 422
    assert web.ask("POST", "/api/v1/check", b"{", Content_Type="application/json").status == 401


def test_each_client_is_told_what_is_new_to_it(own: Any) -> None:
    archive, web, token = own
    first = web.get("/api/v1/changes?client=anna&limit=2").json()
    assert [change["version"] for change in first["changes"]] == [0, 1]
    assert first["changes"][0]["url"] == PAGE
    assert web.get("/api/v1/changes?client=anna&limit=2").json() == first
    assert web.post("/api/v1/changes/ack", {"client": "anna", "cursor": first["cursor"]}, **token).status == 200
    rest = web.get("/api/v1/changes?client=anna").json()
    assert [change["url"] for change in rest["changes"]][:1] == [STYLE]
    web.post("/api/v1/changes/ack", {"client": "anna", "cursor": rest["cursor"]}, **token)
    assert web.get("/api/v1/changes?client=anna").json() == {"changes": [], "cursor": rest["cursor"]}
    archive.put(PAGE, b"news", at(200))
    assert [change["version"] for change in web.get("/api/v1/changes?client=anna").json()["changes"]] == [2]
    assert len(web.get("/api/v1/changes?client=bert").json()["changes"]) == len(first["changes"] + rest["changes"]) + 1


def test_an_acknowledgement_never_goes_back_nor_ahead(own: Any) -> None:
    _, web, token = own
    everything = web.get("/api/v1/changes?client=a").json()["cursor"]
    assert web.post("/api/v1/changes/ack", {"client": "a", "cursor": "v999999"}, **token).json()["cursor"] == everything
    assert web.post("/api/v1/changes/ack", {"client": "a", "cursor": "v1"}, **token).json()["cursor"] == everything


def test_users_tokens_and_projects_by_rest(own: Any) -> None:
    archive, web, token = own
    made = web.post("/api/v1/users", {"name": "anna", "role": "user", "password": "long enough"}, **token)
    assert (made.status, made.json()["role"]) == (201, "user")
    assert [user["name"] for user in web.get("/api/v1/users", **token).json()["users"]] == ["anna"]
    secret = web.post("/api/v1/tokens", {"name": "hers", "user": "anna", "scope": "write"}, **token).json()["token"]
    hers = {"Authorization": f"Bearer {secret}"}
    assert web.post("/api/v1/projects", {"name": "news", "urls": ["example.org"]}, **hers).json()["owner"] == "anna"
    assert web.get("/api/v1/projects/news").json()["urls"] == ["http://example.org/"]
    assert web.get("/api/v1/users", **hers).status == 403
    assert [one["name"] for one in web.get("/api/v1/tokens", **hers).json()["tokens"]] == ["hers"]
    assert web.ask("DELETE", "/api/v1/tokens/t", **hers).status == 404
    assert web.ask("DELETE", "/api/v1/projects/news", **hers).status == 204
    assert web.ask("DELETE", "/api/v1/tokens/hers", **token).status == 204
    assert web.get("/api/v1/stats", **hers).status == 401
    assert web.ask("DELETE", "/api/v1/users/anna", **token).status == 204
    deeds = [deed["action"] for deed in web.get("/api/v1/audit", **token).json()["audit"]]
    assert deeds[0] == "user removed"
    assert "token revoked" in deeds
    stored = archive.catalog.database.all("SELECT name, hash FROM account_token")
    assert all(secret.encode() not in bytes(row[1]) for row in stored)


def test_a_user_cannot_make_tokens_for_others_nor_take_their_projects(own: Any) -> None:
    _archive, web, token = own
    for name in ("anna", "bert"):
        web.post("/api/v1/users", {"name": name, "password": "long enough"}, **token)
    secret = web.post("/api/v1/tokens", {"name": "a", "user": "anna", "scope": "write"}, **token).json()["token"]
    anna = {"Authorization": f"Bearer {secret}"}
    assert web.post("/api/v1/tokens", {"name": "b", "user": "bert"}, **anna).status == 403
    assert web.post("/api/v1/projects", {"name": "p"}, **token).status == 201
    assert web.ask("DELETE", "/api/v1/projects/p", **anna).status == 403
    assert web.post("/api/v1/projects", {"name": "p", "urls": ["x.org"]}, **anna).status == 403


def test_events_tell_open_pages_of_new_versions(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from http.client import HTTPConnection

    archive, web, _ = own
    monkeypatch.setattr("letopis.api.feeds.POLL_SECONDS", 0.02)
    connection = HTTPConnection(web.netloc, timeout=300)
    connection.request("GET", "/api/v1/events")
    stream = connection.getresponse()
    assert stream.readline() == b": listening\n"
    archive.put(PAGE, b"live", at(300))
    assert any(line.startswith(b"event: version") for line in iter(stream.readline, b""))
    connection.close()


def test_an_owner_stores_a_version_by_put(own: Any) -> None:
    archive, web, token = own
    path = "/api/v1/content?url=http://stored.example/a&at=2019-05-01"
    done = web.ask("PUT", path, b"<p>as it was", Content_Type="text/plain", **token)
    assert (done.status, done.json()["result"]) == (200, "stored")
    stored = archive.get("http://stored.example/a")
    assert (stored.body, stored.content_type, f"{stored.time:%Y-%m-%d}") == (
        b"<p>as it was",
        "text/plain",
        "2019-05-01",
    )
    assert web.ask("PUT", path, b"<p>as it was", Content_Type="text/plain", **token).json()["result"] == "same"


def test_a_put_needs_its_right_and_has_a_limit(own: Any) -> None:
    archive, web, token = own
    path = "/api/v1/content?url=http://stored.example/b"
    assert web.ask("PUT", path, b"x").status == 401
    user = web.post("/api/v1/users", {"name": "u", "role": "user", "password": "long enough it is"}, **token)
    assert user.status == 201
    hers = web.post("/api/v1/tokens", {"name": "hers", "user": "u", "scope": "write"}, **token).json()["token"]
    assert web.ask("PUT", path, b"x", Authorization=f"Bearer {hers}").status == 403
    most = archive.settings.fetch.max_bytes
    assert web.ask("PUT", path, b"x" * (most + 1), **token).status == 413
    assert web.ask("PUT", path + "&at=someday", b"x", **token).status == 422


@pytest.mark.parametrize("number", ["Infinity", "1e400", "-1e400", "NaN", '"inf"', "9" * 5000])
def test_no_number_of_a_body_is_infinite(own: tuple[Archive, WebClient, dict[str, str]], number: str) -> None:
    _, web, owner = own
    for name in ("max_hosts", "budget"):
        body = f'{{"urls": ["http://example.org/"], "{name}": {number}}}'
        answer = web.ask("POST", "/api/v1/crawls", body, Content_Type="application/json", **owner)
        assert answer.status == 422, answer.text
