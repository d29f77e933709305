"""What verbs print: tables and sentences, or one JSON object a line; progress of long work on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import click

from letopis.errors import UsageError
from letopis.model import json_value, written_duration
from letopis.model.printing import printable, printable_json, printable_line
from letopis.tuples import NamedTuple

Row = Mapping[str, Any]
_DURATIONS = frozenset({"every"})
"""Columns of seconds that people write with a unit."""
_SHOWN_HEAD = 8192
"""A NUL among so many bytes says that a document is no text."""


class Output(NamedTuple):
    """Standard output in the form that was asked for; remarks go to standard error."""

    as_json: bool
    quiet: bool

    def json(self, value: Any) -> None:
        """One object on one line."""
        click.echo(printable_json(json.dumps(json_value(value), ensure_ascii=False)))

    def row(self, row: Row, sentence: str) -> None:
        """One answer: an object for programs, a sentence for people."""
        if self.as_json:
            self.json(row)
        else:
            click.echo(printable(sentence))

    def sentences(self, sentences: Iterable[str]) -> int:
        """Many answers for people, in one write. Answers how many."""
        listed = list(map(printable, sentences))
        if listed:
            click.echo("\n".join(listed))  # click leaves out what only terminals understand
        return len(listed)

    def rows(self, rows: Iterable[Row], columns: Sequence[str]) -> int:
        """Many answers: objects, or a table of the named columns. Answers how many."""
        if self.as_json:
            count = 0
            for count, row in enumerate(rows, 1):  # noqa: B007 - the count is the answer
                self.json(row)
            return count
        listed = list(rows)
        _table(listed, columns)
        return len(listed)

    def remark(self, sentence: str) -> None:
        """Something worth knowing that is not the answer."""
        if not self.quiet:
            click.echo(printable(sentence), err=True)

    def complain(self, sentence: str) -> None:
        """Something went wrong with one of several things that were asked for."""
        click.echo(printable("letopis: " + sentence), err=True)

    def bytes(self, pieces: Iterable[bytes]) -> None:
        """A document, byte for byte; a terminal gets it as text that does nothing to it, or not at all."""
        sys.stdout.flush()
        if sys.stdout.isatty():
            document = b"".join(pieces)
            if b"\0" in document[:_SHOWN_HEAD]:
                raise UsageError("this is binary; write it to a file with '> FILE'")
            click.echo(printable(document.decode("utf-8", "replace")), nl=False)
        else:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column in _DURATIONS and isinstance(value, int | float):
        return written_duration(value)
    plain = json_value(value)
    if isinstance(plain, list) and all(isinstance(part, str) for part in plain):
        plain = ", ".join(plain)
    if isinstance(plain, dict):
        plain = ", ".join(f"{name}={part}" for name, part in plain.items())
    return printable_line(str(plain))


def _table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    if not rows:
        return
    cells = [[_cell(column, row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in [list(columns), *cells]) for index in range(len(columns))]
    for line in [list(columns), *cells]:
        click.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


_PAUSE_SECONDS = 0.2


def _estimate(seconds: float) -> int:
    """As exact as a guess deserves: whole minutes from five on, whole hours from ten on."""
    unit = 1 if seconds < 300 else 60 if seconds < 36_000 else 3600
    return round(seconds / unit) * unit


class ProgressLine:
    """Says how far the work is, and how long it will take where the total is known: on a terminal, at standard error.

    Not more often than is pleasant; what goes to a file or to a program is never mixed with it.
    """

    def __init__(self, what: str, *, total: int | None = None, quiet: bool = False) -> None:
        self._what = what
        self._total = total
        self.is_shown = not quiet and sys.stderr.isatty()
        self._started = time.monotonic()
        self._shown_at = self._started
        self._dirty = False

    def __enter__(self) -> ProgressLine:
        """For use in a with statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the terminal with a clean line."""
        self.interrupt()

    def interrupt(self) -> None:
        """Ends the line that stands there, so that something else can be said."""
        if self._dirty:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._dirty = False

    def show(self, done: int, remark: str = "", *, total: int = 0) -> None:
        """Tells how many items are done, of how many where that is known by now."""
        self._total = total or self._total
        now = time.monotonic()
        if not self.is_shown or now - self._shown_at < _PAUSE_SECONDS:
            return
        self._shown_at = now
        line = printable_line(self._line(done, remark, now - self._started))
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()
        self._dirty = True

    def _line(self, done: int, remark: str, seconds: float) -> str:
        rate = done / seconds if seconds else 0.0
        total = self._total if self._total and self._total >= done else None  # more came in meanwhile
        parts = [f"{done} {self._what}" if total is None else f"{done}/{total} {self._what}", f"{rate:.1f}/s"]
        if total and rate and (left := _estimate((total - done) / rate)):
            parts.append(f"{written_duration(left)} left")
        return "  ".join([*parts, remark] if remark else parts)
