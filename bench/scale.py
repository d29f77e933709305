"""Scale-out: leases, rows and pages a second against the number of agents, and what a page costs.

Everything runs on one machine: agents, PostgreSQL, moto's S3 and the web
share its cores, so pages a second say little about many machines. CPU a page
does, and so does the time for which a commit holds the writer's turn; from
these two the model foretells more agents, each on a core of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.scaling.model import Foretold, Load, simulate  # noqa: E402
from bench.scaling.services import Services, services  # noqa: E402

GOAL = 1.5
COUNTS = (1, 2, 4)
STORE_SECONDS = 0.03
"""How long a put to a real object store takes; moto's own time says nothing about that."""
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


@contextmanager
def web(hosts: int, pages: int) -> Iterator[list[str]]:
    """The simulated web in a process of its own; the addresses of its hosts."""
    words = ["--port", "0", "--hosts", str(hosts), "--pages", str(pages), "--crawl-delay", "0", "--speed", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "letopis.demo", *words, "--skip", "10"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        port = process.stdout.readline().rstrip("/\n").rpartition(":")[2]
        yield [f"http://127.0.0.{2 + number}:{port}/" for number in range(hosts)]
    finally:
        process.terminate()
        process.wait()


def together(commands: list[list[str]], environment: dict[str, str]) -> tuple[float, float, list[str]]:
    """Runs processes at once: wall seconds, CPU seconds of all, what each printed."""
    before, began = os.times(), time.perf_counter()
    running = [subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) for words in commands]
    printed = [process.communicate()[0] for process in running]
    wall, after = time.perf_counter() - began, os.times()
    if any(process.returncode for process in running):
        raise SystemExit("an agent failed")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, spent, printed


def crawled(seeds: list[str], agents: int, scaled: Services | None) -> Row:
    with tempfile.TemporaryDirectory() as name:
        given = scaled.place() if scaled else {}
        words = [sys.executable, "-m", "letopis.cli", "crawl", *seeds, "--delay", "0", "--once", "--json", "-q"]
        words += ["--exclude", "busy|overload"]
        commands = [[*words, "--archive", f"{name}/{number}"] for number in range(agents)]
        before = scaled.database_cpu() if scaled else 0.0
        _, spent, printed = together(commands, {**os.environ, **given})
        database = scaled.database_cpu() - before if scaled else 0.0
    rows = [json.loads(line) for line in printed]
    pages = sum(row["fetched"] for row in rows)
    seconds = max(row["seconds"] for row in rows)
    what = "crawl, PostgreSQL + S3" if scaled else "crawl, embedded"
    return Row(what, agents, pages, pages / seconds, 1000 * spent / pages, 1000 * database / pages)


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


def foretold(rows: list[Row]) -> tuple[Load, list[Foretold]]:
    """The model with what was measured on one agent and on one writer.

    A commit holds the turn for as long as agent and database work on it one
    after the other, so their CPU counts, not the clock of a busy machine.
    """
    by = {(row.what, row.agents): row for row in rows}
    one, many = by["puts, 1 at once", 1], by["puts, 256 at once", 1]
    a_page = (many.agent_cpu_ms + many.database_cpu_ms) / 1000
    fixed = max(0.0, (one.agent_cpu_ms + one.database_cpu_ms) / 1000 - a_page) + STORE_SECONDS
    load = Load(by["crawl, embedded", 1].agent_cpu_ms / 1000, fixed, a_page)
    cores = os.cpu_count() or 1
    here = [simulate(load, agents, cores) for agents in COUNTS]
    far = [Load(load.work_a_page, fixed, a_page, every, offered=POLITE) for every in (1.0, 10.0)]
    return load, here + [simulate(polite, agents, agents) for polite in far for agents in (10, 100, 1000)]


def run(hosts: int, pages: int, puts: int, leases: int) -> list[Row]:
    """All measurements, embedded and scaled out in turns."""
    with services() as scaled, web(hosts, pages) as seeds:
        rows = [crawled(seeds, 1, None)]
        rows += [crawled(seeds, agents, scaled) for agents in COUNTS]
        rows.append(loaded("puts", 1, puts // 16, 1, scaled))
        rows += [loaded("puts", agents, puts, 256, scaled) for agents in COUNTS]
        rows += [loaded("leases", agents, leases, 25, scaled) for agents in COUNTS]
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; goal: a page costs the agents at most 1.5 times what it costs embedded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=16)
    parser.add_argument("--pages", type=int, default=100, help="pages of each host")
    parser.add_argument("--puts", type=int, default=4096)
    parser.add_argument("--leases", type=int, default=5000)
    parser.add_argument("--corpus", help="not needed here")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    rows = run(options.hosts, options.pages, options.puts, options.leases)
    load, future = foretold(rows)
    if options.json:
        print(
            json.dumps(
                {"rows": [asdict(row) for row in rows], "load": asdict(load), "model": [asdict(f) for f in future]}
            )
        )
        return 0
    print(f"{'load':26} {'agents':>6} {'pieces':>7} {'a second':>9} {'agent ms':>9} {'database ms':>12}")
    for row in rows:
        print(
            f"{row.what:26} {row.agents:6} {row.pieces:7} {row.a_second:9.0f} {row.agent_cpu_ms:9.2f} "
            f"{row.database_cpu_ms:12.2f}"
        )
    embedded = rows[0].agent_cpu_ms
    for row in rows[1:4]:
        ratio = row.agent_cpu_ms / embedded
        print(f"agent CPU a page, {row.agents} agents, against embedded: {ratio:.2f} (goal <= {GOAL})")
    print(f"\n{'model: agents':>14} {'pages/s':>9} {'turn':>6} {'cores':>6}  first bottleneck")
    print("the last three with crawl.commit_every = 10s")
    for one in future:
        print(f"{one.agents:14} {one.pages_a_second:9.0f} {one.turn:6.2f} {one.cores:6.2f}  {one.bottleneck}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
