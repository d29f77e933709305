"""Watches through every door: the operation, the command line and HTTP do and refuse the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from served_archive import WebClient, running

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.audit import usage_of
from letopis.archive.watches import AlertRow, NewAlert, watches_of
from letopis.cli.main import main
from letopis.config import FetchSettings, ServeSettings, Settings
from letopis.errors import NotFound, QuotaUsedUp, Refused, UsageError
from letopis.model import to_millis
from letopis.monitor.watch import FILTER_KINDS, WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.operations import Context, bind
from letopis.operations import watches as operations

URL = "http://example.org/"
OTHER = "http://example.org/other"


class Doors:
    """One archive, asked from Python, by the command line, and over HTTP by an owner or a user."""

    def __init__(self, folder: Path, stack: ExitStack, capture: pytest.CaptureFixture[str], settings: Settings) -> None:
        self.folder = folder
        self._capture = capture
        self.archive = stack.enter_context(Archive(folder, settings=settings))
        accounts = accounts_of(self.archive)
        self._tokens = {
            role: accounts.create_token(role, accounts.add(role, role, None, 0), "write", 0)
            for role in ("user", "owner")
        }
        self.web: WebClient = stack.enter_context(running(self.archive))
        self.err = ""

    def context(self, rights: int = READ | WRITE, **fields: Any) -> Context:
        return Context(self.archive, user="user", rights=rights, **fields)

    def cli(self, *words: str) -> tuple[int, list[dict[str, Any]]]:
        status = main(["--archive", str(self.folder), "watch", *words, "--json"])
        shown = self._capture.readouterr()
        self.err = shown.err
        return status, [json.loads(line) for line in shown.out.splitlines()]

    def rest(self, method: str, path: str, body: object = None, role: str = "owner") -> tuple[int, Any]:
        head = {"Authorization": f"Bearer {self._tokens[role]}"}
        if method == "POST":
            answer = self.web.post(f"/api/v1/watches{path}", body, **head)
        else:
            answer = self.web.ask(method, f"/api/v1/watches{path}", **head)
        return answer.status, answer.json()


@pytest.fixture
def make_doors(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.chdir(tmp_path)
    for name in ("LETOPIS_ARCHIVE", "LETOPIS_CONFIG", "LETOPIS_FETCH_PRIVATE"):
        monkeypatch.delenv(name, raising=False)
    with ExitStack() as stack:

        def make(**sections: Any) -> Doors:
            return Doors(tmp_path / "a", stack, capsys, Settings(**sections))

        yield make


@pytest.fixture
def doors(make_doors: Any) -> Doors:
    made: Doors = make_doors()
    return made


def added(doors: Doors, **fields: Any) -> operations.AddedWatch:
    """The watch of a URL, added by an owner's program."""
    values = {"url": [URL], **fields}
    asked = bind(operations.AddWatches, values, doors.archive.clock())
    return next(iter(operations.watch_add(doors.context(READ | WRITE | OWN, origin="cli"), asked)))


def test_the_same_row_in_every_door(doors: Doors) -> None:
    status, made = doors.rest("POST", "", {"url": URL, "every": "1h", "tag": "t", "notify": ["https://h.example/"]})
    assert (status, made.pop("outcome")) == (201, "added")
    assert doors.cli("list") == (0, [made])
    assert doors.rest("GET", "") == (200, {"watches": [made]})
    assert (made["paused"], made["targets"], made["notify"]) == (False, 1, ["https://h.example/"])


def test_targets_are_for_owners(doors: Doors) -> None:
    asked = bind(
        operations.AddWatches, {"url": [URL], "notify": ["https://user:secret@example.org/"]}, doors.archive.clock()
    )
    operations.watch_add(doors.context(READ | WRITE | OWN)._replace(user="olga"), asked)
    doors.cli("add", "--tag", "t", "--notify", "https://user:secret@example.org/")
    for path in ("", "/tags"):
        assert "secret" in str(doors.rest("GET", path)[1])
        _, seen = doors.rest("GET", path, role="user")
        assert "secret" not in str(seen)
        assert [row["targets"] for row in next(iter(seen.values()))][-1] == 1
        assert "secret" not in doors.web.get(f"/api/v1/watches{path}").text
    shown = operations.watch_list(doors.context(), operations.WatchListQuery())
    assert [row.notify for row in shown] == [None]


