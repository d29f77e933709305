"""Scale-out: leases, rows and pages a second against the number of agents, and what a page costs.

Everything runs on one machine: agents, PostgreSQL, moto's S3 and the web
share its cores, so pages a second say little about many machines. CPU a page
does, and so does the time for which a commit holds the writer's turn. The
model is fed with these, foretells the very runs they come from, and then more
agents, each on a core of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import psycopg

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.scaling.crawls import Crawl, median, rounds, web  # noqa: E402
from bench.scaling.model import Foretold, Load, simulate  # noqa: E402
from bench.scaling.services import Services, services  # noqa: E402

GOAL = 1.5
COUNTS = (1, 2, 4)
STORE_SECONDS = 0.03
"""How long a put to an object store in another house takes, where moto answers at once: for the agents foretold."""
POLITE = 20.0
"""Pages a second that the hosts of one agent let it fetch, for the agents that are foretold."""


@dataclass(frozen=True, slots=True)
class Row:
    """One load with some agents; CPU in milliseconds a piece, of agents and of the database."""

    what: str
    agents: int
    pieces: int
    a_second: float
    agent_cpu_ms: float
    database_cpu_ms: float


def row_of(what: str, crawls: list[Crawl]) -> Row:
    """Medians of equal crawls."""
    pages = crawls[0].pages
    return Row(
        what, crawls[0].agents, pages, median(crawls, "a_second"), median(crawls, "a_page"),
        1000 * median(crawls, "database") / pages,
    )  # fmt: skip


def loaded(kind: str, agents: int, count: int, batch: int, scaled: Services) -> Row:
    """Writers or leasers that begin at the same moment."""
    given = scaled.place()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **given, "PYTHONPATH": f"{ROOT}/src"}
        if kind == "leases":
            _fill(environment, folder)
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "bench.scaling.loads", kind, f"w{number}", str(count), str(batch), folder],
                env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for number in range(agents)
        ]  # fmt: skip
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        before = scaled.database_cpu()
        results = [json.loads(process.communicate()[0]) for process in _started(running)]
        database = scaled.database_cpu() - before
    pieces = agents * count
    slowest = max(wall for wall, _ in results)
    cpu = sum(spent for _, spent in results)
    return Row(
        f"{kind}, {batch} at once", agents, pieces, pieces / slowest, 1000 * cpu / pieces, 1000 * database / pieces
    )


def _started(running: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    """Tells all to begin before waiting for the first."""
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return running


def _fill(environment: dict[str, str], folder: str) -> None:
    """Twenty thousand hosts with a page to fetch each."""
    subprocess.run(
        [sys.executable, "-m", "letopis.cli", "init", "--archive", folder + "/x", "-q"],
        env=environment, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    with psycopg.connect(environment["LETOPIS_DATABASE_URL"], autocommit=True) as connection:
        connection.execute("INSERT INTO host (name) SELECT 'h' || n FROM generate_series(1, 20000) n")
        connection.execute(
            "INSERT INTO resource (url_key, url, host, state) SELECT id, 'http://' || name || '/', id, 1 FROM host"
        )
        connection.execute("ANALYZE")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the model says of runs that were made, beside what they did; cores are those that others left."""

    agents: int
    cores: float
    foretold: float
    measured: float


def load_of(crawls: Sequence[Crawl]) -> Load:
    """The constants of the model, all from crawls by one agent.

    A turn takes what agent, database and object store compute in it, a line
    through all commits, and what it waits for besides (disk, messages): the
    least that one commit in ten did not stay below. Times by the clock would
    hold the waiting for a core as well, which the model works out by itself.
    """
    turns = [turn for crawl in crawls for turn in crawl.batches]
    pages = sum(crawl.pages for crawl in crawls)
    spent = sum(turn[3] for turn in turns)
    services = sum(crawl.database + crawl.store for crawl in crawls)
    slope, fixed = np.polyfit([turn[0] for turn in turns], [turn[3] for turn in turns], 1) * (1 + services / spent)
    idle = [turn[2] - fixed - slope * turn[0] for turn in turns]
    wait = max(0.0, float(np.quantile(idle, 0.1)))
    computing = spent + services
    return Load(
        (sum(crawl.agent for crawl in crawls) - spent) / pages, sum(crawl.web for crawl in crawls) / pages,
        max(0.001, float(fixed) + wait), float(slope), computing / (computing + wait * len(turns)),
    )  # fmt: skip


