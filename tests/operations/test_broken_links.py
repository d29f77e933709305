"""Broken links as a link checker sees them: with their places, to places that are missing, to what no crawl came to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from scripted_site import ScriptedSite
from served_archive import at, look, make_archive, running  # noqa: F401

from letopis.archive import READ, Archive
from letopis.archive.jobs import ENDED
from letopis.catalog.accounts import Accounts
from letopis.cli.main import main
from letopis.config import FetchSettings, Settings
from letopis.errors import Refused
from letopis.index.page_places import leads_somewhere, link_places, place_names
from letopis.jobs.supervisor import Supervisor
from letopis.operations import Context
from letopis.operations.links import BrokenLinksQuery, broken

PAGE = b"""<!doctype html>
<title>Home</title>
<p id=intro><a href="/gone">gone</a>
  <a href="#intro">here</a> <a href='#missing'>nowhere</a> <a href="/other#part">part</a>
  <a href="/other#nothing">nothing</a> <a href="/other#caf%C3%A9">cafe</a> <a href="#top">top</a>
"""
OTHER = '<a name=part></a><h2 id="café">x</h2>'.encode()


def fill(archive: Archive) -> None:
    archive.record([look("http://a.example/", at(0), PAGE), look("http://a.example/other", at(1), OTHER)])
    archive.record([look("http://a.example/gone", at(2), b"gone", 404)])


def test_broken_links_say_where_they_stand(make_archive: Any) -> None:  # noqa: F811
    archive = make_archive()
    fill(archive)
    with running(archive) as web:
        rows = web.get("/api/v1/broken?site=a.example").json()["broken"]
        assert [(row["target"], row["line"], row["column"]) for row in rows] == [("http://a.example/gone", 3, 16)]
        rows = web.get("/api/v1/broken?site=a.example&fragments=true").json()["broken"]
    assert [(row["target"], row["type"], row["line"]) for row in rows[1:]] == [
        ("http://a.example/#missing", "fragment", 4),
        ("http://a.example/other#nothing", "fragment", 5),
    ]


def test_what_no_crawl_came_to_is_checked_when_asked(
    tmp_path: Path, scripted_site: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    home = scripted_site.set("/", b'<a rel=nofollow href="/hidden">x</a><object data=/film></object>')
    with Archive(tmp_path / "a") as archive:
        archive.put(home, b'<a rel=nofollow href="/hidden">x</a><object data=/film></object>')
    host = home.split("/")[2]
    folder = str(tmp_path / "a")
    assert main(["broken", host, "--json", "--archive", folder]) == 0
    assert capsys.readouterr().out.strip() in ("", "[]")
    assert main(["broken", host, "--check", "site", "--json", "--archive", folder]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(row["target"].removeprefix(home), row["status"]) for row in rows} == {("hidden", 404), ("film", 404)}


def test_links_are_found_in_the_source_with_their_places() -> None:
    text = (
        '<!-- <a href=/no> -->\n<base href="/b/"><a\n href=c#d>x</a><p data=n><script src=s.js>"<a href=/x>"</script>'
    )
    found = [tuple(one) for one in link_places(text, "http://a.example/")]
    assert found == [(3, 2, "http://a.example/b/c", "d"), (3, 34, "http://a.example/b/s.js", "")]


def test_sets_of_images_and_styles_have_their_places_too() -> None:
    text = (
        '<style>\np{background:url(s.png)}</style>\n<img srcset="a.png 1x, b.png 2x"\n longdesc=d>\n'
        "<p style='background:url(\"c.png\")'>"
    )
    found = [tuple(one)[:3] for one in link_places(text, "http://a.example/")]
    assert found == [
        (1, 1, "http://a.example/s.png"),
        (3, 6, "http://a.example/a.png"),
        (3, 6, "http://a.example/b.png"),
        (4, 2, "http://a.example/d"),
        (5, 4, "http://a.example/c.png"),
    ]


@pytest.mark.parametrize(
    ("fragment", "leads"),
    [("a", True), ("b%20c", True), ("top", True), ("", True), ("!/route", True), ("a:~:text=x", True), ("z", False)],
)
def test_places_are_ids_and_names_of_anchors(fragment: str, leads: bool) -> None:
    names = place_names('<p id=a><a name="b c"><input name=z>')
    assert leads_somewhere(fragment, names) is leads


FORMS = (
    '<a rel=nofollow href="/nofollow">x</a>', '<object data="/object"></object>', '<table background="/table">',
    '<td background="/td">x', '<blockquote cite="/cite">x</blockquote>', '<button formaction="/formaction">x</button>',
    '<form action="/action"></form>', '<img longdesc="/longdesc">', '<embed src="/embed">', '<q cite="/q">x</q>',
    '<a href="{other}/never">x</a>', '<a href="/fine#nothing">x</a>', '<a href="#nowhere">x</a>',
)  # fmt: skip


@dataclass(frozen=True)
class LinkedSite:
    """A page with a link of every form on a line of its own, and what a checker has to say of each."""

    folder: Path
    host: str
    expected: dict[str, int]
    other: str

    def named(self, rows: list[dict[str, Any]]) -> dict[str, int]:
        """The line of each target, without the ports of this run."""
        shorter = {self.other: "other", f"http://{self.host}": ""}
        return {reduce(lambda url, old: url.replace(old, shorter[old]), shorter, row["target"]): row["line"]
                for row in rows}  # fmt: skip


@pytest.fixture
def linked(tmp_path: Path, scripted_site: Any) -> Iterator[LinkedSite]:
    beside = ScriptedSite()
    other = beside.url("").replace("127.0.0.1", "localhost")
    page = "\n".join(["<body background=/body>", *FORMS]).replace("{other}", other).encode()
    home = scripted_site.set("/", page)
    fine = scripted_site.set("/fine", b"<p id=part>")
    with Archive(tmp_path / "a") as archive:
        archive.put(home, page)
        archive.put(fine, b"<p id=part>")
    names = ("body", "nofollow", "object", "table", "td", "cite", "formaction", "action", "longdesc", "embed", "q")
    expected = {f"/{name}": line for line, name in enumerate(names, 1)}
    expected |= {"other/never": 12, "/fine#nothing": 13, "/#nowhere": 14}
    yield LinkedSite(tmp_path / "a", home.split("/")[2], expected, other)
    beside.close()


def test_every_form_of_link_is_listed_with_its_place_at_the_command_line(
    linked: LinkedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["broken", linked.host, "--fragments", "--check", "all", "--json", "--archive", str(linked.folder)]
    assert main(words) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert linked.named(rows) == linked.expected
    assert all(row["column"] > 0 for row in rows)


def test_a_run_checks_links_and_http_lists_every_form_with_its_place(linked: LinkedSite) -> None:
    settings = Settings(fetch=FetchSettings(private="always"))
    asked = f"/api/v1/broken?site={linked.host}&fragments=true"
    run = {"kind": "broken", "site": linked.host, "check": "all"}
    with Archive(linked.folder, settings=settings) as archive, running(archive) as web:
        accounts = Accounts(archive.catalog.database)
        token = accounts.create_token("uwe", accounts.add("uwe", "user", None, 0), "write", 0)
        sent = {"Content_Type": "application/json", "Authorization": f"Bearer {token}"}
        before = web.get(asked, **sent).json()["broken"]
        answer = web.ask("POST", "/api/v1/runs", json.dumps(run), **sent)
        assert answer.status == 201, answer.text
        work_off(archive)
        rows = web.get(asked, **sent).json()["broken"]
    assert {row["type"] for row in before} == {"fragment"}
    assert linked.named(rows) == linked.expected


def test_who_may_only_read_has_nothing_checked(linked: LinkedSite) -> None:
    with Archive(linked.folder) as archive, pytest.raises(Refused, match="ask an owner"):
        broken(Context(archive, rights=READ), BrokenLinksQuery(site=linked.host, check="all"))


def work_off(archive: Archive) -> None:
    """Works until no job waits any more."""
    rows = archive.catalog.database
    asyncio.run(
        Supervisor(archive).run_until(lambda: all(row[0] in ENDED for row in rows.all("SELECT state FROM job")))
    )
