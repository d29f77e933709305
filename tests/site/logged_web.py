"""The simulated web with its own log, and what the log proves about the manners of a crawler."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from typing import NamedTuple

from letopis_demo import DemoServer, World, running
from letopis_demo.server import Layout

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)


class Asked(NamedTuple):
    """One request as the server saw it; times are seconds of one clock."""

    began: float
    ended: float
    connection: int
    host: str
    path: str
    status: int


class CountedLog(StringIO):
    """A log that knows how many pages were asked for, however long it is."""

    pages = 0

    def write(self, text: str) -> int:
        self.pages += "\t/robots.txt\t" not in text
        return super().write(text)


@dataclass
class LoggedWeb:
    """The web at one standing moment, in a thread, with everything it was asked."""

    server: DemoServer
    log: CountedLog

    @property
    def world(self) -> World:
        return self.server.world

    def asked(self, *, pages_only: bool = True) -> list[Asked]:
        """All requests in the order of their beginnings; robots.txt is asked outside of all manners."""
        rows = (line.split("\t") for line in self.log.getvalue().splitlines())
        found = sorted(Asked(float(r[0]), float(r[1]), int(r[4]), r[5], r[6], int(r[7])) for r in rows)
        return [each for each in found if not pages_only or each.path != "/robots.txt"]


@contextmanager
def logged_web(world: World, layout: Layout = "addresses") -> Iterator[LoggedWeb]:
    """Serves a world that stands still, so that what is fetched does not depend on when."""
    log = CountedLog()
    with running(DemoServer(world, lambda: NOON, addresses=layout, log=log)) as server:
        yield LoggedWeb(server, log)


def spans(asked: Iterable[Asked], by: str) -> dict[str, list[Asked]]:
    """Requests by `host` or by `address` (the host without its port), in order."""
    found: defaultdict[str, list[Asked]] = defaultdict(list)
    for each in asked:
        found[each.host if by == "host" else each.host.partition(":")[0]].append(each)
    return dict(found)


def least_pause(asked: Iterable[Asked], by: str) -> float:
    """The shortest time between the beginnings of two requests to one host, or one address."""
    pairs = (pair for each in spans(asked, by).values() for pair in itertools.pairwise(each))
    return min(later.began - earlier.began for earlier, later in pairs)


def overlapping(asked: Iterable[Asked]) -> list[tuple[Asked, Asked]]:
    """Requests to one host that were open at once."""
    pairs = (pair for each in spans(asked, "host").values() for pair in itertools.pairwise(each))
    return [(earlier, later) for earlier, later in pairs if later.began < earlier.ended]


def wait_for_pages(web: LoggedWeb, number: int, child: subprocess.Popen[bytes], seconds: float = 300.0) -> None:
    """Until so many pages were asked for, the process ended or time is up."""
    until = time.monotonic() + seconds
    while web.log.pages < number and time.monotonic() < until and child.poll() is None:
        time.sleep(0.002)
