"""Q12 and Q13: size of a zrec file, and bytes on the wire to bring an old copy up to date, beside the peers.

Needs records-A.txt, records-B.txt and records-C.txt (or their archive) in `--corpus`. Peers are Debian's
zchunk, zsync, rsync and casync; one that is not installed is left out and named. All HTTP peers and our own
client talk to the same server on the loopback, which counts every byte of both directions, headers included.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from letopis.zrec import NoRanges, Traffic, ZrecReader, pack, sync
from letopis.zrec.chunk_index import ChunkIndex, align_chunks, group_borders
from letopis.zrec.chunks import ChunkCoder
from letopis.zstandard import zstd

LEVEL = 19
GOALS = {"size grouped": 1.12, "size ungrouped": 1.18, "A -> B": 0.60, "A -> C": 0.45}
LONG: dict[int, int] = {
    zstd.CompressionParameter.compression_level: LEVEL,
    zstd.CompressionParameter.window_log: 27,
    zstd.CompressionParameter.enable_long_distance_matching: 1,
}
SEPARATOR = b"\n\n"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `ratio` is against `peer`."""

    what: str
    ours: float
    peer: str
    theirs: float
    ratio: float
    goal: float | None = None
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the goal is met; None without one."""
        return None if self.goal is None else self.ratio <= self.goal


class Counted:
    """A stream that adds what passes through it."""

    def __init__(self, stream: Any, count: Callable[[int], None]) -> None:
        self._stream = stream
        self._count = count

    def read(self, size: int = -1) -> bytes:
        """As the stream itself."""
        return self._passed(self._stream.read(size))

    def readline(self, size: int = -1) -> bytes:
        """As the stream itself."""
        return self._passed(self._stream.readline(size))

    def write(self, data: bytes) -> int:
        """As the stream itself."""
        self._count(len(data))
        return int(self._stream.write(data))

    def _passed(self, data: bytes) -> bytes:
        self._count(len(data))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Wire:
    """Bytes that the server saw."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.total = 0
        self.requests = 0

    def add(self, count: int) -> None:
        """Counts from any thread."""
        with self._lock:
            self.total += count


