"""users, tokens and projects on the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from letopis.archive import Archive
from letopis.catalog.accounts import READ, Accounts
from letopis.cli import main


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs one command over an archive of its own; answers exit status, output and complaints."""

    def command(*words: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        status = main(["--archive", str(tmp_path / "archive"), *words])
        out = capsys.readouterr()
        return status, out.out, out.err

    command("init")
    return command


def test_users_are_added_listed_changed_and_removed(run: Any, tmp_path: Path) -> None:
    assert run("users", "add", "anna", "--role", "owner", "--password-stdin", stdin="long enough\n")[0] == 0
    assert run("users", "add", "bert", "--password-stdin", stdin="long enough\n")[0] == 0
    rows = [json.loads(line) for line in run("users", "list", "--json")[1].splitlines()]
    assert [(row["name"], row["role"]) for row in rows] == [("anna", "owner"), ("bert", "user")]
    assert run("users", "passwd", "bert", "--password-stdin", stdin="something else\n")[0] == 0
    with Archive(tmp_path / "archive") as archive:
        accounts = Accounts(archive.catalog.database)
        assert accounts.sign_in("bert", "something else") is not None
        assert accounts.sign_in("bert", "long enough") is None
    assert run("users", "remove", "bert")[0] == 0
    assert run("users", "remove", "bert")[0] == 3


def test_short_passwords_and_odd_names_are_refused(run: Any) -> None:
    assert run("users", "add", "anna", "--password-stdin", stdin="short\n")[0] == 2
    assert run("users", "add", "a b", "--password-stdin", stdin="long enough\n")[0] == 2
    status, _, complaint = run("users", "add", "anna")
    assert (status, "--password-stdin" in complaint) == (2, True)


def test_a_token_is_printed_once_and_can_be_revoked(run: Any, tmp_path: Path) -> None:
    token = run("tokens", "create", "ci")[1].strip()
    with Archive(tmp_path / "archive") as archive:
        assert Accounts(archive.catalog.database).bearer(token) == ("token ci", READ)
    assert token not in run("tokens", "list", "--json")[1]
    assert run("tokens", "create", "ci")[0] == 2
    assert run("tokens", "create", "other", "--user", "nobody")[0] == 3
    assert run("tokens", "revoke", "ci")[0] == 0
    assert run("tokens", "revoke", "ci")[0] == 3


def test_projects_hold_pages(run: Any) -> None:
    run("projects", "add", "news", "example.org")
    row = json.loads(run("projects", "add", "news", "http://example.com/a", "--json")[1])
    assert row["urls"] == ["http://example.com/a", "http://example.org/"]
    assert run("projects", "show", "news")[1].splitlines() == row["urls"]
    assert "news" in run("projects", "list")[1]
    assert run("projects", "remove", "news")[0] == 0
    assert run("projects", "show", "news")[0] == 3
