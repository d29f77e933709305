"""`letopis doctor` knows every optional part and the command that brings it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from letopis.cli.main import main

ROOT = Path(__file__).parent.parent.parent


def test_every_extra_is_named_with_the_command_that_brings_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--archive", str(tmp_path / "archive"), "doctor", "--json"])
    found = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]) - {"dev"}
    assert extras <= set(found)
    for name in extras - {"browser"}:
        assert found[name]["detail"] in ("installed", f"pip install letopis[{name}]")


def test_the_browser_is_named_or_what_brings_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "chromium"
    monkeypatch.setenv("PATH", str(tmp_path))
    answers = []
    for _ in range(2):
        main(["--archive", str(tmp_path / "archive"), "doctor", "--json"])
        found = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
        answers.append((found["browser"]["ok"], found["browser"]["detail"]))
        program.touch(0o755)
    assert answers[0][0] is None
    assert "install the system's package 'chromium-headless-shell'" in answers[0][1]
    assert answers[1] == (True, str(program))


def test_dictionaries_of_word_forms_that_are_named_and_missing_are_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETOPIS_SEARCH_AFFIXES", f"cs={tmp_path}/cs_CZ.aff")
    answers = []
    for _ in range(2):
        main(["--archive", str(tmp_path / "archive"), "doctor", "--json"])
        found = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
        answers.append((found["hunspell cs"]["ok"], found["hunspell cs"]["detail"]))
        (tmp_path / "cs_CZ.aff").touch()
    assert answers == [(False, f"{tmp_path}/cs_CZ.aff is missing"), (True, f"{tmp_path}/cs_CZ.aff is used")]
