"""One writer or leaser as a process of its own: prints what it did and how long that took."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from letopis.archive import Archive
from letopis.catalog.leases import HostLeases
from letopis.config import load_settings
from letopis.model import Put
from letopis.urls import url_key

PAGE = "<html><title>{0}</title><p>{0} is one of many pages, each a little different: {1}</html>"


def puts(archive: Archive, name: str, count: int, batch: int) -> None:
    """Versions of new URLs, so many in each commit."""
    for start in range(0, count, batch):
        part = [
            Put(f"http://h{number % 64}.example/{name}/{number}", PAGE.format(number, name).encode())
            for number in range(start, min(count, start + batch))
        ]
        list(archive.put_many(part))


def leases(archive: Archive, name: str, count: int, batch: int) -> None:
    """Hosts taken and given back, so many at once."""
    table = HostLeases(archive.catalog.database, 1000, 0)
    done = 0
    while done < count:
        now = time.time_ns() // 1_000_000
        taken = [host for host, _ in table.take(name, now, now + 60_000, batch)]
        table.give_back(name, taken)
        done += max(1, len(taken))


def tend(archive: Archive, name: str, count: int, batch: int) -> None:
    """What an agent asks of its leases once a second or more seldom, so often; it extends them every 20 s.

    All other hosts have owners, as in a fleet at work: whoever looks for another one finds none.
    """
    table = HostLeases(archive.catalog.database, 1000, 0)
    now = time.time_ns() // 1_000_000
    held = [host for host, _ in table.take(name, now, now + 600_000, batch)]
    table.take("others", now, now + 600_000, 30_000)
    for number in range(count):
        if number % 20 == 0:
            table.extend(name, now, now + 600_000)
        table.take_in(name, held, now)
        table.agents(now)
        table.spent(name, now, held)
        table.take(name, now, now + 600_000, 1)


def links(archive: Archive, name: str, count: int, batch: int) -> None:
    """URLs sent to hosts of other agents, so many at once, and taken in by these."""
    queues, host = archive.catalog.queues, "links.example"
    number = archive.catalog.resources.ensure_hosts(None, [host])[host]
    queues.ensure_inbox()
    urls = [(url_key(url), url, number, 1, 0.0) for url in (f"http://{host}/{name}/{each}" for each in range(count))]
    with archive.catalog.database.transaction(beside=True) as cursor:
        for start in range(0, count, batch):
            queues.send(cursor, urls[start : start + batch])
    while queues.take_in(batch):
        pass


def counting(archive: Archive, name: str, count: int, batch: int) -> None:
    """How many hosts are to be shared out, asked so often."""
    table = HostLeases(archive.catalog.database, 1000, 0)
    for _ in range(count):
        table.busy_hosts(time.time_ns() // 1_000_000)


def main(argv: Sequence[str]) -> int:
    kind, name, count, batch, folder = argv
    settings = load_settings(None, {**os.environ, "LETOPIS_ARCHIVE": str(Path(folder) / name)}, {})
    with Archive.open(settings) as archive:
        print("ready", flush=True)
        sys.stdin.readline()
        began, cpu = time.perf_counter(), time.process_time()
        kinds = {"puts": puts, "leases": leases, "tend": tend, "count": counting, "links": links}
        kinds[kind](archive, name, int(count), int(batch))
        print(json.dumps([time.perf_counter() - began, time.process_time() - cpu]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
