"""The command line as a door to operations: a verb and its options come from an operation and its parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from letopis.archive import OWN, READ, WRITE, utc_now
from letopis.archive.write_gates import require_shared
from letopis.cli.context import (
    CliContext,
    ProgressLine,
    VerbCommand,
    VerbGroup,
    read_file,
    shared_options,
    write_output,
)
from letopis.errors import LetopisError, UsageError, shell_words
from letopis.model.printing import printable
from letopis.operations import (
    Answer,
    Context,
    Document,
    LocalContext,
    Operation,
    Parameter,
    Rows,
    Value,
    bind,
    json_value,
)
from letopis.operations.old_names import current_words, with_old_fields
from letopis.operations.operation import operations_in

EVERYTHING = READ | WRITE | OWN
_METAVARS = {
    "text": "TEXT", "integer": "N", "number": "X", "time": "TIME", "duration": "TIME", "texts": "TEXT",
    "objects": "JSON", "bytes": "FILE",
}  # fmt: skip
_ROWS = {
    "audit": "entries", "broken": "broken links", "history": "checks", "near": "words", "origin": "paragraphs",
    "rank": "pages", "verify": "faults",
}  # fmt: skip
"""What rows are called where their list is named by the question."""
_HELP = {"help_option_names": ["-h", "--help"]}


def verb_of(name: str, families: str, help: str = "") -> click.Command:
    """The command of a verb whose operations stand in some families; with words of its own where there are several."""
    found = _operations_of(name, families)
    if set(found) == {name}:
        return command_of(found[name])
    group = words_of(name, families, found[name].help if name in found else help)
    group.default = name if name in found else None
    return group


def words_of(name: str, families: str, help: str) -> WordsGroup:
    """A verb that means nothing without one of its words; their families are loaded once one of them is asked for."""
    group: WordsGroup = click.group(name, cls=WordsGroup, context_settings=_HELP, help=help)(
        shared_options(lambda: None)
    )
    group.families = families
    return group


def _operations_of(name: str, families: str) -> dict[str, Operation[Any, Any]]:
    """The operations of a verb by what is typed."""
    operations = [one for family in families.split() for one in operations_in(family).values()]
    return {one.verb: one for one in operations if one.verb.partition(" ")[0] == name}


class WordsGroup(VerbGroup):
    """A verb with words of its own, and perhaps a meaning without any: `map SITE` beside `map diff SITE`.

    Commands are made of operations when they are asked for: whoever types one word needs no options of the others.
    """

    default: str | None = None
    families = ""

    @cached_property
    def operations(self) -> dict[str, Operation[Any, Any]]:
        """By word, those of all its families."""
        name = self.name or ""
        return {verb.partition(" ")[2] or name: one for verb, one in _operations_of(name, self.families).items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All words, made or not."""
        return sorted({*self.operations, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a word; None for an unknown one, which click reports."""
        if cmd_name not in self.commands and cmd_name in self.operations:
            made = command_of(self.operations[cmd_name])
            if cmd_name == self.default:
                # Its help is that of the verb itself: the examples tell of the other words.
                made.examples = self._examples()
            self.add_command(made, cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples of all words."""
        self.examples = self._examples()
        super().format_epilog(ctx, formatter)

    def _examples(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(example for one in self.operations.values() for example in one.examples))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Everything that is no word of the verb is meant for the verb itself."""
        args, warning = current_words(self.name or "", args)
        if warning:
            click.echo(f"letopis: {warning}", err=True)
        if self.default is not None and (not args or args[0] not in self.list_commands(ctx)):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


def command_of(operation: Operation[Any, Any]) -> VerbCommand:
    """The verb of an operation: reads what was given, asks, and shows the answer."""

    def run(cli: CliContext, /, **given: Any) -> int:
        target, cluster = given.pop("output_file", None), given.pop("cluster_address", None)
        cli.set("cluster.address", cluster)
        if cluster:
            require_shared(cli.settings())
        asked = bind(operation.parameters, _values(operation, given), utc_now())
        if target is not None and operation.document_with:
            _require_document(operation, asked)
        return run_operation(cli, operation, asked, None if target == Path("-") else target)

    decorated = click.pass_obj(run)
    for one in reversed(operation.parameters_in("cli")):
        decorated = _option(one)(decorated)
    if operation.answer is Document or operation.document_with:
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


def run_operation(cli: CliContext, operation: Operation[Any, Any], asked: Any, target: Path | None = None) -> int:
    """Runs an operation with the rights of the command line and shows its answer; answers the exit status."""
    if operation.local:
        with _Bar(cli) as bar:
            local = LocalContext(cli.settings(), lambda: cli.open(create=False), bar)
            return show(cli, operation, operation(local, asked), target)
    with cli.open(create=operation.makes_archive(asked)) as archive, _Bar(cli) as bar:
        context = Context(
            archive, rights=EVERYTHING, private_ok=archive.settings.fetch.private != "never", origin="cli",
            form="json" if cli.as_json else "text", progress=bar,
        )  # fmt: skip
        return show(cli, operation, operation(context, asked), target)


def _require_document(operation: Operation[Any, Any], asked: Any) -> None:
    """Refuses -o where nothing would be written to it."""
    if not any(getattr(asked, name) for name in operation.document_with):
        flags = " or ".join(f"--{name}" for name in operation.document_with)
        raise UsageError(f"-o needs {flags}; otherwise there is nothing to write")


def _values(operation: Operation[Any, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values by alias; what was not given is left out, files are read."""
    values = {}
    for one in operation.parameters_in("cli"):
        value = _secret(one, given) if one.declared.secret else given.get(one.name)
        if value not in (None, (), False):
            value = one.declared.joined.join(value) if one.declared.joined else value
            values[one.alias] = read_file(Path(value)) if one.kind == "bytes" else value
    return values


def _secret(one: Parameter, given: Mapping[str, Any]) -> str | None:
    """A password and the like: the first line of standard input, or what is typed at the terminal."""
    if given.get(f"no_{one.name}"):
        return None
    if given[f"{one.name}_stdin"]:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise UsageError(f"there is no terminal to ask for the {one.alias}; give it with --{one.alias}-stdin")
    return str(click.prompt(one.alias.capitalize(), hide_input=True, confirmation_prompt=True))


def _secret_options(one: Parameter) -> Any:
    read = click.option(
        f"--{one.alias}-stdin", f"{one.name}_stdin", is_flag=True, help=f"Read the {one.alias} from standard input."
    )
    none = click.option(f"--no-{one.alias}", f"no_{one.name}", is_flag=True, help=f"Without a {one.alias}.")
    return read if one.required else lambda function: read(none(function))


def _option(one: Parameter) -> Any:
    declared = one.declared
    if declared.secret:
        return _secret_options(one)
    if declared.argument:
        words: dict[str, Any] = {"nargs": -1} if one.repeated else {}
        name = "|".join(one.choices) or one.alias.upper()
        metavar = declared.metavar or (name if one.required else f"[{name}]")
        words["shell_complete"] = _completing(one.choices)
        return click.argument(one.name, required=one.required, metavar=metavar, **words)
    flags = declared.flags or ("--" + one.alias.replace("_", "-"),)
    if one.kind == "flag":
        return click.option(*flags, one.name, is_flag=True, help=declared.help)
    shown = f"[{'|'.join(one.choices)}]" if one.choices else declared.metavar or _METAVARS[one.kind]
    about = declared.help if one.default in (None, (), "") else f"{declared.help.rstrip('.')}; default: {one.default}."
    return click.option(
        *flags, one.name, metavar=shown, help=about, multiple=one.repeated or bool(declared.joined),
        shell_complete=_completing(one.choices),
    )  # fmt: skip


def _completing(choices: Sequence[str]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What a shell may complete: the choices that begin with what is typed."""
    return lambda ctx, param, typed: [choice for choice in choices if choice.startswith(typed)]


class _Bar:
    """Progress of an operation as one line of a terminal; Ctrl-C stops it, so it is never cancelled."""

    def __init__(self, cli: CliContext) -> None:
        self._cli = cli
        self._line: ProgressLine | None = None
        self._what = ""

    def show(self, done: int, what: str = "", of: int = 0) -> None:
        """So many items are done, of so many where that is known."""
        if self._line is None or what != self._what:
            self._end_line()
            self._line, self._what = ProgressLine(what, quiet=self._cli.is_unwatched), what
        self._line.show(done, total=of)

    def remark(self, sentence: str) -> None:
        """A line on standard error."""
        self._end_line()
        if not self._cli.quiet:
            click.echo(printable(sentence), err=True)

    def _end_line(self) -> None:
        if self._line is not None:
            self._line.interrupt()

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
        self._end_line()


def show(cli: CliContext, operation: Operation[Any, Any], answer: Answer, target: Path | None = None) -> int:
    """An answer on standard output: a table or sentences for people, JSON lines for programs, or the document.

    Answers the exit status: that of the first thing that went wrong.
    """
    if isinstance(answer, Document):
        if answer.row is not None and cli.as_json and target is None:
            cli.output.json(answer.row)
        elif target is not None and answer.write is not None:
            written = answer.write(target)
            cli.output.row(json_value(written), _sentence(operation, written))
        else:
            _write(cli, answer, target)
        return _complain(cli, answer.faults)
    if isinstance(answer, Value):
        row = with_old_fields("cli", operation.name, json_value(answer.value))
        cli.output.row(row, _sentence(operation, answer.value))
        if answer.remark:
            cli.output.remark(answer.remark)
    else:
        _show_rows(cli, operation, answer)
    return _complain(cli, answer.faults)


def _complain(cli: CliContext, faults: Sequence[LetopisError]) -> int:
    """Says what went wrong, and answers the exit status of the first."""
    for fault in faults:
        cli.output.complain(shell_words(fault))
    return faults[0].exit_status if faults else 0


def _show_rows(cli: CliContext, operation: Operation[Any, Any], answer: Rows[Any]) -> None:
    if operation.sentence is not None and not cli.as_json:
        shown = cli.output.sentences(map(operation.sentence, answer))
    else:
        rows = (with_old_fields("cli", operation.name, json_value(row)) for row in answer)
        shown = cli.output.rows(rows, operation.columns or _columns(operation.row))
    for part in answer.about.values():
        if isinstance(part, list | tuple) and part and hasattr(part[0], "__annotations__"):
            shown += cli.output.rows(map(json_value, part), _columns(type(part[0])))
    if not shown and cli.as_json and answer.none is not None:
        cli.output.json(answer.none)
    if answer.remark:
        cli.output.remark(answer.remark)
    elif not shown and not cli.as_json and not answer.faults:
        what = _ROWS.get(operation.listed) or operation.listed.replace("_", " ")
        cli.output.remark(f"no {what}")


def _columns(row: type | None) -> Sequence[str]:
    return tuple(getattr(row, "__annotations__", {}))


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
        cli.output.bytes(answer.bytes())
