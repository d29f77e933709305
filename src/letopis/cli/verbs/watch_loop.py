"""The verb `watch`: its commands are operations; the loop `watch run` stands here."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from letopis.archive import Archive
from letopis.archive.watches import saved_searches_of
from letopis.cli.context import CliContext, ProgressLine, verb
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
    with cli.open() as archive:
        cli.output.remark(_start_sentence(archive, once))
        due = WatchList(archive).count_due() if once else None
        with ProgressLine("checks", total=due, quiet=cli.is_unwatched or not once) as bar:
            heard = _Heard(cli, bar)
            asyncio.run(_run(archive, heard, once))
    cli.output.remark(f"{counted(heard.checks, 'check')}: {counted(heard.alerts, 'alert')}")


class _Heard:
    """What is said while watches run, and counted of it."""

    def __init__(self, cli: CliContext, bar: ProgressLine) -> None:
        self.checks = self.alerts = self._looks = 0
        self._cli, self._bar = cli, bar

    def judged(self, judged: WatchResult) -> None:
        self.checks, self.alerts = self.checks + 1, self.alerts + len(judged.alerts)
        if self._cli.as_json or judged.alerts:
            self._bar.interrupt()
            sentences = "\n".join(alert.message for alert in judged.alerts)
            self._cli.output.row(result_row(judged), f"{rfc3339(judged.check.checked_at)} {sentences}")

    def undelivered(self, failed: FailedDelivery) -> None:
        self._bar.interrupt()
        self._cli.output.remark(str(failed))

    def waiting(self, sentence: str) -> None:
        self._bar.interrupt()
        self._cli.output.remark(sentence)

    def recorded(self, looks: int) -> None:
        self._looks += looks
        self._bar.show(self._looks)


def _start_sentence(archive: Archive, once: bool) -> str:
    """What somebody who waits for the first line of the loop should know."""
    watched = sum(WatchList(archive).tag_counts().values())
    if not watched:
        return "nothing is watched yet; 'letopis watch add URL' begins" + ("" if once else ", also while this runs")
    return f"watching {counted(watched, 'page')}" + ("" if once else "; changes are shown here, Ctrl-C stops")


async def _run(archive: Archive, heard: _Heard, once: bool) -> None:
    """Until it is told to stop."""
    async with open_watcher(archive, heard.judged, heard.undelivered, heard.recorded, heard.waiting) as watcher:
        _stop_at_signals(watcher.stop)
        if once:
            await _run_once(archive, watcher)
        else:
            searches = saved_looks.SavedSearchLoop(archive)
            _stop_at_signals(watcher.stop, searches.stop)
            await asyncio.gather(watcher.run(), searches.run())


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


_ABOUT = "Watches: check pages regularly and alert when something happens."
watch_verb = words_of("watch", "watches alerts watch_options", _ABOUT)
watch_verb.add_command(run_verb)
