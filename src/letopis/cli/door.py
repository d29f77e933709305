"""The command line as a door to operations: a verb and its options come from an operation and its parameters."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from letopis.archive import OWN, READ, WRITE, utc_now
from letopis.archive.cluster import require_shared
from letopis.cli.context import CliContext, VerbCommand, VerbGroup, read_file, shared_options, write_output
from letopis.cli.output import ProgressLine
from letopis.operations import Answer, Context, Document, Operation, Parameter, Rows, Value, bind, json_value
from letopis.operations.registry import operations_in

EVERYTHING = READ | WRITE | OWN
_METAVARS = {
    "text": "TEXT", "integer": "N", "number": "X", "time": "TIME", "duration": "TIME", "texts": "TEXT", "bytes": "FILE",
}  # fmt: skip
_HELP = {"help_option_names": ["-h", "--help"]}


def verb_of(name: str, family: str) -> click.Command:
    """The command of a verb whose operations stand in one family; with words of its own where there are several."""
    found = {one.verb: one for one in operations_in(family).values() if one.verb.partition(" ")[0] == name}
    if set(found) == {name}:
        return command_of(found[name])
    group = _WordsGroup(name, context_settings=_HELP, help=found[name].help if name in found else None)
    group.examples = tuple(example for one in found.values() for example in one.examples)
    for verb, one in found.items():
        group.add_command(command_of(one), verb.partition(" ")[2] or name)
    group.default = name if name in found else None
    return group


class _WordsGroup(VerbGroup):
    """A verb with words of its own, and perhaps a meaning without any: `map SITE` beside `map diff SITE`."""

    default: str | None = None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Everything that is no word of the verb is meant for the verb itself."""
        if self.default is not None and (not args or args[0] not in self.commands):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


def command_of(operation: Operation[Any, Any]) -> VerbCommand:
    """The verb of an operation: reads what was given, asks, and shows the answer."""

    def run(cli: CliContext, /, **given: Any) -> None:
        target, cluster = given.pop("output_file", None), given.pop("cluster_address", None)
        cli.set("cluster.address", cluster)
        if cluster:
            require_shared(cli.settings())
        asked = bind(operation.parameters, _values(operation, given), utc_now())
        with cli.open(create=operation.right != READ) as archive, _Bar(cli.quiet) as bar:
            context = Context(
                archive, rights=EVERYTHING, private_ok=True, form="json" if cli.as_json else "text", progress=bar
            )
            show(cli, operation, operation(context, asked), target)

    decorated = click.pass_obj(run)
    for one in reversed(operation.parameters_in("cli")):
        decorated = _option(one)(decorated)
    if operation.answer is Document:
        path = click.Path(path_type=Path)
        decorated = click.option("-o", "--output", "output_file", type=path, help="Write to a file.")(decorated)
    if operation.on_cluster:
        decorated = click.option(
            "--cluster", "cluster_address", metavar="ADDRESS", help="Work on a Dask cluster (tcp://host:8786)."
        )(decorated)
    command = click.command(
        operation.verb.rpartition(" ")[2], cls=VerbCommand, context_settings=_HELP, help=operation.help
    )(shared_options(decorated))
    command.examples = operation.examples
    return command


def _values(operation: Operation[Any, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values by alias; what was not given is left out, files are read."""
    values = {}
    for one in operation.parameters_in("cli"):
        value = given.get(one.name)
        if value not in (None, (), False):
            values[one.alias] = read_file(Path(value)) if one.kind == "bytes" else value
    return values


def _option(one: Parameter) -> Any:
    declared = one.declared
    if declared.argument:
        words: dict[str, Any] = {"nargs": -1} if one.repeated else {}
        metavar = declared.metavar or (one.alias.upper() if one.required else f"[{one.alias.upper()}]")
        return click.argument(one.name, required=one.required, metavar=metavar, **words)
    flags = declared.flags or ("--" + one.alias.replace("_", "-"),)
    if one.kind == "flag":
        return click.option(*flags, one.name, is_flag=True, help=declared.help)
    shown = f"[{'|'.join(one.choices)}]" if one.choices else declared.metavar or _METAVARS[one.kind]
    about = declared.help if one.default in (None, ()) else f"{declared.help.rstrip('.')}; default: {one.default}."
    return click.option(*flags, one.name, metavar=shown, help=about, multiple=one.repeated)


class _Bar:
    """Progress of an operation as one line on standard error; Ctrl-C stops it, so it is never cancelled."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._line: ProgressLine | None = None

    def show(self, done: int, what: str = "") -> None:
        """So many items are done."""
        if self._line is None:
            self._line = ProgressLine(what, quiet=self._quiet)
        self._line.show(done)

    def cancelled(self) -> bool:
        """Never: Ctrl-C is an exception here."""
        return False

    def __enter__(self) -> _Bar:
        """For use in a with statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the terminal with a clean line."""
        if self._line is not None:
            self._line.__exit__(kind, error, trace)


def show(cli: CliContext, operation: Operation[Any, Any], answer: Answer, target: Path | None = None) -> None:
    """An answer on standard output: a table or sentences for people, JSON lines for programs, or the document."""
    if isinstance(answer, Document):
        _write(cli, answer, target)
    elif isinstance(answer, Value):
        cli.output.row(json_value(answer.value), _sentence(operation, answer.value))
    else:
        _show_rows(cli, operation, answer)
        if answer.fault is not None:
            raise answer.fault


def _show_rows(cli: CliContext, operation: Operation[Any, Any], answer: Rows[Any]) -> None:
    if operation.sentence is not None and not cli.as_json:
        cli.output.sentences(map(operation.sentence, answer))
    else:
        cli.output.rows((json_value(row) for row in answer), operation.columns or _columns(operation))


def _columns(operation: Operation[Any, Any]) -> Sequence[str]:
    return tuple(getattr(operation.row, "__annotations__", {}))


def _sentence(operation: Operation[Any, Any], value: Any) -> str:
    if operation.sentence is not None:
        return operation.sentence(value)
    return "\n".join(f"{name}: {part}" for name, part in json_value(value).items() if part is not None)


def _write(cli: CliContext, answer: Document, target: Path | None) -> None:
    if target is not None and answer.files is not None:
        for name, data in answer.files(target.name):
            write_output(cli, data, target.with_name(name))
    elif target is not None:
        write_output(cli, b"".join(answer.bytes()), target)
    else:
        sys.stdout.flush()
        for piece in answer.bytes():
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
