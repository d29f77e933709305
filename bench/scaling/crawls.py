"""Crawls of the simulated web by one or more agents, and what every part of them cost."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from bench.measuring import environment
from bench.scaling.lock_waits import waited
from bench.scaling.services import Services, cpu_of, machine_cpu

_MORE_OFTEN = 10.0
_FEWEST, _SHORTER = 6, 40
"""Pages of a host in the crawl with a few pages, at least, and as a part of the others."""
ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Web:
    """Addresses of the simulated web, and its process."""

    seeds: list[str]
    process: int


@contextmanager
def web(hosts: int, pages: int) -> Iterator[Web]:
    """The simulated web in a process of its own."""
    words = ["--port", "0", "--hosts", str(hosts), "--pages", str(pages), "--crawl-delay", "0", "--speed", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "letopis_demo", *words, "--skip", "10"],
        stdout=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert process.stdout is not None
    try:
        port = process.stdout.readline().rstrip("/\n").rpartition(":")[2]
        yield Web([f"http://127.0.0.{2 + number}:{port}/" for number in range(hosts)], process.pid)
    finally:
        process.terminate()
        process.wait()


_COMMIT_EVERY = 1.0
Turn = tuple[int, float, float, float, float, float, float]
"""Pages of a transaction, seconds of its first message, seconds of the rest, CPU of its agent, when it ended, seconds
that it waited for locks of others, in all its messages, and seconds of the rest without need of a core."""


@dataclass(frozen=True, slots=True)
class Crawl:
    """One crawl. Seconds of CPU by part; agents without their start."""

    agents: int
    pages: int
    seconds: float
    agent: float
    database: float
    store: float
    web: float
    others: float
    """Cores that all other work of the machine took meanwhile."""
    by_agent: list[list[Turn]]
    crossing: int
    """URLs that agents planned because pages of other hosts link to them."""
    reading: float
    """Of the CPU of agents, for reading pages."""

    @property
    def a_second(self) -> float:
        """Pages a second of all agents together while all of them are at work.

        That is from the moment when the last of them has made its first commit until nine tenths of all pages are
        recorded: neither start nor sharing out, nor the end, where a few last links are followed one by one.
        """
        firsts = [
            min(turn[4] for turn in turns if turn[0]) for turns in self.by_agent if any(turn[0] for turn in turns)
        ]
        batches = sorted(self.batches, key=lambda turn: turn[4])
        sums = accumulate(turn[0] for turn in batches)
        early = (turn for turn, pages in zip(batches, sums, strict=True) if pages <= 0.9 * self.pages)
        within = [turn for turn in early if turn[4] > max(firsts)]
        if not within:
            raise SystemExit("the crawl was over before all agents worked; give it more --pages")
        return sum(turn[0] for turn in within) / (within[-1][4] - max(firsts))

    @property
    def waiting(self) -> float:
        """Which part of the time of commits went by with waiting for locks that others held."""
        return self._part(5)

    @property
    def first_message(self) -> float:
        """Which part went by with the message that asks for the turn and the hosts, alone or not."""
        return self._part(1)

    def _part(self, place: int) -> float:
        return sum(turn[place] for turn in self.batches) / sum(turn[1] + turn[2] for turn in self.batches)

    @property
    def a_page(self) -> float:
        """Milliseconds of agent CPU."""
        return 1000 * self.agent / self.pages

    @property
    def batches(self) -> list[Turn]:
        """The turns that recorded pages."""
        return [turn for turns in self.by_agent for turn in turns if turn[0]]


def crawled(web: Web, agents: int, scaled: Services | None, often: float = 1.0) -> Crawl:
    """All pages of the web once, by so many agents that start together and commit so many times as often as usual."""
    with tempfile.TemporaryDirectory() as name:
        given = {**(scaled.place() if scaled else {}), "LETOPIS_CRAWL_COMMIT_EVERY": str(_COMMIT_EVERY / often)}
        words = ["crawl", *web.seeds, "--delay", "0", "--once", "--json", "-q", "--exclude", "busy|overload"]
        commands = [
            [sys.executable, "-m", "bench.scaling.agents", *words, "--archive", f"{name}/{number}"]
            for number in range(agents)
        ]
        before, began = _cpu(web, scaled), time.perf_counter()
        printed = _together(commands, {**environment(), **given})
        wall = time.perf_counter() - began
        database, store, pages, ours, all_work = (b - a for a, b in zip(before, _cpu(web, scaled), strict=True))
    told = [json.loads(text.splitlines()[-1]) for text in printed]
    waits = scaled.lock_waits() if scaled else []

    def turn_of(one: dict[str, Any], turn: Sequence[float]) -> Turn:
        pages, first, rest, cpu, ended, began, idle = turn
        return int(pages), first, rest, cpu, ended, waited(waits, one["servers"], began, began + first + rest), idle

    return Crawl(
        agents, sum(one["pages"] for one in told), max(one["seconds"] for one in told), sum(one["cpu"] for one in told),
        database, store, pages, max(0.0, all_work - database - store - pages - ours) / wall,
        [[turn_of(one, turn) for turn in one["turns"]] for one in told], sum(one["crossing"] for one in told),
        sum(one["reading"] for one in told),
    )  # fmt: skip


def _cpu(web: Web, scaled: Services | None) -> tuple[float, ...]:
    """CPU seconds so far of the database, the object store, the web, of this process with the agents, and of all."""
    services = (scaled.database_cpu(), scaled.store_cpu()) if scaled else (0.0, 0.0)
    return (*services, cpu_of(web.process), sum(os.times()[:4]), machine_cpu())


def _together(commands: Sequence[Sequence[str]], given: dict[str, str]) -> list[str]:
    """Runs processes at once; what each printed."""
    running = [
        subprocess.Popen(words, env={**given, "PYTHONPATH": f"{ROOT}/src"}, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for words in commands
    ]
    printed = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit("an agent failed")
    return printed


@dataclass(frozen=True, slots=True)
class Rounds:
    """Crawls by the number of their agents, 0 for one that is embedded; and others by one agent, which tell apart what
    its start, its pages and its commits cost: one with a few pages, and one with many small commits.
    """

    by_agents: dict[int, list[Crawl]]
    others: list[Crawl]

    @property
    def alone(self) -> list[Crawl]:
        """All crawls by one agent of a fleet."""
        return [*self.by_agents[1], *self.others]


def rounds(hosts: int, pages: int, scaled: Services, counts: Sequence[int], repeats: int) -> Rounds:
    """All kinds of crawls in turns, then all over again."""
    found = Rounds({0: [], **{count: [] for count in counts}}, [])
    with web(hosts, pages) as whole, web(hosts, max(_FEWEST, pages // _SHORTER)) as short:
        for _ in range(repeats):
            found.by_agents[0].append(crawled(whole, 1, None))
            for count in counts:
                found.by_agents[count].append(crawled(whole, count, scaled))
            found.others.append(crawled(whole, 1, scaled, _MORE_OFTEN))
            found.others.append(crawled(short, 1, scaled))
    return found


def median(crawls: Sequence[Crawl], name: str) -> float:
    """The middle one of a figure that neighbours disturb."""
    return statistics.median(float(getattr(crawl, name)) for crawl in crawls)
