"""Seeds, dropped sites, how crawling goes and when pages are visited: alike in every door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served_archive import WebClient, at, running

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.audit import audit_entries
from letopis.archive.queues import crawl_plans
from letopis.cli import main
from letopis.errors import NotFound, Refused, UsageError
from letopis.operations import Context, bind
from letopis.operations.crawls import crawl_status, drop_site, enqueue_seeds, explain_visit

SEED = "http://example.org/"
PATH = "/api/v1/crawls"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as opened:
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


@pytest.fixture
def head(archive: Archive) -> dict[str, str]:
    return {"Authorization": f"Bearer {accounts_of(archive).create_token('all', None, 'write', 0)}"}


def ask(archive: Archive, operation: Any, **values: Any) -> Any:
    context = Context(archive, user="olga", rights=READ | WRITE | OWN)
    return operation(context, bind(operation.parameters, values, archive.clock(), strict=True)).value


def run(archive: Archive, *words: str) -> int:
    return main(["--archive", str(archive.folder), *words])


def test_a_crawl_is_queued_with_all_that_it_was_told_by_every_door(
    archive: Archive, web: WebClient, head: dict[str, str]
) -> None:
    ask(archive, enqueue_seeds, seeds=[SEED], scope="prefix", depth=3, include=["/a"], exclude=["b"], requisites=True)
    body = {"seeds": ["http://example.net/"], "scope": "prefix", "depth": 3, "include": ["/a"], "exclude": ["b"]}
    assert web.post(PATH, body | {"requisites": True}, **head).status == 201
    options = ["--scope", "prefix", "--depth", "3", "--include", "/a", "--exclude", "b", "--requisites"]
    assert run(archive, "crawls", "add", "http://example.com/", *options) == 0
    plans = crawl_plans(archive)
    assert [plan.seeds for plan in plans] == [(SEED,), ("http://example.net/",), ("http://example.com/",)]
    assert {plan[1:6] for plan in plans} == {("prefix", ("/a",), ("b",), 3, True)}
    assert [plan.origin for plan in plans] == ["http", "http", "cli"]


def test_queued_counts_what_did_not_wait_before(archive: Archive, web: WebClient, head: dict[str, str]) -> None:
    assert ask(archive, enqueue_seeds, seeds=[SEED]).queued == 1
    answer = web.post(PATH, {"seeds": [SEED, "example.net"]}, **head)
    told = answer.json()
    assert (answer.status, told["seeds"], told["queued"]) == (201, [SEED, "http://example.net/"], 1)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"seeds": []}, "seeds is empty"),
        ({"seeds": [SEED] * 1001}, "at most 1000"),
        ({"seeds": [SEED], "include": ["["]}, "regular expression"),
        ({"seeds": [SEED], "scope": "galaxy"}, "choose page"),
        ({"seeds": [SEED], "depth": -1}, "at least 0"),
        ({"seeds": ["mailto:x"]}, "mailto"),
    ],
)
def test_a_crawl_that_makes_no_sense_leaves_nothing_behind(
    archive: Archive, web: WebClient, head: dict[str, str], values: dict[str, Any], fault: str
) -> None:
    with pytest.raises(UsageError, match=fault):
        ask(archive, enqueue_seeds, **values)
    assert web.post(PATH, values, **head).status == 422
    assert crawl_plans(archive) == []
    assert ask(archive, crawl_status).new == 0
    assert audit_entries(archive, 10) == []


def test_the_verb_that_crawls_keeps_no_plan_that_it_refuses(archive: Archive) -> None:
    for option in ("--include", "--exclude"):
        assert run(archive, "crawl", SEED, option, "[") == 2
    assert crawl_plans(archive) == []


def test_private_seeds_are_for_the_command_line(archive: Archive, web: WebClient, head: dict[str, str]) -> None:
    with pytest.raises(Refused, match="private address"):
        ask(archive, enqueue_seeds, seeds=["http://127.0.0.1/"])
    assert web.post(PATH, {"seeds": ["http://localhost:9/"]}, **head).status == 403
    assert run(archive, "crawls", "add", "http://127.0.0.1/") == 0


def test_a_site_is_dropped_or_not_known(
    archive: Archive, web: WebClient, head: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (SEED, "http://example.net/", "http://example.com/"):
        ask(archive, enqueue_seeds, seeds=[seed])
    assert ask(archive, drop_site, site=SEED).dropped == 1
    assert web.ask("DELETE", f"{PATH}?site=example.net", **head).json() == {"site": "example.net", "dropped": 1}
    assert run(archive, "crawls", "drop", "example.com", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"site": "example.com", "dropped": 1}
    with pytest.raises(NotFound, match="crawl it first"):
        ask(archive, drop_site, site="nosuch.example")
    assert web.ask("DELETE", f"{PATH}?site=nosuch.example", **head).status == 404
    assert run(archive, "crawls", "drop", "nosuch.example") == 3
    assert crawl_plans(archive) == []
    assert [row.action for row in audit_entries(archive, 10)] == ["site dropped"] * 3 + ["crawl added"] * 3


def test_how_crawling_goes_is_told_alike(archive: Archive, web: WebClient, capsys: pytest.CaptureFixture[str]) -> None:
    ask(archive, enqueue_seeds, seeds=[SEED, "http://example.net/"])
    assert run(archive, "crawls", "--json") == 0
    shown, told = json.loads(capsys.readouterr().out), web.get(PATH).json()
    assert shown | {"time": ""} == told | {"time": ""}
    assert (told["new"], told["due"], told["ready"], told["freshness"], told["hosts"]) == (2, 0, 2, None, [])
    assert run(archive, "crawls") == 0
    assert capsys.readouterr().out.startswith("0 fetches, 0 versions; waiting for a first visit: 2 pages, due again: 0")


def test_why_a_page_is_visited_is_told_alike(
    archive: Archive, web: WebClient, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(archive, enqueue_seeds, seeds=[SEED])
    row = ask(archive, explain_visit, url=SEED)
    assert (row.state, row.next_visit, row.visits) == ("waiting for its first visit", None, 0)
    assert run(archive, "why", SEED, "--json") == 0
    assert json.loads(capsys.readouterr().out) == web.get(f"/api/v1/why?url={SEED}").json()
    for url in ("http://nosuch.example/", "http://example.org/other"):
        with pytest.raises(NotFound):
            ask(archive, explain_visit, url=url)
        assert web.get(f"/api/v1/why?url={url}").status == 404
        assert run(archive, "why", url) == 3


RULES = "<urltransform><varlist base='example.org/list'><var name='page'/></varlist></urltransform>"


def test_limits_and_rules_travel_with_the_plan_by_every_door(
    archive: Archive, web: WebClient, head: dict[str, str]
) -> None:
    body = {"scope": "any", "limit": 7, "max_hosts": 2, "rules": RULES}
    ask(archive, enqueue_seeds, seeds=[SEED], **body)
    assert web.post(PATH, {"seeds": ["http://example.net/"], **body}, **head).status == 201
    options = ["--scope", "any", "--limit", "7", "--max-hosts", "2", "--rules", RULES]
    assert run(archive, "crawls", "add", "http://example.com/", *options) == 0
    plans = crawl_plans(archive)
    assert {(plan.limit, plan.max_hosts, plan.rules, plan.planned) for plan in plans} == {(7, 2, RULES, 1)}
    assert [plan.hosts for plan in plans] == [("example.org",), ("example.net",), ("example.com",)]


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"seeds": [SEED, "example.net"], "limit": 1}, "limit is 1"),
        ({"seeds": [SEED, "example.net"], "max_hosts": 1}, "max_hosts is 1"),
        ({"seeds": [SEED], "limit": 0}, "at least 1"),
        ({"seeds": [SEED], "rules": "<urltransform>"}, "not well-formed"),
        ({"seeds": [SEED], "rules": "<rules/>"}, "are empty"),
    ],
)
def test_limits_and_rules_that_cannot_hold_leave_nothing_behind(
    archive: Archive, web: WebClient, head: dict[str, str], values: dict[str, Any], fault: str
) -> None:
    with pytest.raises(UsageError, match=fault):
        ask(archive, enqueue_seeds, **values)
    assert web.post(PATH, values, **head).status == 422
    assert crawl_plans(archive) == []
