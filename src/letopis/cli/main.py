"""The program `letopis`: the table of verbs, loaded when called, and errors as exit statuses."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from letopis import __version__
from letopis.cli.context import CliContext, shared_options, verb_words
from letopis.errors import LetopisError, shell_words
from letopis.lazy import lazy
from letopis.model.printing import printable
from letopis.plugins import load_entry_point
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    import difflib
    import traceback

    from click import shell_completion as completion
    from click.shell_completion import CompletionItem
else:
    difflib, traceback = lazy("difflib"), lazy("traceback")  # for what went wrong
    completion = lazy("click.shell_completion")

_PACKAGE = "package:"


class Verb(NamedTuple):
    """Where a verb lives and what it does: a module, families of operations, or a package that is installed apart."""

    module: str
    help: str


VERBS: dict[str, Verb] = {
    "init": Verb("operations.totals", "Create an archive"),
    "check": Verb("operations.checks", "Check pages now: available, changed, changed for you"),
    "get": Verb("operations.pages", "Print a page as it is now, or as of any time"),
    "versions": Verb("operations.checks", "List the versions of a page"),
    "sets": Verb("operations.captures", "List the captures of a whole page"),
    "set": Verb("operations.captures", "List the resources of a whole page"),
    "qa": Verb("operations.replay_quality", "Replay captured pages and count what they lack"),
    "screenshot": Verb("operations.captures", "Print the screenshot of a page"),
    "shown-text": Verb("operations.captures", "Print the text as a page showed it"),
    "diff": Verb("operations.pages", "Show what changed on a page"),
    "history": Verb("operations.checks", "List every check of a page"),
    "patch": Verb("measures", "Apply a binary difference"),
    "extract": Verb("measures", "Show a document as metadata, blocks and links"),
    "put": Verb("operations.pages", "Store a version by hand"),
    "watch": Verb("watch_loop", "Watches: add, list, pause, remove, run and more"),
    "saved": Verb("operations.saved_searches saved_looks alerts", "Saved searches, run again as versions arrive"),
    "crawl": Verb("crawls", "Crawl from seeds, politely, and come back when pages change"),
    "crawls": Verb("operations.crawls", "Status of the crawl; add seeds for the daemon, drop sites"),
    "why": Verb("operations.crawls", "Explain when a page is visited next"),
    "simulate": Verb("measures", "Compare revisit policies on pages whose changes are known"),
    "run": Verb("daemon", "The daemon: crawling, watches, jobs, web interface"),
    "demo": Verb("package:letopis-demo", "A small simulated web, crawled and shown; needs no network"),
    "serve": Verb("daemon", "Web interface and HTTP API"),
    "mcp": Verb("daemon", "Let assistants ask the archive (Model Context Protocol)"),
    "import": Verb("operations.imports", "Import WARC, WACZ, CDXJ, HAR, lists, and archives of other tools"),
    "export": Verb("operations.exchange", "Export the archive for other tools: WARC, WACZ, CDXJ and more"),
    "map": Verb("operations.links site_listings", "Show the map of a site, or what changed in it, as of any date"),
    "links": Verb("operations.links", "List the links of a page or to it, as of any date"),
    "broken": Verb("operations.links", "List broken links and the pages they are on"),
    "rank": Verb("operations.links", "Rank pages by the links between them"),
    "search": Verb("operations.words", "Find pages by their words, as of any date"),
    "complete": Verb("operations.word_forms", "Complete words by their first letters"),
    "near": Verb("operations.words", "List the words that occur near a word"),
    "when": Verb("operations.words", "Find when a phrase first and last appeared"),
    "words": Verb("operations.word_forms", "Base forms of words: list, lock, release"),
    "origin": Verb("operations.words", "Find where each paragraph of a page first appeared"),
    "categories": Verb("operations.words", "Sort the pages of a site into a tree by their key words"),
    "moved": Verb("operations.moved_pages", "Find where a missing page of a site may have moved"),
    "duplicates": Verb("operations.duplicates", "Find the same document under other addresses"),
    "muted": Verb("operations.muting", "List changes of a page that did not count, and why"),
    "mute": Verb("operations.muting", "Mute changes of a text on a page or host, or never mute it"),
    "jobs": Verb("operations.jobs runs", "Job queue: start, submit, list, show, cancel, refresh"),
    "users": Verb("operations.accounts two_factor", "People who may sign in, and their roles"),
    "tokens": Verb("operations.accounts", "Secrets for programs that use the HTTP API"),
    "projects": Verb("operations.projects", "Named sets of pages"),
    "audit": Verb("operations.accounts", "Who changed what in this archive"),
    "publish": Verb("operations.replication", "Publish the archive as files for any static web server"),
    "clone": Verb("operations.replication", "Copy a published archive, or a part of it"),
    "pull": Verb("operations.replication", "Update a clone, transferring only differences"),
    "zrec": Verb("zrec", "Compressed sorted records, synced by ranges"),
    "changes": Verb("operations.totals", "List what is new to a client, and acknowledge it"),
    "stats": Verb("operations.totals", "Show totals of the archive"),
    "usage": Verb("operations.totals", "How often the archive was used, by day"),
    "settings": Verb("operations.settings", "List the settings in effect; change some"),
    "doctor": Verb("operations.upkeep", "Check this installation"),
    "bench": Verb("measures", "Run a benchmark of the source tree"),
    "completion": Verb("measures", "Print a completion script: bash, zsh, fish"),
    "verify": Verb("operations.upkeep", "Check every byte and every reference; repair"),
    "migrate": Verb("operations.exchange", "Copy the archive to another place and compare"),
    "compact": Verb("operations.upkeep", "Recompress, apply retention, free space"),
    "backup": Verb("operations.upkeep", "Create or update a backup"),
    "restore": Verb("operations.upkeep", "Restore a backup into an empty archive"),
}


def load_verb(name: str) -> click.Command:
    """The command of a verb: made of an operation, or the attribute of its module with the verb's name."""
    if VERBS[name].module.startswith(_PACKAGE):
        loaded: click.Command = load_entry_point("letopis.verbs", name, VERBS[name].module.removeprefix(_PACKAGE))
        return loaded
    place, _, family = VERBS[name].module.partition(".")
    if family:
        door: Callable[[str, str, str], click.Command] = import_module("letopis.cli.door").verb_of
        return door(name, family, VERBS[name].help)
    module = import_module(f"letopis.cli.verbs.{place}")
    command: click.Command = getattr(module, name.replace("-", "_") + "_verb")
    return command


