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

from bench.measuring import environment
from bench.scaling.services import Services, cpu_of, machine_cpu

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


Turn = tuple[int, float, float, float, float]
"""Pages of a transaction, seconds waited for others, seconds of the rest, CPU of its agent, and when it ended."""


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
        """Which part of the time of commits went by with waiting for the turn and for hosts that others write to."""
        waited, rest = (sum(turn[place] for turn in self.batches) for place in (1, 2))
        return waited / (waited + rest)

    @property
    def a_page(self) -> float:
        """Milliseconds of agent CPU."""
        return 1000 * self.agent / self.pages

    @property
    def batches(self) -> list[Turn]:
        """The turns that recorded pages."""
        return [turn for turns in self.by_agent for turn in turns if turn[0]]


def crawled(web: Web, agents: int, scaled: Services | None) -> Crawl:
    """All pages of the web once, by so many agents that start together."""
    with tempfile.TemporaryDirectory() as name:
        given = scaled.place() if scaled else {}
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
    return Crawl(
        agents, sum(one["pages"] for one in told), max(one["seconds"] for one in told), sum(one["cpu"] for one in told),
        database, store, pages, max(0.0, all_work - database - store - pages - ours) / wall,
        [[tuple(turn) for turn in one["turns"]] for one in told],
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


def rounds(web: Web, scaled: Services, counts: Sequence[int], repeats: int) -> dict[int, list[Crawl]]:
    """Crawls in turns: embedded (as 0 agents) and so many agents, then all over again."""
    found: dict[int, list[Crawl]] = {0: [], **{count: [] for count in counts}}
    for _ in range(repeats):
        found[0].append(crawled(web, 1, None))
        for count in counts:
            found[count].append(crawled(web, count, scaled))
    return found


def median(crawls: Sequence[Crawl], name: str) -> float:
    """The middle one of a figure that neighbours disturb."""
    return statistics.median(float(getattr(crawl, name)) for crawl in crawls)
