"""A small JSONPath: names, indices, slices, unions, `*` and `..`; no scripts, no filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from letopis.errors import UsageError

Step = Callable[[Any], Iterable[Any]]
_TOKEN = re.compile(
    r"\.\.(?P<deep>\*|[^\s.\[\]()'\"*?@$]+|(?=\[))"
    r"|\.(?P<name>\*|[^\s.\[\]()'\"*?@$]+)"
    r"|\[\s*(?P<inside>\*|'(?:[^'\\]|\\.)*'(?:\s*,\s*'(?:[^'\\]|\\.)*')*|\"(?:[^\"\\]|\\.)*\"(?:\s*,\s*\"(?:[^\"\\]|\\.)*\")*"
    r"|(?:-?\d+)?\s*:\s*(?:-?\d+)?(?:\s*:\s*(?:-?\d+)?)?|-?\d+(?:\s*,\s*-?\d+)*)\s*\]"
)
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_MOST = 100_000


def compile_path(path: str) -> list[Step]:
    """The steps of a path; UsageError names the place that cannot be read."""
    text = path.strip()
    at = 1 if text.startswith("$") else 0
    if at == 0 and not text.startswith(("[", ".")):
        text = "." + text
    steps: list[Step] = []
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise UsageError(
                f"'{path}' is not a JSONPath that Letopis reads (at '{text[at : at + 20]}'); use $.a.b[0], [*] or .."
            )
        steps += _steps(token)
        at = token.end()
    return steps


def find(document: Any, path: str) -> list[Any]:
    """All values at a path, in document order, at most 100,000."""
    values: Iterable[Any] = [document]
    for step in compile_path(path):
        values = list(_limited(value for parent in values for value in step(parent)))
    return list(values)


def _limited(values: Iterator[Any]) -> Iterator[Any]:
    for n, value in enumerate(values):
        if n == _MOST:
            raise UsageError(f"the JSONPath finds more than {_MOST} values; choose a narrower one")
        yield value


def _steps(token: re.Match[str]) -> list[Step]:
    if token["deep"] is not None:
        return [_descend] + ([_named(token["deep"])] if token["deep"] else [])
    if token["name"] is not None:
        return [_named(token["name"])]
    inside = token["inside"]
    if inside == "*":
        return [_children]
    if inside[0] in "'\"":
        return [_keys([re.sub(r"\\(.)", r"\1", one or two) for one, two in _QUOTED.findall(inside)])]
    if ":" in inside:
        return [_slice(*[int(part) if part.strip() else None for part in inside.split(":")])]
    return [_indices([int(part) for part in inside.split(",")])]


def _named(name: str) -> Step:
    return _children if name == "*" else _keys([name])


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _descend(value: Any) -> Iterator[Any]:
    """The value and all values inside it, by a stack: no depth can exhaust it."""
    stack = [value]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(_children(current))))


def _keys(names: list[str]) -> Step:
    return lambda value: [value[name] for name in names if name in value] if isinstance(value, dict) else ()


def _indices(wanted: list[int]) -> Step:
    return lambda value: [value[n] for n in wanted if -len(value) <= n < len(value)] if isinstance(value, list) else ()


def _slice(*bounds: int | None) -> Step:
    if len(bounds) == 3 and bounds[2] == 0:
        raise UsageError("the step of a JSONPath slice must not be 0; write [start:stop:1]")
    return lambda value: value[slice(*bounds)] if isinstance(value, list) else ()
