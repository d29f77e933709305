"""What operations return: rows, one value, or a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from letopis.errors import LetopisError
from letopis.tuples import NamedTuple

R = TypeVar("R")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Rows(Generic[R]):
    """Rows in their order. `about` describes them: the site, the time, where the next ones begin.

    `faults` are errors of some of several requested things: the rows are shown nevertheless, and the command exits
    with the status of the first. Lists of rows in `about` belong to the answer as well. `remark` is for people: why
    there are no rows, what to do next. `none` is what programs get on the command line if there are no rows.
    """

    __slots__ = ("about", "faults", "none", "remark", "rows")

    def __init__(
        self,
        rows: Iterable[R],
        about: Mapping[str, Any] = _NOTHING,
        faults: Sequence[LetopisError] = (),
        remark: str = "",
        none: Any = None,
    ) -> None:
        self.rows, self.about, self.faults, self.remark, self.none = rows, about, faults, remark, none

    def __iter__(self) -> Iterator[R]:
        """The rows, once."""
        return iter(self.rows)


class Value(NamedTuple, Generic[R]):
    """One value: totals, a check, what a command created; `faults` and `remark` are as for rows."""

    value: R
    faults: Sequence[LetopisError] = ()
    remark: str = ""


class Document(NamedTuple):
    """Text or bytes of some format, in pieces that are produced while they are sent.

    `files` returns the parts if the document must become several files. `path` is the file from which the pieces are
    read, if there is one. `row` is what programs get on the command line unless the document is written to a file;
    `faults` are as for rows. `write` writes a document that is large or has several files, and returns what was
    written.
    """

    pieces: Iterable[str | bytes]
    media_type: str
    headers: Mapping[str, str] = _NOTHING
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
