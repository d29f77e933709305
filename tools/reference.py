"""Writes docs/reference from the code: `python tools/reference.py`. A test fails when any page is out of date."""

from __future__ import annotations

import ast
import inspect
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import letopis.errors
from letopis.api.access import required_permission
from letopis.api.app import create_app
from letopis.archive import Archive
from letopis.cli.main import VERBS, load_verb
from letopis.cli.main import root_command as root
from letopis.config import settings_table
from letopis.operations import Document, Operation, Parameter, Value, parameters_of
from letopis.operations.operation import FAMILIES, all_operations, operations_in

TARGET = Path(__file__).parent.parent / "docs" / "reference"
SOURCE = Path(letopis.__file__ or "").parent
_NEEDS = {0: "nobody", 1: "read", 2: "write", 4: "owner"}


# Commands


def commands() -> str:
    """One chapter a verb: its help as the terminal shows it."""
    parts = ["# Commands\n\nMade from the command line itself by `tools/reference.py`.\n"]
    top = click.Context(root, info_name="letopis")
    for name in VERBS:
        context = _context(load_verb(name), name, top)
        parts.append(f"## {name}\n\n```text\n{_help(context)}\n```\n")
    return "\n".join(parts)


def _context(command: click.Command, name: str, parent: click.Context) -> click.Context:
    # With the settings that the command brings: click remembers its help option from the first context it had.
    settings = {**command.context_settings, "max_content_width": 100}
    return click.Context(command, info_name=name, parent=parent, **settings)


def _help(context: click.Context) -> str:
    text = context.command.get_help(context)
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            inner = context.command.get_command(context, name)
            assert inner is not None
            text += "\n\n" + _help(_context(inner, name, context))
    return "\n".join(line.rstrip() for line in text.splitlines())


# Settings and errors


def settings() -> str:
    """One table a section."""
    lines = [
        "# Settings\n",
        "Made from `letopis.config` by `tools/reference.py`. A setting stands in `letopis.toml`",
        "",
    ]
    lines[1] += " under its section, or in the environment as `LETOPIS_SECTION_NAME`.\n"
    section = ""
    for row in settings_table().values():
        if row.name.split(".")[0] != section:
            section = row.name.split(".")[0]
            lines += [f"\n## {section}\n", "| setting | default | meaning |", "| --- | --- | --- |"]
        unit = f" {row.unit}" if row.unit else ""
        lines.append(f"| `{row.name}` | `{row.default!r}`{unit} | {row.help} |")
    return "\n".join(lines) + "\n"


def errors() -> str:
    """What the exit statuses mean, and the tree of errors with theirs."""
    lines = ["# Errors and exit statuses\n", "Made by `tools/reference.py`.\n", "## Exit statuses\n"]
    lines += ["| status | meaning |", "| --- | --- |"]
    lines += [f"| {status} | {meaning} |" for status, meaning in exit_statuses().items()]
    lines += ["\n## Errors\n", "| error | exit status | meaning |", "| --- | --- | --- |"]
    for name, error in inspect.getmembers(letopis.errors, inspect.isclass):
        if issubclass(error, letopis.errors.LetopisError):
            lines.append(f"| `{name}` | {error.exit_status} | {inspect.getdoc(error)} |")
    return "\n".join(lines) + "\n"


def exit_statuses() -> dict[int, str]:
    """Every status with which a command ends."""
    trees: dict[int, list[str]] = {}
    for _, error in inspect.getmembers(letopis.errors, inspect.isclass):
        if issubclass(error, letopis.errors.LetopisError):
            told = (inspect.getdoc(error) or "").partition("\n")[0]
            if error.exit_status != 1 and error.exit_status != error.__mro__[1].exit_status:  # type: ignore[attr-defined]
                trees.setdefault(error.exit_status, []).append(told)
    fixed = {
        0: "Success; an answer may be empty. Also if the reader of the output closed it early.",
        1: "Any other error: the disk is full, a port is taken, something is busy.",
        130: "Stopped by Ctrl-C; the same command continues from there.",
    }
    return dict(sorted((fixed | {status: " ".join(told) for status, told in trees.items()}).items()))


# The manual page


