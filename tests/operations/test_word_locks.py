"""Words that are found only as they are written: by verb, over HTTP, in a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from served_archive import running

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts
from letopis.cli.main import main

PAGE = b"<html lang=en><title>t</title><p>The windows of the house were open."


def found(folder: Path, capsys: pytest.CaptureFixture[str], word: str) -> bool:
    assert main(["--archive", str(folder), "--json", "search", word]) == 0
    return bool(capsys.readouterr().out)


def test_a_locked_word_is_found_only_as_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a"
    with Archive(folder) as archive:
        archive.put("http://example.org/", PAGE)
    assert found(folder, capsys, "window")
    assert main(["--archive", str(folder), "words", "lock", "Windows"]) == 0
    assert capsys.readouterr().out == "windows is its own base form from now on\n"
    assert found(folder, capsys, "windows")
    assert not found(folder, capsys, "window")
    assert main(["--archive", str(folder), "--json", "words", "list"]) == 0
    assert json.loads(capsys.readouterr().out) == {"form": "windows", "base": "windows", "locked": True}
    assert main(["--archive", str(folder), "words", "release", "windows"]) == 0
    assert found(folder, capsys, "window")
    assert main(["--archive", str(folder), "words", "lock", "two words"]) == 2


def test_words_are_locked_over_http_by_whoever_may_write(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        token = Accounts(archive.catalog.database).create_token("t", None, "write", 0)
        with running(archive) as web:
            assert web.post("/api/v1/words/lock", {"words": ["data"]}).status == 401
            done = web.post("/api/v1/words/lock", {"words": ["data"]}, Authorization=f"Bearer {token}")
            assert done.json()["words"] == [{"form": "data", "base": "data", "locked": True}]
            assert web.get("/api/v1/words").json()["words"] == done.json()["words"]