class Static(BaseHTTPRequestHandler):
    """A static server with ranges, single and multipart, and the headers that such servers send."""

    protocol_version = "HTTP/1.1"
    server_version = "nginx/1.27.0"
    sys_version = ""

    def __init__(self, folder: Path, wire: Wire, *rest: Any) -> None:
        self.folder = folder
        self.wire = wire
        super().__init__(*rest)

    def setup(self) -> None:
        """Counts both directions."""
        super().setup()
        self.rfile = Counted(self.rfile, self.wire.add)  # type: ignore[assignment]
        self.wfile = Counted(self.wfile, self.wire.add)  # type: ignore[assignment]

    def do_GET(self) -> None:
        """Answers a file or parts of it."""
        self.wire.requests += 1
        path = self.folder / self.path.lstrip("/")
        if not path.is_file():
            return self._answer(404, b"", "text/plain")
        data = path.read_bytes()
        wanted = re.fullmatch(r"bytes=([\d,\s-]+)", self.headers.get("Range", ""))
        if wanted is None:
            return self._answer(200, data, "application/octet-stream")
        ranges = [_range(part, len(data)) for part in wanted[1].split(",")]
        if len(ranges) == 1:
            start, end = ranges[0]
            extra = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
            return self._answer(206, data[start:end], "application/octet-stream", extra)
        return self._answer(206, _multipart(data, ranges), "multipart/byteranges; boundary=00000000000000000001")

    def _answer(self, status: int, body: bytes, kind: str, extra: dict[str, str] | None = None) -> None:
        self.send_response(status)
        fixed = {"Content-Type": kind, "Content-Length": str(len(body)), "ETag": '"65f1c2d3-1e8480"'}
        fixed |= {
            "Last-Modified": "Wed, 13 Mar 2024 10:00:00 GMT",
            "Accept-Ranges": "bytes",
            "Connection": "close" if self.close_connection else "keep-alive",
        }
        for name, value in (fixed | (extra or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


def _range(text: str, size: int) -> tuple[int, int]:
    first, _, last = text.strip().partition("-")
    return int(first), min(int(last) + 1 if last else size, size)


def _multipart(data: bytes, ranges: list[tuple[int, int]]) -> bytes:
    out = b""
    for start, end in ranges:
        out += b"\r\n--00000000000000000001\r\nContent-Type: application/octet-stream\r\n"
        out += b"Content-Range: bytes %d-%d/%d\r\n\r\n" % (start, end - 1, len(data)) + data[start:end]
    return out + b"\r\n--00000000000000000001--\r\n"


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, Wire]]:
    """The server on a free port, with fresh counters."""
    wire = Wire()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Static, folder, wire))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], wire
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class HttpSource:
    """A plain HTTP client for the bench: one connection, kept open, its bytes counted."""

    def __init__(self, port: int, name: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._name = name
        self.traffic = Traffic()

    async def size(self) -> int:
        """From the answer to a range of one byte."""
        _, headers, _ = self._get(self._name, "bytes=0-0")
        return int(headers["content-range"].rpartition("/")[2])

    async def read(self, start: int, end: int) -> bytes:
        """One range."""
        status, _, body = self._get(self._name, f"bytes={start}-{end - 1}")
        if status != 206:
            raise NoRanges("The server has no ranges.")
        return body

    async def read_release(self) -> bytes | None:
        """The file beside."""
        status, _, body = self._get(f"{self._name}.release")
        return body if status == 200 else None

    async def stream(self) -> AsyncIterator[bytes]:
        """The whole file."""
        yield self._get(self._name)[2]

    def _get(self, path: str, range_: str = "") -> tuple[int, http.client.HTTPMessage, bytes]:
        self._connection.putrequest("GET", f"/{path}", skip_accept_encoding=True)
        if range_:
            self._connection.putheader("Range", range_)
        self._connection.endheaders()
        answer = self._connection.getresponse()
        body = answer.read()
        received = len(body) + sum(len(name) + len(value) + 4 for name, value in answer.headers.items()) + 30
        before = self.traffic
        sent = 60 + len(path) + len(range_)
        self.traffic = Traffic(before.received + received, before.sent + sent, before.requests + 1)
        return answer.status, answer.headers, body


def records_of(corpus: Path) -> dict[str, bytes]:
    """The three record lists."""
    found = {key: next(iter(corpus.rglob(f"records-{key}.txt")), None) for key in "ABC"}
    missing = [key for key, path in found.items() if path is None]
    if missing:
        raise SystemExit(f"no records-{missing[0]}.txt under {corpus}; give the corpus with --corpus")
    return {key: path.read_bytes() for key, path in found.items() if path}


def document_table(text: bytes, dictionary: bytes, stored: int) -> list[tuple[str, int]]:
    """The document's own table on this data: bytes without an index, the dictionary counted where it is used."""
    records = text.split(SEPARATOR)[:-1]
    alone, coder = ChunkCoder(b""), ChunkCoder(dictionary)
    rows = [("text", len(text)), ("solid xz -6", len(lzma.compress(text))), ("solid zstd -19", solid(text))]
    rows.append(("solid zstd -19 --long=27", long_solid(text)))
    rows.append(("each record alone", sum(len(alone.encode(record)) for record in records)))
    for size in (1, 2, 3, 4):
        groups = [SEPARATOR.join(records[at : at + size]) for at in range(0, len(records), size)]
        rows.append((f"with dictionary, groups of {size}", stored + sum(len(coder.encode(one)) for one in groups)))
    return rows


def solid(text: bytes) -> int:
    return len(zstd.compress(text, LEVEL))


def long_solid(text: bytes) -> int:
    return len(zstd.compress(text, options=LONG))


def our_size(texts: dict[str, bytes], folder: Path, group: str) -> tuple[Path, float]:
    """The packed A, with B and C beside it that continue it; CPU seconds of packing A."""
    before = process_time()
    old = pack(texts["A"], folder / f"{group}-A.zrec", group=group).path
    seconds = process_time() - before
    for key in "BC":
        pack(texts[key], folder / f"{group}-{key}.zrec", group=group, dict_from=old)
    return old, seconds


def our_sync(folder: Path, group: str, key: str) -> tuple[int, str]:
    """Bytes on the wire by our client, and what it did."""
    out = folder / "copy.zrec"
    shutil.copy(folder / f"{group}-A.zrec", out)
    with serving(folder) as (port, wire):
        report = asyncio.run(sync(HttpSource(port, f"{group}-{key}.zrec"), out))
        if out.read_bytes() != (folder / f"{group}-{key}.zrec").read_bytes():
            raise SystemExit("the synced file is wrong")
        fetched = f"{report.chunks_fetched} chunks fetched, {report.requests} requests"
        return wire.total, fetched


def peers(texts: dict[str, bytes], folder: Path, key: str) -> dict[str, int]:
    """Bytes on the wire of every peer that is installed."""
    for name in ("A", key):
        (folder / f"{name}.txt").write_bytes(texts[name])
    tools = {"rsync": by_rsync, "zsync": by_zsync, "zckdl": by_zchunk, "casync": by_casync}
    found: dict[str, int] = {}
    for tool, measure in tools.items():
        if shutil.which(tool) is None:
            print(f"{tool} is not installed and left out", file=sys.stderr)
            continue
        found |= measure(folder, key)
    return found


def run_quiet(*command: object, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False, timeout=180
    )
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr[-500:]}")
    return done.stdout