_OTHER_WORDS = {
    "add": "put", "store": "put", "save": "put", "fetch": "get", "download": "get", "show": "get", "view": "get",
    "cat": "get", "open": "get", "find": "search", "grep": "search", "query": "search", "compare": "diff",
    "log": "history", "timeline": "history", "list": "versions", "monitor": "watch", "follow": "watch",
    "alert": "watch", "spider": "crawl", "harvest": "crawl", "scrape": "crawl", "seeds": "crawls",
    "schedule": "why", "daemon": "run", "start": "run", "web": "serve", "server": "serve", "ui": "serve",
    "load": "import", "warc": "export", "dump": "export", "snapshot": "backup", "copy": "migrate", "sitemap": "map",
    "tree": "map", "backlinks": "links", "dead": "broken", "pagerank": "rank", "first": "when", "phrase": "when",
    "similar": "duplicates", "dedup": "duplicates", "queue": "jobs", "login": "users", "accounts": "users",
    "keys": "tokens", "collections": "projects", "mirror": "clone", "sync": "pull", "update": "pull",
    "status": "stats", "info": "stats", "size": "stats", "config": "settings", "options": "settings", "ai": "mcp",
    "fsck": "verify", "repair": "verify", "test": "verify", "gc": "compact", "vacuum": "compact",
    "optimize": "compact", "prune": "compact", "delete": "compact", "benchmark": "bench", "new": "init",
    "create": "init", "feed": "changes", "news": "changes", "text": "extract", "topics": "categories",
}  # fmt: skip
"""What people call things that are verbs here by another name."""
_LEAST_LIKENESS = 0.6


def nearest_verb(name: str) -> str | None:
    """The verb that somebody meant: by what the word means elsewhere, else by its letters."""
    word = name.lower()
    close = difflib.get_close_matches(word, VERBS, 1, _LEAST_LIKENESS)
    return _OTHER_WORDS.get(word) or (close[0] if close else None)


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
        if args[0] == "help":
            if len(args) == 1:
                click.echo(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        name = args[0]
        if name not in VERBS:
            near = nearest_verb(name)
            hint = f"did you mean '{near}'?" if near else "'letopis --help' lists them"
            raise click.UsageError(f"unknown verb '{name}'; {hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs by their first letters, with their help, and none of them imported; else options."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        found = ((name, verb.help) for name, verb in VERBS.items() if name.startswith(incomplete))
        return [completion.CompletionItem(name, help=about) for name, about in found]

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the verb; that whoever read its output has seen enough is no failure."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
            return 0

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The one-line helps stand in the registry, so that --help imports nothing."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.help) for name, verb in VERBS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@shared_options
@click.version_option(__version__, prog_name="letopis")
def root_command() -> None:
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
        _open_what_is_closed()
    try:
        result = root_command.main(
            list(sys.argv[1:] if argv is None else argv), prog_name="letopis", standalone_mode=False, obj=CliContext()
        )
        return result if isinstance(result, int) else 0
    except LetopisError as error:
        return _print_error(shell_words(error), error.exit_status)
    except click.exceptions.NoArgsIsHelpError as error:
        return _print_error(error.format_message(), 2, prefix="")
    except click.UsageError as error:
        where = f"; see '{' '.join(verb_words(error.ctx))} --help'" if error.ctx else ""
        return _print_error(error.format_message().rstrip(".") + where, 2)
    except click.ClickException as error:
        return _print_error(error.format_message(), error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        said = str(error.__cause__ or error)
        return _print_error(said or "stopped; run the same command again to continue", 130)
    except OSError as error:
        return _print_unexpected(error, f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    except MemoryError as error:
        return _print_unexpected(error, "out of memory")
    except Exception as error:
        return _print_unexpected(error, f"internal error:  {type(error).__name__}: {error}")


def _open_what_is_closed() -> None:
    """Standard streams that the shell closed (`>&-`) lead nowhere, and no file of the archive takes their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _print_unexpected(error: Exception, sentence: str) -> int:
    """One sentence instead of a traceback, which -v shows."""
    if any(word in ("--verbose",) or (word[:1] == "-" and word[1:2] == "v") for word in sys.argv[1:]):
        traceback.print_exception(error)
    return _print_error(f"{sentence}; -v shows where", 1)


def _print_error(sentence: str, status: int, prefix: str = "letopis: ") -> int:
    click.echo(printable(prefix + sentence), err=True)
    return status
