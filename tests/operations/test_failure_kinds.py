"""Why a page could not be had is what happened, whoever asked and through whichever door."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from behaviours import UNKNOWN_HOST
from misbehaving_site import Site
from scripted_site import ScriptedSite
from served_archive import WebClient, running

from letopis import Archive, Monitor
from letopis.archive.accounts import accounts_of
from letopis.cli import main
from letopis.config import FetchSettings, MonitorSettings, Settings
from letopis.errors import Refused
from letopis.model import Outcome

Cli = Callable[..., tuple[int, list[dict[str, Any]], str]]


class Fault(NamedTuple):
    """What stands in the way, the kind that is told of it, and whether the page was found out to be unavailable."""

    name: str
    kind: str
    available: bool | None = False
    status: int = 4
    environment: tuple[tuple[str, str], ...] = ()


FAULTS = (
    Fault("name", "dns"),
    Fault("dead server", "connect"),
    Fault("tls", "tls"),
    Fault("silent", "timeout", environment=(("LETOPIS_FETCH_FIRST_BYTE", "0.2"), ("LETOPIS_FETCH_CONNECT", "0.2"))),
    Fault("http", "http"),
    Fault("too often", "http"),
    Fault("private", "forbidden-address", None, 7, (("LETOPIS_FETCH_PRIVATE", "never"),)),
)
CRAWLS_ONLY = (
    Fault("robots", "robots", None),
    Fault("robots in trouble", "robots", None),
    Fault("setting", "setting", None, environment=(("LETOPIS_CRAWL_FETCH_IF", 'host == "nowhere"'),)),
)


@pytest.fixture
def dead() -> Iterator[str]:
    """An address at which nobody listens, kept so until the end of the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/page"