def test_one_url_is_answered_alone_and_several_in_a_list(doors: Doors) -> None:
    assert doors.rest("POST", "", {"url": URL})[1]["url"] == URL
    status, both = doors.rest("POST", "", {"url": [URL, OTHER]})
    assert (status, [row["url"] for row in both["watches"]]) == (201, [URL, OTHER])
    assert [row["url"] for row in doors.cli("add", URL, OTHER)[1]] == [URL, OTHER]


def test_rules_and_hours_that_are_given_again_add_to_those_before(doors: Doors) -> None:
    words = ("--when", "redirect", "--when", "changed", "--hours", "mon 8:00-9:00", "--hours", "tue 8:00-9:00")
    row = doors.cli("add", URL, *words)[1][0]
    assert (sorted(row["when"].split(",")), row["hours"].count("8:00-")) == (["changed", "redirect"], 2)


def test_adding_again_keeps_what_is_not_said_in_every_door(doors: Doors) -> None:
    first = doors.cli("add", URL, "--every", "2h", "--css", "main", "--notify", "https://h.example/", "--tag", "news")
    assert (first[1][0]["outcome"], first[1][0]["owner"]) == ("added", "")
    doors.cli("pause", URL)
    status, again = doors.rest("POST", "", {"url": URL, "jitter": "5m"})
    assert (status, again["outcome"], again["owner"], again["paused"]) == (201, "changed", "", True)
    _, (row, other) = doors.cli("add", URL, OTHER, "--when", "status")
    assert [row["outcome"], other["outcome"]] == ["changed", "added"]
    assert (row["every"], row["jitter"], row["tag"], row["when"]) == (7200.0, 300.0, "news", "status")
    assert (row["filters"], row["notify"]) == ([{"kind": "css", "expression": "main"}], ["https://h.example/"])
    assert added(doors, url=[URL]).outcome == "kept"
    assert doors.rest("POST", "", {"url": URL, "filters": [], "notify": []})[1]["filters"] == []
    assert doors.cli("add", URL, "--when", "", "--tag", "")[1][0]["when"] == "changed"
    row = doors.rest("POST", "", {"url": URL, "replace": True})[1]
    assert (row["every"], row["jitter"], row["targets"], row["tag"]) == (3600.0, 0.0, 0, "")
    assert (row["owner"], row["paused"]) == ("", True), "whoever begins anew takes neither the owner nor the pause"


def test_people_are_told_that_a_page_is_watched_already(doors: Doors) -> None:
    asked = bind(operations.AddWatches, {"url": [URL], "every": "2h"}, doors.archive.clock())
    for sentence in ("watching http", "is watched already (every 2h) and stays as it is; 'letopis watch edit 1' chan"):
        (row,) = operations.watch_add(doors.context(READ | WRITE | OWN, origin="cli"), asked)
        assert operations.watch_add.sentence is not None
        assert sentence in operations.watch_add.sentence(row)