def by_rsync(folder: Path, key: str) -> dict[str, int]:
    """With the strongest compression and several block sizes, of which 0 is rsync's own choice."""
    found = {}
    for block in (0, 300, 600, 1000):
        shutil.copy(folder / "A.txt", folder / "rsynced.txt")
        options = ["-z", "--compress-choice=zstd", "--compress-level=19", "--no-whole-file", "--ignore-times"]
        options += [f"--block-size={block}"] if block else []
        said = run_quiet("rsync", *options, "--stats", f"{key}.txt", "rsynced.txt", cwd=folder)
        same((folder / "rsynced.txt"), folder / f"{key}.txt")
        counts = re.findall(r"Total bytes (?:sent|received): ([\d,]+)", said)
        found[f"rsync -z -B {block or 'default'}"] = sum(int(count.replace(",", "")) for count in counts)
    return found


def by_zsync(folder: Path, key: str) -> dict[str, int]:
    found = {}
    for label, options in {"plain": (), "gzip": ("-z",)}.items():
        work = folder / f"zsync-{label}"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        shutil.copy(folder / f"{key}.txt", work / "new.txt")
        with serving(work) as (port, wire):
            run_quiet("zsyncmake", *options, "-o", "new.zsync", "new.txt", cwd=work)
            address = f"http://127.0.0.1:{port}/new.zsync"
            run_quiet("zsync", "-q", "-i", folder / "A.txt", "-o", "out.txt", address, cwd=work)
            same(work / "out.txt", work / "new.txt")
            found[f"zsync ({label})"] = wire.total
    return found


def by_zchunk(folder: Path, key: str) -> dict[str, int]:
    """With automatic chunks, and split at records with a dictionary trained by zchunk's own tool."""
    found = {}
    plain: tuple[object, ...] = ()
    split: tuple[object, ...] = ("-m", "-s", "Package: ")
    dictionary = zchunk_dictionary(folder)
    for label, options in {"automatic": plain, "records, dictionary": (*split, "-D", dictionary)}.items():
        work, here = folder / "zchunk", folder / "zchunk-client"
        for place in (work, here):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        for name in ("A", key):
            run_quiet("zck", *options, "-o", work / f"{name}.zck", folder / f"{name}.txt", cwd=work)
        with serving(work) as (port, wire):
            run_quiet("zckdl", "-s", work / "A.zck", f"http://127.0.0.1:{port}/{key}.zck", cwd=here)
            same(here / f"{key}.zck", work / f"{key}.zck")
            found[f"zchunk ({label})"] = wire.total
    return found


def zchunk_dictionary(folder: Path) -> Path:
    """A dictionary of 112 KiB from A's records, as `zstd --train` makes it."""
    records = (folder / "A.txt").read_bytes().split(SEPARATOR)[:-1]
    path = folder / "zchunk.dict"
    path.write_bytes(zstd.train_dict(records, 112 * 1024).dict_content)
    return path


def by_casync(folder: Path, key: str) -> dict[str, int]:
    work = folder / "casync"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    sizes = "--chunk-size=1024:4096:16384"
    run_quiet("casync", "make", sizes, "--store=store.castr", "new.caibx", folder / f"{key}.txt", cwd=work)
    with serving(work) as (port, wire):
        base = f"http://127.0.0.1:{port}"
        options = (f"--store={base}/store.castr", f"--seed={folder / 'A.txt'}")
        run_quiet("casync", "extract", *options, f"{base}/new.caibx", "out.txt", cwd=work)
        same(work / "out.txt", folder / f"{key}.txt")
        return {"casync (4 KiB)": wire.total}


