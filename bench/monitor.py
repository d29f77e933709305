"""Q18: checks of 1000 unchanged URLs of 30 KB, CPU of the whole process, and bytes a slightly changed version.

    python bench/monitor.py [--urls 1000] [--repeats 3] [--peers urlwatch,webchanges,changedetection.io]
        [--slow 200] [--json]

A local keep-alive server answers once with ETag and 304, once without any
validator. Every tool has seen all pages before; what is measured is one more
round, start-up included: user and system CPU of the process, the least of the
repeats, tools interleaved. Peers are installed under `.bench`.

Two peers take so long that they look at fewer pages (`--slow`) and, apart
from that, at a single one, which is their start. Their figure for all pages
is that start and as many pages more as are left, and says that it is scaled.

changedetection.io runs in its batch mode: it begins with the given addresses
instead of its own, queues all of them, and ends when the queue is empty. That
mode has neither the check for new releases nor the count of installations,
and its switches say the same once more. A trace of its connections shows the
local server alone. webchanges asks its makers for new versions unless its
settings forbid it, as they do here. To be sure of both, run the whole in a
network that has nothing but the local machine, once the peers are installed:

    unshare -rn sh -c "ip link set lo up && python bench/monitor.py --peers urlwatch,webchanges,changedetection.io"
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.measuring import measured  # noqa: E402

HOMES = {
    "urlwatch": ROOT / ".bench" / "monitor",
    "webchanges": ROOT / ".bench" / "monitor",
    "changedetection.io": ROOT / ".bench" / "changedetection",
}
LONGEST_SECONDS = 3600
"""No round takes longer; one that would is ended and fails the benchmark."""
_AT_HOME = {
    "DISABLE_VERSION_CHECK": "true",
    "LLM_FEATURES_DISABLED": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "ALLOW_IANA_RESTRICTED_ADDRESSES": "true",
}
SLOW = ("webchanges", "changedetection.io")
"""Looking at a thousand pages takes them minutes."""
SLOW_PAGES, SLOW_REVISIONS = 20, 5
"""What they store is measured on so many pages, each changed so often."""
PAGE_BYTES = 30_000
_WORDS = ("archive", "version", "change", "page", "letter", "river", "window", "paper", "winter", "answer", "number")
_CONFIG = """\
display: {error: true, new: false, unchanged: false, empty-diff: true}
report: {stdout: {enabled: false, color: false}}
"""
_CONFIGS = {
    "urlwatch": _CONFIG + "job_defaults: {all: {}, browser: {}, shell: {}, url: {}}\n",
    # It asks its makers for new versions while it works, unless it is told not to.
    "webchanges": _CONFIG
    + "job_defaults: {all: {}, browser: {}, command: {}, url: {}}\nversion_check: {enabled: false}\n",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `ratio` is to the best peer of the same figure."""

    what: str
    ours: float
    peer: float | None
    ratio: float | None
    goal: float | None
    unit: str


