"""One agent as a process of its own: crawls as the command does, and tells what that took.

CPU is counted from the moment the agent runs, so the start of Python and the
loading of modules are left out: they are paid once, however long a crawl is.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from letopis.archive.queues import NewUrl
from letopis.catalog import Cursor
from letopis.catalog.database import Database
from letopis.catalog.dialect import DbConnection
from letopis.catalog.postgres import Postgres
from letopis.cli.main import main as command
from letopis.crawl import Agent, CrawlStats
from letopis.crawl.commits import BatchCommitter, FinishedLook, PendingLooks


@dataclass(slots=True)
class Told:
    """What the crawl took: CPU seconds, and the turns of its transactions."""

    cpu: float = 0.0
    reading: float = 0.0
    """CPU seconds of reading pages, in batches, between which pages are fetched."""
    seconds: float = 0.0
    pages: int = 0
    crossing: int = 0
    """URLs that were planned because a page of another host links to them."""
    turns: list[tuple[int, float, float, float, float, float, float]] = field(default_factory=list)
    """Pages, seconds of the message that asks for the turn and the hosts, seconds that the rest took, CPU of this
    process meanwhile, when it ended (monotonic), when it began (Unix time), and for how long of the rest neither this
    process nor its servers computed or waited for a core."""
    servers: list[int] = field(default_factory=list)
    """Processes of the database server that worked for this agent."""

    def at_cores(self) -> float:
        """Seconds that this thread and the servers have had a core or waited for one."""
        files = [Path(f"/proc/{name}/schedstat") for name in ("thread-self", *map(str, self.servers))]
        return sum(sum(map(int, file.read_text().split()[:2])) for file in files if file.exists()) / 1e9


def watch(told: Told) -> None:
    """From now on, agents and transactions of this process are measured."""
    run, transaction, record = Agent.run, Database.transaction, BatchCommitter._record
    links, connect, work = BatchCommitter._links, Postgres.connect, PendingLooks.work
    batch, crossing, planned = 0, set[int](), set[int]()

    async def timed_run(self: Agent, *words: Any, **named: Any) -> CrawlStats:
        began, cpu = time.perf_counter(), time.process_time()
        try:
            return await run(self, *words, **named)
        finally:
            told.cpu += time.process_time() - cpu
            told.seconds += time.perf_counter() - began
            told.pages += self.figures.fetched
            told.crossing = len(planned)

    def read(self: PendingLooks) -> None:
        cpu = time.process_time()
        work(self)
        told.reading += time.process_time() - cpu

    def linked(self: BatchCommitter, done: FinishedLook) -> list[NewUrl]:
        found = links(self, done)
        crossing.update(link.key for link in found if link.host != done.ticket.host)
        return found

    def counted(self: BatchCommitter, looks: list[Any]) -> list[int]:
        nonlocal batch
        batch = len(looks)
        planned.update(link.key for link in self._planned if link.key in crossing)
        return record(self, looks)

    @contextmanager
    def timed(self: Database, *, beside: bool = False, first: Sequence[str] = ()) -> Iterator[Cursor]:
        nonlocal batch
        asked, moment = time.perf_counter(), time.time()
        with transaction(self, beside=beside, first=first) as cursor:
            began, cpu, busy = time.perf_counter(), time.process_time(), told.at_cores()
            yield cursor
        ended = time.perf_counter()
        rest, spent = ended - began, time.process_time() - cpu
        idle = max(0.0, rest - (told.at_cores() - busy))
        told.turns.append((batch, began - asked, rest, spent, ended, moment, idle))
        batch = 0

    def connected(self: Postgres) -> DbConnection:
        connection: Any = connect(self)
        told.servers.append(connection.info.backend_pid)
        opened: DbConnection = connection
        return opened

    for owner, name, value in (
        (Agent, "run", timed_run),
        (PendingLooks, "work", read),
        (BatchCommitter, "_record", counted),
        (BatchCommitter, "_links", linked),
        (Database, "transaction", timed),
        (Postgres, "connect", connected),
    ):
        setattr(owner, name, value)


def main(argv: Sequence[str]) -> int:
    """Runs `letopis ARGV`, then tells."""
    told = Told()
    watch(told)
    import_module("letopis.look.noise")  # otherwise loaded at the first page
    status = command(argv)
    sys.stdout.write(json.dumps(asdict(told)) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