def manual() -> str:
    """letopis(1): every verb with its options and examples, the exit statuses, the files and variables."""
    top = click.Context(root, info_name="letopis")
    lines = ['.TH LETOPIS 1 "" "Letopis" "User Commands"', ".SH NAME", "letopis \\- the web, remembered"]
    lines += [".SH SYNOPSIS", ".B letopis", "[options] verb [options] [arguments]", ".SH DESCRIPTION"]
    lines += [_roff(" ".join((root.help or "").split())), ".SH VERBS"]
    for name in VERBS:
        context = _context(load_verb(name), name, top)
        lines += [f".SS {_roff(name)}", ".nf", *map(_roff, _help(context).splitlines()), ".fi"]
    lines.append(".SH EXIT STATUS")
    for status, meaning in exit_statuses().items():
        lines += [".TP", f".B {status}", _roff(meaning)]
    lines += [".SH FILES", ".TP", ".I letopis.toml", "Settings, in the folder where letopis is started."]
    lines += [".SH ENVIRONMENT", ".TP", ".B LETOPIS_ARCHIVE", "Folder of the archive.", ".TP"]
    lines += [".B LETOPIS_SECTION_NAME", "Any setting; 'letopis settings' lists them."]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Text that roff shows as it is: no backslash, dash or leading dot of it means anything."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


# HTTP


def http() -> str:
    """One chapter a topic, one entry a route of the OpenAPI document."""
    with tempfile.TemporaryDirectory() as folder, Archive(folder) as archive:
        document = create_app(archive).openapi()
    topics: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            topics.setdefault((described.get("tags") or ["other"])[0], []).append(_route(path, method, described))
    parts = [
        "# HTTP\n\nMade from the OpenAPI document by `tools/reference.py`. *Needs* is the right: `read` is\n"
        "open to all unless `serve.public = false`, `write` takes a user or a token of scope write, `owner` an owner.\n"
    ]
    for topic, entries in topics.items():
        parts.append(f"## {topic}\n\n" + "\n".join(entries))
    return "\n".join(parts)


def _route(path: str, method: str, described: dict[str, Any]) -> str:
    about = (described.get("description") or described.get("summary") or "").split("\n")[0]
    lines = [
        f"### `{method.upper()} {path}`\n",
        f"{about} Needs: {_NEEDS[required_permission(method.upper(), path)]}.\n",
    ]
    rows = [_route_parameter(parameter) for parameter in described.get("parameters", [])]
    if rows:
        lines += ["| parameter | in | required | meaning |", "| --- | --- | --- | --- |", *rows, ""]
    body = described.get("requestBody")
    if body:
        lines.append(f"Body: {', '.join(f'`{kind}`' for kind in body['content'])}.\n")
    return "\n".join(lines)


def _route_parameter(parameter: dict[str, Any]) -> str:
    required = "yes" if parameter.get("required") else ""
    meaning = parameter.get("description", "").replace("|", "\\|")
    return f"| `{parameter['name']}` | {parameter['in']} | {required} | {meaning} |"


# Operations


def operations() -> str:
    """One chapter a family: by which doors each operation is reached, what it takes and what it answers."""
    parts = [
        "# Operations\n\nMade from `letopis.operations` by `tools/reference.py`. An operation is one question or\n"
        "command, written once; every door is made of it. Commands are words after `letopis`, routes stand below\n"
        "`/api/v1`, steps are elements of [job files](../guide/jobs.md), pages are those of the\n"
        "[web interface](../guide/web.md) that call the operation or read its parameters. A parameter with a star is\n"
        "required; where a door is named, only that door takes it.\n"
    ]
    pages = _pages()
    for family in FAMILIES:
        found = list(operations_in(family).values())
        doc = (inspect.getdoc(import_module(f"letopis.operations.{family}")) or "").partition("\n")[0]
        parts += [f"## {family}\n\n{doc}\n", _door_table(found, pages), _answer_table(found)]
    return "\n".join(parts)


def _door_table(found: list[Operation[Any, Any]], pages: dict[str, list[str]]) -> str:
    lines = ["| operation | right | command | route | step | page |", "| --- | --- | --- | --- | --- | --- |"]
    for one in found:
        route = f"`{one.route.method} {one.route.path}`" if one.route else ""
        step = f"`<{one.step}>`" if one.step else ""
        shown = ", ".join(f"`{path}`" for path in pages.get(one.name, ()))
        verb = f"`{one.verb}`" if one.verb else ""
        lines.append(f"| `{one.name}` | {_NEEDS[one.right]} | {verb} | {route} | {step} | {shown} |")
    return "\n".join(lines) + "\n"