def page(number: int, revision: int) -> bytes:
    """A page of 30 KB; each revision changes one sentence of it."""
    chance = random.Random(number)
    parts, size = [f"<!DOCTYPE html><title>Page {number}</title><body>"], 0
    while size < PAGE_BYTES:
        line = " ".join(f"{chance.choice(_WORDS)}{chance.randrange(100)}" for _ in range(40))
        parts.append(f"<p class=text>{line}.</p>\n")
        size += len(parts[-1])
    fresh = random.Random(f"{number} {revision}")
    parts[len(parts) // 2] = f"<p class=text>{' '.join(fresh.choice(_WORDS) for _ in range(12))}.</p>\n"
    return "".join(parts).encode()


class Pages:
    """The server: `/p/<n>` is a page, `/revision/<n>` turns all pages to a revision."""

    def __init__(self, validates: bool) -> None:
        self._validates = validates
        self._revision = 0
        self._bodies: dict[int, bytes] = {}

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep-alive until the client goes."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                _, kind, number = head.split(b" ", 2)[1].decode().split("/")
                writer.write(self._turn(int(number)) if kind == "revision" else self._answer(int(number), head))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _turn(self, revision: int) -> bytes:
        self._revision = revision
        self._bodies.clear()
        return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    def _answer(self, number: int, head: bytes) -> bytes:
        if number not in self._bodies:
            self._bodies[number] = page(number, self._revision)
        body = self._bodies[number]
        tag = b'ETag: "' + hashlib.md5(body).hexdigest().encode() + b'"\r\n' if self._validates else b""
        if tag and tag.split()[1] in head:
            return b"HTTP/1.1 304 Not Modified\r\n" + tag + b"\r\n"
        fields = b"Content-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n" % len(body)
        return b"HTTP/1.1 200 OK\r\n" + fields + tag + b"\r\n" + body


async def serve(validates: bool) -> None:
    """Runs the server; prints its port."""
    server = await asyncio.start_server(Pages(validates).handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def server(validates: bool) -> Iterator[int]:
    """The server in a process of its own; its port."""
    words = [sys.executable, __file__, "--serve", "etag" if validates else "plain"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def cpu(words: Sequence[str | Path], folder: Path) -> float:
    """User and system seconds of one command."""
    spent = measured(["timeout", "-k", "10", str(LONGEST_SECONDS), *words], folder)
    if spent.status:
        raise RuntimeError(f"{' '.join(map(str, words[:6]))} ended with status {spent.status}")
    return spent.seconds


def commands(tool: str, urls: Sequence[str], folder: Path) -> list[str | Path]:
    """One round of a tool over all URLs."""
    if tool == "letopis":
        return [sys.executable, "-m", "letopis.cli", "--archive", "archive", "check", "--now", *urls]
    if tool == "letopis watch":
        settings = folder / "quick.toml"
        settings.write_text("[monitor]\nmin_interval = 0.001\nevery = 0.001\n")
        return [
            sys.executable,
            "-m",
            "letopis.cli",
            "--archive",
            "archive",
            "--config",
            settings,
            "watch",
            "run",
            "--once",
        ]
    if tool == "changedetection.io":
        return _changedetection(urls, folder)
    (folder / "jobs.yaml").write_text("\n---\n".join(f"url: {url}" for url in urls) + "\n")
    (folder / "config.yaml").write_text(_CONFIGS[tool])
    names = {"urlwatch": ("--urls", "--cache"), "webchanges": ("--jobs", "--database")}[tool]
    program = HOMES[tool] / "bin" / tool
    return [program, names[0], "jobs.yaml", "--config", "config.yaml", names[1], "cache.sqlite"]


def _changedetection(urls: Sequence[str], folder: Path) -> list[str | Path]:
    """Given addresses at its first start, it adds none of its own; later rounds look at all it has."""
    settings = [f"{name}={value}" for name, value in _AT_HOME.items()]
    program = HOMES["changedetection.io"] / "bin" / "changedetection.io"
    first = not (folder / "store").exists()
    work = [word for url in urls for word in ("-u", url)] if first else ["-r", "all"]
    shared = ["-C", "-d", str(folder / "store"), "-h", "127.0.0.1", "-p", "5999", "-l", "ERROR"]
    return ["env", *settings, program, *shared, "-b", *work]


def install(peers: Sequence[str]) -> None:
    """Peers in environments of their own, once."""
    for name in peers:
        home = HOMES[name]
        if not (home / "bin" / "python").exists():
            venv.create(home, with_pip=True)
        if not (home / "bin" / name).exists():
            subprocess.run([home / "bin" / "python", "-m", "pip", "install", "-q", name], check=True)


class Round(NamedTuple):
    """One tool over some of the pages."""

    tool: str
    pages: int

    def place(self, folder: Path) -> Path:
        """Where it keeps what it has seen."""
        return folder / f"{self.tool.replace(' ', '-')}-{self.pages}"


def rounds(tools: Sequence[str], count: int, slow: int) -> list[Round]:
    """Every tool over all pages; slow ones over some, and over one."""
    found = []
    for tool in tools:
        few = tool in SLOW and slow < count
        found += [Round(tool, slow), Round(tool, 1)] if few else [Round(tool, count)]
    return found


def scaled(best: Mapping[Round, float], count: int) -> dict[str, float]:
    """Seconds for all pages, tool by tool."""
    found = {}
    for one, seconds in best.items():
        if one.pages > 1 or count == 1:
            start = best.get(Round(one.tool, 1), seconds)
            a_page = (seconds - start) / (one.pages - 1) if one.pages > 1 else 0.0
            found[one.tool] = seconds + (count - one.pages) * a_page
    return found


def measure(validates: bool, every: Sequence[Round], repeats: int, folder: Path) -> dict[Round, float]:
    """The least CPU of one more round, tool by tool."""
    best: dict[Round, float] = {}
    with server(validates) as port:
        urls = [f"http://127.0.0.1:{port}/p/{number}" for number in range(max(one.pages for one in every))]
        for one in every:
            place = one.place(folder)
            place.mkdir(parents=True)
            if one.tool == "letopis watch":
                _add_watches(urls, place)
            cpu(commands(one.tool, urls[: one.pages], place), place)
        for _ in range(repeats):
            for one in every:
                spent = cpu(commands(one.tool, urls[: one.pages], one.place(folder)), one.place(folder))
                best[one] = min(spent, best.get(one, spent))
    return best


def _add_watches(urls: Sequence[str], place: Path) -> None:
    words = [sys.executable, "-m", "letopis.cli", "--archive", "archive", "--config", "quick.toml", "watch", "add"]
    commands("letopis watch", urls, place)
    subprocess.run([*words, *urls], cwd=place, check=True, stdout=subprocess.DEVNULL)


def version_bytes(tool: str, pages: int, revisions: int, folder: Path) -> dict[str, float]:
    """Bytes on disk a slightly changed version, first versions aside; ours also before `compact`."""
    place = folder / f"{tool}-bytes"
    place.mkdir()
    with server(validates=True) as port:
        urls = [f"http://127.0.0.1:{port}/p/{number}" for number in range(pages)]
        sizes = []
        for revision in range(revisions + 1):
            subprocess.run(["curl", "-s", f"http://127.0.0.1:{port}/revision/{revision}"], check=True)
            cpu(commands(tool, urls, place), place)
            sizes.append(_disk(place)) if revision in (0, revisions) else None
    found = {"stored": (sizes[1] - sizes[0]) / (pages * revisions)}
    if tool == "letopis":
        before = _disk(place)
        cpu([sys.executable, "-m", "letopis.cli", "--archive", "archive", "compact"], place)
        found["compacted"] = (_disk(place) - sizes[0]) / (pages * revisions)
        found["all after compact"] = _disk(place) / (pages * (revisions + 1))
        found["all before compact"] = before / (pages * (revisions + 1))
    return found


def _disk(place: Path) -> int:
    """Files of the archive or the cache, write-ahead logs folded in by the end of each process."""
    return sum(
        file.stat().st_size for file in place.rglob("*") if file.is_file() and file.suffix not in (".yaml", ".toml")
    )


def run(
    count: int,
    repeats: int,
    peers: Sequence[str],
    pages: int,
    revisions: int,
    only: str | None = None,
    slow: int = 200,
    tell: Callable[[Sequence[Row]], None] = lambda rows: None,
) -> list[Row]:
    """All figures; `tell` hears of those that are there before the slow rest has ended."""
    install(peers)
    folder = Path(tempfile.mkdtemp(prefix="letopis-bench-"))
    rows: list[Row] = []
    try:
        for kind, name in (("etag", "ETag and 304"), ("plain", "no validators")):
            if only in (None, kind):
                every = rounds(["letopis", "letopis watch", *peers], count, slow)
                best = scaled(measure(kind == "etag", every, repeats, folder / kind), count)
                found = [_checks(best, tool, name, peers) for tool in ("letopis", "letopis watch")]
                found += [Row(_named(tool, name, count, slow), best[tool], None, None, None, "s") for tool in peers]
                tell(found)
                rows += found
        rows += _stored(peers, pages, revisions, folder)
    finally:
        shutil.rmtree(folder)
    return rows


def _named(tool: str, name: str, count: int, slow: int) -> str:
    return f"{tool}, {name}" + (f" (scaled from {slow})" if tool in SLOW and slow < count else "")


def _stored(peers: Sequence[str], pages: int, revisions: int, folder: Path) -> list[Row]:
    """Bytes a version of every tool."""
    few = (min(pages, SLOW_PAGES), min(revisions, SLOW_REVISIONS))
    theirs = {
        tool: version_bytes(tool, *(few if tool in SLOW else (pages, revisions)), folder)["stored"] for tool in peers
    }
    least = min(theirs.values(), default=None)
    rows = [
        Row(f"bytes a changed version, {kind}", value, least, value / least if least else None,
            1000.0 if kind == "compacted" else None, "B")
        for kind, value in version_bytes("letopis", pages, revisions, folder).items()
    ]  # fmt: skip
    return rows + [
        Row(f"bytes a changed version, {tool}", size, None, None, None, "B") for tool, size in theirs.items()
    ]


def _checks(best: dict[str, float], tool: str, name: str, peers: Sequence[str]) -> Row:
    peer = min((best[one] for one in peers), default=None)
    return Row(f"{tool}, {name}", best[tool], peer, best[tool] / peer if peer else None, 0.2, "s")


def shown(rows: Sequence[Row]) -> str:
    """The table."""
    lines = [f"{'what':56} {'ours':>10} {'best peer':>10} {'ratio':>7} {'goal':>7}"]
    for row in rows:
        peer = "-" if row.peer is None else f"{row.peer:.3f}" if row.unit == "s" else f"{row.peer:.0f}"
        ours = f"{row.ours:.3f}" if row.unit == "s" else f"{row.ours:.0f}"
        ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
        goal = "-" if row.goal is None else f"{row.goal:g}"
        lines.append(f"{row.what:56} {ours:>8} {row.unit} {peer:>10} {ratio:>7} {goal:>7}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", default="urlwatch")
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--revisions", type=int, default=10)
    parser.add_argument("--slow", type=int, default=200, help="pages that webchanges and changedetection.io look at")
    parser.add_argument("--only", choices=["etag", "plain"], help="one kind of server instead of both")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--corpus", help="not needed: pages are generated")
    parser.add_argument("--serve", choices=["etag", "plain"], help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.serve:
        asyncio.run(serve(given.serve == "etag"))
        return 0
    peers = [name for name in given.peers.split(",") if name]

    def tell(rows: Sequence[Row]) -> None:
        print(shown(rows), file=sys.stderr, flush=True)

    rows = run(given.urls, given.repeats, peers, given.pages, given.revisions, given.only, given.slow, tell)
    print(json.dumps([asdict(row) for row in rows]) if given.json else shown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
