"""What verbs print: tables and sentences, or one JSON object a line; progress of long work on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import click

from letopis.model import json_value
from letopis.model.printing import printable, printable_json, printable_line

Row = Mapping[str, Any]


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

    def sentences(self, sentences: Iterable[str]) -> None:
        """Many answers for people, in one write."""
        text = "\n".join(sentences)
        if text:
            click.echo(printable(text))

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
        """A document, byte for byte; a terminal gets it as text that does nothing to it."""
        sys.stdout.flush()
        if sys.stdout.isatty():
            click.echo(printable(b"".join(pieces).decode("utf-8", "replace")), nl=False)
        else:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def _cell(value: Any) -> str:
    return "" if value is None else printable_line(str(json_value(value)))


def _table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    if not rows:
        return
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in [list(columns), *cells]) for index in range(len(columns))]
    for line in [list(columns), *cells]:
        click.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


_PLAIN_SECONDS = 10.0
_MOVING_SECONDS = 0.2


class ProgressLine:
    """Says how far the work is, on standard error, not more often than is pleasant."""

    def __init__(self, what: str, *, total: int | None = None, quiet: bool = False) -> None:
        self._what = what
        self._total = total
        self._quiet = quiet
        self._moving = sys.stderr.isatty()
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

    def show(self, done: int, remark: str = "") -> None:
        """Tells how many items are done."""
        now = time.monotonic()
        if self._quiet or now - self._shown_at < (_MOVING_SECONDS if self._moving else _PLAIN_SECONDS):
            return
        self._shown_at = now
        line = printable_line(self._line(done, remark, now - self._started))
        sys.stderr.write(f"\r\x1b[2K{line}" if self._moving else line + "\n")
        sys.stderr.flush()
        self._dirty = self._moving

    def _line(self, done: int, remark: str, seconds: float) -> str:
        rate = done / seconds if seconds else 0.0
        parts = [
            f"{done} {self._what}" if self._total is None else f"{done}/{self._total} {self._what}",
            f"{rate:.1f}/s",
        ]
        if self._total and rate:
            parts.append(f"{(self._total - done) / rate:.0f} s left")
        return "  ".join([*parts, remark] if remark else parts)
