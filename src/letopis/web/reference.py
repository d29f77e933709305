"""`/docs`: the HTTP interface for people. A page for every operation, made of it: parameters, answer, examples, a try.

`/docs` lists them all; what programs read is `/openapi.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from shlex import quote as shell_quote
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response

from letopis.api.access import API, principal_of
from letopis.api.door import FURTHER_PATHS
from letopis.api.requests import origin_of
from letopis.errors import NotFound
from letopis.model.rights import OWN, READ, WRITE
from letopis.operations import Document, Operation, Parameter, Rows
from letopis.operations.operation import all_operations
from letopis.tuples import NamedTuple
from letopis.web.languages import translatable, translate
from letopis.web.pages import PageRoute, environment, render_page

router = APIRouter(route_class=PageRoute)

_IN_BODY = ("POST", "PUT", "PATCH")
_WHOLE = ("bytes", "file")
_KINDS = {
    "text": translatable("text"),
    "integer": translatable("whole number"),
    "number": translatable("number"),
    "flag": translatable("yes or no"),
    "time": translatable("time: 2026-03-01, 2026-03-01T12:00:00Z, 7d ago"),
    "duration": translatable("duration: 30s, 1h, 7d"),
    "choice": translatable("one of"),
    "texts": translatable("list of texts"),
    "objects": translatable("list of objects"),
    "bytes": translatable("the body of the request"),
    "file": translatable("the body of the request"),
}
_NEEDS = {
    READ: translatable("Reading: no account needed if the archive is public."),
    WRITE: translatable("Requires an account with the role user."),
    OWN: translatable("Requires an owner."),
}
_EXAMPLES = {"url": "https://example.org/", "site": "example.org", "q": "garden", "name": "anna", "word": "garden"}
"""Values that say more than any text would."""


class ReferenceParameter(NamedTuple):
    """A parameter as its line in the reference says it; `where` it stands is path, query or body."""

    name: str
    where: str
    kind: str
    said: str
    choices: tuple[str, ...]
    required: bool
    default: str
    limits: str
    help: str
    secret: bool


class ReferenceExample(NamedTuple):
    """The same request for two readers."""

    curl: str
    python: str


def _reference_parameters(operation: Operation[Any, Any]) -> list[ReferenceParameter]:
    known = operation.parameters_in("http")
    whole = any(one.kind in _WHOLE for one in known)
    return [_reference_parameter(operation, one, in_query=whole) for one in known]


def _reference_parameter(operation: Operation[Any, Any], one: Parameter, *, in_query: bool) -> ReferenceParameter:
    assert operation.route is not None
    where = "query" if in_query or operation.route.method not in _IN_BODY else "body"
    if f"{{{one.alias}}}" in operation.route.path:
        where = "path"
    elif one.kind in _WHOLE:
        where = "body"
    default = "" if one.required or one.default in (None, ()) else str(one.default)
    if isinstance(one.default, bool):
        default = default.lower()
    required = one.required or where == "path"
    return ReferenceParameter(
        one.alias, where, one.kind, _KINDS[one.kind], one.choices, required, default, _limits(one),
        one.declared.help, one.declared.secret,
    )  # fmt: skip


def _limits(one: Parameter) -> str:
    low, high = one.declared.at_least, one.declared.at_most
    if low is not None and high is not None:
        return f"{low:.10g}–{high:.10g}"
    return f"≥ {low:.10g}" if low is not None else f"≤ {high:.10g}" if high is not None else ""


def _answer_fields(operation: Operation[Any, Any]) -> list[tuple[str, Any]]:
    """Names and types of what an answer has."""
    if operation.row is None or operation.status == 204:
        return []
    hints = get_type_hints(operation.row)
    names = getattr(operation.row, "_fields", None) or getattr(operation.row, "__dataclass_fields__", hints)
    return [(name, hints[name]) for name in names if name in hints]


def _type_name(hint: Any) -> str:
    """A type as people write it who read JSON."""
    parts, kind = get_args(hint), get_origin(hint)
    if kind in (Union, UnionType):
        return f" {translate(_OR)} ".join(map(_type_name, parts))
    if kind is Literal:
        return ", ".join(map(str, parts))
    if kind in (list, tuple, Sequence):
        return translate(_LIST_OF, what=_type_name(parts[0]))
    return translate(_JSON_NAMES.get(hint, _OBJECT))


_JSON_NAMES = {
    str: translatable("text"), int: translatable("whole number"), float: translatable("number"),
    bool: translatable("true or false"), datetime: translatable("time"), timedelta: translatable("seconds"),
    type(None): translatable("nothing (null)"),
}  # fmt: skip
_OR, _LIST_OF, _OBJECT = translatable("or"), translatable("list ({what})"), translatable("object")
environment.filters["json_type"] = _type_name


def _sample(one: ReferenceParameter) -> Any:
    """A value that a parameter could have."""
    if one.choices:
        return one.choices[0]
    plain = {"integer": 1, "number": 1, "flag": True, "time": "2026-03-01", "duration": "1h", "objects": [{}]}
    found = _EXAMPLES.get(one.name, plain.get(one.kind, one.name.upper()))
    return [found] if one.kind == "texts" else found


def example_of(operation: Operation[Any, Any], parameters: list[ReferenceParameter], base: str) -> ReferenceExample:
    """A request with what must be given, for a shell and for Python; the token is read from the environment."""
    assert operation.route is not None
    method, path = operation.route
    shown = [one for one in parameters if (one.required or one.name == "q") and one.kind not in _WHOLE]
    given = {one.name: _sample(one) for one in shown}
    places = {one.name: one.where for one in parameters}
    for name in [name for name in given if places[name] == "path"]:
        path = path.replace(f"{{{name}}}", quote(str(given.pop(name)), safe=""))
    query = {name: value for name, value in given.items() if places[name] == "query"}
    address = f"{base}{API}{path}" + (f"?{urlencode(query, doseq=True)}" if query else "")
    whole = next((one for one in parameters if one.kind in _WHOLE), None)
    body = json.dumps({name: value for name, value in given.items() if places[name] == "body"}, ensure_ascii=False)
    has_body = method in _IN_BODY
    return ReferenceExample(
        "".join(_curl(operation, address, body if has_body and whole is None else "", whole is not None)),
        "".join(_python(operation, address, body if has_body and whole is None else "", whole is not None)),
    )


def _curl(operation: Operation[Any, Any], address: str, body: str, whole: bool) -> Iterator[str]:
    assert operation.route is not None
    yield "curl"
    if operation.route.method != "GET":
        yield f" -X {operation.route.method}"
    if operation.right != READ:
        yield ' -H "Authorization: Bearer $LETOPIS_TOKEN"'
    if body:
        yield f" -H 'Content-Type: application/json' \\\n  -d {shell_quote(body)}"
    if whole:
        yield " \\\n  --data-binary @FILE"
    yield f" \\\n  {shell_quote(address)}"


def _python(operation: Operation[Any, Any], address: str, body: str, whole: bool) -> Iterator[str]:
    assert operation.route is not None
    token = operation.right != READ
    yield "import json\n" if operation.answer is not Document and operation.status != 204 else ""
    yield "import os\n" if token else ""
    yield "import urllib.request\n\n"
    yield f'asked = urllib.request.Request("{address}", method="{operation.route.method}")\n'
    if token:
        yield 'asked.add_header("Authorization", f"Bearer {os.environ[\'LETOPIS_TOKEN\']}")\n'
    if body:
        yield 'asked.add_header("Content-Type", "application/json")\n'
        yield f"asked.data = {body.encode()!r}\n" if body.isascii() else f"asked.data = {body!r}.encode()\n"
    if whole:
        yield 'asked.data = open("FILE", "rb").read()\n'
    yield "with urllib.request.urlopen(asked) as answer:\n"
    if operation.status == 204:
        yield "    print(answer.status)"
    else:
        yield "    print(answer.read())" if operation.answer is Document else "    print(json.load(answer))"


def _with_routes() -> list[Operation[Any, Any]]:
    return [one for one in all_operations().values() if one.route is not None]


def _family(operation: Operation[Any, Any]) -> str:
    module = operation.run.__module__.rpartition(".")[2].replace("_", " ")
    return "saved searches" if module == "saved looks" else module


@router.get("/docs")
def reference(request: Request, q: str = "") -> Response:
    """Every operation by its family; with `q` those whose name, path or summary has these words."""
    words = q.casefold().split()
    found = [one for one in _with_routes() if all(word in _searched(one) for word in words)]
    families = [(name, list(rows)) for name, rows in groupby(found, _family)]
    further = [
        (path, described["get"]["summary"], described["get"]["parameters"])
        for path, described in FURTHER_PATHS.items()
        if all(word in f"{path} {described['get']['summary']}".casefold() for word in words)
    ]
    return render_page(request, "reference.html", families=families, further=further, q=q[:200], api=API)


def _searched(operation: Operation[Any, Any]) -> str:
    assert operation.route is not None
    return f"{operation.name} {operation.route.method} {operation.route.path} {operation.help}".casefold()


@router.get("/docs/{name}")
def reference_page(request: Request, name: str) -> Response:
    """One operation, and a form that asks it with the rights of whoever reads."""
    operation = next((one for one in _with_routes() if one.name == name), None)
    if operation is None or operation.route is None:
        raise NotFound(f"unknown operation '{name[:70]}'; see the list of operations")
    parameters = _reference_parameters(operation)
    who = principal_of(request)
    public = request.app.state.archive.settings.serve.public
    return render_page(
        request, "reference_page.html", operation=operation, family=_family(operation), parameters=parameters,
        fields=_answer_fields(operation), is_list=operation.answer is Rows and operation.row is not None,
        is_document=operation.answer is Document or operation.row is None,
        about=(operation.row.__doc__ or "").strip().partition("\n")[0] if operation.row else "",
        example=example_of(operation, parameters, origin_of(request.scope)), needs=_NEEDS[operation.right],
        may_try=who.may(operation.right) or (public and operation.right == READ), api=API,
    )  # fmt: skip
