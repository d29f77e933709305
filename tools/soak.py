"""An archive at work for an hour with faults: nothing lost, memory and descriptors flat.

    python tools/soak.py [--seconds 3600] [--pause 3]

One daemon (crawling, watching, working off jobs, serving) lives from the first to the last second. Beside it every
other kind of process comes and goes: versions are put in by HTTP, read, searched, compacted, published, pulled, backed
up, exported; a share of these processes is killed. The site that is crawled changes, and a share of its answers is an
error, cut off, or never ends. At the end every acknowledged version is asked for, and every byte is verified, in the
archive and in its clone. Counts are added to `docs/reliability.json`.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from campaign_results import add_result

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.errors import LetopisError

PAGES = 40
MOST_GROWTH = 0.10
"""Of the daemon's memory from its first settled fifth to its last."""
LONG_ENOUGH = 600.0
"""Seconds from which growth is judged: before, caches are still being filled."""
MORE_DESCRIPTORS = 8
"""Four threads more than before, each with its connection to the catalogue, which has two. A connection ends with its
thread, so there is no bound for them of their own: whatever grows by more than this is left open.
"""
MOST_PACKS = 64 + 2
"""Packs that are kept open for reading, and those that are written. An hour makes packs, so these are judged by their
bound and not by growth; a pack that was removed and is still open counts like any other descriptor.
"""
_PACK = re.compile(r"/packs/\d+\.(?:pack|log)\Z")
_START = datetime(2020, 1, 1, tzinfo=UTC)
_SETTINGS = """[crawl]
delay = 0.3
[fetch]
private = "always"
retries = 0
first_byte = 3.0
[monitor]
min_interval = 5.0
"""
_JOB = '<query name="soak"><search>page</search><map site="127.0.0.1"/></query>'


class ChangingSite(BaseHTTPRequestHandler):
    """Pages that change every minute; one answer in ten is a fault."""

    chance = random.Random(1)

    def do_GET(self) -> None:
        """A page, an error, a cut, or a body that is announced and never comes."""
        manner = self.chance.randrange(40)
        if manner < 2:
            self.send_error(503)
            return
        links = "".join(f"<a href='/{number}'>page {number}</a>" for number in range(PAGES))
        body = f"<title>page {self.path}</title><p>minute {int(time.time() / 60)}</p>{links}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body) + (1000 if manner == 2 else 0)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if manner == 3 else body)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


class Sample(NamedTuple):
    """The daemon at one moment; descriptors but those of packs that are there."""

    megabytes: float
    descriptors: int


