"""An operation: one question or command, written once. Every door is made of it.

An operation is a plain function of a context and one frozen parameter class.
The decorator says which right it needs and under which names the doors show
it; the command, the route with its OpenAPI model, the step of a job with its
schema and the reference pages all come from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from letopis.operations.answers import Answer, Document, Rows, Value
from letopis.operations.context import Context
from letopis.operations.parameters import Door, Parameter, parameters_of

P = TypeVar("P")
A = TypeVar("A", bound=Answer)


class Route(NamedTuple):
    """Where an operation stands below `/api/v1`."""

    method: str
    path: str


@dataclass(frozen=True, slots=True)
class Operation(Generic[P, A]):
    """One question or command with the names that its doors give it.

    `row` is the class of its rows or of its value, None for a document;
    `about` are the fields that stand beside the rows. `listed` names the list
    of rows in JSON, `element` a row in the result of a job; `columns` are what
    a table shows of a row. `sentence` tells people of a row or of what a
    command did. `status` is that of a route that did what it was asked.
    `on_cluster` gives the verb an option that names a cluster to work on.
    """

    name: str
    run: Callable[[Context, P], A]
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

    def __call__(self, context: Context, asked: P) -> A:
        """Runs it: pages and other operations call it like the function it is."""
        return self.run(context, asked)

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
) -> Callable[[Callable[[Context, P], A]], Operation[P, A]]:
    """Makes a function an operation; its parameter class and its rows are read from its annotations.

    A door whose name is left empty does not show it. `errors` are the HTTP
    statuses it may answer with beside those of bad parameters and rights.
    """

    def made(function: Callable[[Context, P], A]) -> Operation[P, A]:
        hints = get_type_hints(function)
        shape = next(hint for key, hint in hints.items() if key not in ("context", "return"))
        answer, row = _answer(hints["return"])
        return Operation(
            name, function, shape, answer, row, about or {}, right, verb, Route(*route) if route else None, step,
            listed or name, element, columns, examples, errors, status, on_cluster, sentence,
        )  # fmt: skip

    return made


def _answer(hint: Any) -> tuple[type, type | None]:
    if get_origin(hint) in (Rows, Value):
        return get_origin(hint), get_args(hint)[0]
    if hint is Document:
        return Document, None
    return Rows, None
