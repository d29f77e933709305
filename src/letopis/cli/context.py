"""What every verb needs: the shared options, the settings and the archive that follow from them, files in and out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from letopis.cli.output import Output
from letopis.errors import UnknownUrl, UsageError
from letopis.lazy import lazy
from letopis.model import parse_time
from letopis.model.printing import counted

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
        return _with_origin(archive) if archive.is_clone else archive

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

    def moment(self, text: str | None) -> datetime | None:
        """A time as people write it."""
        return None if text is None else parse_time(text, archives.utc_now())


def _with_origin(archive: Archive) -> Archive:
    """A clone that fetches what it has not got yet."""
    return clones.fetch_on_demand(archive)


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