@pytest.fixture
def address(misbehaving_site: Site, scripted_site: ScriptedSite, dead: str) -> Callable[[str], str]:
    busy = scripted_site.set("/busy", b"later", 429)
    places = {
        "name": UNKNOWN_HOST, "dead server": dead, "tls": misbehaving_site.url("ok", "tls-untrusted"),
        "silent": misbehaving_site.url("silent"), "http": misbehaving_site.url("nothing-here"), "too often": busy,
        "private": misbehaving_site.url("ok"), "robots": misbehaving_site.url("not-letopis"),
        "robots in trouble": misbehaving_site.url("ok", "robots-5xx"), "setting": misbehaving_site.url("ok"),
    }  # fmt: skip
    return lambda name: places[name]


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("LETOPIS_CRAWL_DELAY", "0")
    monkeypatch.setenv("LETOPIS_FETCH_RETRIES", "0")

    def run(*words: str) -> tuple[int, list[dict[str, Any]], str]:
        status = main(["--archive", str(tmp_path / "a"), *words, "--json"])
        told = capfd.readouterr()
        return status, [json.loads(line) for line in told.out.splitlines()], told.err

    return run


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_check_tells_what_stood_in_the_way(
    fault: Fault, address: Callable[[str], str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in fault.environment:
        monkeypatch.setenv(name, value)
    status, [row], _ = cli("check", address(fault.name))
    assert (status, row["failure"], row["available"]) == (fault.status, fault.kind, fault.available)
    _, [recorded], _ = cli("history", address(fault.name))
    assert (recorded["failure"], recorded["available"]) == (fault.kind, fault.available)


@pytest.mark.parametrize("fault", [*FAULTS, *CRAWLS_ONLY], ids=[fault.name for fault in (*FAULTS, *CRAWLS_ONLY)])
def test_a_crawl_records_what_stood_in_the_way(
    fault: Fault, address: Callable[[str], str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in fault.environment:
        monkeypatch.setenv(name, value)
    # A server that asks to be left alone is waited for, so the crawl ends with its first page.
    assert cli("crawl", address(fault.name), "--limit", "1")[0] == 0
    _, [recorded], _ = cli("history", address(fault.name))
    assert (recorded["failure"], recorded["available"]) == (fault.kind, fault.available)


@pytest.mark.parametrize("name", ["name", "dead server", "tls", "http", "private"])
def test_http_tells_the_same(tmp_path: Path, address: Callable[[str], str], name: str) -> None:
    fault = next(fault for fault in FAULTS if fault.name == name)
    fetch = FetchSettings(private="cli" if name == "private" else "always", retries=0)
    with Archive(tmp_path / "a", settings=Settings(fetch=fetch)) as archive, running(archive) as web:
        head = {"Authorization": f"Bearer {accounts_of(archive).create_token('all', None, 'write', 0)}"}
        [row] = web.post("/api/v1/check", {"url": [address(name)]}, **head).json()["checks"]
        assert (row["failure"], row["available"]) == (fault.kind, fault.available)
        assert ("not asked" in web.get(f"/url/{address(name)}").text) is (fault.available is None)
        assert_not_answered_for_the_owner(archive, address(name), name)


def assert_not_answered_for_the_owner(archive: Archive, url: str, name: str) -> None:
    """That a stranger may not ask is no answer to the owner, who may."""
    with Monitor(archive) as monitor:
        assert monitor.check_multi([url])[0].cached is (name != "private")


def test_a_robots_txt_that_cannot_be_read_is_told_with_the_rule_that_is_followed(
    address: Callable[[str], str], cli: Cli
) -> None:
    for name, sentence in (("robots in trouble", "its status is 503"), ("dead server", "no connection could be made")):
        cli("crawl", address(name), "--limit", "1")
        [row] = cli("history", address(name))[1]
        assert sentence in row["error"]
        assert "robots.txt of this host could not be read" in row["error"]
        assert "RFC 9309" in row["error"]


def test_links_to_dead_servers_are_broken_and_those_to_busy_ones_are_not(
    address: Callable[[str], str], cli: Cli, scripted_site: ScriptedSite
) -> None:
    targets = [address(name) for name in ("dead server", "name", "too often", "robots in trouble")]
    page = scripted_site.set("/page", "".join(f"<a href='{url}'>there</a>" for url in targets).encode())
    cli("crawl", page, "--scope", "any", "--depth", "1", "--limit", "5")
    rows = cli("broken", page)[1]
    assert {row["target"] for row in rows} == set(targets[:2])


def test_a_download_that_reaches_nothing_is_a_job_that_failed(
    address: Callable[[str], str], cli: Cli, tmp_path: Path
) -> None:
    for name, sentence in (("dead server", "connect 1"), ("name", "dns 1")):
        file = tmp_path / "job.xml"
        file.write_text(f'<query package="downloader"><download><url>{address(name)}</url></download></query>')
        status, _, errors = cli("jobs", "submit", str(file), "--wait")
        assert status != 0
        assert sentence in errors


def test_what_was_not_asked_says_nothing_of_availability(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", b"<p>There</p>")
    settings = Settings(fetch=FetchSettings(private="never"), monitor=MonitorSettings(min_interval=0, delay=0))
    with Archive(tmp_path / "a", settings=Settings(monitor=settings.monitor)) as archive, Monitor(archive) as monitor:
        assert monitor.get(url).available() is True
    with Archive(tmp_path / "a", settings=settings) as archive, Monitor(archive) as monitor:
        page = monitor.get(url)
        with pytest.raises(Refused, match="private network"):
            page.available()
        history = archive.history(url)
        assert [check.available for check in history] == [True, None]
        assert [available for _, available in page.availability()] == [True]
        assert page.available(at=history[-1].checked_at) is True


def test_a_text_that_is_no_address_keeps_nobody_from_the_others(cli: Cli, scripted_site: ScriptedSite) -> None:
    good = [scripted_site.set("/a", b"a"), scripted_site.set("/b", b"b")]
    status, rows, errors = cli("check", good[0], "no such://thing", good[1])
    assert status == 2
    assert [row["outcome"] for row in rows] == [Outcome.NEW, Outcome.REFUSED, Outcome.NEW]
    assert "no such://thing" in errors


def test_http_checks_the_good_addresses_of_a_list_too(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    good = scripted_site.set("/a", b"a")
    with Archive(tmp_path / "a", settings=Settings(fetch=FetchSettings(private="always"))) as archive:
        head = {"Authorization": f"Bearer {accounts_of(archive).create_token('all', None, 'write', 0)}"}
        with running(archive) as web:
            answer = _checked(web, [good, "no such://thing"], head)
    assert [(row["outcome"], row["failure"]) for row in answer] == [("new", ""), ("refused", "address")]


def _checked(web: WebClient, urls: list[str], head: dict[str, str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = web.post("/api/v1/check", {"url": urls}, **head).json()["checks"]
    return rows
