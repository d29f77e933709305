"""Long work tells how far it is: every operation that may take long, to a terminal and to nobody else."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from scripted_site import ScriptedSite
from served_archive import at

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import projects_of
from letopis.cli.context import ProgressLine
from letopis.config import Settings, load_settings
from letopis.operations import Context, Document, LocalContext, bind
from letopis.operations.exchange import PART_KINDS
from letopis.operations.operation import all_operations

SITE = "https://example.org"
ADDRESSES = [f"{SITE}/{number}.html" for number in range(4)]


class Told(NamedTuple):
    """What a door was told."""

    done: int
    what: str
    of: int


class Listener:
    """A door that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[Told] = []

    def show(self, done: int, what: str = "", of: int = 0) -> None:
        self.told.append(Told(done, what, of))

    def remark(self, sentence: str) -> None:
        assert sentence

    def cancelled(self) -> bool:
        return False


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as opened:
        for number, url in enumerate(ADDRESSES):
            page = f"<title>Page {number}</title><p>A page with words about rivers and {number} bridges.</p>"
            opened.put(url, (page + f'<a href="{ADDRESSES[number - 1]}">before</a>').encode(), at(number))
        yield opened


def _settings(folder: Path) -> Settings:
    return load_settings(None, {}, {"archive.path": str(folder)})


def told_by(name: str, archive: Archive, values: dict[str, Any], restored: Path = Path()) -> list[Told]:
    """Runs an operation to its end and answers what it told meanwhile."""
    operation, listener = all_operations()[name], Listener()
    asked = bind(operation.parameters, values, archive.clock())
    if operation.local:
        settings = _settings(restored) if name == "restore" else archive.settings
        context: Any = LocalContext(settings, lambda: Archive(settings=archive.settings, clock=archive.clock), listener)
    else:
        context = Context(archive, rights=READ | WRITE | OWN, origin="cli", progress=listener)
    answer = operation(context, asked)
    if isinstance(answer, Document):
        assert b"".join(answer.bytes())
    elif hasattr(answer, "rows"):
        list(answer)
    return listener.told


def _exported(archive: Archive, folder: Path) -> None:
    operation = all_operations()["export"]
    asked = bind(operation.parameters, {"kind": "warc"}, archive.clock())
    answer = operation(Context(archive, rights=READ | WRITE | OWN), asked)
    (folder / "all.warc.gz").write_bytes(b"".join(answer.bytes()))


def _published(archive: Archive, folder: Path) -> None:
    assert told_by("publish", archive, {"folder": str(folder / "www")})


def _cloned(archive: Archive, folder: Path) -> None:
    _published(archive, folder)
    told_by("clone", archive, {"url": str(folder / "www"), "folder": str(folder / "lazy"), "lazy": True})


def _backed_up(archive: Archive, folder: Path) -> None:
    assert told_by("backup", archive, {"folder": str(folder / "backup")})


def _nothing(archive: Archive, folder: Path) -> None:
    (folder / "there.toml").write_text(f'[archive]\npath = "{folder / "there"}"\n')


LONG: dict[str, tuple[dict[str, Any], Callable[[Archive, Path], None], str]] = {
    "backup": ({"folder": "backup"}, _nothing, "packs"),
    "categories": ({"site": "example.org"}, _nothing, "pages"),
    "clone": ({"url": "www", "folder": "clone"}, _published, "bytes"),
    "compact": ({}, _nothing, "documents"),
    "duplicates": ({"site": "example.org"}, _nothing, "pages"),
    "export": ({"kind": "warc"}, _nothing, "checks"),
    "import": ({"sources": ["all.warc.gz"]}, _exported, "records"),
    "map": ({"site": "example.org"}, _nothing, "versions"),
    "migrate": ({"target": "there.toml"}, _nothing, "parts"),
    "near": ({"word": "rivers"}, _nothing, "pages"),
    "publish": ({"folder": "www"}, _nothing, "documents"),
    "pull": ({"folder": "lazy", "fill": True}, _cloned, "bytes"),
    "restore": ({"folder": "backup"}, _backed_up, "contents"),
    "search": ({"q": "rivers"}, _nothing, "versions"),
    "site_audit": ({"site": "example.org"}, _nothing, "pages"),
    "verify": ({}, _nothing, "contents"),
    "verify_archive": ({}, _nothing, "contents"),
}
"""What is asked, what goes before, and what is counted."""
_PLACES = ("folder", "url", "target", "sources")


@pytest.mark.parametrize("name", LONG)
@pytest.mark.files
def test_long_work_tells_how_far_it_is(name: str, archive: Archive, tmp_path: Path) -> None:
    values, before, what = LONG[name]
    before(archive, tmp_path)
    placed = {
        one: value if one not in _PLACES
        else [str(tmp_path / part) for part in value] if isinstance(value, list) else str(tmp_path / value)
        for one, value in values.items()
    }  # fmt: skip
    told = [one for one in told_by(name, archive, placed, tmp_path / "restored") if one.what == what]
    assert told
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert all(one.of >= max(1, one.done) for one in told)


@pytest.mark.files
def test_a_copy_elsewhere_is_told_to_its_end_and_then_how_far_it_was_read_again(
    archive: Archive, tmp_path: Path
) -> None:
    _nothing(archive, tmp_path)
    told = told_by("migrate", archive, {"target": str(tmp_path / "there.toml")})
    parts, contents = ([one for one in told if one.what == what] for what in ("parts", "contents"))
    assert [one.done for one in parts] == list(range(1, parts[0].of + 1))
    assert contents[-1] == Told(4, "contents", 4)


