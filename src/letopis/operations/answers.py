"""What operations answer with: rows, one value, or a document; and how a value is written as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Generic, TypeVar

from letopis.errors import LetopisError
from letopis.model import rfc3339

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Rows(Generic[R]):
    """Rows in their order. `about` says what they are about: the site, the time, where the next ones begin.

    `fault` is the first thing that went wrong with one of several things
    that were asked for: the rows are shown all the same, and the command ends
    with the fault's status.
    """

    rows: Iterable[R]
    about: Mapping[str, Any] = field(default_factory=dict)
    fault: LetopisError | None = None

    def __iter__(self) -> Iterator[R]:
        """The rows, once."""
        return iter(self.rows)


@dataclass(frozen=True, slots=True)
class Value(Generic[R]):
    """One value: totals, a check, what a command made."""

    value: R


@dataclass(frozen=True, slots=True)
class Document:
    """A text or bytes of a format of its own, in pieces that are made while they are sent.

    `files` gives what has to be several files once it is written under a name.
    """

    pieces: Iterable[str | bytes]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    files: Callable[[str], Iterable[tuple[str, bytes]]] | None = None

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
