"""Answers as people or programs want them: tables and sentences, or one JSON object a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

import click

from letopis.model import rfc3339

Row = Mapping[str, Any]


def plain(value: Any) -> Any:
    """A value as JSON can hold it: times in RFC 3339 UTC, dataclasses as objects."""
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    return value


class Output(NamedTuple):
    """Standard output in the form that was asked for; remarks go to standard error."""

    as_json: bool
    quiet: bool

    def json(self, value: Any) -> None:
        """One object on one line."""
        click.echo(json.dumps(plain(value), ensure_ascii=False))

    def row(self, row: Row, sentence: str) -> None:
        """One answer: an object for programs, a sentence for people."""
        if self.as_json:
            self.json(row)
        else:
            click.echo(sentence)

    def sentences(self, sentences: Iterable[str]) -> None:
        """Many answers for people, in one write."""
        text = "\n".join(sentences)
        if text:
            click.echo(text)

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
            click.echo(sentence, err=True)

    def complain(self, sentence: str) -> None:
        """Something went wrong with one of several things that were asked for."""
        click.echo("letopis: " + sentence, err=True)

    def bytes(self, data: bytes) -> None:
        """Raw bytes."""
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _cell(value: Any) -> str:
    return "" if value is None else str(plain(value))


def _table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    if not rows:
        return
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in [list(columns), *cells]) for index in range(len(columns))]
    for line in [list(columns), *cells]:
        click.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
