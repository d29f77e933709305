"""The verb `crawl`: one agent, several processes, or the agents of a cluster, until there is nothing to do."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from letopis.archive import Archive
from letopis.archive.cluster import cluster_client as cluster_at
from letopis.archive.cluster import tasks_at_once
from letopis.archive.queues import count_due
from letopis.archive.write_gates import require_shared
from letopis.cli.context import CliContext, ProgressLine, verb
from letopis.config import Settings, parse_size
from letopis.crawl import (
    CrawlLimits,
    CrawlOptions,
    CrawlPause,
    CrawlStats,
    Fleet,
    crawl,
    crawl_on_cluster,
    unusable_plans,
)
from letopis.errors import UsageError
from letopis.fetch import private_ok
from letopis.fetch.page_steps import STEP_HELP
from letopis.lazy import lazy
from letopis.model import parse_duration
from letopis.model.printing import counted
from letopis.urls.scope import ScopeKind

if TYPE_CHECKING:
    from letopis.exchange import crawl_warcs
else:
    crawl_warcs = lazy("letopis.exchange.crawl_warcs")

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_MAX_FAILURE_KINDS = 4
"""Kinds of failures that are told, the most frequent first."""


@verb(
    "crawl",
    "letopis crawl https://example.org/ --limit 1000",
    "letopis crawl https://example.org/docs/ --scope prefix --depth 3 --delay 2s",
    "letopis crawl --once",
)
@click.argument("seeds", nargs=-1, metavar="[SEED]...")
@click.option(
    "--scope",
    type=click.Choice([str(kind) for kind in ScopeKind]),
    default="host",
    show_default=True,
    help="How far from the seeds.",
)
@click.option("--include", multiple=True, metavar="REGEX", help="Only addresses that match.")
@click.option("--exclude", multiple=True, metavar="REGEX", help="Exclude addresses that match.")
@click.option("--depth", type=click.IntRange(min=0), help="Follow at most N links from a seed.")
@click.option("--rules", metavar="XML", help="URL rules, as the <urltransform> element of a job.")
@click.option("--limit", type=click.IntRange(min=1), help="Fetch at most N pages; also ends when nothing is due.")
@click.option("--max-bytes", metavar="SIZE", help="Fetch at most this much (500MiB); also ends when nothing is due.")
@click.option("--max-time", metavar="TIME", help="Stop after this time (6h).")
@click.option("--delay", metavar="TIME", help="Minimum time between two fetches from a host (2s, 500ms).")
@click.option("--revisit", type=click.Choice(["uniform", "adaptive", "optimal"]), help="When pages are visited again.")
@click.option("--budget", type=float, metavar="RATE", help="Visits a second for the optimal policy.")
@click.option("--new-share", type=click.FloatRange(0, 1), help="Share of fetches reserved for new pages.")
@click.option(
    "--order",
    type=click.Choice(["breadth", "rank"]),
    help="Which new pages come first: near ones, or much-linked ones.",
)
@click.option("--max-hosts", type=click.IntRange(min=1), help="Fetch from at most N hosts.")
@click.option(
    "--agents", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that share the hosts."
)
@click.option("--cluster", metavar="ADDRESS", help="Work on a Dask cluster (tcp://host:8786).")
@click.option("--sitemaps", is_flag=True, default=None, help="Plan what the hosts' sitemaps list.")
@click.option("--requisites", is_flag=True, help="Fetch images, styles and scripts of pages too.")
@click.option("--browser", is_flag=True, help="Open pages in a browser, with everything they load.")
@click.option("--step", "steps", multiple=True, metavar="STEP", help=STEP_HELP)
@click.option(
    "--revisit-now",
    is_flag=True,
    help="Make all known pages of the seeds' hosts due at once, and follow their links again.",
)
@click.option("--once", is_flag=True, help="Stop when nothing is due.")
@click.option("--warc", type=click.Path(path_type=Path), metavar="DIR", help="Write WARC files to this folder too.")
def crawl_verb(
    cli: CliContext, seeds: tuple[str, ...], scope: str, include: tuple[str, ...], exclude: tuple[str, ...],
    depth: int | None, rules: str | None, limit: int | None, max_bytes: str | None, max_time: str | None,
    delay: str | None, revisit: str | None, budget: float | None, new_share: float | None, order: str | None,
    max_hosts: int | None, agents: int, cluster: str | None, sitemaps: bool | None, requisites: bool,
    browser: bool, steps: tuple[str, ...], revisit_now: bool, once: bool, warc: Path | None,
) -> None:  # fmt: skip
    """Crawl from the seeds, politely; without seeds go on with what is planned. Ctrl-C stops and can be resumed."""
    for name, value in {
        "crawl.delay": None if delay is None else parse_duration(delay), "schedule.policy": revisit,
        "schedule.budget": budget, "crawl.new_share": new_share, "crawl.order": order, "crawl.max_hosts": max_hosts,
        "crawl.sitemaps": sitemaps, "cluster.address": cluster,
    }.items():  # fmt: skip
        cli.set(name, value)
    options = CrawlOptions(
        seeds, ScopeKind(scope), include, exclude, depth, requisites, revisit_now,
        private_ok(cli.settings().fetch.private, "cli"), rules=rules or "",
        limits=CrawlLimits(
            limit, once, parse_size(max_bytes) if max_bytes else None, parse_duration(max_time) if max_time else None
        ),
        browser=browser or bool(steps), steps=steps,
    )  # fmt: skip
    if cli.settings().cluster.address:
        _print_figures(cli, _on_cluster(cli.settings(), options, agents, warc))
        return
    with cli.open() as archive, ProgressLine("pages", quiet=cli.is_unwatched) as bar:
        archive.require_writable()
        for sentence in () if seeds else unusable_plans(archive):
            cli.output.remark(sentence)
        show = _show_on(bar, cli, _Total(archive, limit), once or limit is not None or max_bytes is not None)
        around = partial(_also_warc, folder=warc)
        if agents > 1:
            fleet = Fleet(archive, options, agents, around, show, cli.output.remark)
            figures = asyncio.run(fleet.run())
        else:
            with around(archive):
                figures = asyncio.run(crawl(archive, options, show, signals=STOP_SIGNALS))
    _print_figures(cli, figures)


def _also_warc(archive: Archive, folder: Path | None) -> AbstractContextManager[None]:
    return nullcontext() if folder is None else crawl_warcs.recording_to_warc(archive, folder)


def _on_cluster(settings: Settings, options: CrawlOptions, agents: int, warc: Path | None) -> CrawlStats:
    """One agent for each task that the cluster works on at once, or as many as were asked for."""
    if warc is not None:
        raise UsageError("agents on a cluster write no WARC files; leave --warc out and use 'letopis export warc'")
    require_shared(settings)
    with cluster_at(settings.cluster.address) as client:
        return crawl_on_cluster(client, settings, options, agents if agents > 1 else tasks_at_once(client))


class _Total:
    """How many pages a crawl will have fetched as far as is known, counted so seldom that it costs next to nothing."""

    def __init__(self, archive: Archive, most: int | None) -> None:
        self._archive, self._most = archive, most
        self._known, self._next = 0, 0.0

    def after(self, fetched: int) -> int:
        began = time.monotonic()
        if began >= self._next:
            self._known = fetched + count_due(self._archive)
            self._next = began + max(1.0, 100 * (time.monotonic() - began))
        return self._known if self._most is None else min(self._known, self._most)


def _show_on(bar: ProgressLine, cli: CliContext, total: _Total, ends: bool) -> Callable[[CrawlStats], None]:
    """Figures as they grow; what a crawl waits for is said once. One that `ends` does not wait for pages to be due."""
    said: set[CrawlPause] = set()
    hint = "Ctrl-C stops" if ends else "Ctrl-C stops; --once ends a crawl when nothing is due"

    def show(figures: CrawlStats) -> None:
        of = total.after(figures.fetched) if ends and bar.is_shown else 0
        bar.show(figures.fetched, _figures_remark(figures), total=of)
        pause = figures.pause
        if pause is not None and pause not in said and not (ends and not pause.paused_hosts):
            said.clear()
            said.add(pause)
            bar.interrupt()
            cli.output.remark(f"{pause.sentence} ({hint})")

    return show


def _figures_remark(figures: CrawlStats) -> str:
    return f"{figures.new} new, {figures.changed} changed, {sum(figures.errors.values())} failed"


def _kinds(counted: Counter[str]) -> str:
    """The most frequent kinds in brackets; the others as one number, so that all are counted."""
    kinds = counted.most_common(_MAX_FAILURE_KINDS)
    others = counted.total() - sum(count for _, count in kinds)
    named = ", ".join(f"{kind} {count}" for kind, count in [*kinds, ("others", others)] if count)
    return f" ({named})" if named else ""


def _print_figures(cli: CliContext, figures: CrawlStats) -> None:
    pages = counted(figures.fetched, "page")
    sentence = f"{pages} in {figures.seconds:.1f} s: {_figures_remark(figures)}{_kinds(figures.errors)}"
    if figures.not_asked:
        sentence += f"; {sum(figures.not_asked.values())} not asked{_kinds(figures.not_asked)}"
    cli.output.row(figures.row(), sentence)
    if not figures.fetched and figures.not_asked:
        cli.output.remark("no due page was fetched; see 'letopis history URL'")
    elif not figures.fetched:
        cli.output.remark("nothing was due; fetch now with 'letopis crawl URL --revisit-now', or see 'letopis why URL'")
