"""Verbs that count and measure: stats of the archive, simulate revisit policies, bench."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

import letopis
from letopis.archive import Archive
from letopis.cli.context import CliContext, verb
from letopis.daemon.simulation import crawl_demo_world
from letopis.errors import NotFound, UsageError
from letopis.index.link_index import LinkIndex
from letopis.index.word_index import WordIndex
from letopis.model import parse_duration
from letopis.schedule import POLICIES, simulate


@verb("stats", "letopis stats", "letopis stats --json")
def stats_verb(given: CliContext) -> None:
    """Show totals of the archive: documents, versions, checks, bytes, links, and how far the indexes are behind."""
    with given.open(create=False) as archive:
        row = _totals(archive)
    given.output.row(row, "\n".join(f"{name.replace('_', ' '):26} {value}" for name, value in row.items()))


def _totals(archive: Archive) -> dict[str, Any]:
    """Counts and rates; `links_lag` and `search_lag` are versions that the indexes will take in when asked next.

    `names_lag` are those whose links do not help to find pages yet; they do when there are some more.
    """
    words = WordIndex(archive)
    links, behind = LinkIndex(archive).known()
    totals = replace(archive.stats(), links=links)
    return asdict(totals) | {
        "ratio": round(totals.pack_bytes / totals.raw_bytes, 4) if totals.raw_bytes else None,
        "catalog_bytes_per_version": round(totals.catalog_bytes / totals.versions, 1) if totals.versions else None,
        "links_lag": behind,
        "search_lag": words.lag(),
        "names_lag": words.names_lag(),
    }


_POLICY_COLUMNS = ("policy", "captured", "hits", "freshness", "age", "visits_per_budget", "of_oracle")
_DAY_COLUMNS = ("policy", "day", "pages", "visits", "first_visits", "waiting", "new_share", "freshness", "estimate")
_CRAWL_POLICIES = ("uniform", "adaptive", "optimal")


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
    given: CliContext, pages: int, periods: str, changes: str, interval: str, hours: float, whole: bool, seed: int,
    policies: str,
) -> None:  # fmt: skip
    """Compare revisit policies on pages whose changes are known: one row a policy."""
    names = [name.strip() for name in policies.split(",") if name.strip()]
    if whole:
        _simulate_crawls(
            given, [name for name in names if name in _CRAWL_POLICIES], pages, parse_duration(interval), hours, seed
        )
        return
    kind = "periodic" if changes == "periodic" else "poisson"
    rows = simulate(pages, periods, kind, parse_duration(interval), hours, seed, names)  # type: ignore[arg-type]
    given.output.rows([{name: _rounded(value) for name, value in asdict(row).items()} for row in rows], _POLICY_COLUMNS)


def _simulate_crawls(
    given: CliContext, names: Sequence[str], pages: int, interval: float, hours: float, seed: int
) -> None:
    """What the crawler believes of its freshness beside the truth, and the share that unseen pages got."""
    if not names or hours < 24:
        raise UsageError(f"--whole needs a policy out of {', '.join(_CRAWL_POLICIES)} and --hours of 24 or more")
    found = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="letopis-simulate-") as folder:
            rows = crawl_demo_world(Path(folder), name, pages, interval, int(hours // 24), seed)
        found += [{"policy": name} | {key: _rounded(value) for key, value in asdict(row).items()} for row in rows]
    given.output.rows(found, _DAY_COLUMNS)


def _rounded(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value


_BENCH_FOLDER = Path(letopis.__file__).parents[2] / "bench"


def bench_scripts() -> dict[str, Path]:
    """Benchmarks by name; none in an installation without the source tree."""
    return {path.stem: path for path in sorted(_BENCH_FOLDER.glob("*.py")) if not path.stem.startswith("_")}


@verb("bench", "letopis bench codecs --corpus pages/", "letopis bench all")
@click.argument("name")
@click.option("--corpus", type=click.Path(path_type=Path), help="Folder of data to measure on.")
def bench_verb(given: CliContext, name: str, corpus: Path | None) -> int:
    """Run a benchmark: ours, its peers, the ratio, the goal. 'all' runs every one."""
    known = bench_scripts()
    if name != "all" and name not in known:
        listed = ", ".join(known) or "none here: benchmarks come with the source tree"
        raise NotFound(f"there is no benchmark '{name}'; there are {listed}")
    words = [*(["--corpus", str(corpus)] if corpus else []), *(["--json"] if given.as_json else [])]
    chosen = known.values() if name == "all" else [known[name]]
    statuses = [subprocess.run([sys.executable, script, *words], check=False).returncode for script in chosen]  # noqa: S603
    return max(statuses, default=0)