@pytest.mark.parametrize("kind", FILTER_KINDS)
def test_filter_kinds_are_the_same_in_every_door(doors: Doors, kind: str) -> None:
    expression = "$.price" if kind == "jsonpath" else "//p" if kind == "xpath" else "p"
    wanted = [{"kind": kind, "expression": expression}]
    assert doors.cli("add", URL, f"--{kind}", expression)[1][0]["filters"] == wanted
    assert doors.rest("POST", "", {"url": OTHER, "filters": wanted})[1]["filters"] == wanted


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (["--every", "99999d"], {"every": "99999d"}),
        (["--jitter", "11y"], {"jitter": "11y"}),
        (["--when", "unchanged:11y"], {"when": "unchanged:11y"}),
        (["--cron", "0 0 31 2 *"], {"cron": "0 0 31 2 *"}),
        (["--css", "::["], {"filters": [{"kind": "css", "expression": "::["}]}),
        (["--more-than", "x"], {"conditions": [{"kind": "more-than", "value": "x"}]}),
        (["--tag", "x" * 65], {"tag": "x" * 65}),
        (["--quiet-hours", "00:00-24:00"], {"quiet_hours": "00:00-24:00"}),
        (["--quiet-hours", "mon-sun 12:00-11:59; 11:00-13:00"], {"quiet_hours": "mon-sun 12:00-11:59; 11:00-13:00"}),
        (
            ["--below", "40", "--above", "44"],
            {"conditions": [{"kind": "below", "value": "40"}, {"kind": "above", "value": "44"}]},
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_every_door(doors: Doors, words: list[str], body: dict[str, object]) -> None:
    assert doors.cli("add", URL, *words)[0] == 2
    assert doors.rest("POST", "", {"url": URL, **body})[0] == 422
    with pytest.raises(UsageError):
        added(doors, **body)
    assert WatchList(doors.archive).entries() == []


@pytest.mark.parametrize(
    "body",
    [
        {"filters": [{"kind": "x", "expression": "y"}]}, {"filters": [{"kind": "css"}]}, {"filters": ["css"]},
        {"filters": [{"kind": "css", "expression": "p", "more": 1}]}, {"conditions": [{"kind": "x", "value": "y"}]},
        {"notify": ["https://h.example/"] * 21}, {"url": []}, {"url": 1}, {"css": ["p"]}, {"unknown": 1},
    ],
)  # fmt: skip
def test_bodies_that_do_not_fit_are_422(doors: Doors, body: dict[str, object]) -> None:
    assert doors.rest("POST", "", {"url": URL, **body})[0] == 422


def test_a_private_address_is_refused_at_once_over_http(doors: Doors) -> None:
    for url in ("http://127.0.0.1/", "http://[::1]/", "http://10.1.2.3:8080/x", "http://localhost/"):
        assert doors.rest("POST", "", {"url": url})[0] == 403
        assert doors.rest("POST", "", {"url": url, "sitemap": True})[0] == 403
        with pytest.raises(Refused):
            operations.watch_add(doors.context(), operations.AddWatches(urls=(url,)))
        assert doors.cli("add", url)[0] == 0
    assert doors.rest("POST", "", {"url": URL, "notify": ["file:/etc/passwd"]})[0] == 403


def test_an_owner_lets_one_watch_look_into_a_private_network_but_its_notifications_stay_outside(doors: Doors) -> None:
    private = {"url": "http://127.0.0.1:9/", "private": True}
    assert doors.rest("POST", "", private, "user")[0] == 403
    status, answer = doors.rest("POST", "", {**private, "step": ["type #key = secret", "scroll .end"]})
    assert (status, answer["step"]) == (201, ["type #key = secret", "scroll .end"])
    entry = WatchList(doors.archive).by_id(answer["id"])
    assert (entry.watch.origin, entry.watch.notify_origin) == ("cli", "http")
    assert doors.rest("POST", "", {**private, "notify": ["file:/tmp/x"]})[0] == 403
    assert doors.rest("GET", f"/{answer['id']}", role="user")[1]["step"] is None, "what is typed may be a password"


def test_the_owner_may_allow_private_addresses_or_forbid_them_to_everybody(make_doors: Any, tmp_path: Path) -> None:
    doors = make_doors(fetch=FetchSettings(private="always"))
    assert doors.rest("POST", "", {"url": "http://127.0.0.1/"}, "user")[0] == 201
    (tmp_path / "letopis.toml").write_text('[fetch]\nprivate = "never"\n')
    assert doors.cli("add", "http://127.0.0.2/")[0] == 7


def test_only_new_watches_are_charged_and_refused_ones_are_not(make_doors: Any) -> None:
    doors = make_doors(serve=replace(ServeSettings(), watches_a_day=2))
    for body in ({"url": "http://127.0.0.1/"}, {"url": URL, "cron": "x"}, {"url": URL, "notify": ["file:/x"]}):
        assert doors.rest("POST", "", body, "user")[0] in (403, 422)
    assert doors.rest("POST", "", {"url": URL}, "user")[0] == 201
    assert doors.rest("POST", "", {"url": URL, "every": "2h"}, "user")[0] == 201
    assert doors.rest("POST", "", {"url": [OTHER, f"{URL}third"]}, "user")[0] == 429
    with pytest.raises(QuotaUsedUp, match="used up the 2 watches"):
        operations.watch_add(doors.context(), operations.AddWatches(urls=(OTHER, f"{URL}third")))
    assert usage_of(doors.archive).spent("user", "watches", to_millis(doors.archive.clock())) == 1
    assert [entry.watch.url for entry in WatchList(doors.archive).entries()] == [URL]
    assert doors.rest("POST", "", {"url": [OTHER, f"{URL}third"]}, "owner")[0] == 201


def test_pause_resume_check_and_tag_in_every_door(doors: Doors) -> None:
    doors.cli("add", URL, OTHER)
    assert [row["paused"] for row in doors.cli("pause", URL, OTHER)[1]] == [True, True]
    status, row = doors.rest("POST", "/resume", {"url": URL})
    assert (status, row["paused"]) == (200, False)
    assert row["due"] is not None
    assert [row["due"] for row in doors.cli("list")[1]][1] is None
    assert doors.rest("POST", "/check", {"url": [URL, OTHER]})[1]["watches"][1]["paused"] is False
    assert doors.rest("POST", "/pause", {"url": URL})[1]["paused"] is True
    assert doors.cli("resume", URL)[1][0]["paused"] is False
    assert doors.cli("check", URL)[0] == 0
    assert doors.rest("POST", "/tag", {"url": URL, "tag": "news"})[1]["tag"] == "news"
    assert [row["url"] for row in doors.cli("list", "--tag", "news")[1]] == [URL]
    assert doors.cli("tag", URL)[1][0]["tag"] == ""


def test_resuming_leaves_a_watch_that_is_not_paused_at_its_time(doors: Doors) -> None:
    before = added(doors)
    doors.cli("resume", URL)
    entry = WatchList(doors.archive).find(URL)
    assert entry is not None
    assert entry.due == before.due


@pytest.mark.parametrize("action", ["pause", "resume", "check", "tag"])
def test_an_unknown_url_stops_the_whole_command(doors: Doors, action: str) -> None:
    doors.cli("add", URL)
    assert doors.cli(action, URL, OTHER)[0] == 3
    assert doors.rest("POST", f"/{action}", {"url": [URL, OTHER]})[0] == 404
    assert doors.rest("POST", f"/{action}", {})[0] == 422
    assert [row["paused"] for row in doors.cli("list")[1]] == [False]


def test_removing_is_all_or_nothing(doors: Doors) -> None:
    doors.cli("add", URL)
    assert doors.cli("remove", URL, OTHER)[0] == 3
    assert doors.rest("DELETE", f"?url={quote(URL, '')}&url={quote(OTHER, '')}")[0] == 404
    with pytest.raises(NotFound):
        operations.watch_remove(doors.context(), operations.WatchedUrls(urls=(URL, OTHER)))
    assert doors.rest("DELETE", f"?url={quote(URL, '')}") == (200, {"url": URL, "removed": 1})
    doors.cli("add", URL, OTHER)
    assert doors.cli("remove", URL, OTHER) == (0, [{"url": URL, "removed": 1}, {"url": OTHER, "removed": 1}])
    assert doors.cli("remove", URL)[0] == 3


def test_defaults_of_a_tag_are_set_listed_and_dropped_in_every_door(doors: Doors) -> None:
    assert doors.cli("add", "--tag", "news", "--every", "2h") == (0, [])
    assert "defaults" in doors.err
    assert doors.rest("POST", "", {"tag": "news", "jitter": "1m"}) == (201, {"watches": []})
    assert doors.rest("POST", "", {})[0] == 422
    doors.cli("add", URL, "--tag", "news")
    tags = doors.rest("GET", "/tags")[1]["tags"]
    assert doors.cli("tags") == (0, tags)
    assert [(row["tag"], row["watches"], row["every"], row["jitter"]) for row in tags] == [("news", 1, 7200.0, 60.0)]
    assert doors.rest("DELETE", "/tags?tag=news") == (200, {"tag": "news", "watches": 1})
    assert doors.rest("DELETE", "/tags?tag=news")[0] == 404
    assert doors.cli("forget-tag", "news")[0] == 3
    assert doors.cli("list")[1][0]["every"] == 3600.0


def test_a_tag_of_somebody_else_gives_neither_its_secrets_nor_its_defaults_away(doors: Doors) -> None:
    header, target = "Authorization: secret", "https://h.example/secret"
    doors.cli("add", URL, "--tag", "t")
    doors.cli("add", "--tag", "t", "--notify", target, "--header", header)
    status, seen = doors.rest("POST", "", {"url": OTHER, "tag": "t"}, "user")
    assert (status, seen["targets"], seen["notify"], seen["headers"]) == (201, 1, None, [])
    assert "secret" not in str(doors.rest("GET", "", role="user"))
    own, other = (entry.watch for entry in WatchList(doors.archive).entries("t"))
    assert (own.headers, other.headers) == ((("Authorization", "secret"),), ())
    assert doors.rest("POST", "", {"tag": "t", "notify": ["https://other.example/"]}, "user")[0] == 403
    assert doors.rest("DELETE", "/tags?tag=t", role="user")[0] == 403


def test_who_gave_a_tag_its_defaults_changes_them_and_gives_none_to_watches_of_others(doors: Doors) -> None:
    doors.cli("add", URL, "--tag", "taken")
    assert doors.rest("POST", "", {"tag": "taken", "every": "2h"}, "user")[0] == 403
    assert doors.rest("POST", "", {"tag": "own", "step": ["type #password = secret"]}, "user")[0] == 201
    doors.cli("add", OTHER, "--tag", "own", "--browser")
    assert WatchList(doors.archive).entries("own")[0].watch.steps == ()
    assert "secret" in str(doors.rest("GET", "/tags", role="user")[1])
    assert "secret" not in doors.web.get("/api/v1/watches/tags").text
    assert doors.rest("DELETE", "/tags?tag=own", role="user")[0] == 200


def test_targets_of_a_tag_that_came_through_http_are_guarded(doors: Doors) -> None:
    doors.rest("POST", "", {"tag": "news", "notify": ["http://intranet.example/"]}, "user")
    doors.cli("add", URL, "--tag", "news")
    watch = WatchList(doors.archive).entries()[0].watch
    assert (watch.origin, watch.notify_origin, watch.notify) == ("cli", "http", ("http://intranet.example/",))


def test_alerts_in_every_door(doors: Doors) -> None:
    watches = WatchList(doors.archive)
    watches.add([URL], replace(WatchSpec(), every=600.0))
    for number in range(3):
        _alert(doors.archive, URL if number else OTHER)
    rows = doors.rest("GET", "/alerts")[1]["alerts"]
    assert doors.cli("alerts") == (0, rows)
    assert [(row["url"], row["kind"], row["tag"]) for row in rows] == [(URL, "changed", "t")] * 2 + [
        (OTHER, "changed", "t")
    ]
    assert set(rows[0]) == {
        "id",
        "time",
        "kind",
        "url",
        "message",
        "tag",
        "watch",
        "saved",
        "name",
        "version",
        "score",
        "reason",
        "difference",
    }
    assert (
        doors.cli("alerts", OTHER)[1] == doors.rest("GET", f"/alerts?url={quote(OTHER, '')}")[1]["alerts"] == rows[2:]
    )
    assert doors.cli("alerts", "--limit", "1")[1] == rows[:1]
    assert doors.rest("GET", f"/alerts?before={rows[1]['id']}")[1]["alerts"] == rows[2:]
    assert doors.rest("GET", "/alerts?limit=0")[0] == 400
    assert doors.cli("alerts", "--limit", "1001")[0] == 2


def _alert(archive: Archive, url: str) -> None:
    facts = json.dumps({"tag": "t", "version": 1, "difference": "+x"})
    watches_of(archive).save_judged([], [NewAlert(AlertRow(0, url, "changed", 0, "It changed", facts), [])])


def test_adding_and_removing_is_in_the_audit_log(doors: Doors) -> None:
    doors.rest("POST", "", {"url": URL}, "user")
    doors.cli("remove", URL)
    head = {"Authorization": f"Bearer {doors._tokens['owner']}"}
    rows = doors.web.get("/api/v1/audit", **head).json()
    found = [(row["who"], row["action"], row["subject"]) for row in next(iter(rows.values()))]
    assert ("command line", "watch removed", URL) in found
    assert ("user", "watch added", URL) in found
