"""What people read in their first hour: hints that can be followed, examples that can be copied, and no silence."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.cli.main import VERBS, load_verb, main
from letopis.errors import PageChanged
from letopis.model import Put
from letopis.operations import Document
from letopis.operations.operation import all_operations

URL = "http://example.org/"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Archive(tmp_path / "archive") as archive:
        archive.put(URL, b"<title>Lamps</title><p>a lamp of brass", at=datetime(2024, 3, 1, tzinfo=UTC))
    return tmp_path / "archive"


def test_words_that_were_found_are_bold_on_a_terminal_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--archive", str(folder), "search", "brass"]
    assert main(words) == 0
    plain = capsys.readouterr().out
    assert "x1b" not in plain
    assert "\x1b" not in plain
    assert "a lamp of brass" in plain
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, "-m", "letopis.cli", *words], stdout=theirs, check=True, timeout=300)
    os.close(theirs)
    assert b"\x1b[1mbrass\x1b[0m" in os.read(ours, 65536)
    os.close(ours)
    assert done.returncode == 0


def test_whoever_reads_only_the_beginning_is_no_failure(folder: Path) -> None:
    with Archive(folder) as archive:
        list(archive.put_many(Put(URL, f"<p>{number}".encode()) for number in range(3000)))
    command = shlex.join([sys.executable, "-m", "letopis.cli", "--archive", str(folder), "versions", URL])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -1; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


def test_a_hint_names_a_command_that_exists(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("map", "changes", "duplicates", "mute"):
        assert main(["--archive", str(folder), verb, "--nosuch"]) == 2
        assert capsys.readouterr().err.endswith(f"see 'letopis {verb} --help'\n")


def commands(command: click.Command) -> Iterator[click.Command]:
    yield command
    for one in getattr(command, "commands", {}).values():
        yield from commands(one)


@pytest.mark.parametrize("name", list(VERBS))
def test_examples_of_help_can_be_copied(name: str) -> None:
    with click.Context(load_verb(name), info_name=f"letopis {name}", terminal_width=60) as context:
        shown = context.get_help().splitlines()
    for example in getattr(load_verb(name), "examples", ()):
        assert f"  {example}" in shown


def test_a_list_that_is_empty_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in {
        ("watch", "list"): "no watches\n", ("watch", "alerts"): "no alerts\n", ("jobs", "list"): "no jobs\n",
        ("broken", "example.org"): "no broken links\n", ("users", "list"): "no users\n",
    }.items():  # fmt: skip
        assert main(["--archive", str(folder), *words]) == 0
        assert capsys.readouterr() == ("", said)
        assert main(["--archive", str(folder), "--json", *words]) == 0
        assert capsys.readouterr() == ("", "")


def test_a_page_as_of_before_its_first_version_is_said_to_be_younger(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--archive", str(folder), "get", URL, "--at", "2020-01-01", "--offline"]) == 0
    said = capsys.readouterr()
    assert "this is the first, of 2024-03-01T00:00:00Z" in said.err
    assert "brass" in said.out
    assert main(["--archive", str(folder), "get", URL, "--at", "2024-03-01", "--offline"]) == 0
    assert capsys.readouterr().err == ""


def test_a_new_archive_has_no_totals_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--archive", str(tmp_path / "new"), "init"]) == 0
    assert main(["--archive", str(tmp_path / "new"), "stats"]) == 0
    assert "None" not in capsys.readouterr().out


def test_intervals_are_said_as_people_write_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--archive", str(tmp_path / "a"), "watch", "add", URL, "--every", "1d"]) == 0
    assert capsys.readouterr().out == f"watching {URL}, every 1d\n"


def test_a_check_fails_on_a_change_if_it_is_asked_to(
    tmp_path: Path, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    url = scripted_site.set("/terms", b"<p>thirty days to send it back")
    words = ["--archive", str(tmp_path / "a"), "check", url, "--as", "ci", "--now"]
    assert [main([*words, "--fail-if-changed"]) for _ in range(2)] == [0, 0]
    scripted_site.set("/terms", b"<p>fourteen days to send it back")
    assert main([*words, "--fail-if-changed"]) == PageChanged.exit_status == 8
    assert f"letopis: {url} has changed: " in capsys.readouterr().err
    assert main([*words, "--fail-if-changed"]) == 0
    scripted_site.set("/terms", b"<p>no days to send it back")
    assert main(words) == 0


def test_every_watch_of_a_tag_is_made_due_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = ["--archive", str(tmp_path / "a")]
    main([*root, "watch", "add", URL, f"{URL}b", "--tag", "news"])
    main([*root, "watch", "add", f"{URL}c", "--tag", "other"])
    capsys.readouterr()
    assert main([*root, "watch", "check", "--tag", "news"]) == 0
    assert capsys.readouterr().out == f"due: {URL}\ndue: {URL}b\n"
    assert main([*root, "watch", "check"]) == 2


def test_a_tag_that_no_watch_has_is_told_and_nothing_is_called_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Archive(tmp_path / "a"):
        pass
    assert main(["--archive", str(tmp_path / "a"), "watch", "check", "--tag", "news"]) == 3
    assert "no watch has the tag 'news'" in capsys.readouterr().err


def test_watches_of_a_list_get_a_tag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pages.txt").write_text(f"{URL}\n{URL}b\n")
    root = ["--archive", str(tmp_path / "a")]
    assert main([*root, "import", str(tmp_path / "pages.txt"), "--watches", "--tag", "news"]) == 0
    assert capsys.readouterr().out == "2 watches\n"
    assert main([*root, "--json", "watch", "list", "--tag", "news"]) == 0
    assert capsys.readouterr().out.count("\n") == 2


def test_a_page_with_one_version_is_said_to_have_nothing_to_compare(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--archive", str(folder), "diff", URL, "--offline"]) == 0
    assert capsys.readouterr() == ("", "nothing to compare: both sides are version 0, of 2024-03-01T00:00:00Z\n")


def test_two_versions_are_not_said_to_be_one_where_a_format_shows_no_difference(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = folder / "page.html"
    for day, text in enumerate(("first", "second"), 2):
        page.write_text(f'<p>{text}</p><a href="/">home</a>')
        assert main(["--archive", str(folder), "put", f"{URL}new", str(page), "--at", f"2024-03-0{day}"]) == 0
    capsys.readouterr()
    assert main(["--archive", str(folder), "diff", f"{URL}new", "--format", "links", "--offline"]) == 0
    assert capsys.readouterr() == ("", "versions 0 and 1 differ in nothing that 'links' shows\n")


def test_a_file_that_is_not_there_is_said_to_be_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--archive", str(folder), "import", str(folder / "pages.txt")]) == 2
    assert capsys.readouterr().err == f"letopis: there is no {folder / 'pages.txt'}; check the path\n"


def test_a_compaction_counts_as_many_documents_as_there_are(
    folder: Path, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted_site.set("/gone", b"<p>it is not here any more", status=404)
    assert main(["--archive", str(folder), "check", scripted_site.url("/gone")]) == 4
    assert main(["--archive", str(folder), "compact"]) == 0
    assert "1 document, 2 contents rewritten" in capsys.readouterr().out


def test_a_terminal_is_spared_what_is_no_text(folder: Path) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "letopis.cli", "--archive", str(folder), "export", "warc"]
    done = subprocess.run(words, stdout=theirs, stderr=subprocess.PIPE, check=False, timeout=300)
    os.close(theirs)
    os.close(ours)
    assert (done.returncode, b"write it to a file with '> FILE'" in done.stderr) == (2, True)


def test_every_command_that_changes_something_says_what_it_did_in_a_sentence_or_a_table() -> None:
    silent = [
        one.verb
        for one in all_operations().values()
        if one.verb and one.changes and one.sentence is None and one.answer is not Document and not one.columns
    ]
    assert silent == []


def test_settings_are_listed_before_there_is_an_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--archive", str(tmp_path / "none"), "settings", "--json"]) == 0
    rows = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert rows["monitor.min_interval"]["value"] == rows["monitor.min_interval"]["default"] == "10.0"
    assert not (tmp_path / "none").exists()


def test_reading_leaves_nothing_in_a_folder_that_is_no_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("of somebody")
    for words in (["stats"], ["search", "lamp"], ["verify"], ["watch", "list"], ["simulate", "--from-archive"]):
        assert main(["--archive", str(tmp_path), *words]) == 3
        assert "there is no archive" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_closed_output_is_no_failure(folder: Path) -> None:
    command = shlex.join([sys.executable, "-m", "letopis.cli", "--archive", str(folder)])
    for words in ("versions http://example.org/", "--json stats", "get http://example.org/ --offline", "export warc"):
        done = subprocess.run(["bash", "-c", f"{command} {words} >&-"], capture_output=True, text=True, timeout=300)
        assert "error" not in done.stderr, words


@pytest.mark.parametrize("verb", ["serve", "run", "mcp --http"])
def test_a_port_that_is_none_is_told(folder: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert main(["--archive", str(folder), *verb.split(), "--port", "99999"]) == 1
    assert "cannot listen on 127.0.0.1:99999: " in capsys.readouterr().err
