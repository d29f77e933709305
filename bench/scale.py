"""Scale-out: leases, rows and pages a second against the number of agents, and what a page costs.

Everything runs on one machine: agents, PostgreSQL, moto's S3 and the web
share its cores, so pages a second say little about many machines. CPU a page
does, and so does what a commit takes of agent, database and object store. The
model is fed with these, foretells the very runs they come from, and then more
agents, each on a core of its own, with a database on 16.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
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
COUNTS = (1, 2, 4, 8)
DATABASE_CORES = 16.0
TENDED_HOSTS = 25
STORE_SECONDS = 0.03
"""How long a put to an object store in another house takes, where moto answers at once: for the agents foretold."""
POLITE = (20.0, 60.0, 200.0)
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


def loaded(kind: str, agents: int, count: int, batch: int, scaled: Services, hosts: int = 20_000) -> Row:
    """Writers or leasers that begin at the same moment."""
    given = scaled.place()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **given, "PYTHONPATH": f"{ROOT}/src"}
        if kind != "puts":
            _fill(environment, folder, hosts)
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


def _fill(environment: dict[str, str], folder: str, hosts: int) -> None:
    """Hosts with a page to fetch each."""
    subprocess.run(
        [sys.executable, "-m", "letopis.cli", "init", "--archive", folder + "/x", "-q"],
        env=environment, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    with psycopg.connect(environment["LETOPIS_DATABASE_URL"], autocommit=True) as connection:
        connection.execute("INSERT INTO host (name) SELECT 'h' || n FROM generate_series(1, %s) n", (hosts,))
        connection.execute(
            "INSERT INTO resource (url_key, url, host, state) SELECT id, 'http://' || name || '/', id, 1 FROM host"
        )
        connection.execute("ANALYZE")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the model says of runs that were made, beside what they did; cores are those that others left.

    CPU is that of agents, database, object store and web together, in
    milliseconds a page, foretold for as many commits as were made: how many
    there are depends on what else the machine does, what they cost does not.
    """

    agents: int
    cores: float
    foretold: float
    measured: float
    cpu_foretold: float
    cpu_measured: float
    waiting: float
    """Which part of the time of commits went by with waiting for others."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Seconds of the database: for a look at the leases and a count of hosts, of few and of many; to start an agent."""

    tend_few: float
    tend_many: float
    count_few: float
    count_many: float
    start: float
    own_look: float = 0.0
    """Of an agent, for what it asks once a second."""

    @property
    def look_few(self) -> float:
        """All that an agent asks once a second in a small fleet."""
        return self.tend_few + self.count_few


def load_of(crawls: Sequence[Crawl], upkeep: Upkeep) -> Load:
    """The constants of the model, all from crawls by one agent.

    A commit takes what agent, database and object store compute in it, a line
    through all commits, and what it waits for besides (disk, messages): the
    least that one commit in ten did not stay below. Times by the clock would
    hold the waiting for a core as well, which the model works out by itself.
    What the database computes for the start of an agent and for its leases is
    no part of its commits, and what the agent computes for them none of its pages.
    """
    turns = [turn for crawl in crawls for turn in crawl.batches]
    pages = sum(crawl.pages for crawl in crawls)
    spent = sum(turn[3] for turn in turns)
    beside = sum(upkeep.start + upkeep.look_few * crawl.seconds for crawl in crawls)
    database = max(0.0, sum(crawl.database for crawl in crawls) - beside) / spent
    store = sum(crawl.store for crawl in crawls) / spent
    slope, fixed = map(float, np.polyfit([turn[0] for turn in turns], [turn[3] for turn in turns], 1))
    fixed, slope = max(0.001, fixed), max(0.0, slope)
    everything = 1 + database + store
    wait = float(np.quantile([turn[2] - (fixed + slope * turn[0]) * everything for turn in turns], 0.1))
    fetching = sum(crawl.agent - upkeep.own_look * crawl.seconds for crawl in crawls) - spent
    return Load(
        fetching / pages, sum(crawl.web for crawl in crawls) / pages,
        fixed * (1 + store), slope * (1 + store), max(0.0, wait), fixed * database, slope * database, upkeep.tend_many,
        upkeep.count_many,
    )  # fmt: skip


def _cpu_a_page(load: Load, crawl: Crawl, tend: float) -> float:
    """Seconds of everybody that a page of a crawl should take, by the commits and the time that the crawl had."""
    each = load.work_a_page + load.web_a_page + load.commit_a_page + load.base_a_page
    commits = len(crawl.batches) * (load.commit_fixed + load.base_fixed)
    return each + (commits + tend * crawl.agents * crawl.seconds) / crawl.pages


