"""Verbs that need no archive: patch and extract files, simulate revisit policies, bench, complete words of a shell."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

import letopis
from letopis import extract
from letopis.archive import utc_now
from letopis.change.diff_formats import apply_binary_delta
from letopis.cli.context import CliContext, read_file, verb, write_output
from letopis.cli.door import run_operation
from letopis.errors import NotFound, UsageError
from letopis.exchange.selection import ExportSelection
from letopis.model import Check, Headers, Outcome, json_value, parse_duration
from letopis.operations import bind
from letopis.operations.pages import ExtractQuery, extract_page, page_text
from letopis.plugins import load_entry_point
from letopis.schedule.simulation import (
    POLICIES,
    ChangePattern,
    Coefficients,
    SimulationRow,
    coefficient_plot,
    recorded_world,
    revisit_advice,
    simulate,
    study_coefficients,
)
from letopis.tuples import NamedTuple


@verb("patch", "letopis diff URL --format binary > delta", "letopis patch old.pdf delta -o new.pdf")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("delta", type=click.Path(path_type=Path))
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="Write to a file.")
def patch_verb(cli: CliContext, old: Path, delta: Path, target: Path | None) -> None:
    """Apply a binary difference to OLD; the result is checked against its digest."""
    write_output(cli, apply_binary_delta(read_file(old), read_file(delta)), target)


@verb(
    "extract",
    "letopis extract page.html",
    "letopis extract https://example.org/ --format xml",
    "letopis extract https://example.org/ --at 2024-01-31 --offline",
    "letopis extract page.html --format markdown",
)
@click.argument("what", metavar="FILE|URL")
@click.option("--at", metavar="TIME", help="The version valid at this time.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "xml", "markdown", "text"]),
    default="json",
    show_default=True,
    help="Output format.",
)
@click.option("--content-type", default="", help="Type of a file, where its bytes do not tell.")
@click.option("--offline", is_flag=True, help="Never check first.")
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="Write to a file.")
def extract_verb(
    cli: CliContext, what: str, at: str | None, form: str, content_type: str, offline: bool, target: Path | None
) -> int:
    """Show the common form of a document, of a file or of a stored page: metadata, blocks, links.

    As Markdown or text it is the main content alone, without menus and the like.
    """
    file = Path(what)
    if "://" not in what and file.is_file():
        headers = (("Content-Type", content_type),) if content_type else ()
        source = _ReadFile(read_file(file), headers)
        page = extract.read_page(source.body, file.absolute().as_uri(), headers)
        write_output(cli, page_text(page, form, source).encode(), target)
        return 0
    if what.startswith(("/", "./", "../", "~")):
        raise NotFound(f"there is no file '{what}'; name a file, or an address such as https://example.org/")
    asked = bind(ExtractQuery, {"url": what, "at": at, "format": form, "offline": offline}, utc_now())
    return run_operation(cli, extract_page, asked, target)


class _ReadFile(NamedTuple):
    """A file as a document: nobody knows when it was so."""

    body: bytes
    headers: Headers
    time: datetime | None = None


_POLICY_COLUMNS = ("policy", "captured", "hits", "change_ratio", "freshness", "age", "visits_per_budget", "of_oracle")
_DAY_COLUMNS = ("policy", "day", "pages", "visits", "first_visits", "waiting", "new_share", "freshness", "estimate")
_STUDY_COLUMNS = ("coefficient", "captured", "hits", "change_ratio", "freshness", "age", "visits_per_budget")
_MOST_REPLAYED = 20_000
"""Pages of an archive whose histories are replayed: more tell the same."""
_STUDIED = "0.05,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8"
_CRAWL_POLICIES = ("uniform", "adaptive", "optimal")


@verb(
    "simulate",
    "letopis simulate",
    "letopis simulate --periods lognormal:60m:1.8 --changes periodic --policy uniform,optimal",
    "letopis simulate --coefficients 0.1,0.2,0.4 --plot coefficients.svg",
    "letopis simulate --from-archive --site example.org",
    "letopis simulate --whole --pages 300 --interval 10h --hours 336 --policy optimal",
)
@click.option(
    "--pages", type=click.IntRange(min=1), default=1000, show_default=True, help="Pages of the simulated web."
)
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
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same simulated web.")
@click.option("--policy", "policies", metavar="P,...", help=f"Policies out of {', '.join(POLICIES)}; default: all.")
@click.option(
    "--coefficients",
    metavar="C,...",
    help="Study the adaptive policy: a row for each coefficient, such as 0.1,0.2,0.4.",
)
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the study of coefficients to this SVG file.")
@click.option(
    "--from-archive",
    "recorded",
    is_flag=True,
    help="Replay the histories of the archive, and say which policy, coefficient and budget suit its pages.",
)
@click.option("--site", default="", help="With --from-archive, only the pages of this site.")
def simulate_verb(
    cli: CliContext, pages: int, periods: str, changes: str, interval: str, hours: float, whole: bool, seed: int,
    policies: str | None, coefficients: str | None, plot: Path | None, recorded: bool, site: str,
) -> None:  # fmt: skip
    """Compare revisit policies on pages whose changes are known: one row a policy.

    The adaptive policy has the coefficients schedule.increase and schedule.decrease.
    """
    if recorded:
        _replay_archive(cli, site, seed)
        return
    known = _CRAWL_POLICIES if whole else POLICIES
    names = list(known) if policies is None else [name.strip() for name in policies.split(",") if name.strip()]
    if whole:
        _simulate_crawls(cli, names, pages, parse_duration(interval), hours, seed)
        return
    kind: ChangePattern = "periodic" if changes == "periodic" else "poisson"

    def run(names: Sequence[str], chosen: Coefficients) -> list[SimulationRow]:
        return simulate(pages, periods, kind, parse_duration(interval), hours, seed, names, coefficients=chosen)

    if coefficients is not None or plot is not None:
        values = _coefficients(coefficients or _STUDIED)
        study = study_coefficients(values, lambda chosen: run(["adaptive"], chosen)[0])
        if plot is not None:
            write_output(cli, coefficient_plot(study).encode(), plot)
        cli.output.rows([_rounded_row(row) for row in study], _STUDY_COLUMNS)
        return
    schedule = cli.settings().schedule
    rows = run(names, Coefficients(schedule.increase, schedule.decrease))
    cli.output.rows([_rounded_row(row) for row in rows], _POLICY_COLUMNS)


def _replay_archive(cli: CliContext, site: str, seed: int) -> None:
    """A row for each policy at the advised budget on standard output, or with --json the advice; a remark else."""
    with cli.open(create=False) as archive:
        pages = ExportSelection(site=site).resources(archive)
        histories = [
            [(one.checked_at.timestamp(), _counts_as_change(one)) for one in archive.history(row.url) if one.available]
            for row in islice(pages, _MOST_REPLAYED)
        ]
    advice, rows = revisit_advice(recorded_world(histories), seed)
    if cli.as_json:
        cli.output.json(advice._asdict())
        return
    cli.output.rows([_rounded_row(row) for row in rows], _POLICY_COLUMNS)
    cli.output.remark(
        f"{advice.pages} pages changed {advice.changes} times in {advice.days:.1f} days; advice: schedule.policy "
        f"{'optimal' if advice.policy == 'captured' else advice.policy}, schedule.interval {advice.interval:.0f} s, "
        f"schedule.budget {advice.budget:.4g} visits a second for these pages, and for the adaptive policy "
        f"schedule.increase and schedule.decrease {advice.coefficient:g}"
    )


def _counts_as_change(check: Check) -> bool:
    return check.outcome is Outcome.CHANGED and check.meaningful is not False


def _coefficients(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"'{text}' is not a list of coefficients; write 0.1,0.2,0.4") from None


def _rounded_row(row: Any) -> dict[str, object]:
    return {name: _rounded(value) for name, value in json_value(row).items()}


def _simulate_crawls(
    cli: CliContext, names: Sequence[str], pages: int, interval: float, hours: float, seed: int
) -> None:
    """What the crawler believes of its freshness beside the truth, and the share that unseen pages got."""
    if not names or set(names) - set(_CRAWL_POLICIES) or hours < 24:
        raise UsageError(f"--whole needs policies out of {', '.join(_CRAWL_POLICIES)} and --hours of 24 or more")
    crawl_world, found = load_entry_point("letopis.simulations", "crawl", "letopis-demo"), []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="letopis-simulate-") as folder:
            rows = crawl_world(Path(folder), name, pages, interval, int(hours // 24), seed)
        found += [{"policy": name} | _rounded_row(row) for row in rows]
    cli.output.rows(found, _DAY_COLUMNS)


def _rounded(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value


_BENCH_FOLDER = Path(letopis.__file__).parents[2] / "bench"


def bench_scripts() -> dict[str, Path]:
    """Benchmarks by name; none in an installation without the source tree."""
    return {path.stem: path for path in sorted(_BENCH_FOLDER.glob("*.py")) if not path.stem.startswith("_")}


@verb("bench", "letopis bench codecs --corpus pages/", "letopis bench all")
@click.argument("name")
@click.option("--corpus", type=click.Path(path_type=Path), help="Folder of data to measure on.")
def bench_verb(cli: CliContext, name: str, corpus: Path | None) -> int:
    """Run a benchmark: ours, its peers, the ratio, the goal. 'all' runs every one."""
    known = bench_scripts()
    if name != "all" and name not in known:
        listed = ", ".join(known) or "none here: benchmarks come with the source tree"
        raise NotFound(f"unknown benchmark '{name}'; there are {listed}")
    if corpus is not None and not corpus.exists():
        raise NotFound(f"there is no corpus {corpus}; give a folder of pages")
    words = [*(["--corpus", str(corpus)] if corpus else []), *(["--json"] if cli.as_json else [])]
    chosen = known.values() if name == "all" else [known[name]]
    statuses = [subprocess.run([sys.executable, script, *words], check=False).returncode for script in chosen]  # noqa: S603
    return max(statuses, default=0)


@verb(
    "completion",
    "letopis completion bash > ~/.local/share/bash-completion/completions/letopis",
    "letopis completion fish | source",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_verb(cli: CliContext, shell: str) -> None:
    """Print a script that completes verbs, options and values in a shell, by calling letopis."""
    made = get_completion_class(shell)
    assert made is not None, "click knows these shells"
    program = click.get_current_context().find_root().command
    completing = made(program, {}, "letopis", "_LETOPIS_COMPLETE")
    cli.output.bytes([(completing.source_template % completing.source_vars()).encode()])
