"""Q9 and Q19: memory a seen and a queued URL; cost of a ticket as hosts grow tenfold.

    python bench/frontier.py [--seen 10000000] [--queued 1000000] [--hosts 100000] [--json]

Queues lie in an SQLite file of the same form as the catalogue's; memory is
the growth of the resident set, read from /proc/self/statm.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from letopis.archive.queues import FrontierState, HostState, NewestKeys, NewUrl, QueuedUrl
from letopis.frontier.frontier import Frontier, SeenUrls
from letopis.frontier.sieve import Sieve
from letopis.look.politeness import FetchResult, Politeness

SCHEMA = """
CREATE TABLE host (id INTEGER PRIMARY KEY, name TEXT, ip TEXT, ready INTEGER, ip_ready INTEGER, crawl_delay REAL,
                   fetched INTEGER, failures INTEGER, fence INTEGER);
CREATE TABLE resource (id INTEGER PRIMARY KEY, url_key INTEGER, url TEXT, host INTEGER, state INTEGER, due INTEGER,
                       depth INTEGER, priority REAL, schedule BLOB);
"""
INDEXES = """
CREATE INDEX resource_due ON resource (host, state, due) WHERE due IS NOT NULL;
CREATE INDEX resource_next ON resource (due) WHERE due IS NOT NULL;
"""


class SqliteQueue:
    """The durable side in a file, read with a small page cache."""

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file)
        self._database.execute("PRAGMA cache_size = -2000")

    def fill(self, hosts: int, urls: int) -> None:
        """`urls` new URLs spread evenly over `hosts` hosts with addresses of their own."""
        run = self._database
        run.executescript(SCHEMA)
        made = (
            (k, f"h{k}.example", f"10.{k >> 16}.{k >> 8 & 255}.{k & 255}", 0, 0, 0.0, 0, 0, 0)
            for k in range(1, hosts + 1)
        )
        run.executemany("INSERT INTO host VALUES (?,?,?,?,?,?,?,?,?)", made)
        rows = (
            (
                k,
                k * 0x9E3779B97F4A7C15 % 2**63,
                f"http://h{k % hosts + 1}.example/page/{k}",
                k % hosts + 1,
                1,
                0,
                1,
                0.0,
                b"",
            )
            for k in range(1, urls + 1)
        )
        run.executemany("INSERT INTO resource VALUES (?,?,?,?,?,?,?,?,?)", rows)
        run.executescript(INDEXES)
        run.commit()

    def hosts_due(self, now: int, new: bool, limit: int, after: int, cap: int) -> list[HostState]:
        """See `QueueStore`."""
        sql = (
            "SELECT id, name, ip, ready, ip_ready, crawl_delay, fetched, failures, fence FROM host WHERE id > ? "
            "AND EXISTS (SELECT 1 FROM resource WHERE host = host.id AND state = ? AND due <= ?) "
            "AND (? = 0 OR fetched < ?) ORDER BY id LIMIT ?"
        )
        least = cap if new else 0
        return [HostState(*row) for row in self._database.execute(sql, (after, _state(new), now, least, least, limit))]

    def next_due(self, now: int) -> int | None:
        """See `QueueStore`."""
        found = self._database.execute("SELECT min(due) FROM resource WHERE due > ?", (now,)).fetchone()
        return None if found[0] is None else int(found[0])

    def load(self, host: int, now: int, new: bool, limit: int) -> list[QueuedUrl]:
        """See `QueueStore`."""
        sql = (
            "SELECT id, url, depth, priority, due, schedule FROM resource WHERE host = ? AND state = ? AND due <= ? "
            f"ORDER BY priority DESC, {'depth' if new else 'due'}, id LIMIT ?"
        )
        return [QueuedUrl(*row) for row in self._database.execute(sql, (host, _state(new), now, limit))]

    def add(self, rows: Sequence[NewUrl], now: int) -> list[int]:
        """See `QueueStore`."""
        sql = (
            "INSERT INTO resource (url_key, url, host, state, due, depth, priority, schedule) "
            "SELECT ?1, ?2, id, ?3, ?4, ?5, ?6, x'' FROM host WHERE name = ?7 "
            "AND NOT EXISTS (SELECT 1 FROM resource WHERE host = host.id AND url = ?2) RETURNING host"
        )
        values = ((row.key, row.url, _state(new=True), now, row.depth, row.priority, row.host) for row in rows)
        got = {found[0] for value in values for found in self._database.execute(sql, value).fetchall()}
        self._database.commit()
        return sorted(got)

    def arrive(self, host: HostState, /) -> HostState:
        """See `QueueStore`."""
        return host

    def newest_keys(self, most: int) -> NewestKeys:
        """See `QueueStore`."""
        return NewestKeys([], True)

    def planned(self, keys: Sequence[int]) -> set[int]:
        """See `QueueStore`."""
        return set()

    def record(self, ids: Sequence[int], due: int) -> None:
        """The visits are over: the URLs are due again later."""
        values = ((int(FrontierState.AGAIN), due, number) for number in ids)
        self._database.executemany("UPDATE resource SET state = ?, due = ? WHERE id = ?", values)
        self._database.commit()


def _state(new: bool) -> int:
    return int(FrontierState.NEW if new else FrontierState.AGAIN)


@dataclass(frozen=True, slots=True)
class FrontierRow:
    """One figure with its goal; `peer` is what others need for the same."""

    what: str
    ours: float
    unit: str
    peer: str
    goal: float

    @property
    def held(self) -> bool:
        """The figure is within its goal."""
        return self.ours <= self.goal


def resident() -> int:
    """Bytes of memory that this process has now."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def seen_bytes(count: int) -> tuple[float, float]:
    """Bytes a seen URL, and microseconds a link in batches of 60 with 3 new ones."""
    random = np.random.default_rng(1)
    before = resident()
    sieve = Sieve()
    for _ in range(count // 100_000):
        sieve.unseen(random.integers(-(2**63), 2**63 - 1, 100_000, dtype=np.int64))
    size = (resident() - before) / len(sieve)
    known = random.integers(-(2**63), 2**63 - 1, 50_000, dtype=np.int64)
    sieve.unseen(known)
    batches = [
        np.concatenate([random.choice(known, 57), random.integers(-(2**63), 2**63 - 1, 3, dtype=np.int64)])
        for _ in range(2000)
    ]
    begin = time.process_time()
    for batch in batches:
        sieve.unseen(batch)
    return size, (time.process_time() - begin) / (2000 * 60) * 1e6


_FEWEST = 700_000


class Drive:
    """Takes and gives back tickets on a made-up clock, recording in batches."""

    def __init__(self, folder: Path, hosts: int, urls: int, politeness: Politeness) -> None:
        self.store = SqliteQueue(folder / f"queue-{hosts}.sqlite")
        self.store.fill(hosts, urls)
        self.before = resident()
        self.frontier = Frontier(self.store, politeness, SeenUrls())
        self.now = 1_000_000

    def run(self, tickets: int, out: int = 64) -> float:
        """CPU microseconds a ticket: taking, loading queues from the file, giving back; not the recording."""
        spent, done = 0.0, 0
        while done < tickets:
            begin = time.process_time()
            batch = [ticket for ticket in (self.frontier.take(self.now) for _ in range(out)) if ticket is not None]
            for ticket in batch:
                self.frontier.give_back(ticket, FetchResult(self.now + 5, 0.005, 200))
            self.frontier.recorded(batch)
            spent += time.process_time() - begin
            self.store.record([ticket.id for ticket in batch], self.now + 10**9)
            done += len(batch)
            self.now += 20
        return spent / done * 1e6


def run(seen: int, queued: int, hosts: int) -> list[FrontierRow]:
    """All figures."""
    size, link = seen_bytes(seen)
    with tempfile.TemporaryDirectory() as folder:
        large = Drive(Path(folder), hosts, queued, Politeness(delay=1.0))
        first = large.run(60_000)
        held = (resident() - large.before) / queued
        small = Drive(Path(folder), hosts // 10, queued // 10, Politeness(delay=1.0))
        small.run(20_000)
        cost = [(large.run(10_000), small.run(10_000)) for _ in range(5)]
    more, less = min(pair[0] for pair in cost), min(pair[1] for pair in cost)
    return [
        FrontierRow(f"memory of {seen:,} seen URLs", size, "B a URL", "73 set of ints, 14 open addressing", 20.0),
        FrontierRow("sieve, batches of 60 links, 3 new", link, "us a link", "-", 1.0),
        FrontierRow(f"memory of {queued:,} queued URLs, {hosts:,} hosts", held, "B a URL", "33-167", 60.0),
        FrontierRow("first tickets, bench being filled", first, "us a ticket", "-", 1000.0),
        FrontierRow(
            f"take and give back, {hosts:,} hosts / {hosts // 10:,}", more / less, f"x ({less:.0f} us)", "-", 1.3
        ),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", help="not needed: the queues are generated")
    parser.add_argument("--seen", type=int, default=10_000_000)
    parser.add_argument("--queued", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    if args.queued < _FEWEST:
        parser.error(f"--queued must be at least {_FEWEST:,}: of a tenth of it 70,000 tickets are taken")
    rows = run(args.seen, args.queued, args.hosts)
    if args.json:
        print(json.dumps([asdict(row) | {"held": row.held} for row in rows]))
    else:
        print(f"{'what':52}{'ours':>9} {'unit':14}{'peers':38}{'goal':>8}  held")
        for row in rows:
            print(
                f"{row.what:52}{row.ours:9.2f} {row.unit:14}{row.peer:38}{row.goal:8.1f}  {'yes' if row.held else 'NO'}"
            )
    return 0 if all(row.held for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
