"""Verbs about when pages are visited: why, simulate."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from letopis.catalog.queues import AGAIN, GONE, HELD, KNOWN, NEW
from letopis.cli.context import Given, verb
from letopis.cli.whole import simulated_crawl
from letopis.errors import UsageError
from letopis.model import from_millis, parse_duration, rfc3339
from letopis.schedule import POLICIES, VisitState, simulate
from letopis.schedule.why import span
from letopis.urls import parse_user

_STATES = {
    KNOWN: "it is known, but no crawl plans to visit it",
    NEW: "it waits for its first visit",
    AGAIN: "it is visited again and again",
    HELD: "a filter, a trap or the limit of its host keeps it back",
    GONE: "it was not there and is given up",
}
_COLUMNS = ("policy", "captured", "hits", "freshness", "age", "visits_per_budget", "of_oracle")
_WHOLE = ("policy", "day", "pages", "visits", "first_visits", "waiting", "new_share", "freshness", "estimate")
_REAL = ("uniform", "adaptive", "optimal")


@verb("why", "letopis why https://example.org/", "letopis why https://example.org/ --json")
@click.argument("url")
def why_verb(given: Given, url: str) -> None:
    """Say when a page is next visited, and why then."""
    address = parse_user(url)
    with given.open(create=False) as archive:
        resource = archive.answers.resource(address)
        state, due, record, depth, priority = archive.catalog.queues.plan_of(resource.id)
        policy = archive.settings.schedule.policy
    visits = VisitState.from_bytes(record)
    row = {
        "url": address,
        "state": _STATES[state],
        "next_visit": from_millis(due) if due is not None else None,
        "policy": policy,
        "visits": visits.visits,
        "changes": visits.changes,
        "failures": visits.failures,
        "interval_seconds": round(visits.interval, 1),
        "depth": depth,
        "priority": priority,
    }
    given.output.row(row, _sentence(address, state, due, visits, policy))


def _sentence(url: str, state: int, due: int | None, visits: VisitState, policy: str) -> str:
    told = f"{url}: {_STATES[state]}"
    if due is not None:
        told += f"; next visit {rfc3339(from_millis(due))}, {span(visits.interval)} after the last ({policy})"
    if visits.visits:
        told += f"; {visits.visits} visits found {visits.changes} changes"
    return told + (f"; {visits.failures} failures in a row" if visits.failures else "")


@verb(
    "simulate",
    "letopis simulate",
    "letopis simulate --periods lognormal:60m:1.8 --changes periodic --policy uniform,optimal",
    "letopis simulate --whole --pages 300 --interval 10h --hours 336 --policy optimal",
)
@click.option("--pages", type=click.IntRange(min=1), default=1000, show_default=True, help="Pages of the world.")
@click.option("--periods", default="uniform:2m-80m", show_default=True, help="How often pages change.")
@click.option(
    "--changes",
    type=click.Choice(["poisson", "periodic"]),
    default="poisson",
    show_default=True,
    help="At which times.",
)
@click.option("--interval", default="20m", show_default=True, help="Mean time between two visits of a page.")
@click.option("--hours", type=float, default=24.0, show_default=True, help="Measured hours, after 24 h of learning.")
@click.option("--whole", is_flag=True, help="Run the whole crawler on the demo's web in simulated time: a row a day.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same world.")
@click.option("--policy", "policies", default=",".join(POLICIES), show_default=True, help="Policies, with commas.")
def simulate_verb(
    given: Given, pages: int, periods: str, changes: str, interval: str, hours: float, whole: bool, seed: int,
    policies: str,
) -> None:  # fmt: skip
    """Compare revisit policies on pages whose changes are known: one row a policy."""
    names = [name.strip() for name in policies.split(",") if name.strip()]
    if whole:
        _crawl_whole(given, [name for name in names if name in _REAL], pages, parse_duration(interval), hours, seed)
        return
    kind = "periodic" if changes == "periodic" else "poisson"
    rows = simulate(pages, periods, kind, parse_duration(interval), hours, seed, names)  # type: ignore[arg-type]
    given.output.rows([{name: _rounded(value) for name, value in asdict(row).items()} for row in rows], _COLUMNS)


def _crawl_whole(given: Given, names: Sequence[str], pages: int, interval: float, hours: float, seed: int) -> None:
    """What the crawler believes of its freshness beside the truth, and the share that unseen pages got."""
    if not names or hours < 24:
        raise UsageError(f"--whole needs a policy out of {', '.join(_REAL)} and --hours of 24 or more")
    found = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="letopis-simulate-") as folder:
            rows = simulated_crawl(Path(folder), name, pages, interval, int(hours // 24), seed)
        found += [{"policy": name} | {key: _rounded(value) for key, value in asdict(row).items()} for row in rows]
    given.output.rows(found, _WHOLE)


def _rounded(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value
