"""What every verb needs: the shared options, the settings and the archive that follow from them, files in and out.

Verbs print tables and sentences, or one JSON object a line; progress of long work goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from letopis.errors import UnknownUrl, UsageError
from letopis.lazy import lazy
from letopis.model import json_value, written_duration
from letopis.model.printing import counted, printable, printable_json, printable_line
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis import archive as archives
    from letopis import config
    from letopis.archive import Archive
    from letopis.config import Settings
    from letopis.exchange.replica import contents as clones
else:
    archives, config = lazy("letopis.archive"), lazy("letopis.config")  # help needs none
    clones = lazy("letopis.exchange.replica.contents")  # few archives are clones

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True, eq=False, repr=False)
class CliContext:
    """The shared options of one run, gathered wherever they stood."""

    archive: str | None = None
    config: str | None = None
    as_json: bool = False
    quiet: bool = False
    verbose: int = 0
    changes: dict[str, Any] = field(default_factory=dict)

    def set(self, name: str, value: Any) -> None:
        """A setting given on the command line; it wins over file and environment."""
        if value is not None:
            self.changes[name] = value

    def settings(self) -> Settings:
        """Settings of this run."""
        if self.archive is not None:
            self.changes["archive.path"] = self.archive
        return config.load_settings(self._config_file(), os.environ, self.changes)

    def _config_file(self) -> Path | None:
        named = self.config or os.environ.get("LETOPIS_CONFIG")
        if named:
            return Path(named)
        default = Path("letopis.toml")
        return default if default.is_file() else None

    def open(self, *, create: bool = True) -> Archive:
        """The archive; `create=False` refuses to make one just to find nothing in it."""
        settings = self.settings()
        if not create and not settings.database.url and not archives.holds_archive(Path(settings.archive.path)):
            raise UnknownUrl(
                f"there is no archive at {settings.archive.path}; make one with 'letopis init' or give --archive"
            )
        archive = archives.Archive.open(settings)
        return clones.fetch_on_demand(archive) if archive.is_clone else archive

    def words(self) -> list[str]:
        """The shared options as words of a command line, for a process that does a part of the work."""
        named = {"--archive": self.archive, "--config": self.config}
        flags = {"--json": self.as_json, "--quiet": self.quiet}
        return [
            *(word for flag, value in named.items() if value is not None for word in (flag, value)),
            *(flag for flag, value in flags.items() if value),
            *["--verbose"] * self.verbose,
        ]

    @property
    def is_unwatched(self) -> bool:
        """Whether nobody wants to see how far the work is: a program reads the answer, or silence was asked for."""
        return self.quiet or self.as_json

    @property
    def output(self) -> Output:
        """Where answers go."""
        return Output(as_json=self.as_json, quiet=self.quiet)


def _shared_option(*flags: str, stored: str, **words: Any) -> Callable[[F], F]:
    """An option whose value goes into the context of the command line, wherever among the words it is given."""

    def store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value not in (None, False, 0):
            setattr(ctx.find_root().obj, stored, value)

    return click.option(*flags, expose_value=False, callback=store, **words)


def shared_options(function: F) -> F:
    """Adds --archive, --config, --json, -q and -v."""
    options = [
        _shared_option("--archive", stored="archive", metavar="WHERE", help="Folder of the archive."),
        _shared_option("--config", stored="config", metavar="FILE", help="Settings file (letopis.toml)."),
        _shared_option("--json", stored="as_json", is_flag=True, help="One JSON object per line."),
        _shared_option("-q", "--quiet", stored="quiet", is_flag=True, help="Print results only."),
        _shared_option("-v", "--verbose", stored="verbose", count=True, help="Print more detail."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def verb_words(ctx: click.Context) -> list[str]:
    """How a command is called: what a verb means without a word of its own is called by the verb alone."""
    words = ctx.command_path.split()
    return words[:-1] if words[-2:-1] == words[-1:] else words


def _write_examples(formatter: click.HelpFormatter, examples: Iterable[str]) -> None:
    """One a line, however long: a line that was broken could not be copied."""
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class VerbCommand(click.Command):
    """A command whose help ends with examples."""

    examples: tuple[str, ...] = ()

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """How it is called; what a verb means without a word of its own is called by the verb alone."""
        formatter.write_usage(" ".join(verb_words(ctx)), " ".join(self.collect_usage_pieces(ctx)))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples to copy."""
        if self.examples:
            _write_examples(formatter, self.examples)


