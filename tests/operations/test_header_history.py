"""What servers said of a page at each look is shown in its history and with a check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis.cli.main import main


def test_headers_are_told_with_a_check_and_in_the_history(
    tmp_path: Path, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--archive", str(tmp_path / "a"), "--json"]
    for tag in ('"one"', '"two"'):
        url = scripted_site.set("/", b"<p>" + tag.encode(), ETag=tag, Set_Cookie="secret=1")
        assert main([*words, "check", url, "--now"]) == 0
        row = json.loads(capsys.readouterr().out)
        assert {"name": "ETag", "value": tag} in row["headers"]
        assert "secret" not in str(row)
    assert main([*words, "history", url]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    fields = [{field["name"]: field["value"] for field in row["headers"]} for row in rows]
    assert [field["ETag"] for field in fields] == ['"one"', '"two"']


def test_where_an_answer_came_from_is_told_with_a_check_and_in_the_history(
    tmp_path: Path, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--archive", str(tmp_path / "a")]
    target = scripted_site.set("/moved", b"<p>here now")
    url = scripted_site.set("/page", b"", status=301, Location="/moved")
    assert main([*words, "check", url]) == 0
    assert f"redirected to {target}" in capsys.readouterr().out
    assert main([*words, "history", url]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(target)
    assert main([*words, "--json", "history", url]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["redirected_to"], [hop["status"] for hop in row["redirects"]]) == (target, [301])


def test_what_a_crawl_knows_of_redirects_and_refusals_is_told(
    tmp_path: Path, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETOPIS_CRAWL_DELAY", "0")
    words = ["--archive", str(tmp_path / "a")]
    scripted_site.set("/robots.txt", b"User-agent: *\nDisallow: /private\n", Content_Type="text/plain")
    target = scripted_site.set("/there", b"<title>There</title>")
    old = scripted_site.redirect("/old", "/there")
    private = scripted_site.set("/private", b"no")
    seed = scripted_site.set("/", b"<a href=/old>o</a> <a href=/private>p</a>")
    assert main([*words, "-q", "crawl", seed, "--once"]) == 0
    capsys.readouterr()
    assert main([*words, "history", old]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(target)
    assert main([*words, "why", private]) == 0
    said = capsys.readouterr().out
    assert "next visit" in said
    assert "0 s after" not in said