@pytest.mark.files
@pytest.mark.parametrize("kind", PART_KINDS)
@pytest.mark.parametrize(
    ("part", "pages", "checks"),
    [
        ({}, 5, 6),
        ({"site": "example.org"}, 4, 5),
        ({"project": "two"}, 2, 3),
        ({"site": "example.org", "latest": True}, 4, 4),
        ({"site": "example.org", "to": at(1).isoformat()}, 4, 2),
    ],
)
def test_every_export_tells_how_much_is_meant(
    kind: str, part: dict[str, Any], pages: int, checks: int, archive: Archive, tmp_path: Path
) -> None:
    archive.put("https://other.example/", b"<p>Another site.", at(5))
    archive.put(ADDRESSES[0], b"<p>A page with other words about lakes.", at(6))
    projects_of(archive).add("two", "", ADDRESSES[:2], 0)
    told = exported_by(kind, part, archive, tmp_path / "out")
    what, of = ("checks", checks) if kind in ("warc", "wacz", "cdxj", "har", "parquet") else ("pages", pages)
    assert told
    assert {(one.what, one.of) for one in told} == {(what, of)}
    assert told[-1].done <= of
    assert told[-1].done == of or kind == "static"


def exported_by(kind: str, part: dict[str, Any], archive: Archive, target: Path) -> list[Told]:
    """Writes an export to a place and answers what was told meanwhile."""
    operation, listener = all_operations()["export"], Listener()
    asked = bind(operation.parameters, {"kind": kind, **part}, archive.clock())
    write = operation(Context(archive, rights=READ | WRITE | OWN, progress=listener), asked).write
    assert write is not None
    write(target)
    return listener.told


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown_on(terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch, done: int, total: int, quiet: bool = False) -> str:
    """What a line of progress writes a second after it began."""
    seconds = iter((0.0, 1.0))
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("letopis.cli.context.time", SimpleNamespace(monotonic=partial(next, seconds)))
    with ProgressLine("packs", quiet=quiet) as line:
        line.show(done, total=total)
    return terminal.getvalue()


def test_a_terminal_is_told_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_on(Terminal(), monkeypatch, 10, 130)
    assert shown == "\r\x1b[2K10/130 packs  10.0/s  12s left\n"


@pytest.mark.parametrize(("total", "left"), [(2990, "298s"), (5970, "10m"), (5_000_000, "139h")])
def test_a_long_estimate_is_a_round_one(monkeypatch: pytest.MonkeyPatch, total: int, left: str) -> None:
    assert f"  {left} left" in shown_on(Terminal(), monkeypatch, 10, total)


def test_nothing_is_left_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown_on(Terminal(), monkeypatch, 20, 20) == "\r\x1b[2K20/20 packs  20.0/s\n"


def test_a_total_that_was_passed_is_no_longer_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown_on(Terminal(), monkeypatch, 30, 20) == "\r\x1b[2K30 packs  30.0/s\n"


def test_a_file_and_whoever_asked_for_silence_are_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown_on(Terminal(), monkeypatch, 10, 130, quiet=True) == ""
    assert shown_on(io.StringIO(), monkeypatch, 10, 130) == ""


_AT_A_TERMINAL = """
import sys
from letopis.cli import context
from letopis.cli import main
context._PAUSE_SECONDS = 0.0
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.files
@pytest.mark.parametrize("shared", [[], ["--json"]])
def test_a_real_terminal_sees_progress_and_programs_do_not(shared: list[str], archive: Archive, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = [*shared, "--archive", str(archive.folder), "verify"]
    done = subprocess.run(
        [sys.executable, "-c", _AT_A_TERMINAL, *words], stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path, check=True
    )
    os.write(theirs, b"end\n")
    seen = b""
    while b"end" not in seen:
        seen += os.read(ours, 65536)
    os.close(theirs)
    os.close(ours)
    assert (b"4/4 contents" in seen) is not bool(shared)
    assert b"/4 contents" not in done.stdout


@pytest.mark.files
@pytest.mark.parametrize(
    ("words", "shown"), [(["watch", "run", "--once"], b"2/2 checks"), (["crawl", "--once"], b"/3 pages")]
)
def test_looks_at_pages_tell_how_many_are_to_come(
    words: list[str], shown: bytes, scripted_site: ScriptedSite, tmp_path: Path
) -> None:
    scripted_site.set("/", b'<a href="/b"> <a href="/c">')
    scripted_site.set("/b", b"<p>b")
    scripted_site.set("/c", b"<p>c")
    at_terminal = [sys.executable, "-c", _AT_A_TERMINAL, "--archive", str(tmp_path / "a")]
    pages = [scripted_site.url("/b"), scripted_site.url("/c")]
    if words[0] == "watch":
        subprocess.run([*at_terminal, "watch", "add", *pages], check=True, capture_output=True, timeout=300)
    else:
        words = [*words, scripted_site.url("/"), "--delay", "0s"]
    ours, theirs = pty.openpty()
    subprocess.run([*at_terminal, *words], stdout=subprocess.PIPE, stderr=theirs, check=True, timeout=300)
    os.close(theirs)
    assert shown in os.read(ours, 65536)
    os.close(ours)
