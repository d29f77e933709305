"""An operation: one question or command, written once, and what it answers. Every door is generated from it.

An operation is a plain function of a context and one frozen parameter class. The decorator declares the right it
needs and the names under which the doors offer it; the command, the route with its OpenAPI model, the step of a job
with its schema and the reference pages all follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from letopis.archive.audit import record_audit
from letopis.errors import LetopisError
from letopis.model.rights import READ
from letopis.operations.context import Context, LocalContext
from letopis.operations.parameters import Door, Parameter, parameters_of
from letopis.tuples import NamedTuple
from letopis.urls import without_logins

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


P = TypeVar("P")
A = TypeVar("A", bound=Answer)
COMMAND_LINE = "command line"
"""Who the audit log names where nobody signed in."""


class Route(NamedTuple):
    """The method and path of an operation below `/api/v1`."""

    method: str
    path: str


class Operation(NamedTuple, Generic[P, A]):
    """One question or command with the names that its doors use.

    `row` is the class of its rows or of its value, None for a document; `about` are the fields that accompany the rows.
    `listed` names the list of rows in JSON, `element` a row in the result of a job; `columns` are the columns of a
    table. `sentence` describes to people a row or the effect of a command. `status` is that of a successful route. A
    `tool` is offered to assistants by the Model Context Protocol. `row_key` names the fields that identify a row: such
    a question can be saved. `on_cluster` gives the verb an option that names a cluster. `single` names a list among the
    parameters: over HTTP, a single text in its place returns the row without a list around it. `audited` is the entry
    of an executed command in the audit log, with `subject`, which is the first parameter by default; if `numbered`,
    ` #12` at its end says which was made. A verb with
    `creates` false leaves a missing archive missing; if that depends on its parameters, `creates` is a function of
    them. `document_with` names flags with which it returns a document instead of a value. A `local` operation takes a
    LocalContext of the command line, which needs no archive; other doors offer it only if it takes a Context as well.
    """

    name: str
    run: Callable[[Any, P], A]
    parameters: type[P]
    answer: type
    row: type | None
    about: Mapping[str, Any]
    right: int
    verb: str
    route: Route | None
    step: str
    listed: str
    element: str
    columns: tuple[str, ...]
    examples: tuple[str, ...]
    errors: tuple[int, ...]
    status: int
    on_cluster: bool
    sentence: Callable[[Any], str] | None
    single: str
    audited: str = ""
    subject: Callable[[Any], str] | None = None
    creates: bool | Callable[[Any], bool] = True
    document_with: tuple[str, ...] = ()
    local: bool = False
    tool: bool = False
    row_key: tuple[str, ...] = ()
    numbered: bool = False

    def __call__(self, context: Context | LocalContext, asked: P) -> A:
        """Runs it: pages and other operations call it like the function it is."""
        if self.changes and isinstance(context, Context):
            context.archive.refuse_read_only()
        answer = self.run(context, asked)
        if self.audited and isinstance(context, Context):
            who = context.user or COMMAND_LINE
            made = f" #{answer.value.id}" if self.numbered and isinstance(answer, Value) else ""
            about = without_logins(self._subject(asked)) + made
            record_audit(context.archive, who, self.audited, about, context.address)
        return answer

    def _subject(self, asked: P) -> str:
        if self.subject is not None:
            return self.subject(asked)
        shape: type[Any] = self.parameters
        known = parameters_of(shape)
        # What is named by a word of the verb or in the path is what it is done to, wherever it was declared.
        named = [one for one in known if one.declared.argument] or known
        first = next((getattr(asked, one.name) for one in named), "")
        return " ".join(map(str, first)) if isinstance(first, tuple) else str(first)

    @property
    def changes(self) -> bool:
        """Whether it may change what an archive holds."""
        return self.right != READ and (self.route is None or self.route.method != "GET")

    def makes_archive(self, asked: P) -> bool:
        """Whether the verb makes an archive where there is none."""
        return self.creates(asked) if callable(self.creates) else self.creates and self.right != READ

    @property
    def help(self) -> str:
        """What it does, for people."""
        return (self.run.__doc__ or "").strip()

    @property
    def summary(self) -> str:
        """The first line of that."""
        return self.help.partition("\n")[0]

    def parameters_in(self, door: Door) -> tuple[Parameter, ...]:
        """The parameters that a door may set."""
        shape: type[Any] = self.parameters
        return tuple(one for one in parameters_of(shape) if door in one.declared.doors)


def operation(
    name: str,
    *,
    right: int,
    verb: str = "",
    route: tuple[str, str] | None = None,
    step: str = "",
    listed: str = "",
    element: str = "row",
    columns: tuple[str, ...] = (),
    examples: tuple[str, ...] = (),
    errors: tuple[int, ...] = (),
    status: int = 200,
    about: Mapping[str, Any] | None = None,
    on_cluster: bool = False,
    sentence: Callable[[Any], str] | None = None,
    single: str = "",
    audited: str = "",
    subject: Callable[[Any], str] | None = None,
    creates: bool | Callable[[Any], bool] = True,
    document_with: tuple[str, ...] = (),
    tool: bool = False,
    row_key: tuple[str, ...] = (),
    numbered: bool = False,
) -> Callable[[Callable[[Any, P], A]], Operation[P, A]]:
    """Makes a function an operation; its parameter class and its rows are read from its annotations.

    A door whose name is left empty does not show it. `errors` are the HTTP
    statuses it may answer with beside those of bad parameters and rights.
    """

    def made(function: Callable[[Any, P], A]) -> Operation[P, A]:
        hints = get_type_hints(function)
        shape = next(hint for key, hint in hints.items() if key not in ("context", "return"))
        answer, row = _answer(hints["return"])
        taken = hints["context"]
        return Operation(
            name, function, shape, answer, row, about or {}, right, verb, Route(*route) if route else None, step,
            listed or name, element, columns, examples, errors, status, on_cluster, sentence, single,
            audited, subject, creates, document_with, LocalContext in (taken, *get_args(taken)), tool, row_key,
            numbered,
        )  # fmt: skip

    return made


def _answer(hint: Any) -> tuple[type, type | None]:
    """The kind of an answer and the class of its rows; that of a value where a document may take its place."""
    if get_origin(hint) in (Union, UnionType):
        return next(_answer(part) for part in get_args(hint) if part is not Document)
    if get_origin(hint) in (Rows, Value):
        return get_origin(hint), get_args(hint)[0]
    if hint is Document:
        return Document, None
    return Rows, None


FAMILIES = (
    "accounts",
    "alerts",
    "captures",
    "checks",
    "crawls",
    "duplicates",
    "exchange",
    "imports",
    "jobs",
    "links",
    "moved_pages",
    "muting",
    "pages",
    "projects",
    "replay_quality",
    "replication",
    "runs",
    "saved_looks",
    "saved_searches",
    "settings",
    "site_listings",
    "totals",
    "two_factor",
    "upkeep",
    "watch_options",
    "watches",
    "word_forms",
    "words",
)
"""Modules of this package that hold operations. A new family is a module and one line here."""


def operations_in(family: str) -> dict[str, Operation[Any, Any]]:
    """The operations of one module by name, in their order."""
    module = import_module(f"letopis.operations.{family}")
    found = [value for value in vars(module).values() if isinstance(value, Operation)]
    return {one.name: one for one in found}


@cache
def all_operations() -> dict[str, Operation[Any, Any]]:
    """Every operation by name; loads all families."""
    return {name: one for family in FAMILIES for name, one in operations_in(family).items()}
