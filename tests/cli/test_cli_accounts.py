"""users, tokens, projects and the audit log on the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.cli import main
from letopis.model.rights import READ


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
        accounts = accounts_of(archive)
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
        assert accounts_of(archive).bearer(token, 0) == ("token ci", READ)
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
    assert json.loads(run("projects", "add", "news", "a.example", "b.example", "--json")[1])["pages"] == 2
    assert run("projects", "remove", "news", "http://a.example/")[1] == "Removed from news: http://a.example/.\n"
    assert run("projects", "show", "news")[1].split() == ["http://b.example/"]
    status, _, complaint = run("projects", "remove", "news", "http://a.example/")
    assert (status, "is not in project" in complaint) == (3, True)


def test_roles_groups_and_accounts_without_a_password(run: Any) -> None:
    made = run("users", "add", "anna", "--role", "owner", "--no-password", "--email", "a@example.org", "--json")[1]
    row = json.loads(made)
    assert (row["name"], row["role"], row["email"], row["group"]) == ("anna", "owner", "a@example.org", "")
    assert "Account created" in run("users", "add", "bert", "--no-password")[1]
    assert json.loads(run("users", "role", "bert", "guest", "--json")[1])["role"] == "guest"
    assert json.loads(run("users", "group", "bert", "editors", "--json")[1])["group"] == "editors"
    assert json.loads(run("users", "group", "bert", "--json")[1])["group"] == ""
    status, _, complaint = run("users", "role", "anna", "user")
    assert (status, "only owner" in complaint) == (2, True)
    assert run("users", "role", "nobody", "user")[0] == 3
    assert run("users", "role", "bert", "king")[0] == 2


def test_every_change_is_in_the_audit_log_once(run: Any) -> None:
    run("users", "add", "anna", "--role", "owner", "--no-password")
    run("users", "remove", "nobody")
    run("tokens", "create", "ci", "--scope", "write")
    run("projects", "add", "news", "example.org")
    rows = [json.loads(line) for line in run("audit", "--json")[1].splitlines()]
    assert [(row["action"], row["subject"]) for row in rows] == [
        ("project added to", "news"),
        ("token created", "ci write"),
        ("user added", "anna owner"),
    ]
    assert {(row["who"], row["address"]) for row in rows} == {("command line", "")}
    assert len(run("audit", "--limit", "1")[1].splitlines()) == 2


def test_questions_make_no_archive(run: Any, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    for words in (("users", "list"), ("audit",), ("tokens", "revoke", "x"), ("crawls", "drop", "example.org")):
        assert run("--archive", nowhere, *words)[0] == 3
    assert not (tmp_path / "nowhere").exists()
