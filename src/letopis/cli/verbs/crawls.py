"""Verbs that crawl and tell when pages are visited: crawl, why."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click

from letopis.archive import Archive
from letopis.archive.cluster import cluster_client as cluster_at
from letopis.archive.cluster import tasks_at_once
from letopis.catalog.queues import AGAIN, GONE, HELD, KNOWN, NEW, Shard
from letopis.cli.cluster import CLUSTER_OPTION
from letopis.cli.context import CliContext, verb
from letopis.cli.output import ProgressLine
from letopis.config import Settings
from letopis.crawl import Agent, CrawlLimits, CrawlOptions, CrawlStats, Fleet, crawl, crawl_on_cluster, exit_with_leader
from letopis.fetch import private_ok
from letopis.model import from_millis, parse_duration, rfc3339
from letopis.schedule import VisitState
from letopis.schedule.policies import format_span
from letopis.urls import ScopeKind, parse_user_url

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_MAX_FAILURE_KINDS = 4
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
@CLUSTER_OPTION
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
    given: CliContext, seeds: tuple[str, ...], scope: str, include: tuple[str, ...], exclude: tuple[str, ...],
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
        private_ok(given.settings().fetch.private, "cli"), limits=CrawlLimits(limit, once),
    )  # fmt: skip
    if given.settings().cluster.address and share is None:
        figures = _on_cluster(given.settings(), options, agents)
        _print_figures(given, figures)
        return
    with given.open() as archive, ProgressLine("pages", total=limit, quiet=given.quiet) as bar:
        archive.require_writable()
        if agents > 1:
            figures = asyncio.run(Fleet(archive, options, agents, _agent_arguments(archive, sys.argv[1:])).run())
        else:
            with _also_warc(archive, warc):
                begun = _no_leader if share is None else exit_with_leader
                work = crawl(archive, options, _show_on(bar), shard=_shard(share), signals=STOP_SIGNALS, begun=begun)
                figures = asyncio.run(work)
    _print_figures(given, figures)


def _also_warc(archive: Archive, folder: Path | None) -> AbstractContextManager[None]:
    if folder is None:
        return nullcontext()
    # Loaded late on purpose: crawls without it need no readers and writers of other formats.
    from letopis.exchange.warc_export import recording_to_warc  # noqa: PLC0415

    return recording_to_warc(archive, folder)


def _on_cluster(settings: Settings, options: CrawlOptions, agents: int) -> CrawlStats:
    """One agent for each task that the cluster works on at once, or as many as were asked for."""
    with cluster_at(settings.cluster.address) as client:
        return crawl_on_cluster(client, settings, options, agents if agents > 1 else tasks_at_once(client))


def _no_leader(worker: Agent) -> None:
    """Nobody leads a crawl of one agent."""


def _show_on(bar: ProgressLine) -> Callable[[CrawlStats], None]:
    return lambda figures: bar.show(figures.fetched, _figures_remark(figures))


def _shard(share: str | None) -> Shard | None:
    if share is None:
        return None
    rest, _, agents = share.partition("/")
    return Shard(int(rest), int(agents))


def _agent_arguments(archive: Archive, words: Sequence[str]) -> list[str]:
    """The arguments of one agent: ours, without the number of agents and the limit of all."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word.split("=")[0] in ("--agents", "--limit"):
            skip = not skip and "=" not in word
            continue
        kept.append(word)
    return [*kept, "--archive", str(archive.folder)]


def _figures_remark(figures: CrawlStats) -> str:
    return f"{figures.new} new, {figures.changed} changed, {sum(figures.errors.values())} failed"


def _print_figures(given: CliContext, figures: CrawlStats) -> None:
    kinds = ", ".join(f"{kind} {count}" for kind, count in figures.errors.most_common(_MAX_FAILURE_KINDS))
    said = f"{figures.fetched} pages in {figures.seconds:.1f} s: {_figures_remark(figures)}" + (
        f" ({kinds})" if kinds else ""
    )
    given.output.row(figures.row(), said)
    if not figures.fetched:
        given.output.remark(
            "nothing was due; --revisit-now asks at once, and 'letopis why URL' tells when a page is next"
        )


_PLAN_STATES = {
    KNOWN: "it is known, but no crawl plans to visit it",
    NEW: "it waits for its first visit",
    AGAIN: "it is visited again and again",
    HELD: "a filter, a trap or the limit of its host keeps it back",
    GONE: "it was not there and is given up",
}


@verb("why", "letopis why https://example.org/", "letopis why https://example.org/ --json")
@click.argument("url")
def why_verb(given: CliContext, url: str) -> None:
    """Say when a page is next visited, and why then."""
    address = parse_user_url(url)
    with given.open(create=False) as archive:
        resource = archive.answers.resource(address)
        state, due, record, depth, priority = archive.catalog.queues.plan_of(resource.id)
        policy = archive.settings.schedule.policy
    visits = VisitState.from_bytes(record)
    row = {
        "url": address,
        "state": _PLAN_STATES[state],
        "next_visit": from_millis(due) if due is not None else None,
        "policy": policy,
        "visits": visits.visits,
        "changes": visits.changes,
        "failures": visits.failures,
        "interval_seconds": round(visits.interval, 1),
        "depth": depth,
        "priority": priority,
    }
    given.output.row(row, _visit_sentence(address, state, due, visits, policy))


def _visit_sentence(url: str, state: int, due: int | None, visits: VisitState, policy: str) -> str:
    told = f"{url}: {_PLAN_STATES[state]}"
    if due is not None:
        told += f"; next visit {rfc3339(from_millis(due))}, {format_span(visits.interval)} after the last ({policy})"
    if visits.visits:
        told += f"; {visits.visits} visits found {visits.changes} changes"
    return told + (f"; {visits.failures} failures in a row" if visits.failures else "")
