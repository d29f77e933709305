"""The verb `watch`: its commands are operations; the loop `watch run` stands here."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from letopis.archive import Archive
from letopis.archive.watches import saved_searches_of
from letopis.cli.context import CliContext, verb
from letopis.cli.door import words_of
from letopis.lazy import lazy
from letopis.model import rfc3339
from letopis.model.printing import counted
from letopis.monitor.notifications import FailedDelivery
from letopis.monitor.watch_list import WatchList
from letopis.monitor.watcher import Watcher, WatchResult, open_watcher, result_row

if TYPE_CHECKING:
    from letopis.operations import saved_looks
else:
    saved_looks = lazy("letopis.operations.saved_looks")  # the other commands of watches need no index


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
        checks, alerts = asyncio.run(_run(archive, report, undelivered, once))
    cli.output.remark(f"{counted(checks, 'check')}: {counted(alerts, 'alert')}")


def _start_sentence(archive: Archive, once: bool) -> str:
    """What somebody who waits for the first line of the loop should know."""
    watched = sum(WatchList(archive).tag_counts().values())
    if not watched:
        return "nothing is watched yet; 'letopis watch add URL' begins" + ("" if once else ", also while this runs")
    return f"watching {counted(watched, 'page')}" + ("" if once else "; changes are shown here, Ctrl-C stops")


async def _run(
    archive: Archive, report: Callable[[WatchResult], None], undelivered: Callable[[FailedDelivery], None], once: bool
) -> tuple[int, int]:
    """Until it is told to stop; answers how many checks were made, and how many alerts came of them."""
    checks = alerts = 0

    def judged_one(judged: WatchResult) -> None:
        nonlocal checks, alerts
        checks, alerts = checks + 1, alerts + len(judged.alerts)
        report(judged)

    async with open_watcher(archive, judged_one, undelivered) as watcher:
        _stop_at_signals(watcher.stop)
        if once:
            await _run_once(archive, watcher)
        else:
            searches = saved_looks.SavedSearchLoop(archive)
            _stop_at_signals(watcher.stop, searches.stop)
            await asyncio.gather(watcher.run(), searches.run())
    return checks, alerts


async def _run_once(archive: Archive, watcher: Watcher) -> None:
    """Saved searches, of which most archives have none, see what the checks brought; their alerts are sent as well."""
    await watcher.run_due()
    if not watcher.stopped and saved_searches_of(archive).are_any():
        searches = saved_looks.SavedSearchLoop(archive)
        _stop_at_signals(watcher.stop, searches.stop)
        if await asyncio.to_thread(searches.look_at_due):
            await watcher.run_due()


def _stop_at_signals(*stops: Callable[[], None]) -> None:
    def stop() -> None:
        for one in stops:
            one()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)


_ABOUT = "Standing checks: check pages at their times and alert when something happens."
watch_verb = words_of("watch", "watches alerts watch_tags", _ABOUT)
watch_verb.add_command(run_verb)