class VerbGroup(click.Group):
    """A verb with words of its own; its help ends with examples."""

    examples: tuple[str, ...] = ()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples to copy."""
        _write_examples(formatter, self.examples)


def verb(name: str, *examples: str) -> Callable[[F], VerbCommand]:
    """Makes a function a verb: shared options, its examples, and the CliContext as first argument."""

    def decorate(function: F) -> VerbCommand:
        command = click.command(name, cls=VerbCommand, context_settings={"help_option_names": ["-h", "--help"]})(
            shared_options(click.pass_obj(function))
        )
        command.examples = examples
        return command

    return decorate


def read_file(file: Path) -> bytes:
    """The bytes of a file, or of standard input for `-`."""
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; give a readable file or -") from None


def write_output(cli: CliContext, data: bytes | Iterable[bytes], target: Path | None) -> None:
    """Bytes, at once or in parts, to standard output, or to a file, which is told."""
    parts = (data,) if isinstance(data, bytes) else data
    if target is None or target == Path("-"):
        cli.output.bytes(parts)
        return
    try:
        with target.open("wb") as file:
            file.writelines(parts)
            size = file.tell()
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}; give another -o") from None
    cli.output.remark(f"{target}: {counted(size, 'byte')}")


Row = Mapping[str, Any]
_DURATIONS = frozenset({"every"})
"""Columns of seconds that people write with a unit."""
_SHOWN_HEAD = 8192
"""A NUL among so many bytes says that a document is no text."""


class Output(NamedTuple):
    """Standard output in the form that was asked for; remarks go to standard error."""

    as_json: bool
    quiet: bool

    def json(self, value: Any) -> None:
        """One object on one line."""
        click.echo(printable_json(json.dumps(json_value(value), ensure_ascii=False)))

    def row(self, row: Row, sentence: str) -> None:
        """One answer: an object for programs, a sentence for people."""
        if self.as_json:
            self.json(row)
        else:
            click.echo(printable(sentence))

    def sentences(self, sentences: Iterable[str]) -> int:
        """Many answers for people, in one write. Answers how many."""
        listed = list(map(printable, sentences))
        if listed:
            click.echo("\n".join(listed))  # click leaves out what only terminals understand
        return len(listed)

    def rows(self, rows: Iterable[Row], columns: Sequence[str]) -> int:
        """Many answers: objects, or a table of the named columns. Answers how many."""
        if self.as_json:
            count = 0
            for count, row in enumerate(rows, 1):  # noqa: B007 - the count is the answer
                self.json(row)
            return count
        listed = list(rows)
        _table(listed, columns)
        return len(listed)

    def remark(self, sentence: str) -> None:
        """Something worth knowing that is not the answer."""
        if not self.quiet:
            click.echo(printable(sentence), err=True)

    def complain(self, sentence: str) -> None:
        """Something went wrong with one of several things that were asked for."""
        click.echo(printable("letopis: " + sentence), err=True)

    def bytes(self, pieces: Iterable[bytes]) -> None:
        """A document, byte for byte; a terminal gets it as text that does nothing to it, or not at all."""
        sys.stdout.flush()
        if sys.stdout.isatty():
            document = b"".join(pieces)
            if b"\0" in document[:_SHOWN_HEAD]:
                raise UsageError("this is binary; write it to a file with '> FILE'")
            click.echo(printable(document.decode("utf-8", "replace")), nl=False)
        else:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column in _DURATIONS and isinstance(value, int | float):
        return written_duration(value)
    plain = json_value(value)
    if isinstance(plain, list) and all(isinstance(part, str) for part in plain):
        plain = ", ".join(plain)
    if isinstance(plain, dict):
        plain = ", ".join(f"{name}={part}" for name, part in plain.items())
    return printable_line(str(plain))


def _table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    if not rows:
        return
    cells = [[_cell(column, row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in [list(columns), *cells]) for index in range(len(columns))]
    for line in [list(columns), *cells]:
        click.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


_PAUSE_SECONDS = 0.2


def _estimate(seconds: float) -> int:
    """As exact as a guess deserves: whole minutes from five on, whole hours from ten on."""
    unit = 1 if seconds < 300 else 60 if seconds < 36_000 else 3600
    return round(seconds / unit) * unit


class ProgressLine:
    """Says how far the work is, and how long it will take where the total is known: on a terminal, at standard error.

    Not more often than is pleasant; what goes to a file or to a program is never mixed with it.
    """

    def __init__(self, what: str, *, total: int | None = None, quiet: bool = False) -> None:
        self._what = what
        self._total = total
        self.is_shown = not quiet and sys.stderr.isatty()
        self._started = time.monotonic()
        self._shown_at = self._started
        self._dirty = False

    def __enter__(self) -> ProgressLine:
        """For use in a with statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the terminal with a clean line."""
        self.interrupt()

    def interrupt(self) -> None:
        """Ends the line that stands there, so that something else can be said."""
        if self._dirty:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._dirty = False

    def show(self, done: int, remark: str = "", *, total: int = 0) -> None:
        """Tells how many items are done, of how many where that is known by now."""
        self._total = total or self._total
        now = time.monotonic()
        if not self.is_shown or now - self._shown_at < _PAUSE_SECONDS:
            return
        self._shown_at = now
        line = printable_line(self._line(done, remark, now - self._started))
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()
        self._dirty = True

    def _line(self, done: int, remark: str, seconds: float) -> str:
        rate = done / seconds if seconds else 0.0
        total = self._total if self._total and self._total >= done else None  # more came in meanwhile
        parts = [f"{done} {self._what}" if total is None else f"{done}/{total} {self._what}", f"{rate:.1f}/s"]
        if total and rate and (left := _estimate((total - done) / rate)):
            parts.append(f"{written_duration(left)} left")
        return "  ".join([*parts, remark] if remark else parts)
