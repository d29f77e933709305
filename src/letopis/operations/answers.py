"""What operations answer with: rows, one value, or a document; and how a value is written as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar

from letopis.errors import LetopisError
from letopis.model import rfc3339

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Rows(Generic[R]):
    """Rows in their order. `about` says what they are about: the site, the time, where the next ones begin.

    `faults` are what went wrong with some of several things that were asked
    for: the rows are shown all the same, and the command ends with the status
    of the first. Lists of rows in `about` belong to the answer as well.
    `remark` is for people: why there is nothing, what to do next.
    """

    rows: Iterable[R]
    about: Mapping[str, Any] = field(default_factory=dict)
    faults: Sequence[LetopisError] = ()
    remark: str = ""

    def __iter__(self) -> Iterator[R]:
        """The rows, once."""
        return iter(self.rows)


@dataclass(frozen=True, slots=True)
class Value(Generic[R]):
    """One value: totals, a check, what a command made; `faults` and `remark` are as those of rows."""

    value: R
    faults: Sequence[LetopisError] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A text or bytes of a format of its own, in pieces that are made while they are sent.

    `files` gives what has to be several files once it is written under a name.
    `path` is the file that the pieces are read from, where there is one. `row`
    is what programs get on the command line unless the document is written to
    a file; `faults` are as those of rows. `write` puts it to a place by itself,
    where it is large or more than one file, and answers what was written.
    """

    pieces: Iterable[str | bytes]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    files: Callable[[str], Iterable[tuple[str, bytes]]] | None = None
    path: Path | None = None
    row: Any = None
    write: Callable[[Path], Any] | None = None
    faults: Sequence[LetopisError] = ()

    def bytes(self) -> Iterator[bytes]:
        """The pieces as bytes."""
        for piece in self.pieces:
            yield piece if isinstance(piece, bytes) else piece.encode("utf-8", "replace")


Answer = Rows[Any] | Value[Any] | Document


def json_value(value: Any) -> Any:
    """A value as JSON can hold it: times in RFC 3339 UTC, rows as objects."""
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: json_value(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: json_value(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(part) for part in value]
    return value
