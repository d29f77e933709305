"""Several agents against one: CPU a page, all processes counted, start apart.

    python bench/agents.py [--pages 60] [--repeats 2] [--json]

Each number of agents crawls two webs of eight hosts, one of them five times
as large. What the larger one costs more, divided by the pages it has more,
is the cost of a page: processes that start, and rounds that begin anew, cost
the same in both. Runs are interleaved and the least of several counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.measuring import measured, simulated_web  # noqa: E402

HOSTS = 8
LARGER = 5
AGENTS = (1, 2, 4)
GOAL = 1.15


@dataclass(frozen=True, slots=True)
class AgentsRow:
    """One number of agents: pages of both webs, CPU a page without the start, and that of one agent in comparison."""

    agents: int
    pages: int
    cpu_ms_a_page: float
    start_s: float
    ratio: float


@contextmanager
def web(pages: int) -> Iterator[list[str]]:
    """Eight hosts of the simulated web in a process of their own; their home pages."""
    with simulated_web(HOSTS, pages) as first:
        port = first.rstrip("/").rpartition(":")[2]
        yield [f"http://127.0.0.{2 + host}:{port}/" for host in range(HOSTS)]


def crawled(seeds: Sequence[str], agents: int) -> tuple[float, int]:
    """CPU seconds of all processes of a crawl, and its pages."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "letopis.cli", "crawl", *seeds, "--delay", "0", "--once", "--json", "-q"]
        words += ["--exclude", "busy|overload", "--archive", f"{folder}/archive", "--agents", str(agents)]
        spent, out, _ = measured(words, Path(folder))
        return spent, int(json.loads(out)["fetched"])


def run(pages: int, repeats: int) -> list[AgentsRow]:
    """A row for each number of agents."""
    least: dict[tuple[int, bool], tuple[float, int]] = {}
    with web(pages) as small, web(pages * LARGER) as large:
        for _ in range(repeats):
            for agents in AGENTS:
                for is_large, seeds in ((False, small), (True, large)):
                    found = crawled(seeds, agents)
                    least[agents, is_large] = min(found, least.get((agents, is_large), found))
    cost = {agents: _cost(least[agents, False], least[agents, True]) for agents in AGENTS}
    return [
        AgentsRow(agents, least[agents, True][1], a_page, start, a_page / cost[1][0])
        for agents, (a_page, start) in cost.items()
    ]


def _cost(small: tuple[float, int], large: tuple[float, int]) -> tuple[float, float]:
    """CPU milliseconds a page, and seconds that do not depend on the pages."""
    a_page = (large[0] - small[0]) / (large[1] - small[1])
    return 1000 * a_page, small[0] - a_page * small[1]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; goal: several agents cost at most 15 % more a page than one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", help="not needed: the web is simulated")
    parser.add_argument("--pages", type=int, default=60, help="pages a host of the smaller web")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    rows = run(options.pages, options.repeats)
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print(f"{'agents':>6} {'pages':>6} {'CPU ms a page':>14} {'start s':>8} {'x one':>6} {'goal':>5}")
        for row in rows:
            print(
                f"{row.agents:6} {row.pages:6} {row.cpu_ms_a_page:14.2f} {row.start_s:8.2f} {row.ratio:6.2f} {GOAL:5}"
            )
    return 0 if all(row.ratio <= GOAL for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
