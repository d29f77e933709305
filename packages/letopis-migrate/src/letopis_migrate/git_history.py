"""Pages kept in git: each commit of the branch that touched a file is a version at its commit time.

The history is the one of the branch itself: a merge counts as what it brought, at its own time, as the published
page saw it. Git is asked through its own command; nothing of the repository is run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from letopis.errors import UsageError
from letopis.exchange.body_codings import MAX_BODY
from letopis.exchange.sources import ImportedCapture, ImportReport, SourceHints
from letopis_migrate.folders import content_type_header, file_url, iso_time

_PIECE = 1024 * 1024
_MOST_FIELD = 64 * 1024
_FILE_MODES = ("100644", "100755")
# Nothing that a repository's own settings could start: no hooks, pagers, signers, filters, transports.
_QUIET = (
    "--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never",
    "-c", "log.showSignature=false", "-c", "core.attributesFile=/dev/null", "--literal-pathspecs",
)  # fmt: skip
_LOG = (
    "log", "--first-parent", "--diff-merges=first-parent", "--reverse", "--no-renames", "--no-ext-diff",
    "--no-textconv", "--no-show-signature", "--no-abbrev", "--raw", "-z", "--format=%x01%ct", "HEAD", "--",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Touch:
    time: int
    mode: str
    blob: str
    path: str


def is_repository(folder: Path) -> bool:
    """Whether a folder is a working tree or a bare repository."""
    return (folder / ".git").exists() or all((folder / name).exists() for name in ("HEAD", "objects", "refs"))


def git_captures(folder: Path, hints: SourceHints, report: ImportReport) -> Iterator[ImportedCapture]:
    """Every version of every file, oldest first; a removed file is a page that was gone."""
    if not hints.url:
        raise UsageError(f"{folder} does not contain addresses; give --url https://.../ of the folder that it holds")
    with _running(folder, [*_LOG, *hints.paths]) as (_, log), _running(folder, ["cat-file", "--batch"]) as blobs:
        for touch in _touches(log):
            capture = _capture(touch, hints, blobs, report)
            if capture is not None:
                yield capture


def _capture(
    touch: _Touch, hints: SourceHints, blobs: tuple[IO[bytes], IO[bytes]], report: ImportReport
) -> ImportedCapture | None:
    url, date = _url(touch.path, hints), iso_time(touch.time)
    if not url:
        report.refuse("--url names one page; end it with a slash, or name one file with --path", touch.path)
        return None
    if touch.mode == "000000":
        return ImportedCapture(url, date, 404, (), b"", decoded=True)
    if touch.mode not in _FILE_MODES:
        report.refuse("a link or a module of git", touch.path)
        return None
    body = _blob(touch.blob, blobs)
    if body is None:
        report.refuse("larger than 256 MiB, or not in this clone", touch.path)
        return None
    return ImportedCapture(url, date, 200, content_type_header(touch.path, body), body, decoded=True)


def _url(path: str, hints: SourceHints) -> str:
    """The address of a file; empty when `--url` is that of one page and this may be another."""
    if not hints.url.endswith("/"):
        return hints.url if hints.paths == (path,) else ""
    folder = hints.paths[0].rstrip("/") + "/" if len(hints.paths) == 1 else ""
    return file_url(hints.url, path.removeprefix(folder) if path != folder[:-1] else path.rpartition("/")[2])


def _touches(log: IO[bytes]) -> Iterator[_Touch]:
    """The rows of the log: a field with a time a commit, then two fields (facts, path) a file."""
    time = 0
    facts: list[str] = []
    for field in _fields(log):
        if facts:
            yield _Touch(time, facts[1], facts[3], field.decode("utf-8", "surrogateescape"))
            facts = []
        elif (text := field.strip(b"\n\x00")).startswith(b"\x01"):
            time = int(text[1:])
        elif text.startswith(b":"):
            facts = text.decode("ascii", "replace")[1:].split(" ")


def _fields(stream: IO[bytes]) -> Iterator[bytes]:
    """What stands between zero bytes; a field without an end is given up."""
    rest = b""
    while piece := stream.read(_MOST_FIELD):
        *fields, rest = (rest + piece).split(b"\x00")
        yield from (field for field in fields if field.strip(b"\n"))
        if len(rest) > _MOST_FIELD:
            raise ValueError("git answers with a name that has no end")
    if rest.strip(b"\n"):
        yield rest


def _blob(name: str, blobs: tuple[IO[bytes], IO[bytes]]) -> bytes | None:
    """One content by its name; None when it is missing or too large, which is passed over unread."""
    ask, answer = blobs
    ask.write(name.encode("ascii", "replace") + b"\n")
    ask.flush()
    head = answer.readline(_MOST_FIELD).split()
    if len(head) != 3 or head[1] != b"blob":
        return None
    size = int(head[2])
    if size <= MAX_BODY:
        body = answer.read(size + 1)
        return body[:-1] if len(body) == size + 1 else None
    left = size + 1
    while left and (piece := answer.read(min(_PIECE, left))):
        left -= len(piece)
    return None


@contextmanager
def _running(folder: Path, words: Sequence[str]) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A git command with its input and output; it never outlives the block."""
    settings = {
        "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1",
        # Older ones fetch what is missing; a repository may allow a protocol that runs commands, but not against this.
        "GIT_ALLOW_PROTOCOL": "none",
    }  # fmt: skip
    command = ["git", *_QUIET, "-C", str(folder), *words]
    try:
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=os.environ | settings,
        )  # fmt: skip
    except FileNotFoundError:
        raise UsageError("git is not installed; install it to import its histories") from None
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdin, process.stdout
        process.stdin.close()
        if not process.stdout.read(1) and process.wait() != 0:
            raise UsageError(f"git cannot read {folder}; try 'git -C {folder} log' to see why")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        with suppress(OSError):
            process.stdin.close()
