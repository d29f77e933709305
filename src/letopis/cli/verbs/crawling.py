"""The verb that crawls."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click

from letopis.archive import Archive
from letopis.archive.spreading import tasks_at_once
from letopis.catalog.queues import Shard
from letopis.cli.cluster import CLUSTER
from letopis.cli.cluster import cluster as cluster_at
from letopis.cli.context import Given, verb
from letopis.cli.progress import Progress
from letopis.config import Settings
from letopis.crawl import Agent, CrawlOptions, Figures, Fleet, Limits, crawl, crawl_on, ends_with_its_leader
from letopis.fetch import private_ok
from letopis.model import parse_duration
from letopis.urls import ScopeKind

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_KINDS = 4
"""Kinds of failures that are told, the most frequent first."""


def _seconds(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    return None if text is None else parse_duration(text)


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
@click.option("--exclude", multiple=True, metavar="REGEX", help="Never addresses that match.")
@click.option("--depth", type=click.IntRange(min=0), help="Most links away from a seed.")
@click.option("--limit", type=click.IntRange(min=1), help="Most pages to fetch.")
@click.option("--delay", callback=_seconds, help="Least time between two fetches from a host (2s, 500ms).")
@click.option("--revisit", type=click.Choice(["uniform", "adaptive", "optimal"]), help="When pages are visited again.")
@click.option("--budget", type=float, metavar="RATE", help="Visits a second for the optimal policy.")
@click.option("--new-share", type=click.FloatRange(0, 1), help="Share of fetches kept for never-seen pages.")
@click.option("--max-hosts", type=click.IntRange(min=1), help="Most hosts to touch.")
@click.option(
    "--agents", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that share the hosts."
)
@CLUSTER
@click.option("--sitemaps", is_flag=True, default=None, help="Plan what the hosts' sitemaps list.")
@click.option("--share", hidden=True, help="Which part of the hosts an agent of a fleet has.")
@click.option("--requisites", is_flag=True, help="Fetch images, styles and scripts of pages too.")
@click.option(
    "--revisit-now",
    is_flag=True,
    help="Make all known pages of the seeds' hosts due at once, and follow their links again.",
)
@click.option("--once", is_flag=True, help="Stop when nothing is due.")
@click.option("--warc", type=click.Path(path_type=Path), metavar="DIR", help="Write WARC files to this folder too.")
def crawl_verb(
    given: Given, seeds: tuple[str, ...], scope: str, include: tuple[str, ...], exclude: tuple[str, ...],
    depth: int | None, limit: int | None, delay: float | None, revisit: str | None, budget: float | None,
    new_share: float | None, max_hosts: int | None, agents: int, cluster: str | None,
    sitemaps: bool | None, share: str | None,
    requisites: bool, revisit_now: bool, once: bool, warc: Path | None,
) -> None:  # fmt: skip
    """Crawl from the seeds, politely; without seeds go on with what is planned. Ctrl-C stops and can be resumed."""
    for name, value in {
        "crawl.delay": delay, "schedule.policy": revisit, "schedule.budget": budget, "crawl.new_share": new_share,
        "crawl.max_hosts": max_hosts, "crawl.sitemaps": sitemaps, "cluster.address": cluster,
    }.items():  # fmt: skip
        given.set(name, value)
    options = CrawlOptions(
        seeds, ScopeKind(scope), include, exclude, depth, requisites, revisit_now,
        private_ok(given.settings().fetch.private, "cli"), limits=Limits(limit, once),
    )  # fmt: skip
    if given.settings().cluster.address and share is None:
        figures = _on_cluster(given.settings(), options, agents)
        _tell(given, figures)
        return
    with given.open() as archive, Progress("pages", total=limit, quiet=given.quiet) as bar:
        archive.require_writable()
        if agents > 1:
            figures = asyncio.run(Fleet(archive, options, agents, _agent_words(archive, sys.argv[1:])).run())
        else:
            with _also_warc(archive, warc):
                begun = _nothing if share is None else ends_with_its_leader
                work = crawl(archive, options, _shown(bar), shard=_shard(share), signals=STOP_SIGNALS, begun=begun)
                figures = asyncio.run(work)
    _tell(given, figures)


def _also_warc(archive: Archive, folder: Path | None) -> AbstractContextManager[None]:
    if folder is None:
        return nullcontext()
    # Loaded late on purpose: crawls without it need no readers and writers of other formats.
    from letopis.exchange.direct import written_directly  # noqa: PLC0415

    return written_directly(archive, folder)


def _on_cluster(settings: Settings, options: CrawlOptions, agents: int) -> Figures:
    """One agent for each task that the cluster works on at once, or as many as were asked for."""
    with cluster_at(settings.cluster.address) as client:
        return crawl_on(client, settings, options, agents if agents > 1 else tasks_at_once(client))


def _nothing(worker: Agent) -> None:
    """Nobody leads a crawl of one agent."""


def _shown(bar: Progress) -> Callable[[Figures], None]:
    return lambda figures: bar.show(figures.fetched, _remark(figures))


def _shard(share: str | None) -> Shard | None:
    if share is None:
        return None
    rest, _, agents = share.partition("/")
    return Shard(int(rest), int(agents))


def _agent_words(archive: Archive, words: Sequence[str]) -> list[str]:
    """The arguments of one agent: ours, without the number of agents and the limit of all."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word.split("=")[0] in ("--agents", "--limit"):
            skip = not skip and "=" not in word
            continue
        kept.append(word)
    return [*kept, "--archive", str(archive.folder)]


def _remark(figures: Figures) -> str:
    return f"{figures.new} new, {figures.changed} changed, {sum(figures.errors.values())} failed"


def _tell(given: Given, figures: Figures) -> None:
    kinds = ", ".join(f"{kind} {count}" for kind, count in figures.errors.most_common(_KINDS))
    said = f"{figures.fetched} pages in {figures.seconds:.1f} s: {_remark(figures)}" + (f" ({kinds})" if kinds else "")
    given.output.row(figures.row(), said)
    if not figures.fetched:
        given.output.remark(
            "nothing was due; --revisit-now asks at once, and 'letopis why URL' tells when a page is next"
        )