def _answer_table(found: list[Operation[Any, Any]]) -> str:
    lines = ["| operation | what it does | parameters | answer |", "| --- | --- | --- | --- |"]
    for one in found:
        shape: type[Any] = one.parameters
        taken = ", ".join(_taken(one, parameter) for parameter in parameters_of(shape))
        lines.append(f"| `{one.name}` | {one.summary.replace('|', chr(92) + '|')} | {taken} | {_answer(one)} |")
    return "\n".join(lines) + "\n"


def _taken(operation: Operation[Any, Any], one: Parameter) -> str:
    open_doors = {"command line": operation.verb, "HTTP": operation.route, "jobs": operation.step}
    names = {"cli": "command line", "http": "HTTP", "job": "jobs"}
    doors = [names[door] for door in names if door in one.declared.doors and open_doors[names[door]]]
    only = f" ({' and '.join(doors)})" if len(doors) < sum(map(bool, open_doors.values())) else ""
    return f"`{one.alias}`{'*' if one.required else ''}{only}"


def _answer(one: Operation[Any, Any]) -> str:
    if one.answer is Document:
        return "a document"
    assert one.row is not None, f"{one.name} does not say what its rows are"
    fields = ", ".join(f"`{name}`" for name in inspect.get_annotations(one.row) if name[0] != "_")
    what = f"`{one.row.__name__}`" if one.answer is Value else f"rows of `{one.row.__name__}` under `{one.listed}`"
    return f"{what}: {fields}" if fields else what


def _pages() -> dict[str, list[str]]:
    """Addresses of pages by the names of the operations that they use."""
    found: dict[str, list[str]] = {}
    for file in sorted((SOURCE / "web").glob("*.py")):
        for path, names in _routes(file):
            for name in names:
                found.setdefault(name, []).append(path)
    return {name: list(dict.fromkeys(paths)) for name, paths in found.items()}


def _routes(file: Path) -> Iterator[tuple[str, set[str]]]:
    """The address of each route of a module, and the operations that its function reaches within the module."""
    module = import_module(f"letopis.web.{file.stem}")
    nodes = ast.parse(file.read_text()).body
    uses = {name: _used(node) for node in nodes for name in _defined(node)}
    for node in nodes:
        for path, handler in _paths(node):
            reached = _reached(_used(handler), uses)
            found = {one.name for one in all_operations().values() if _is_used(one, reached, module)}
            yield path.replace("{rest:path}", "{url}"), found


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _used(node: ast.AST) -> set[str]:
    """Names, and attributes of names as `module.name`."""
    plain = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    dotted = {
        f"{part.value.id}.{part.attr}"
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)
    }
    return plain | dotted


def _paths(node: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """Paths with what handles them: of decorated functions, and of a table of paths that a loop goes through."""
    for call in getattr(node, "decorator_list", ()):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("get", "post"):
            assert isinstance(call.args[0], ast.Constant)
            yield str(call.args[0].value), node
    for table in ast.walk(node) if isinstance(node, ast.For) else ():
        for key, value in zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ():
            if isinstance(key, ast.Constant) and str(key.value).startswith("/"):
                yield str(key.value), value


def _reached(names: set[str], uses: dict[str, set[str]]) -> set[str]:
    found = set(names)
    waiting = list(names)
    while waiting:
        for other in uses.get(waiting.pop(), set()) - found:
            found.add(other)
            waiting.append(other)
    return found


def _is_used(one: Operation[Any, Any], reached: set[str], module: object) -> bool:
    """Whether the operation is reached, or its parameter class, if no other operation has the same."""
    own = sum(other.parameters is one.parameters for other in all_operations().values()) == 1
    return any(value is one or (own and value is one.parameters) for value in _values(reached, module))


def _values(names: set[str], module: object) -> Iterator[object]:
    for name in names:
        first, _, rest = name.partition(".")
        value = getattr(module, first, None)
        yield getattr(value, rest, None) if rest else value


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "settings.md": settings,
    "errors.md": errors,
    "http.md": http,
    "operations.md": operations,
    "letopis.1": manual,
}


def main(argv: list[str]) -> int:
    """Writes the pages; with --check only says which are out of date."""
    stale = {name: text for name, make in PAGES.items() if not _is_fresh(name, text := make())}
    if "--check" in argv:
        sys.stderr.writelines(f"docs/reference/{name} is out of date; run tools/reference.py\n" for name in stale)
        return len(stale)
    for name, text in stale.items():
        (TARGET / name).write_text(text)
    return 0


def _is_fresh(name: str, text: str) -> bool:
    page = TARGET / name
    return page.exists() and page.read_text() == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