@dataclass
class SoakReport:
    """What was done and found."""

    seconds: float = 0.0
    done: Counter[str] = field(default_factory=Counter)
    killed: int = 0
    stored: int = 0
    samples: list[Sample] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def judge(self) -> None:
        """Adds a fault where memory or descriptors of the daemon have grown."""
        fifth = len(self.samples) // 5
        if fifth == 0:
            return
        first, last = self.samples[fifth : 2 * fifth], self.samples[-fifth:]
        before, after = (statistics.median(one.megabytes for one in part) for part in (first, last))
        if self.seconds >= LONG_ENOUGH and after > before * (1 + MOST_GROWTH):
            self.faults.append(f"the daemon's memory grew from {before:.0f} to {after:.0f} MB")
        opened, left = (max(one.descriptors for one in part) for part in (first, last))
        if self.seconds >= LONG_ENOUGH and left > opened + MORE_DESCRIPTORS:
            self.faults.append(f"the daemon's descriptors grew from {opened} to {left}")

    def figures(self) -> dict[str, float]:
        """For the page of reliability."""
        if not self.samples:
            return {}
        fifth = max(1, len(self.samples) // 5)
        parts = {"first": self.samples[fifth : 2 * fifth] or self.samples, "last": self.samples[-fifth:]}
        found = {f"megabytes_{name}": statistics.median(one.megabytes for one in part) for name, part in parts.items()}
        found |= {f"descriptors_{name}": max(one.descriptors for one in part) for name, part in parts.items()}
        return found | {"killed": self.killed, "stored": self.stored, "processes": sum(self.done.values())}


class Soak:
    """The archive, the daemon, and what is done beside it."""

    def __init__(self, folder: Path, site: str, seed: int) -> None:
        self.folder = folder
        self.site = site
        self.chance = random.Random(seed)
        self.report = SoakReport()
        self.bodies: dict[str, tuple[datetime, bytes]] = {}
        (folder / "letopis.toml").write_text(_SETTINGS)
        (folder / "job.xml").write_text(_JOB)
        with Archive(folder / "a") as archive:
            accounts = accounts_of(archive)
            self.token = accounts.create_token("soak", accounts.add("ada", "owner", "a long password", 1), "write", 1)
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])

    def run(self, seconds: float, pause: float) -> SoakReport:
        """Everything at once until the time is over; then the promises are asked for."""
        for words in (["crawls", "add", self.site + "/0"], ["watch", "add", self.site + "/1", "--every", "5s"]):
            self._verb(*words)
        with self._daemon() as daemon:
            began = time.monotonic()
            while time.monotonic() < began + seconds:
                self._act()
                self._measure(daemon)
                time.sleep(pause)
        self.report.seconds = time.monotonic() - began
        self._settle()
        self.report.judge()
        return self.report

    @contextmanager
    def _daemon(self) -> Iterator[subprocess.Popen[bytes]]:
        with (self.folder / "daemon.log").open("wb") as log:
            words = self._words("run", "--port", str(self.port))
            daemon = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log)  # noqa: S603
        try:
            while self._ask("GET", "/healthz") != 200 and daemon.poll() is None:
                time.sleep(0.1)
            yield daemon
            if daemon.poll() is not None:
                said = (self.folder / "daemon.log").read_text()[-500:]
                self.report.faults.append(f"the daemon ended with status {daemon.returncode}: {said}")
                return
            daemon.terminate()
            if daemon.wait(120) != 0:
                self.report.faults.append(f"the daemon ended with status {daemon.returncode} when it was told to")
        finally:
            daemon.kill()
            daemon.wait()

    def _act(self) -> None:
        published, clone = str(self.folder / "published"), str(self.folder / "clone")
        follow = ["pull", clone] if (self.folder / "clone" / "replica").exists() else ["clone", published, clone]
        ways: list[tuple[str, Callable[[], object], int]] = [
            ("put", self._put, 8),
            ("read", self._read, 8),
            ("hang up", self._hang_up, 3),
            ("job", lambda: self._killable("jobs", "submit", str(self.folder / "job.xml")), 1),
            ("compact", lambda: self._killable("compact"), 2),
            ("publish", lambda: self._killable("publish", published), 2),
            ("follow", lambda: self._killable(*follow) if Path(published).exists() else None, 2),
            ("index", lambda: self._killable("search", "page"), 1),
            ("check", lambda: self._killable("check", self.site + "/2", ends=(0, 1, 3, 4, 7)), 1),
            ("backup", lambda: self._killable("backup", str(self.folder / "backup")), 1),
            ("export", lambda: self._killable("export", "warc", "-o", str(self.folder / "out.warc.gz")), 1),
        ]
        name, act, _ = self.chance.choices(ways, [often for *_, often in ways])[0]
        act()
        self.report.done[name] += 1

    def _put(self) -> None:
        """Ten versions by HTTP, one after the other."""
        for _ in range(10):
            url = f"http://put.example/{self.chance.randrange(20)}"
            when = _START + timedelta(minutes=self.report.stored)
            body = b"<p>%d</p>" % self.report.stored * 50
            path = f"/api/v1/content?url={url}&at={when:%Y-%m-%dT%H:%M:%SZ}"
            status = self._ask("PUT", path, body)
            if status == 200:
                self.bodies[url] = when, body
                self.report.stored += 1
            elif status != 503:
                self.report.faults.append(f"PUT answered {status}")

    def _read(self) -> None:
        for path in ("/", f"/web/2026/{self.site}/3", "/api/v1/stats", "/search?q=page", "/api/v1/history?url=x:y"):
            status = self._ask("GET", path)
            if status >= 500 and status != 503:
                self.report.faults.append(f"GET {path} answered {status}")

    def _hang_up(self) -> None:
        """Clients that begin and go."""
        for begun in (b"GET / HTTP/1.1\r\nHost: 127", b"PUT /api/v1/content HTTP/1.1\r\nContent-Length: 99\r\n\r\n"):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 10) as connection:
                connection.sendall(begun)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> int:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {getattr(self, 'token', '')}"})
            answer = connection.getresponse()
            answer.read()
        except (OSError, HTTPException):
            return 0
        else:
            return answer.status
        finally:
            connection.close()

    def _words(self, *words: str) -> list[str]:
        common = ["--config", str(self.folder / "letopis.toml"), "--archive", str(self.folder / "a"), "--quiet"]
        return [sys.executable, "-m", "letopis.cli", *common, *words]

    def _verb(self, *words: str) -> None:
        self._killable(*words, share=0.0)

    def _killable(self, *words: str, share: float = 0.3, ends: tuple[int, ...] = (0,)) -> None:
        """Another process; a share of them is killed after a random time."""
        limit = self.chance.uniform(0.1, 3.0) if self.chance.random() < share else 600.0
        process = subprocess.Popen(self._words(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # noqa: S603
        try:
            _, said = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.report.killed += 1
            if limit == 600.0:
                self.report.faults.append(f"{words[0]} did not end")
        else:
            if process.returncode not in ends:
                self.report.faults.append(f"{words[0]} ended with status {process.returncode}: {said[-300:]}")

    def _measure(self, daemon: subprocess.Popen[bytes]) -> None:
        with suppress(OSError, StopIteration):
            status = Path(f"/proc/{daemon.pid}/status").read_text().splitlines()
            kilobytes = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
            names = list(_descriptors(daemon.pid))
            packs = sum(_PACK.search(name) is not None for name in names)
            self.report.samples.append(Sample(kilobytes / 1024, len(names) - packs))
            if packs > MOST_PACKS:
                self.report.faults.append(f"the daemon has {packs} packs open")

    def _settle(self) -> None:
        """Every promise, once all is quiet."""
        self._verb("verify")
        self._verb("publish", str(self.folder / "published"))
        follow = ["pull"] if (self.folder / "clone" / "replica").exists() else ["clone", str(self.folder / "published")]
        self._verb(*follow, str(self.folder / "clone"))
        for name in ("a", "clone"):
            with Archive(self.folder / name) as archive:
                self.report.faults += [f"{name}: {problem}" for problem in archive.verify()]
                for url, (when, body) in self.bodies.items():
                    self._ask_for(archive, url, when, body)

    def _ask_for(self, archive: Archive, url: str, when: datetime, body: bytes) -> None:
        try:
            found = archive.get(url, at=when).body
        except LetopisError as error:
            self.report.faults.append(f"{url} at {when}: {error}")
        else:
            if found != body:
                self.report.faults.append(f"{url} at {when}: other bytes")


def _descriptors(process: int) -> Iterator[str]:
    """What a process has open."""
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            yield os.readlink(descriptor)


def soak(folder: Path, seconds: float, pause: float, seed: int = 1) -> SoakReport:
    """Runs in an empty folder."""
    site = ThreadingHTTPServer(("127.0.0.1", 0), ChangingSite)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    try:
        return Soak(folder, f"http://127.0.0.1:{site.server_address[1]}", seed).run(seconds, pause)
    finally:
        site.shutdown()
        site.server_close()


def main() -> int:
    """Prints what was done and found."""
    parser = argparse.ArgumentParser(description="An archive at work for an hour, with faults.")
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two actions")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="another number gives another course")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="letopis-soak-") as folder:
        report = soak(Path(folder), asked.seconds, asked.pause, asked.seed)
    add_result("soak", int(report.seconds), len(report.faults), **report.figures())
    for name, value in (report.figures() | dict(report.done)).items():
        sys.stdout.write(f"{name:20} {value:>10,.0f}\n")
    for fault, count in Counter(report.faults).items():
        sys.stderr.write(f"{count} x {fault}\n")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