def checked(load: Load, found: dict[int, list[Crawl]]) -> list[Verdict]:
    """The model against the runs of the same hour, with the cores that other work left to them."""
    cores = os.cpu_count() or 1
    verdicts = []
    for count in COUNTS:
        left = cores - median(found[count], "others")
        foretold = simulate(load, count, left).pages_a_second
        verdicts.append(Verdict(count, left, foretold, median(found[count], "a_second")))
    return verdicts


def future(load: Load) -> list[Foretold]:
    """Ten to a thousand agents, each on a core of its own, with the web and the object store elsewhere."""
    far = replace(load, web_a_page=0.0, turn_fixed=load.turn_fixed + STORE_SECONDS, offered=POLITE)
    loads = [replace(far, commit_every=every) for every in (1.0, 10.0)]
    return [simulate(one, agents, 2.0 * agents, 120.0, 0.01) for one in loads for agents in (10, 100, 1000)]


def run(
    hosts: int, pages: int, puts: int, leases: int, repeats: int
) -> tuple[list[Row], Load, list[Verdict], list[Foretold]]:
    """All measurements, embedded and scaled out in turns, and what the model makes of them."""
    with services() as scaled:
        with web(hosts, pages) as simulated:
            found = rounds(simulated, scaled, COUNTS, repeats)
        rows = [row_of("crawl, embedded", found[0])]
        rows += [row_of("crawl, PostgreSQL + S3", found[count]) for count in COUNTS]
        if puts:
            rows.append(loaded("puts", 1, puts // 16, 1, scaled))
            rows += [loaded("puts", agents, puts, 256, scaled) for agents in COUNTS]
        if leases:
            rows += [loaded("leases", agents, leases, 25, scaled) for agents in COUNTS]
    load = load_of(found[1])
    return rows, load, checked(load, found), future(load)


def show(rows: Sequence[Row], load: Load, verdicts: Sequence[Verdict], foretold: Sequence[Foretold]) -> None:
    """The tables."""
    print(f"{'load':26} {'agents':>6} {'pieces':>7} {'a second':>9} {'agent ms':>9} {'database ms':>12}")
    for row in rows:
        print(
            f"{row.what:26} {row.agents:6} {row.pieces:7} {row.a_second:9.0f} {row.agent_cpu_ms:9.2f} "
            f"{row.database_cpu_ms:12.2f}"
        )
    for row in rows[1:4]:
        ratio = row.agent_cpu_ms / rows[0].agent_cpu_ms
        print(f"agent CPU a page, {row.agents} agents, against embedded: {ratio:.2f} (goal <= {GOAL})")
    print(
        f"\nmodel: {1000 * load.work_a_page:.2f} ms of an agent and {1000 * load.web_a_page:.2f} ms of the web a page, "
        f"turn held {1000 * load.turn_fixed:.1f} ms + {1000 * load.turn_a_page:.2f} ms a page"
    )
    for verdict in verdicts:
        ratio = verdict.foretold / verdict.measured
        print(
            f"{verdict.agents} agents on {verdict.cores:.2f} cores: foretold {verdict.foretold:.0f} pages/s, "
            f"measured {verdict.measured:.0f}, ratio {ratio:.2f}"
        )
    print(f"{'agents':>8} {'pages/s':>9} {'turn':>6}  first bottleneck (the last three with crawl.commit_every = 10s)")
    for one in foretold:
        print(f"{one.agents:8} {one.pages_a_second:9.0f} {one.turn:6.2f}  {one.bottleneck}")


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; goal: a page costs the agents at most 1.5 times what it costs embedded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=16)
    parser.add_argument("--pages", type=int, default=400, help="pages of each host")
    parser.add_argument("--puts", type=int, default=4096, help="0 leaves them out")
    parser.add_argument("--leases", type=int, default=5000, help="0 leaves them out")
    parser.add_argument("--repeats", type=int, default=3, help="of every crawl, in turns")
    parser.add_argument("--corpus", help="not needed here")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    rows, load, verdicts, foretold = run(options.hosts, options.pages, options.puts, options.leases, options.repeats)
    if options.json:
        told: dict[str, Sequence[Row | Load | Verdict | Foretold]] = {
            "rows": rows,
            "load": [load],
            "checked": verdicts,
            "model": foretold,
        }
        print(json.dumps({name: [asdict(one) for one in values] for name, values in told.items()}))
    else:
        show(rows, load, verdicts, foretold)
    return 0


if __name__ == "__main__":
    sys.exit(main())
