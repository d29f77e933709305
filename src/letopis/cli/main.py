"""Where people come in: reads the arguments, runs one verb, turns errors into exit statuses."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence

import click

from letopis import __version__
from letopis.cli.context import Given, shared_options
from letopis.cli.registry import VERBS, load_verb
from letopis.errors import LetopisError


class LazyGroup(click.Group):
    """Verbs are imported when they are called: starting up must not cost more than a check."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the registry."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the verb; None for an unknown name, which click reports."""
        return load_verb(cmd_name) if cmd_name in VERBS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Turns an unknown verb into a sentence that names the nearest one."""
        name = args[0]
        if name not in VERBS:
            near = [verb for verb in VERBS if verb[:3] == name[:3]]
            hint = f"did you mean '{near[0]}'?" if near else "'letopis --help' lists them"
            raise click.UsageError(f"there is no verb '{name}'; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The one-line helps stand in the registry, so that --help imports nothing."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.help) for name, verb in VERBS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@shared_options
@click.version_option(__version__, prog_name="letopis")
def letopis() -> None:
    """Letopis crawls, watches, stores, maps, searches, replays and replicates the web over time.

    'letopis VERB --help' explains a verb with examples; 'letopis demo' shows
    everything on a small simulated web, without a network.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and answers with its exit status; never raises.

    Without `argv` this is the program itself, and its end is the end of the process.
    """
    if argv is None:
        # The interpreter would walk through all objects once more, only to let go of them right after.
        atexit.register(gc.freeze)
    try:
        result = letopis.main(
            list(sys.argv[1:] if argv is None else argv), prog_name="letopis", standalone_mode=False, obj=Given()
        )
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except LetopisError as error:
        return _complain(str(error), error.exit_status)
    except click.exceptions.NoArgsIsHelpError as error:
        return _complain(error.format_message(), 2, prefix="")
    except click.UsageError as error:
        where = f"; see '{error.ctx.command_path} --help'" if error.ctx else ""
        return _complain(error.format_message().rstrip(".") + where, 2)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _complain("stopped; the same command goes on from here", 130)
    except BrokenPipeError:
        # Whoever read our output has seen enough; silence the flush at exit too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _complain(sentence: str, status: int, prefix: str = "letopis: ") -> int:
    click.echo(prefix + sentence, err=True)
    return status
