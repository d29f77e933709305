"""Histories of git come in, each commit at its time; nothing of the repository is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.errors import UsageError
from letopis.exchange.imports import import_sources, source_kind
from letopis.exchange.sources import SourceHints

SITE = "https://example.org/"


def git(folder: Path, *words: str, hour: int = 0) -> None:
    date = f"2024-01-31T{hour:02}:00:00Z"
    names = {f"GIT_{who}_{what}": "someone" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    told = os.environ | names | {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z"}
    subprocess.run(["git", "-C", str(folder), *words], check=True, env=told, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits: two pages come, one changes, one goes."""
    folder = tmp_path / "site"
    (folder / "public").mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "main", "site")
    states: list[dict[str, str | None]] = [
        {"public/index.html": "<p>one", "public/ä b.html": "<p>space", "readme.txt": "not a page"},
        {"public/index.html": "<p>two"},
        {"public/ä b.html": None},
    ]
    for hour, state in enumerate(states, 1):
        for name, text in state.items():
            (folder / name).unlink() if text is None else (folder / name).write_text(text)
        git(folder, "add", "-A", hour=hour)
        git(folder, "commit", "-q", "-m", f"state {hour}", hour=hour)
    return folder


def test_every_commit_is_a_version_at_its_time(repository: Path, tmp_path: Path) -> None:
    assert source_kind(str(repository)) == "git"
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(repository)], hints=SourceHints(SITE, None, ("public",)))
        assert (report.checks, report.versions, dict(report.refused)) == (4, 3, {})
        times = [version.time for version in archive.versions(SITE)]
        assert times == [datetime(2024, 1, 31, hour, tzinfo=UTC) for hour in (1, 2)]
        assert archive.get(SITE, at=datetime(2024, 1, 31, 1, 30, tzinfo=UTC)).body == b"<p>one"
        gone = archive.history(SITE + "%C3%A4%20b.html")
        assert [(check.status, check.available) for check in gone] == [(200, True), (404, False)]


def test_a_whole_repository_and_a_bare_one_come_in(repository: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "-q", "--bare", str(repository), str(tmp_path / "bare.git")], check=True)
    with Archive(tmp_path / "archive") as archive:
        import_sources(archive, [str(tmp_path / "bare.git")], hints=SourceHints(SITE))
        assert archive.get(SITE + "public/").body == b"<p>two"
        assert archive.get(SITE + "readme.txt").content_type == "text/plain"


def test_one_file_is_one_page(repository: Path, tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        asked = SourceHints("https://example.org/front", None, ("public/index.html",))
        import_sources(archive, [str(repository)], hints=asked)
        assert len(archive.versions("https://example.org/front")) == 2


def test_a_merge_counts_as_what_it_brought(repository: Path, tmp_path: Path) -> None:
    git(repository, "checkout", "-q", "-b", "side")
    (repository / "public" / "index.html").write_text("<p>side")
    git(repository, "commit", "-q", "-a", "-m", "side", hour=5)
    git(repository, "checkout", "-q", "main")
    (repository / "readme.txt").write_text("more")
    git(repository, "commit", "-q", "-a", "-m", "main", hour=6)
    git(repository, "merge", "-q", "--no-ff", "-m", "merged", "side", hour=7)
    with Archive(tmp_path / "archive") as archive:
        import_sources(archive, [str(repository)], hints=SourceHints(SITE, None, ("public",)))
        last = archive.versions(SITE)[-1]
        assert (archive.get(SITE).body, last.time.hour) == (b"<p>side", 7)


def test_nothing_of_the_repository_is_run(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\n")
    trap.chmod(0o755)
    settings = ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.sshCommand", "core.editor")
    for name in settings:
        git(repository, "config", name, str(trap))
    git(repository, "config", "log.showSignature", "true")
    (repository / ".git" / "hooks" / "post-checkout").symlink_to(trap)
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("*.html diff=trap filter=trap\n")
    for name in ("diff.trap.textconv", "filter.trap.smudge", "filter.trap.clean"):
        git(repository, "config", name, str(trap))
    (tmp_path / "sprung").unlink(missing_ok=True)
    with Archive(tmp_path / "archive") as archive:
        assert import_sources(archive, [str(repository)], hints=SourceHints(SITE)).checks == 5
    assert not (tmp_path / "sprung").exists()


def test_what_a_partial_clone_lacks_is_not_fetched_by_a_command_of_its_own(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git of before 2.44 does not know the variable that keeps it from fetching."""
    older = tmp_path / "bin" / "git"
    older.parent.mkdir()
    older.write_text(f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {shutil.which("git")} "$@"\n')
    older.chmod(0o755)
    found = subprocess.run(["git", "-C", str(repository), "rev-parse", "HEAD:readme.txt"], capture_output=True)
    blob = found.stdout.decode().strip()
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for name, value in {
        "core.repositoryformatversion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::sh -c touch% {tmp_path}/run", "protocol.ext.allow": "always",
    }.items():  # fmt: skip
        git(repository, "config", name, value)
    monkeypatch.setenv("PATH", f"{older.parent}{os.pathsep}{os.environ['PATH']}")
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(repository)], hints=SourceHints(SITE))
    assert report.versions == 3
    assert not (tmp_path / "run").exists()


def test_what_is_no_page_of_the_address_is_named(repository: Path, tmp_path: Path) -> None:
    (repository / "link.html").symlink_to("/etc/passwd")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "link", hour=9)
    with Archive(tmp_path / "archive") as archive:
        report = import_sources(archive, [str(repository)], hints=SourceHints(SITE))
        assert dict(report.refused) == {"a link or a module of git": 1}
        report = import_sources(archive, [str(repository)], hints=SourceHints("https://example.org/one"))
        assert report.checks == 0
        assert report.refused.total() == 6


def test_what_git_cannot_read_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "broken" / ".git").mkdir(parents=True)
    with Archive(tmp_path / "archive") as archive, pytest.raises(UsageError, match="git cannot read"):
        import_sources(archive, [str(tmp_path / "broken")], hints=SourceHints(SITE))
