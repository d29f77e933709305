"""Pages of others do nothing to the terminal of whoever reads about them."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.model.printing import printable, printable_json

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "Bill\x1b]0;owned\x07\x9b2J\x7f \u202etxt.exe \x1b[8mhidden"
URL = "http://hostile.example/"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    body = f"<title>{HOSTILE}</title><p>words {HOSTILE}<a href='/gone'>{HOSTILE}</a>".encode()
    with Archive(tmp_path / "archive") as archive:
        archive.put(URL, body)
        archive.put(URL, body.replace(b"words", b"other words"))
        archive.put("http://hostile.example/copy", body)
        yield archive.folder


VERBS = [
    ["search", "words"], ["versions", URL], ["history", URL], ["map", "hostile.example"], ["changes"], ["duplicates"],
    ["check", f"http://{HOSTILE}/"], ["get", f"http://127.0.0.1/{HOSTILE}"], ["projects", "show", HOSTILE],
]  # fmt: skip


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["for people", "for programs"])
@pytest.mark.parametrize("words", VERBS, ids=[" ".join(words[:1]) for words in VERBS])
def test_no_verb_prints_control_characters_of_pages(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], form: list[str]
) -> None:
    main(["--archive", str(folder), *form, *words])
    said = capsys.readouterr()
    assert said.out + said.err
    assert CONTROL.findall(said.out + said.err) == []


def test_a_document_is_printed_byte_for_byte_but_on_a_terminal(folder: Path) -> None:
    words = _command(folder, "get", URL)
    assert b"\x1b]0;owned\x07" in subprocess.run(words, capture_output=True, check=True, timeout=300).stdout
    seen = _at_a_terminal(words)
    assert "\\x1b]0;owned\\x07" in seen
    assert CONTROL.findall(seen) == []


def test_found_words_are_bold_at_a_terminal_and_plain_elsewhere(folder: Path) -> None:
    words = _command(folder, "search", "words")
    plain = subprocess.run(words, capture_output=True, check=True, timeout=300, text=True).stdout
    assert "  words Bill" in plain
    assert "[1m" not in plain
    seen = _at_a_terminal(words)
    assert "  \x1b[1mwords\x1b[0m Bill" in seen
    assert CONTROL.findall(seen.replace("\x1b[1m", "").replace("\x1b[0m", "")) == []


def _command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "letopis.cli", "--archive", str(folder), *words]


def _at_a_terminal(words: list[str]) -> str:
    """What a verb prints at a terminal, when it ended well."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(words, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 4096):
            seen += piece
    except OSError:  # its way of saying that nobody writes any more
        pass
    os.close(ours)
    assert process.wait(300) == 0
    return seen.decode().replace("\r\n", "\n")


def test_text_of_every_language_is_printed_as_it_is() -> None:
    text = "Příliš žluťoučký\tkůň\nعربى 中文 🐎"
    assert printable(text) == text
    assert printable_json(f'"{text}"') == f'"{text}"'
