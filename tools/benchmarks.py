"""All benchmarks in one table: `make bench CORPUS=DIR` runs them and writes docs/benchmarks.md.

    python tools/benchmarks.py run --corpus DIR [NAME...]    # measures all rows, or those of these scripts
    python tools/benchmarks.py page                          # writes the page from what was measured so far

Every result is kept in docs/benchmarks/results.json with its date and commit; the page shows the newest of each row
and draws all of them. A row whose peers or data are missing is left out and named; older results stay.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from benchmark_rows import ROWS, TRIED, BenchmarkRow, BenchmarkRun

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "images" / "benchmarks.svg"


@dataclass(frozen=True)
class BenchmarkResult:
    """One row as it was measured at one commit; older pages tell some rows by their ratio alone."""

    row: str
    what: str
    ours: float | None
    peer: float | None
    ratio: float
    date: str
    commit: str

    def is_of(self, row: BenchmarkRow) -> bool:
        """Whether it was measured for that row."""
        return (self.row, self.what) == (row.name, row.what)


def kept_results(file: Path = RESULTS) -> list[BenchmarkResult]:
    """What was measured so far, oldest first."""
    return [BenchmarkResult(**row) for row in json.loads(file.read_text())] if file.exists() else []


def keep_results(results: Iterable[BenchmarkResult], file: Path = RESULTS) -> None:
    """One line a result, so that a difference of two commits shows what was measured between them."""
    lines = ",\n".join(json.dumps(asdict(result), ensure_ascii=False) for result in results)
    file.write_text(f"[\n{lines}\n]\n")


def with_measured(known: Sequence[BenchmarkResult], new: Sequence[BenchmarkResult]) -> list[BenchmarkResult]:
    """All of them; of a row that was measured twice at one commit the newer result."""
    replaced = {(result.row, result.what, result.commit) for result in new}
    return [result for result in known if (result.row, result.what, result.commit) not in replaced] + list(new)


# Measuring


def measure(run: BenchmarkRun, corpus: Path, commit: str) -> Iterator[BenchmarkResult]:
    """Runs one script and takes every row out of what it printed; its status may tell that a goal is missed."""
    words = [word.format(corpus=corpus) for word in run.words]
    done = subprocess.run(  # noqa: S603
        [sys.executable, ROOT / "bench" / f"{run.script}.py", *words, "--json"],
        stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    try:
        found = json.loads(done.stdout)
    except ValueError:
        print(f"left out: {run.command()} ended with status {done.returncode} and printed no JSON", file=sys.stderr)
        return
    today = datetime.now(UTC).date().isoformat()
    for row in ROWS:
        if row.run == run:
            figure = row.figure(found)
            if figure is None or figure.ratio is None:
                print(f"left out: {row.name}, {row.what}: no peer was found", file=sys.stderr)
            else:
                yield BenchmarkResult(row.name, row.what, figure.ours, figure.peer, figure.ratio, today, commit)


def run_all(corpus: Path, names: Sequence[str]) -> None:
    """Measures script by script and keeps each result at once: a run that is stopped loses the one at hand alone."""
    commit = _git("rev-parse", "--short=7", "HEAD")
    for run in dict.fromkeys(row.run for row in ROWS):
        if not names or run.script in names:
            print(f"{datetime.now(UTC):%H:%M:%S} {run.command(str(corpus))}", file=sys.stderr, flush=True)
            keep_results(with_measured(kept_results(), list(measure(run, corpus, commit))))


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603, S607
    return done.stdout.strip()


# The page

HEAD = """# Benchmarks

    make bench CORPUS=DIR      # DIR has the unpacked data; hours on two cores

