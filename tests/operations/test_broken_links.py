"""Broken links as a link checker sees them: with their places, to places that are missing, to what no crawl came to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from served_archive import at, look, make_archive, running  # noqa: F401

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.extract.link_places import leads_somewhere, link_places, place_names

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
