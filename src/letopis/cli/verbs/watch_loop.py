"""The verb `watch`, whose commands are loaded when called, and its loop `watch run`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from importlib import import_module

import click

from letopis.archive import Archive
from letopis.catalog.watches import Watches
from letopis.cli.context import CliContext, shared_options, verb
from letopis.model import rfc3339
from letopis.monitor.watcher import Watcher, WatchResult, open_watcher, result_row

_MODULES = {"add": "watch_list", "list": "watch_list", "remove": "watch_list", "run": "watch_loop"}


class _WatchGroup(click.Group):
    """A verb with verbs of its own. They are imported when called: the loop starts without the parsers."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The attribute of its module with the verb's name."""
        if cmd_name not in _MODULES:
            return None
        command: click.Command = getattr(import_module(f"letopis.cli.verbs.{_MODULES[cmd_name]}"), cmd_name + "_verb")
        return command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples to copy."""
        with formatter.section("Examples"):
            formatter.write_text("letopis watch add https://example.org/ --every 1h --notify file:/tmp/alerts.jsonl")
            formatter.write_text("letopis watch run")


@click.group("watch", cls=_WatchGroup, context_settings={"help_option_names": ["-h", "--help"]})
@shared_options
def watch_verb() -> None:
    """Standing checks: look at pages at their times and tell when something happens."""


@verb("run", "letopis watch run", "letopis watch run --once --json")
@click.option("--once", is_flag=True, help="Look at what is due now, tell, and end.")
def run_verb(given: CliContext, once: bool) -> None:
    """Look at pages when they are due and tell what happened, until Ctrl-C."""

    def tell(judged: WatchResult) -> None:
        if given.as_json or judged.alerts:
            sentences = "\n".join(alert.message for alert in judged.alerts)
            given.output.row(result_row(judged), f"{rfc3339(judged.check.checked_at)} {sentences}")

    with given.open() as archive:
        given.output.remark(_start_sentence(archive, once))
        count = asyncio.run(_run(archive, tell, once))
    given.output.remark(f"looked {count} times" if count != 1 else "looked once")


def _start_sentence(archive: Archive, once: bool) -> str:
    """What somebody who waits for the first line of the loop should know."""
    watched = sum(Watches(archive.catalog.database).tag_counts().values())
    if not watched:
        return "nothing is watched yet; 'letopis watch add URL' begins" + ("" if once else ", also while this runs")
    pages = "1 page" if watched == 1 else f"{watched} pages"
    return f"watching {pages}" + ("" if once else "; changes are told here, Ctrl-C stops")


async def _run(archive: Archive, tell: Callable[[WatchResult], None], once: bool) -> int:
    count = 0

    def counted(judged: WatchResult) -> None:
        nonlocal count
        count += 1
        tell(judged)

    async with open_watcher(archive, counted) as work:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, work.stop)
        await _until_done(work, once)
    return count


async def _until_done(work: Watcher, once: bool) -> None:
    if once:
        await work.run_due()
    else:
        await work.run()
