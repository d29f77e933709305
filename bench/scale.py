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

from bench.scaling.crawls import Crawl, median, rounds  # noqa: E402
from bench.scaling.model import Cost, Foretold, Load, cost_of, simulate  # noqa: E402
from bench.scaling.services import Services, services  # noqa: E402

GOAL = 1.5
COUNTS = (1, 2, 4, 8)
DATABASE_CORES = 16.0
TENDED_HOSTS = 25
SENT_AT_ONCE = 4
"""Links to hosts of others that are sent with a commit, and taken in together."""
STORE_SECONDS = 0.03
"""How long a put to an object store in another house takes, where moto answers at once: for the agents foretold."""
_STEP = 0.002
"""Seconds of a step of the clock, for the runs that were made: agents read and commit for some tens of milliseconds."""
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
    """Which part of the time of commits went by with waiting for locks that others held."""
    first_message: float
    """Which part went by with the message that asks for the turn and the hosts: with one agent too."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Seconds of the database: for a look at the leases and a count of hosts, of few hosts and of many."""

    tend_few: float
    tend_many: float
    count_few: float
    count_many: float
    own_look: float = 0.0
    """Of an agent, for what it asks once a second."""
    link_own: float = 0.0
    """Of agents, for a link to a host of another agent."""
    link_base: float = 0.0
    """Of the database, for the same."""

    @property
    def look_few(self) -> float:
        """All that an agent asks once a second in a small fleet."""
        return self.tend_few + self.count_few


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU of all parts, told apart by crawls by one agent: they differ in how many pages and commits they make."""

    agent: Cost
    database: Cost
    store: Cost
    web: Cost

    @classmethod
    def of(cls, crawls: Sequence[Crawl], upkeep: Upkeep) -> Costs:
        """Without what is asked about leases, which takes as long as the crawl and not as many pages."""

        def cost(part: str, look: float = 0.0) -> Cost:
            spent = [max(0.0, getattr(crawl, part) - look * crawl.seconds) for crawl in crawls]
            return cost_of([(crawl.pages, len(crawl.batches), cpu) for crawl, cpu in zip(crawls, spent, strict=True)])

        # The web starts once for all agents, and makes the pages of its short crawl then.
        whole = [crawl for crawl in crawls if crawl.pages > max(other.pages for other in crawls) / 2]
        web = Cost(0.0, sum(crawl.web for crawl in whole) / sum(crawl.pages for crawl in whole), 0.0)
        return cls(cost("agent", upkeep.own_look), cost("database", upkeep.look_few), cost("store"), web)

    def total(self, agents: int, pages: int, commits: int) -> float:
        """CPU of everybody for so many."""
        return sum(part.of(agents, pages, commits) for part in (self.agent, self.database, self.store, self.web))


def load_of(crawls: Sequence[Crawl], costs: Costs, upkeep: Upkeep) -> Load:
    """The constants of the model, all from crawls by one agent.

    A commit takes what agent, database and object store compute for it, and what it waits for besides (disk,
    messages, the object store): the middle of what remains of its time when agent and database neither computed nor
    waited for a core, which the model works out by itself. What a page costs the agent is spent in its commit as far as
    the CPU of commits grows with their pages.
    """
    turns = [turn for crawl in crawls for turn in crawl.batches]
    slope = float(np.polyfit([turn[0] for turn in turns], [turn[3] for turn in turns], 1)[0])
    slope = min(max(0.0, slope), costs.agent.page)
    wait = statistics.median(turn[6] - costs.store.of(0, turn[0], 1) for turn in turns)
    reading = sum(crawl.reading for crawl in crawls) / sum(crawl.pages for crawl in crawls)
    return Load(
        costs.agent.page - slope, costs.web.page, costs.agent.commit + costs.store.commit, slope + costs.store.page,
        max(0.0, wait), costs.database.commit, costs.database.page, upkeep.tend_many, upkeep.count_many,
        min(reading, (costs.agent.page - slope) * 0.9),
    )  # fmt: skip


def _crossing(crawls: Sequence[Crawl]) -> float:
    """URLs a page that are planned for links of other hosts: of several agents, others own a part of these hosts."""
    return sum(crawl.crossing for crawl in crawls) / sum(crawl.pages for crawl in crawls)


def checked(load: Load, costs: Costs, found: dict[int, list[Crawl]], upkeep: Upkeep) -> list[Verdict]:
    """The model against the runs of the same hour, with the cores that other work left to them."""
    cores = os.cpu_count() or 1
    verdicts = []
    for count in COUNTS:
        left = max(0.1, cores - median(found[count], "others"))
        sent = _crossing(found[1]) * (1 - 1 / count)
        here = replace(
            load, work_a_page=load.work_a_page + upkeep.link_own * sent,
            base_a_page=load.base_a_page + upkeep.link_base * sent, tend=upkeep.tend_few + upkeep.own_look,
            count=upkeep.count_few,
        )  # fmt: skip
        foretold = simulate(here, count, left, step=_STEP)
        spent = statistics.median((one.agent + one.database + one.store + one.web) / one.pages for one in found[count])
        looks, links = upkeep.look_few + upkeep.own_look, (upkeep.link_own + upkeep.link_base) * sent
        cpu = links + statistics.median(
            (costs.total(count, one.pages, len(one.batches)) + looks * count * one.seconds) / one.pages
            for one in found[count]
        )
        rate, *parts = (median(found[count], name) for name in ("a_second", "waiting", "first_message"))
        verdicts.append(Verdict(count, left, foretold.pages_a_second, rate, 1000 * cpu, 1000 * spent, *parts))
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
) -> tuple[list[Row], Load, Costs, list[Verdict], list[Foretold]]:
    """All measurements, embedded and scaled out in turns, and what the model makes of them."""
    with services() as scaled:
        found = rounds(hosts, pages, scaled, COUNTS, repeats)
        rows = [row_of("crawl, embedded", found.by_agents[0])]
        rows += [row_of("crawl, PostgreSQL + S3", found.by_agents[count]) for count in COUNTS]
        if puts:
            rows.append(loaded("puts", 1, puts // 16, 1, scaled))
            rows += [loaded("puts", agents, puts, 256, scaled) for agents in COUNTS]
        if leases:
            rows += [loaded("leases", agents, leases, 25, scaled) for agents in COUNTS]
        asked = [loaded(kind, 1, 50, TENDED_HOSTS, scaled, count) for kind in ("tend", "count")
                 for count in (hosts, 20_000)]  # fmt: skip
        asked.append(loaded("links", 1, 400, SENT_AT_ONCE, scaled, hosts))
    upkeep = replace(
        Upkeep(*(row.database_cpu_ms / 1000 for row in asked[:4])),
        own_look=(asked[0].agent_cpu_ms + asked[2].agent_cpu_ms) / 1000,
        link_own=asked[4].agent_cpu_ms / 1000,
        link_base=asked[4].database_cpu_ms / 1000,
    )
    costs = Costs.of(found.alone, upkeep)
    load = load_of(found.alone, costs, upkeep)
    return [*rows, *asked], load, costs, checked(load, costs, found.by_agents, upkeep), future(load)


def show(
    rows: Sequence[Row], load: Load, costs: Costs, verdicts: Sequence[Verdict], foretold: Sequence[Foretold]
) -> None:
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
        f"\nmodel: {1000 * load.work_a_page:.2f} ms of an agent ({1000 * load.read_a_page:.2f} of it reads) "
        f"and {1000 * load.web_a_page:.2f} ms of the web a page, "
        f"a commit {1000 * load.commit_fixed:.1f} ms + {1000 * load.commit_a_page:.2f} ms a page, waiting "
        f"{1000 * load.wait:.1f} ms, database {1000 * load.base_fixed:.1f} ms + {1000 * load.base_a_page:.2f} ms a "
        f"page, {1000 * load.tend:.1f} ms for a look at the leases and {1000 * load.count:.1f} ms to count hosts"
    )
    for part in ("agent", "database", "store", "web"):
        cost: Cost = getattr(costs, part)
        told = (
            f"{1000 * cost.start:.0f} ms for a start, {1000 * cost.page:.3f} a page, {1000 * cost.commit:.1f} a commit"
        )
        print(f"CPU of the {part}: {told}")
    for verdict in verdicts:
        ratio = verdict.foretold / verdict.measured
        print(
            f"{verdict.agents} agents on {verdict.cores:.2f} cores: foretold {verdict.foretold:.0f} pages/s, "
            f"measured {verdict.measured:.0f}, ratio {ratio:.2f}; CPU of all a page: foretold "
            f"{verdict.cpu_foretold:.2f} ms, measured {verdict.cpu_measured:.2f}, ratio "
            f"{verdict.cpu_foretold / verdict.cpu_measured:.2f}; waiting for locks of others: {verdict.waiting:.1%} of "
            f"commits; the message that asks for them: {verdict.first_message:.1%}"
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
    rows, load, costs, verdicts, foretold = run(
        options.hosts, options.pages, options.puts, options.leases, options.repeats
    )
    if options.json:
        told: dict[str, Sequence[Row | Load | Costs | Verdict | Foretold]] = {
            "rows": rows,
            "load": [load],
            "costs": [costs],
            "checked": verdicts,
            "model": foretold,
        }
        print(json.dumps({name: [asdict(one) for one in values] for name, values in told.items()}))
    else:
        show(rows, load, costs, verdicts, foretold)
    return 0


if __name__ == "__main__":
    sys.exit(main())
