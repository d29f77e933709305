"""Many clients at once while a crawl writes into the same archive.

Every client keeps one connection and asks now and then, as people do; all of
them together ask `clients / PAUSE` times a second. The crawl runs in a
process of its own over the demo web, once alone and once beside the clients.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.serving.servers import Served, ours
from letopis.archive import Archive

SECONDS = 20.0
PAUSE = 10.0
"""Mean seconds between two requests of one client."""

GOAL_RATE = 0.7
_TOOL = [sys.executable, "-m", "letopis.cli"]


@dataclass(slots=True)
class Load:
    """What a run gave; rates are pages a second of the crawl."""

    clients: int
    alone: float = 0.0
    beside: float = 0.0
    requests: int = 0
    failures: list[str] = field(default_factory=list)
    p50_ms: float = 0.0
    p99_ms: float = 0.0


def load(folder: Path, clients: int, *, as_json: bool) -> int:
    """0 when no request failed and the crawl kept most of its rate."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    result = Load(clients)
    demo, seed = _demo()
    try:
        result.alone = _crawled(folder / "alone", seed, lambda: time.sleep(SECONDS))
        served_folder = folder / "archive"
        subprocess.run([*_crawl(served_folder, seed), "--limit", "100"], check=True, capture_output=True)
        served = ours(served_folder)
        try:
            result.beside = _crawled(served_folder, seed, lambda: asyncio.run(_ask(served, served_folder, result)))
        finally:
            served.close()
    finally:
        demo.terminate()
        demo.wait(20)
    _tell(result, as_json)
    return 0 if not result.failures and result.beside >= GOAL_RATE * result.alone else 1


def _tell(result: Load, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(result) | {"failures": len(result.failures)}))
        return
    share = result.beside / result.alone if result.alone else 0.0
    print(f"{result.clients} clients, {result.requests} requests, {len(result.failures)} failed {result.failures[:3]}")
    print(f"answer time: median {result.p50_ms:.0f} ms, 99 % within {result.p99_ms:.0f} ms")
    print(f"crawl: {result.alone:.1f} pages/s alone, {result.beside:.1f} beside ({share:.2f}, goal {GOAL_RATE})")


def _demo() -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "letopis_demo", "--pages", "2000", "--crawl-delay", "0", "--speed", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None, "the demo web did not start"
    return process, found[0]


def _crawl(folder: Path, seed: str) -> list[str]:
    return [*_TOOL, "crawl", seed, "--scope", "any", "--delay", "0.02", "--archive", str(folder), "-q"]


def _crawled(folder: Path, seed: str, meanwhile: object) -> float:
    """Pages a second of a crawl that runs while something else happens."""
    assert callable(meanwhile)
    before = _pages(folder)
    process = subprocess.Popen(_crawl(folder, seed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = time.monotonic()
    meanwhile()
    seconds = time.monotonic() - started
    process.terminate()
    process.wait(60)
    return (_pages(folder) - before) / seconds


def _pages(folder: Path) -> int:
    if not folder.exists():
        return 0
    with Archive(folder) as archive:
        return archive.stats().checks


async def _ask(served: Served, folder: Path, result: Load) -> None:
    with Archive(folder) as archive:
        urls = [row.url for row in archive.catalog.resources.all()][:500]
    times: list[float] = []
    ends = time.monotonic() + SECONDS
    async with asyncio.TaskGroup() as group:
        for number in range(result.clients):
            group.create_task(_client(number, served.port, urls, ends, result, times))
    times.sort()
    result.requests = len(times)
    result.p50_ms = 1000 * times[len(times) // 2]
    result.p99_ms = 1000 * times[int(len(times) * 0.99)]


async def _client(number: int, port: int, urls: list[str], ends: float, result: Load, times: list[float]) -> None:
    chance = random.Random(number)
    await asyncio.sleep(chance.uniform(0, PAUSE))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < ends:
            started = time.monotonic()
            status = await _once(reader, writer, _path(chance, urls))
            times.append(time.monotonic() - started)
            if status >= 500:
                result.failures.append(f"status {status}")
            await asyncio.sleep(min(chance.expovariate(1 / PAUSE), max(0.0, ends - time.monotonic())))
        writer.close()
    except (OSError, asyncio.IncompleteReadError) as error:
        result.failures.append(repr(error))


def _path(chance: random.Random, urls: list[str]) -> str:
    url = chance.choice(urls)
    return chance.choice(
        [f"/web/{url}", f"/web/2026id_/{url}", f"/web/timemap/link/{url}", f"/cdx/search/cdx?url={url}",
         f"/api/v1/history?url={url}", f"/feed/{url}", "/healthz"]
    )  # fmt: skip


async def _once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> int:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = re.search(r"content-length: (\d+)", head)
    if length:
        await reader.readexactly(int(length[1]))
    elif "chunked" in head:
        while (await reader.readuntil(b"\r\n")) != b"0\r\n":
            await reader.readuntil(b"\r\n")
        await reader.readexactly(2)
    return int(head.split(" ", 2)[1])
