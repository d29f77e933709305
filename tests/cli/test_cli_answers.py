"""What verbs print for programs and for people: one object, a sentence about what was done, the nearest verb."""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.cli.main import VERBS, main, nearest_verb

URL = "http://example.org/"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with Archive(tmp_path / "a") as archive:
        for day, body in ((1, b"<p>river"), (2, b"<p>stone"), (3, b"\x89PNG\xff")):
            archive.put(URL, body, at=datetime(2026, 1, day, tzinfo=UTC))
    return str(tmp_path / "a")


def told(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[str, str]:
    assert main(list(words)) == status
    return capsys.readouterr()


def test_get_as_json_is_one_object(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(capsys, "--archive", folder, "get", URL, "--version", "0", "--json")
    assert json.loads(out) | {"version": 0, "text": "<p>river"} == json.loads(out)
    out, _ = told(capsys, "--archive", folder, "get", URL, "--offline", "--json")
    assert b64decode(json.loads(out)["base64"]) == b"\x89PNG\xff"


@pytest.mark.parametrize("form", ["unified", "json", "words", "html", "binary"])
def test_diff_as_json_is_one_object(folder: str, capsys: pytest.CaptureFixture[str], form: str) -> None:
    words = ("--archive", folder, "diff", URL, "--from", "2026-01-01", "--to", "2026-01-02", "--offline", "--json")
    out, _ = told(capsys, *words, "--format", form)
    assert isinstance(json.loads(out), dict)
    assert out.count("\n") == 1


def test_help_is_a_word_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Usage: letopis [OPTIONS]" in told(capsys, "help")[0]
    assert "Usage: letopis get" in told(capsys, "help", "get")[0]


def test_an_unknown_verb_is_answered_with_the_nearest_by_letters_or_by_meaning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = {"serch": "search", "histry": "history", "fetch": "get", "fsck": "verify", "mirror": "clone"}
    assert {word: nearest_verb(word) for word in named} == named
    assert nearest_verb("xyzzy") is None
    assert set(filter(None, map(nearest_verb, VERBS))) == set(VERBS)
    assert "did you mean 'search'?" in told(capsys, "serch", status=2)[1]


def test_verify_and_compact_say_what_they_did(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no problems found: 3 versions of 1 document" in told(capsys, "--archive", folder, "verify")[1]
    assert "3 contents rewritten" in told(capsys, "--archive", folder, "compact")[0]
    assert "nothing to free" in told(capsys, "--archive", folder, "compact")[0]


def test_verify_tells_programs_what_it_checked(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    [found] = map(json.loads, told(capsys, "--archive", folder, "--json", "verify")[0].splitlines())
    assert found.pop("pack_bytes") > 0
    assert found == {"problems": 0, "documents": 1, "versions": 3, "contents": 3}


def test_a_corpus_that_is_not_there_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    _, errors = told(capsys, "bench", "codecs", "--corpus", "nosuch", status=3)
    assert errors == "letopis: there is no corpus nosuch; give a folder of pages\n"


def test_a_file_that_was_written_is_named_with_its_size(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (("map", "example.org"), ("get", URL, "--version", "0"), ("map", "example.org", "--format", "json")):
        out, said = told(capsys, "--archive", folder, *words, "-o", str(tmp_path / "file"))
        assert (out, said) == ("", f"{tmp_path / 'file'}: {(tmp_path / 'file').stat().st_size} bytes\n")
    assert told(capsys, "--archive", folder, "get", URL, "--version", "0", "-o", "-")[0] == "<p>river"
    assert told(capsys, "--archive", folder, "-q", "map", "example.org", "-o", str(tmp_path / "file")) == ("", "")


def test_zrec_verify_says_what_it_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_text("Package: a\n\nPackage: b\n\n")
    told(capsys, "zrec", "pack", str(tmp_path / "in"), str(tmp_path / "out.zrec"))
    assert told(capsys, "zrec", "verify", str(tmp_path / "out.zrec")) == ("", "no problems found: 2 chunks\n")


def test_what_stood_once_is_told_of_one_version(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "; 1 version of 1 page\n" in told(capsys, "--archive", folder, "when", "river")[0]


def test_a_setting_that_there_is_not_is_not_sent_to_the_settings_file(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told(capsys, "--archive", folder, "settings", "set", "monitor.evry", "1h", status=2)[1]
    assert said == "letopis: there is no setting 'monitor.evry'; did you mean 'monitor.every'?\n"