Every figure is compared with a peer or a bound that was measured in the same run; times are CPU times.
`tools/benchmarks.py` generates the table from `docs/benchmarks/results.json`, which contains every result with its
commit. The page of each row says how it is measured, what was tried and why a goal is missed.
[Against other tools](benchmarks/against.md) lists the figures by tool. Results of commit 1a32b89 were measured on the
individual commits that it combines. A row keeps its older result and date if its peers were not
installed when others were measured; our side of these rows was measured later
[against commit 39e925d](benchmarks/crawl.md#compared-with-commit-39e925d).

| row | what | ours | best peer | ratio | goal | | command | measured |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"""
FOOT = """
## Over commits

Each chart shows a row: the dashed line is its goal, and the points are results from the first to the newest commit,
green if the goal is reached. The speed of the machine differed from day to day; ratios compensate for that in part.

![Ratios of all rows over commits, each beside its goal](images/benchmarks.svg)
"""


def page(results: Sequence[BenchmarkResult]) -> str:
    """The newest result of every row, and where to read of those that miss their goal."""
    newest = {id(row): [result for result in results if result.is_of(row)][-1:] for row in ROWS}
    lines = [HEAD]
    lines += [_line(row, found[0]) if found else _unmeasured(row) for row in ROWS for found in [newest[id(row)]]]
    missed = [row for row in ROWS for found in [newest[id(row)]] if found and not row.reached(found[0].ratio)]
    reached = sum(bool(newest[id(row)]) for row in ROWS) - len(missed)
    lines += ["", f"{reached} of {len(ROWS)} goals are reached. Missed, with what was tried:", ""]
    lines += [
        f"- {row.name}, {row.what} ([{row.page}](benchmarks/{row.page}.md)): {TRIED.get(f'{row.name} {row.what}', '')}."
        for row in missed
    ]
    return "\n".join([*lines, FOOT])


def _line(row: BenchmarkRow, result: BenchmarkResult) -> str:
    verdict = "reached" if row.reached(result.ratio) else "**missed**"
    ours = "-" if result.ours is None else f"{_figure(result.ours)} {row.unit}"
    peer = f"{_figure(result.peer)} {row.peer}" if result.peer is not None else row.peer or "-"
    sign = "≥" if row.more else "≤"
    when = f"{result.date}, {result.commit}"
    return (
        f"| [{row.name}](benchmarks/{row.page}.md) | {row.what} | {ours} | {peer} "
        f"| {_figure(result.ratio)} | {sign} {row.goal:g} | {verdict} | `{row.run.command()}` | {when} |"
    )


def _unmeasured(row: BenchmarkRow) -> str:
    link, goal = f"[{row.name}](benchmarks/{row.page}.md)", f"{row.goal:g}"
    return f"| {link} | {row.what} | | | | {goal} | not measured | `{row.run.command()}` | |"


def _figure(value: float) -> str:
    """Three digits that mean something, and all of a large number."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


# The picture

WIDTH, HEIGHT, COLUMNS = 230, 112, 4
_STYLE = (
    "text{font:11px sans-serif;fill:#555}.goal{stroke:#2a7f62;stroke-dasharray:4 3}"
    ".over{fill:none;stroke:#8aa}.reached{fill:#2a7f62}.missed{fill:#c0504d}"
    "@media(prefers-color-scheme:dark){text{fill:#bbb}}"
)


def picture(results: Sequence[BenchmarkResult]) -> str:
    """Small pictures side by side, one a row that was measured."""
    shown = [(row, found) for row in ROWS if (found := [result for result in results if result.is_of(row)])]
    parts = [
        f'<g transform="translate({number % COLUMNS * WIDTH},{number // COLUMNS * HEIGHT})">{_small(row, found)}</g>'
        for number, (row, found) in enumerate(shown)
    ]
    high = math.ceil(len(shown) / COLUMNS) * HEIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLUMNS * WIDTH} {high}" role="img">'
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>", ""])


def _small(row: BenchmarkRow, found: Sequence[BenchmarkResult]) -> str:
    """One row: the goal as a line, a point a result, on a scale that begins with nothing."""
    values = [result.ratio for result in found]
    high = max(*values, row.goal) or 1.0

    def height(value: float) -> float:
        return round(26 + 50 * (high - value) / high, 1)

    step = (WIDTH - 40) / max(1, len(values) - 1)
    points = [(round(12 + number * step, 1), height(value)) for number, value in enumerate(values)]
    dots = (
        f'<circle class="{"reached" if row.reached(value) else "missed"}" cx="{x}" cy="{y}" r="3">'
        f"<title>{escape(result.commit)}: {_figure(value)}</title></circle>"
        for (x, y), value, result in zip(points, values, found, strict=True)
    )
    goal = height(row.goal)
    title = escape(f"{row.name} {row.what}"[:36])
    return "".join([
        f'<text x="8" y="14">{title}</text>',
        f'<line class="goal" x1="8" x2="{WIDTH - 16}" y1="{goal}" y2="{goal}"/>',
        f'<polyline class="over" points="{" ".join(f"{x},{y}" for x, y in points)}"/>',
        *dots,
        f'<text x="8" y="94">{_figure(values[-1])}, goal {row.goal:g}</text>',
    ])  # fmt: skip


def write_page() -> None:
    """The page and its picture, each replaced whole."""
    results = kept_results()
    for file, text in ((PICTURE, picture(results)), (PAGE, page(results))):
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as made:
            made.write(text)
        Path(made.name).chmod(0o644)
        Path(made.name).replace(file)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures where asked to, and writes the page in any case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["run", "page"])
    parser.add_argument("names", nargs="*", help="scripts of bench/ by name; all without one")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="folder with the unpacked data")
    given = parser.parse_intermixed_args(argv)
    if given.step == "run":
        run_all(given.corpus.absolute(), given.names)
    write_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