def checked(load: Load, found: dict[int, list[Crawl]], upkeep: Upkeep) -> list[Verdict]:
    """The model against the runs of the same hour, with the cores that other work left to them."""
    cores = os.cpu_count() or 1
    verdicts = []
    for count in COUNTS:
        left = max(0.1, cores - median(found[count], "others"))
        foretold = simulate(replace(load, tend=upkeep.tend_few, count=upkeep.count_few), count, left)
        spent = statistics.median(
            (one.agent + one.database + one.store + one.web - count * upkeep.start) / one.pages for one in found[count]
        )
        looks = upkeep.look_few + upkeep.own_look
        cpu = 1000 * statistics.median(_cpu_a_page(load, one, looks) for one in found[count])
        rate, waiting = (median(found[count], name) for name in ("a_second", "waiting"))
        verdicts.append(Verdict(count, left, foretold.pages_a_second, rate, cpu, 1000 * spent, waiting))
    return verdicts


def future(load: Load) -> list[Foretold]:
    """Ten to a thousand agents, each on a core of its own, with the web and the object store elsewhere."""
    far = replace(load, web_a_page=0.0, wait=load.wait + STORE_SECONDS)
    loads = [replace(far, offered=offered) for offered in POLITE]
    return [
        simulate(one, agents, 1.0 * agents, DATABASE_CORES, 30.0, 0.01) for one in loads for agents in (10, 100, 1000)
    ]


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
        asked = [loaded(kind, 1, 50, TENDED_HOSTS, scaled, count) for kind in ("tend", "count")
                 for count in (hosts, 20_000)]  # fmt: skip
        asked.append(loaded("start", 1, 20, 100_000, scaled, hosts))
    upkeep = replace(
        Upkeep(*(row.database_cpu_ms / 1000 for row in asked)),
        own_look=(asked[0].agent_cpu_ms + asked[2].agent_cpu_ms) / 1000,
    )
    load = load_of(found[1], upkeep)
    return [*rows, *asked], load, checked(load, found, upkeep), future(load)


def show(rows: Sequence[Row], load: Load, verdicts: Sequence[Verdict], foretold: Sequence[Foretold]) -> None:
    """The tables."""
    print(f"{'load':26} {'agents':>6} {'pieces':>7} {'a second':>9} {'agent ms':>9} {'database ms':>12}")
    for row in rows:
        print(
            f"{row.what:26} {row.agents:6} {row.pieces:7} {row.a_second:9.0f} {row.agent_cpu_ms:9.2f} "
            f"{row.database_cpu_ms:12.2f}"
        )
    for row in rows[1 : 1 + len(COUNTS)]:
        ratio = row.agent_cpu_ms / rows[0].agent_cpu_ms
        print(f"agent CPU a page, {row.agents} agents, against embedded: {ratio:.2f} (goal <= {GOAL})")
    print(
        f"\nmodel: {1000 * load.work_a_page:.2f} ms of an agent and {1000 * load.web_a_page:.2f} ms of the web a page, "
        f"a commit {1000 * load.commit_fixed:.1f} ms + {1000 * load.commit_a_page:.2f} ms a page, waiting "
        f"{1000 * load.wait:.1f} ms, database {1000 * load.base_fixed:.1f} ms + {1000 * load.base_a_page:.2f} ms a "
        f"page, {1000 * load.tend:.1f} ms for a look at the leases and {1000 * load.count:.1f} ms to count hosts"
    )
    for verdict in verdicts:
        ratio = verdict.foretold / verdict.measured
        print(
            f"{verdict.agents} agents on {verdict.cores:.2f} cores: foretold {verdict.foretold:.0f} pages/s, "
            f"measured {verdict.measured:.0f}, ratio {ratio:.2f}; CPU of all a page: foretold "
            f"{verdict.cpu_foretold:.2f} ms, measured {verdict.cpu_measured:.2f}, ratio "
            f"{verdict.cpu_foretold / verdict.cpu_measured:.2f}; waiting for others: {verdict.waiting:.1%} of commits"
        )
    print(f"{'agents':>8} {'offered':>8} {'pages/s':>9} {'database':>9}  first bottleneck")
    for one in foretold:
        print(f"{one.agents:8} {one.offered:8.0f} {one.pages_a_second:9.0f} {one.database:9.2f}  {one.bottleneck}")


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
