"""Accounts, tokens and projects: one rule for the operation, the command line, HTTP and pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served_archive import WebClient, at, running

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import LOGIN_TRIES, accounts_of, projects_of
from letopis.archive.audit import audit_entries
from letopis.cli import main
from letopis.errors import LetopisError, NotFound, QuotaUsedUp, Refused, UsageError
from letopis.exchange.selection import ExportSelection
from letopis.operations import Context, bind
from letopis.operations.accounts import add_user, create_token, list_tokens, revoke_token, set_password
from letopis.operations.crawls import enqueue_seeds
from letopis.operations.pages import put as put_version
from letopis.operations.parameters import NoParameters
from letopis.operations.projects import add_to_project, list_projects, remove_project, show_project

WORD = "a long password"
ALL = READ | WRITE | OWN


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as opened:
        accounts = accounts_of(opened)
        accounts.add("olga", "owner", WORD, 0)
        for name in ("uwe", "eva"):
            accounts.add(name, "user", WORD, 0)
        yield opened


def ask(archive: Archive, who: str, operation: Any, **values: Any) -> Any:
    """Runs an operation for a user, or for the command line."""
    rights = accounts_of(archive).user(who).mask if who else ALL
    context = Context(archive, user=who, rights=rights)
    return operation(context, bind(operation.parameters, values, archive.clock(), strict=True))


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def bearer(archive: Archive, name: str) -> dict[str, str]:
    accounts = accounts_of(archive)
    return {"Authorization": f"Bearer {accounts.create_token(f'of-{name}', accounts.user(name), 'write', 0)}"}


def test_users_change_their_own_password_and_owners_anybodys(archive: Archive) -> None:
    with pytest.raises(Refused, match="somebody else"):
        ask(archive, "uwe", set_password, name="eva", password="another one")
    for old in ({}, {"old": "guess"}):
        with pytest.raises(UsageError, match="old password is wrong"):
            ask(archive, "uwe", set_password, name="uwe", password="another one", **old)
    ask(archive, "uwe", set_password, name="uwe", password="another one", old=WORD)
    assert accounts_of(archive).sign_in("uwe", "another one") is not None
    ask(archive, "olga", set_password, name="uwe", password="a third one")
    assert accounts_of(archive).sign_in("uwe", "a third one") is not None
    with pytest.raises(UsageError, match="old password is wrong"):
        ask(archive, "olga", set_password, name="olga", password="another one", old="guess")
    with pytest.raises(NotFound):
        ask(archive, "olga", set_password, name="nobody", password="another one")


def test_the_password_rule_holds_over_http(archive: Archive, web: WebClient) -> None:
    uwe, olga = bearer(archive, "uwe"), bearer(archive, "olga")

    def put(head: dict[str, str], name: str, **body: str) -> int:
        return web.ask("PUT", f"/api/v1/users/{name}/password", json.dumps(body), **head).status

    assert put({}, "uwe", password="another one", old=WORD) == 401
    assert put(uwe, "eva", password="another one") == 403
    assert put(uwe, "uwe", password="another one") == 422
    assert put(uwe, "uwe", password="another one", old=WORD) == 204
    assert put(olga, "uwe", password="a third one") == 204
    assert put(olga, "nobody", password="a third one") == 404
    assert put(olga, "uwe", password="short") == 422
    assert accounts_of(archive).sign_in("uwe", "a third one") is not None


def test_an_old_password_cannot_be_guessed_by_whoever_has_a_token_or_a_session(archive: Archive) -> None:
    for _ in range(LOGIN_TRIES):
        with pytest.raises(UsageError, match="old password is wrong"):
            ask(archive, "uwe", set_password, name="uwe", password="another one", old="guess")
    with pytest.raises(QuotaUsedUp, match="wait"):
        ask(archive, "uwe", set_password, name="uwe", password="another one", old=WORD)
    ask(archive, "olga", set_password, name="olga", password="another one", old=WORD)


def test_the_name_in_a_path_wins_over_the_body(archive: Archive, web: WebClient) -> None:
    body = json.dumps({"name": "olga", "password": "another one", "old": WORD})
    assert web.ask("PUT", "/api/v1/users/uwe/password", body, **bearer(archive, "uwe")).status == 204
    assert accounts_of(archive).sign_in("olga", WORD) is not None


def test_an_account_needs_no_password_in_any_door(archive: Archive, web: WebClient) -> None:
    made = ask(archive, "olga", add_user, name="robot").value
    assert (made.name, made.role, made.email, made.group) == ("robot", "user", "", "")
    answer = web.post("/api/v1/users", {"name": "Žofie", "group": "editors"}, **bearer(archive, "olga"))
    assert (answer.status, answer.json()["name"], answer.json()["group"]) == (201, "Žofie", "editors")
    assert main(["--archive", str(archive.folder), "users", "add", "ci", "--no-password"]) == 0
    assert accounts_of(archive).sign_in("robot", "") is None


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"name": "a b"}, "is not a name"),
        ({"name": "uwe"}, "already a user"),
        ({"name": "jan", "password": "short"}, "8 to 1024"),
        ({"name": "jan", "email": "x" * 201}, "at most 200"),
        ({"name": "jan", "role": "king"}, "choose guest, user, owner"),
        ({"name": "jan", "rolle": "user"}, "did you mean 'role'"),
    ],
)
def test_what_is_wrong_with_a_new_user_is_said_alike(
    archive: Archive, web: WebClient, values: dict[str, str], fault: str
) -> None:
    with pytest.raises(UsageError, match=fault):
        ask(archive, "olga", add_user, **values)
    answer = web.post("/api/v1/users", values, **bearer(archive, "olga"))
    assert (answer.status, fault in answer.json()["detail"]) == (422, True)
    assert {row.action for row in audit_entries(archive, 10)} == set()


def test_a_token_acts_for_whoever_created_it_unless_an_owner_says_otherwise(archive: Archive, web: WebClient) -> None:
    assert ask(archive, "uwe", create_token, name="own").value.user == "uwe"
    assert ask(archive, "olga", create_token, name="hers", user="eva").value.user == "eva"
    assert ask(archive, "", create_token, name="all").value.user is None
    with pytest.raises(Refused):
        ask(archive, "uwe", create_token, name="other", user="eva")
    with pytest.raises(NotFound):
        ask(archive, "olga", create_token, name="other", user="nobody")
    assert [row.name for row in ask(archive, "uwe", list_tokens)] == ["own"]
    assert [row.name for row in ask(archive, "olga", list_tokens)] == ["all", "hers", "own"]
    with pytest.raises(NotFound, match="you have no token"):
        ask(archive, "uwe", revoke_token, name="all")
    made = web.post("/api/v1/tokens", {"name": "rest"}, **bearer(archive, "eva")).json()
    assert (made["user"], made["scope"], made["token"][:4]) == ("eva", "read", "let_")


def test_projects_belong_to_their_maker_their_group_and_owners(archive: Archive) -> None:
    accounts_of(archive).set_group("uwe", "editors")
    ask(archive, "uwe", add_to_project, name="news", urls=["a.example"])
    with pytest.raises(Refused, match="belongs to somebody else"):
        ask(archive, "eva", add_to_project, name="news", urls=["b.example"])
    with pytest.raises(Refused, match="belongs to somebody else"):
        ask(archive, "eva", remove_project, name="news")
    accounts_of(archive).set_group("eva", "editors")
    made = ask(archive, "eva", add_to_project, name="news", urls=["b.example"]).value
    assert (made.owner, made.pages, made.urls) == ("uwe", 2, ("http://a.example/", "http://b.example/"))
    assert ask(archive, "olga", add_to_project, name="news", urls=["c.example"]).value.owner == "uwe"


def test_a_project_of_the_command_line_can_be_given_to_somebody(archive: Archive, web: WebClient) -> None:
    words = ["--archive", str(archive.folder), "projects", "add", "news"]
    assert main([*words, "a.example"]) == 0
    assert web.post("/api/v1/projects", {"name": "news", "urls": ["b.example"]}, **bearer(archive, "uwe")).status == 403
    assert main([*words, "--owner", "nobody"]) == 3
    assert main([*words, "--owner", "uwe"]) == 0
    row = ask(archive, "uwe", add_to_project, name="news", urls=["b.example"]).value
    assert (row.owner, row.pages) == ("uwe", 2)
    with pytest.raises(Refused, match="only an owner may give"):
        ask(archive, "uwe", add_to_project, name="news", owner="eva")


def test_single_pages_leave_a_project_in_every_door(archive: Archive, web: WebClient) -> None:
    ask(archive, "uwe", add_to_project, name="news", urls=["a.example", "b.example", "c.example", "d.example"])
    removed = ask(archive, "uwe", remove_project, name="news", url=["a.example"]).value
    assert (removed.removed, removed.urls) == (False, ("http://a.example/",))
    head = bearer(archive, "uwe")
    assert web.ask("DELETE", "/api/v1/projects/news?url=b.example", **head).status == 204
    assert web.ask("DELETE", "/api/v1/projects/news?url=b.example", **head).status == 404
    assert main(["--archive", str(archive.folder), "projects", "remove", "news", "c.example"]) == 0
    assert projects_of(archive).show("news").urls == ("http://d.example/",)
    assert web.ask("DELETE", "/api/v1/projects/news", **head).status == 204
    assert list(list_projects(Context(archive), NoParameters())) == []


def test_doors_tell_the_same_rows(archive: Archive, web: WebClient, capsys: pytest.CaptureFixture[str]) -> None:
    ask(archive, "uwe", add_to_project, name="news", urls=["a.example"])
    ask(archive, "uwe", create_token, name="own")
    for words, path, listed in (
        (("users", "list"), "/api/v1/users", "users"),
        (("tokens", "list"), "/api/v1/tokens", "tokens"),
        (("projects", "list"), "/api/v1/projects", "projects"),
        (("audit",), "/api/v1/audit", "audit"),
    ):
        assert main(["--archive", str(archive.folder), *words, "--json"]) == 0
        shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        head = {"Authorization": f"Bearer {accounts_of(archive).create_token('x', None, 'write', 0)}"}
        told = web.get(path, **head).json()[listed]
        accounts_of(archive).revoke("x")
        assert shown == [row for row in told if row.get("name") != "x"]


def test_a_command_that_fails_is_not_audited(archive: Archive) -> None:
    with pytest.raises(LetopisError):
        ask(archive, "uwe", remove_project, name="nothing")
    assert audit_entries(archive, 10) == []
    ask(archive, "uwe", add_to_project, name="news")
    assert [(row.who, row.action, row.subject) for row in audit_entries(archive, 10)] == [
        ("uwe", "project added to", "news")
    ]


def test_the_audit_log_has_no_password_of_an_address(archive: Archive) -> None:
    ask(archive, "", put_version, url="http://ada:secret@a.org/", file=b"text")
    assert [row.subject for row in audit_entries(archive, 10)] == ["http://a.org/"]


def put(archive: Archive, *urls: str) -> None:
    for url in urls:
        archive.put(url, f"<title>t</title><p>words of {url}".encode(), at(1), content_type="text/html")


def exported(archive: Archive, project: str) -> list[str]:
    return [row.url for row in ExportSelection(project=project).resources(archive)]


def test_a_project_by_site_prefix_and_crawl_has_what_is_archived_of_them(archive: Archive, web: WebClient) -> None:
    put(archive, "http://a.example/", "http://b.example/press/1", "http://b.example/other", "http://c.example/x")
    ask(archive, "", enqueue_seeds, seeds=["http://c.example/"], exclude=["private"])
    assert main(["--archive", str(archive.folder), "projects", "add", "news", "--site", "a.example"]) == 0
    body = {"name": "news", "prefix": ["http://b.example/press/"], "crawl": ["http://c.example/"]}
    head = {"Authorization": f"Bearer {accounts_of(archive).create_token('all', None, 'write', 0)}"}
    row = web.post("/api/v1/projects", body, **head).json()
    assert (row["pages"], row["sites"], row["prefixes"], row["crawls"]) == (
        3, ["a.example"], ["http://b.example/press/"], ["http://c.example/"],
    )  # fmt: skip
    assert exported(archive, "news") == ["http://a.example/", "http://b.example/press/1", "http://c.example/x"]
    put(archive, "http://b.example/press/2", "http://c.example/private", "http://c.example/y")
    assert exported(archive, "news")[3:] == ["http://b.example/press/2", "http://c.example/y"]
    assert ask(archive, "", show_project, name="news").value.pages == 5


def test_searches_and_feeds_follow_the_parts_of_a_project(archive: Archive, web: WebClient) -> None:
    put(archive, "http://a.example/", "http://a.example/two", "http://b.example/")
    ask(archive, "", add_to_project, name="news", site=["a.example"], urls=["http://a.example/two"])
    found = web.get("/api/v1/search?q=words&project=news").json()
    assert sorted(hit["url"] for hit in found["results"]) == ["http://a.example/", "http://a.example/two"]
    feed = web.get("/feed/project/news").text
    assert feed.count("<entry>") == 2
    assert "b.example" not in feed
    page = web.get("/projects/news").text
    assert "a.example" in page


def test_parts_leave_a_project_in_every_door(archive: Archive, web: WebClient) -> None:
    ask(archive, "uwe", add_to_project, name="news", site=["a.example", "b.example"], prefix=["c.example/x/"])
    removed = ask(archive, "uwe", remove_project, name="news", site=["a.example"]).value
    assert (removed.removed, removed.parts) == (False, ("site a.example",))
    head = bearer(archive, "uwe")
    assert web.ask("DELETE", "/api/v1/projects/news?site=b.example", **head).status == 204
    assert web.ask("DELETE", "/api/v1/projects/news?site=b.example", **head).status == 404
    words = ["--archive", str(archive.folder), "projects", "remove", "news"]
    assert main([*words, "--prefix", "http://c.example/x/"]) == 0
    assert projects_of(archive).show("news").parts == ()
    assert main([*words, "--crawl", "http://c.example/"]) == 3
    with pytest.raises(NotFound, match="no crawl begins at"):
        ask(archive, "uwe", add_to_project, name="news", crawl=["http://c.example/"])


def test_a_project_without_parts_tables_is_read_as_before(archive: Archive) -> None:
    """Archives of earlier releases have no table of parts."""
    ask(archive, "uwe", add_to_project, name="news", urls=["a.example"])
    with archive.catalog.transaction() as cursor:
        cursor.run("DROP TABLE account_project_part")
    with Archive(archive.folder) as again:
        assert projects_of(again).show("news").parts == ()
        projects_of(again).remove("news")
        assert projects_of(again).list() == []