def same(one: Path, other: Path) -> None:
    if one.read_bytes() != other.read_bytes():
        raise SystemExit(f"{one.name} is not what was published")


def bound(texts: dict[str, bytes], key: str) -> int:
    """What a server that knew the old text would send: zstd --patch-from."""
    old = zstd.ZstdDict(texts["A"], is_raw=True)
    return len(zstd.compress(texts[key], options=LONG, zstd_dict=old.as_prefix))


def align_seconds(chunks: int) -> float:
    """CPU seconds to align that many chunks of which one in fifty changed."""
    rng = np.random.default_rng(1)
    old = rng.integers(0, 2**32, chunks, dtype=np.uint32)
    new = np.where(rng.integers(0, 50, chunks) == 0, rng.integers(0, 2**32, chunks, dtype=np.uint32), old)
    one, two = _index(old), _index(new)
    before = process_time()
    align_chunks(one, two)
    return process_time() - before


def _index(hashes: np.typing.NDArray[np.uint32]) -> ChunkIndex:
    ones = np.ones(len(hashes), np.int64)
    return ChunkIndex(ones, ones, hashes, np.bitwise_xor.reduceat(hashes, group_borders(hashes)[:-1]))


def run(corpus: Path, folder: Path) -> tuple[list[Row], list[tuple[str, int]]]:
    """All rows, and the document's table."""
    texts = records_of(corpus)
    reference = solid(texts["A"])
    rows: list[Row] = []
    for label, group in (("size ungrouped", "1"), ("size grouped", "2-4")):
        path, seconds = our_size(texts, folder, group)
        size = path.stat().st_size
        note = f"packed in {seconds:.1f} s CPU"
        rows.append(Row(label, size, "solid zstd -19", reference, size / reference, GOALS[label], note))
    for key in "BC":
        rows += wire_rows(texts, folder, key)
    with ZrecReader(folder / "1-A.zrec") as reader:
        table = document_table(texts["A"], reader.dictionary, reader.header.dictionary_size)
    seconds = align_seconds(1_000_000)
    rows.append(Row("align 1 M chunks, s CPU", round(seconds, 2), "bound", 10, seconds / 10, 1.0))
    return rows, table


def wire_rows(texts: dict[str, bytes], folder: Path, key: str) -> list[Row]:
    """Our bytes for one update, grouped and ungrouped, against every peer, and against the bound."""
    label = f"A -> {key}"
    ours, note = our_sync(folder, "1", key)
    grouped, grouped_note = our_sync(folder, "2-4", key)
    found = peers(texts, folder, key)
    best = min(found, key=lambda name: found[name]) if found else ""
    rows = [
        Row(label, ours, name, size, ours / size, GOALS[label] if name == best else None)
        for name, size in found.items()
    ]
    least = bound(texts, key)
    rows.append(Row(label, ours, "bound: zstd --patch-from", least, ours / least, note=note))
    rows.append(
        Row(
            f"{label} grouped",
            grouped,
            best or "-",
            found.get(best, 0),
            grouped / found.get(best, 1),
            note=grouped_note,
        )
    )
    return rows


def show(rows: list[Row], table: list[tuple[str, int]]) -> None:
    print(f"{'what':24} {'ours':>10} {'peer':32} {'theirs':>10} {'ratio':>6} {'goal':>5}")
    for row in rows:
        goal = "" if row.goal is None else f"{row.goal:.2f}"
        holds = {None: "", True: "holds", False: "MISSED"}[row.holds]
        ours, theirs = f"{row.ours:,}", f"{row.theirs:,}"
        print(f"{row.what:24} {ours:>10} {row.peer:32} {theirs:>10} {row.ratio:6.3f} {goal:>5} {holds} {row.note}")
    print("\nthe document's table on records A (bytes, no index)")
    for name, size in table:
        print(f"{name:36} {size:>10,}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        rows, table = run(chosen.corpus, Path(folder))
    if chosen.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "table": dict(table)}))
    else:
        show(rows, table)
    return 0 if all(row.holds is not False for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
