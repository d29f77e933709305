"""Crawls that take hours, in as many runs as it needs: what they cost so far, in a journal beside the archive."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg

from bench.scaling.services import Services, cpu_of
from letopis.config import load_settings
from letopis.store.bucket import Bucket

MARKS = tuple(10**power for power in range(4, 10))
"""Numbers of pages at which the costs of a crawl are compared."""
_FIELD = re.compile(r"^(VmRSS|VmHWM|RssAnon):\s+(\d+) kB", re.MULTILINE)
_RECORDED = "SELECT coalesce(sum(fetched), 0), (SELECT coalesce(max(id), 0) FROM resource) FROM host"


@dataclass(frozen=True, slots=True)
class Sample:
    """All runs so far: pages recorded, URLs that wait, seconds of crawling, CPU seconds; memory and disk as they are.

    Memory is that of the largest agent, in megabytes. The disk is not looked at every time.
    """

    run: int
    pages: int
    waiting: int
    seconds: float
    cpu: float
    database_cpu: float
    rss_mb: float
    own_mb: float
    peak_mb: float
    disk_bytes: int = 0


NOTHING = Sample(0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Cost:
    """What pages cost from half of their number on: pages a second, CPU of agents and of the database a page."""

    pages: int
    a_second: float
    cpu_ms: float
    database_ms: float
    peak_mb: float
    bytes_a_page: float


class Journal:
    """Samples of all runs in a file; what one run spent is added to what was spent before it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self.samples = [Sample(**json.loads(line)) for line in lines]
        self.before = self.samples[-1] if self.samples else NOTHING

    def add(self, sample: Sample) -> None:
        """Keeps a sample of this run."""
        self.samples.append(sample)
        with self._file.open("a") as file:
            file.write(json.dumps(asdict(sample)) + "\n")

    def costs(self, marks: Sequence[int] = MARKS) -> Iterator[Cost]:
        """At each mark that was reached, and at the end."""
        reached = [mark for mark in marks if self.samples and self.samples[-1].pages >= mark]
        ends = [next(one for one in self.samples if one.pages >= mark) for mark in reached]
        for end in dict.fromkeys([*ends, *self.samples[-1:]]):
            half = next((one for one in reversed(self.samples) if 2 * one.pages <= end.pages), NOTHING)
            yield _cost(half, end)


def _cost(half: Sample, end: Sample) -> Cost:
    pages, seconds = end.pages - half.pages, end.seconds - half.seconds
    return Cost(
        end.pages, pages / max(seconds, 1e-9), 1000 * (end.cpu - half.cpu) / max(pages, 1),
        1000 * (end.database_cpu - half.database_cpu) / max(pages, 1), end.peak_mb, end.disk_bytes / max(end.pages, 1),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Watched:
    """Where a crawl records, and how to see what it costs; `services` where they run here for its sake."""

    archive: Path
    ways: dict[str, str]
    services: Services | None = None

    def recorded(self) -> tuple[int, int]:
        """Pages durably recorded, and URLs known."""
        if url := self.ways.get("LETOPIS_DATABASE_URL"):
            with psycopg.connect(url) as connection:
                found = connection.execute("SELECT to_regclass('host')").fetchone()
                row = connection.execute(_RECORDED).fetchone() if found and found[0] else None
            return (int(row[0]), int(row[1])) if row else (0, 0)
        file = self.archive / "catalogue.sqlite"
        if not file.exists():
            return 0, 0
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=60)) as reader:
            try:
                pages, known = reader.execute(_RECORDED).fetchone()
            except sqlite3.OperationalError:  # its tables are being made
                return 0, 0
        return int(pages), int(known)

    def disk_bytes(self) -> int:
        """Of catalogue and packs; the cache of an object store is left out."""
        if url := self.ways.get("LETOPIS_DATABASE_URL"):
            with psycopg.connect(url) as connection:
                row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            store = load_settings(None, self.ways, {}).store
            return int(row[0] if row else 0) + sum(Bucket(store).sizes().values())
        return sum(path.stat().st_size for path in self.archive.rglob("*") if path.is_file())

    def sample(self, before: Sample, agents: Sequence[int], seconds: float) -> Sample:
        """How the crawl stands now; KeyError or OSError when an agent has ended."""
        pages, known = self.recorded()
        held = [_memory(agent) for agent in agents]
        spent = sum(map(cpu_of, agents))
        database = self.services.database_cpu() if self.services else 0.0
        largest = {name: max(one[name] for one in held) for name in ("VmRSS", "RssAnon", "VmHWM")}
        return Sample(
            before.run + 1, pages, known - pages, before.seconds + seconds, before.cpu + spent,
            before.database_cpu + database, largest["VmRSS"], largest["RssAnon"], largest["VmHWM"],
        )  # fmt: skip


def _memory(process: int) -> dict[str, float]:
    """Megabytes of a running process: resident, at most so far, and what no file backs."""
    found = _FIELD.findall(Path(f"/proc/{process}/status").read_text())
    return {name: int(value) / 1024 for name, value in found}
