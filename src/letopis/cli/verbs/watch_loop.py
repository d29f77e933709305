"""The verb `watch`: its commands are operations; the loop `watch run` stands here."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import click

from letopis.archive import Archive
from letopis.cli.context import CliContext, verb
from letopis.cli.door import verb_of
from letopis.model import rfc3339
from letopis.monitor.notifications import FailedDelivery
from letopis.monitor.watch_list import WatchList
from letopis.monitor.watcher import Watcher, WatchResult, open_watcher, result_row


@verb("run", "letopis watch run", "letopis watch run --once --json")
@click.option("--once", is_flag=True, help="Check what is due now, send alerts, and end.")
def run_verb(cli: CliContext, once: bool) -> None:
    """Check pages when they are due and alert of what happened, until Ctrl-C."""

    def report(judged: WatchResult) -> None:
        if cli.as_json or judged.alerts:
            sentences = "\n".join(alert.message for alert in judged.alerts)
            cli.output.row(result_row(judged), f"{rfc3339(judged.check.checked_at)} {sentences}")

    def undelivered(failed: FailedDelivery) -> None:
        cli.output.remark(str(failed))

    with cli.open() as archive:
        cli.output.remark(_start_sentence(archive, once))
        count = asyncio.run(_run(archive, report, undelivered, once))
    cli.output.remark("1 check" if count == 1 else f"{count} checks")


def _start_sentence(archive: Archive, once: bool) -> str:
    """What somebody who waits for the first line of the loop should know."""
    watched = sum(WatchList(archive).tag_counts().values())
    if not watched:
        return "nothing is watched yet; 'letopis watch add URL' begins" + ("" if once else ", also while this runs")
    pages = "1 page" if watched == 1 else f"{watched} pages"
    return f"watching {pages}" + ("" if once else "; changes are shown here, Ctrl-C stops")


async def _run(
    archive: Archive,
    report: Callable[[WatchResult], None],
    undelivered: Callable[[FailedDelivery], None],
    once: bool,
) -> int:
    count = 0

    def counted(judged: WatchResult) -> None:
        nonlocal count
        count += 1
        report(judged)

    async with open_watcher(archive, counted, undelivered) as watcher:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, watcher.stop)
        await _until_done(watcher, once)
    return count


async def _until_done(watcher: Watcher, once: bool) -> None:
    if once:
        await watcher.run_due()
    else:
        await watcher.run()


def _watch_verb() -> click.Command:
    group = verb_of("watch", "watches alerts watch_tags")
    assert isinstance(group, click.Group), "watch has words of its own"
    group.help = "Standing checks: check pages at their times and alert when something happens."
    group.add_command(run_verb)
    return group


watch_verb = _watch_verb()
