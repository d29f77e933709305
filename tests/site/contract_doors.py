"""Every door to an operation, driven with the same raw values: what came back, in one form for all."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from xml.sax.saxutils import quoteattr

from lxml import etree
from served_archive import WebClient

from letopis.api.requests import http_status_of
from letopis.archive import Archive
from letopis.archive.jobs import COMMAND_LINE
from letopis.cli.main import main
from letopis.errors import LetopisError, shell_words
from letopis.jobs import JobContext
from letopis.jobs.language.interpreter import run_query
from letopis.model.rights import OWN, READ, WRITE
from letopis.operations import Context, Document, Operation, Parameter, Rows, Value, bind, json_value
from letopis.operations.job_files import parse_job_file

Raw = Mapping[str, Any]
IN_BODY = ("POST", "PUT", "PATCH")


@dataclass
class Told:
    """What a door answered: rows or a document, or the sentence and status of an error.

    `none` is what the command line tells programs where there are no rows.
    """

    rows: list[Any] = field(default_factory=list)
    document: bytes | None = None
    error: str = ""
    status: int = 0
    fault: LetopisError | None = None
    none: Any = None


class Quiet:
    """The progress of a job that nobody looks at."""

    def step(self, number: int, of: int, what: str) -> None: ...
    def share(self, done: float, figures: str = "") -> None: ...
    def log(self, line: str) -> None: ...
    def cancelled(self) -> bool:
        return False


def directly(operation: Operation[Any, Any], archive: Archive, raw: Raw) -> Told:
    """The operation itself; its status is the exit status of its error."""
    context = Context(archive, rights=READ | WRITE | OWN, private_ok=True, form="json")
    try:
        answer = operation(context, bind(operation.parameters, raw, archive.clock()))
        if isinstance(answer, Document):
            return Told(document=b"".join(answer.bytes()))
        if isinstance(answer, Value):
            return Told([json_value(answer.value)])
        assert isinstance(answer, Rows)
        rows = [json_value(row) for row in answer]
        fault = next(iter(answer.faults), None)
        if fault is None:
            return Told(rows, none=None if answer.none is None else json_value(answer.none))
        return Told(rows, error=shell_words(fault), status=fault.exit_status, fault=fault)
    except LetopisError as error:
        return Told(error=shell_words(error), status=error.exit_status, fault=error)


def words_of(operation: Operation[Any, Any], raw: Raw, folder: Path) -> list[str]:
    """The command line that gives these values."""
    words: list[str] = []
    arguments: list[str] = []
    for one in operation.parameters_in("cli"):
        if one.alias not in raw:
            continue
        for value in raw[one.alias] if one.repeated else [raw[one.alias]]:
            text = _file(value, folder) if one.kind == "bytes" else str(value)
            if one.declared.argument:
                arguments.append(text)
            else:
                words += _option(one, value, text)
    return [*operation.verb.split(), *words, *(["--"] if arguments else []), *arguments]


def _option(one: Parameter, value: Any, text: str) -> list[str]:
    if one.declared.secret:
        return [f"--{one.alias}-stdin"]
    flag = (one.declared.flags or ("--" + one.alias.replace("_", "-"),))[0]
    if one.kind == "flag":
        return [flag] if value else []
    return [flag, text]


def _file(value: bytes, folder: Path) -> str:
    path = folder / "given.bin"
    path.write_bytes(value)
    return str(path)


@contextmanager
def given_on_stdin(text: str) -> Iterator[None]:
    before, sys.stdin = sys.stdin, TextIOWrapper(BytesIO(text.encode() + b"\n"), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = before


def by_command(operation: Operation[Any, Any], archive: Path, raw: Raw, folder: Path) -> Told:
    """The verb with `--json`; a document as it is."""
    out, err = TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True), StringIO()
    secrets = [
        str(raw[one.alias]) for one in operation.parameters_in("cli") if one.declared.secret and one.alias in raw
    ]
    with redirect_stdout(out), redirect_stderr(err), given_on_stdin("\n".join(secrets)):
        form = [] if operation.answer is Document else ["--json"]
        status = main(["--archive", str(archive), *form, *words_of(operation, raw, folder)])
    data = out.buffer.getvalue()
    error = err.getvalue().strip().splitlines()[-1].removeprefix("letopis: ") if status else ""
    if operation.answer is Document:
        return Told(document=data, error=error, status=status)
    return Told([json.loads(line) for line in data.splitlines()], error=error, status=status)


def over_http(operation: Operation[Any, Any], web: WebClient, token: str, raw: Raw) -> Told:
    """The route, asked by an owner."""
    assert operation.route is not None
    method, path = operation.route
    given = {one.alias: raw[one.alias] for one in operation.parameters_in("http") if one.alias in raw}
    for name in list(given):
        if f"{{{name}}}" in path:
            value = given.pop(name)
            path = path.replace(f"{{{name}}}", quote(str(value[0] if isinstance(value, list) else value), safe=""))
    headers = {"Authorization": f"Bearer {token}"}
    whole = next((one for one in operation.parameters_in("http") if one.kind in ("bytes", "file")), None)
    body: bytes | None = None
    if method in IN_BODY and whole is None:
        body, headers["Content-Type"] = json.dumps(given).encode(), "application/json"
    else:
        if whole is not None:
            sent = given.pop(whole.alias, b"")
            body = sent.read_bytes() if isinstance(sent, Path) else sent
            headers["Content-Type"] = whole.declared.media_type or "text/html"
        path += "?" + urlencode({name: _query(value) for name, value in given.items()}, doseq=True)
    answer = web.ask(method, "/api/v1" + path, body, **headers)
    if answer.status >= 400:
        return Told(error=answer.json()["detail"], status=answer.status)
    if operation.answer is Document:
        return Told(document=answer.body, status=answer.status)
    found = answer.json() if answer.body else {}
    alone = operation.answer is Value or (bool(operation.single) and operation.listed not in found)
    return Told([found] if alone else found.get(operation.listed, []), status=answer.status)


def _query(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _attribute_text(value: Any) -> str:
    return " ".join(value) if isinstance(value, list) else str(_query(value))


def in_a_job(operation: Operation[Any, Any], archive: Archive, raw: Raw) -> Told:
    """The step; an error is told with the step's name before it."""
    known = {one.alias: one for one in operation.parameters_in("job")}
    attributes = "".join(
        f" {one.attribute}={quoteattr(_attribute_text(raw[name]))}"
        for name, one in known.items()
        if name in raw and (not one.repeated or one.declared.attribute)
    )
    children = "".join(
        f"<{name}>{value}</{name}>"
        for name, one in known.items()
        if one.repeated and not one.declared.attribute
        for value in raw.get(name, ())
    )
    text = f"<query><{operation.step}{attributes}>{children}</{operation.step}></query>"
    around = JobContext(archive, archive.settings, Quiet(), COMMAND_LINE, True, None, archive.clock)
    try:
        result = etree.fromstring(b"<r>" + run_query(parse_job_file(text.encode(), archive.settings), around) + b"</r>")
    except LetopisError as error:
        return Told(error=shell_words(error).partition(">: ")[2] or shell_words(error), status=error.exit_status)
    [element] = result
    return Told([dict(row.attrib) for row in element] if operation.answer is Rows else [dict(element.attrib)])


def http_status(told: Told, in_body: bool) -> int:
    """The HTTP status that says the same as an error."""
    assert told.fault is not None
    return 422 if told.status == 2 and in_body else http_status_of(told.fault)
