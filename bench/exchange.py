"""Import of WARC: records a CPU second with everything stored, against `warcio index` and fastwarc.

Each is a command of its own, start included, on the same file; what counts
is its CPU time (user and system) and the best of interleaved rounds. The
peers read and print one line a record; Letopis makes a durable archive with
versions, checks, headers and digests. The bound is what libraries alone take
for the same bytes, in a loop that does nothing else: gunzip of every record,
SHA-1, BLAKE3 and zstd of every body.

The files: pages of the demo web as crawlers write them (a request and a
response a page), each compressed alone by gzip and again without; and, with
`--corpus`, every sample there that all three can read, many times over.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from time import process_time
from urllib.parse import urlsplit

from blake3 import blake3
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from letopis.zstandard import zstd

# As a script it starts in its own folder.
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.measuring import measured
from letopis_demo import World

GOAL = 3.0
BIN = Path(sys.executable).parent
_CHOSEN = "iana.warc.gz"
_COPIES = 20
_GZIP = 31
"""What zlib calls a stream of gzip."""
_LEVEL = 3
"""Of zstd, as contents are written when they come in."""


@dataclass(frozen=True, slots=True)
class Row:
    """CPU seconds of the three for one file, and of bare libraries."""

    name: str
    records: int
    ours: float
    warcio: float
    fastwarc: float
    bound: float

    @property
    def ratio(self) -> float:
        """How many times the records a second of `warcio index`."""
        return self.warcio / self.ours


def generated(file: Path, *, pages: int, moments: int, gzip: bool) -> int:
    """Captures of the demo web as a crawler writes them; answers the number of records."""
    world = World(seed=3, hosts=7, pages_per_host=max(1, pages // 7))
    count = 0
    with file.open("wb") as out:
        writer = WARCWriter(out, gzip=gzip, warc_version="WARC/1.1")
        for step in range(moments):
            moment = world.start + timedelta(days=7 * step)
            for number, (url, status, headers, body) in enumerate(_answers(world, moment)):
                date = (moment + timedelta(milliseconds=10 * number)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                _write(writer, url, status, headers, body, date)
                count += 2
    return count


def _answers(world: World, moment: datetime) -> Iterator[tuple[str, int, list[tuple[str, str]], bytes]]:
    for host in range(len(world.hosts)):
        for page in range(world.shape.pages):
            url = world.url(host, page)
            parts = urlsplit(url)
            answer = world.answer(parts.netloc, parts.path + (f"?{parts.query}" if parts.query else ""), (), moment)
            yield url, answer.status, list(answer.headers), answer.body


def _write(writer: WARCWriter, url: str, status: int, headers: list[tuple[str, str]], body: bytes, date: str) -> None:
    parts = urlsplit(url)
    asked = StatusAndHeaders(f"GET {parts.path or '/'} HTTP/1.1", [("Host", parts.netloc)], is_http_request=True)
    told = StatusAndHeaders(f"{status} OK", headers, protocol="HTTP/1.1")
    dated = {"WARC-Date": date}
    record = writer.create_warc_record(
        url, "response", payload=io.BytesIO(body), http_headers=told, warc_headers_dict=dict(dated)
    )
    question = writer.create_warc_record(
        url, "request", payload=io.BytesIO(b""), http_headers=asked, warc_headers_dict=dict(dated)
    )
    writer.write_request_response_pair(question, record)


def commands(file: Path, folder: Path) -> dict[str, list[str | Path]]:
    """What each of the three is asked."""
    return {
        "ours": [BIN / "letopis", "import", file, "--archive", folder, "-q", "--json"],
        "warcio": [BIN / "warcio", "index", file],
        "fastwarc": [BIN / "fastwarc", "index", file],
    }


def members(file: Path) -> list[bytes]:
    """The records of a file that is compressed record by record, as they lie there; none of a plain one."""
    raw, at, found = memoryview(file.read_bytes()), 0, []
    while at < len(raw) and bytes(raw[at : at + 2]) == b"\x1f\x8b":
        stream = zlib.decompressobj(_GZIP)
        end = at
        while not stream.eof:
            stream.decompress(raw[end : end + 65536])
            end += 65536
        found.append(bytes(raw[at : min(end, len(raw)) - len(stream.unused_data)]))
        at += len(found[-1])
    return found


def bound(file: Path, rounds: int) -> float:
    """CPU seconds of bare libraries: what no import that checks and compresses can do without."""
    with file.open("rb") as stream:
        bodies = [each.content_stream().read() for each in ArchiveIterator(stream) if each.rec_type == "response"]
    zipped, coder, best = members(file), zstd.ZstdCompressor(level=_LEVEL), float("inf")
    for _ in range(rounds):
        start = process_time()
        for member in zipped:
            zlib.decompress(member, _GZIP)
        for body in bodies:
            hashlib.sha1(body, usedforsecurity=False).digest()
            blake3(body).digest()
            coder.compress(body, zstd.ZstdCompressor.FLUSH_FRAME)
        best = min(best, process_time() - start)
    return best


def row_of(name: str, file: Path, records: int, rounds: int) -> Row:
    """The best of each, interleaved; every import makes a new archive."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for who, words in commands(file, Path(folder) / "archive").items():
                spent = measured(words)
                assert spent.status == 0, f"{who} {file}: {spent.out}"
                best[who] = min(best.get(who, spent.seconds), spent.seconds)
    return Row(name, records, best["ours"], best["warcio"], best["fastwarc"], bound(file, rounds))


def run(folder: Path, corpus: Path | None = None, *, pages: int = 1400, moments: int = 3, rounds: int = 3) -> list[Row]:
    """All files."""
    rows = []
    for name, gzip in (("demo pages, gzip", True), ("demo pages, plain", False)):
        file = folder / ("demo.warc.gz" if gzip else "demo.warc")
        rows.append(row_of(name, file, generated(file, pages=pages, moments=moments, gzip=gzip), rounds))
    sample = next(iter((corpus or folder).rglob(_CHOSEN)), None) if corpus else None
    if sample is not None:
        file = folder / "sample.warc.gz"
        file.write_bytes(sample.read_bytes() * _COPIES)
        records = measured([BIN / "warcio", "index", file]).out.count("\n")
        rows.append(row_of(f"{_CHOSEN} x {_COPIES}", file, records, rounds))
    return rows


def table(rows: list[Row]) -> str:
    """One line a file."""
    heads = f"{'ours/s':>8} {'warcio/s':>9} {'fastwarc/s':>11} {'bound/s':>8} {'ratio':>6} {'of bound':>9} {'goal':>5}"
    lines = [f"{'file':22} {'records':>8} {heads}"]
    for row in rows:
        rates = [row.records / seconds for seconds in (row.ours, row.warcio, row.fastwarc, row.bound)]
        shown = f"{rates[0]:8.0f} {rates[1]:9.0f} {rates[2]:11.0f} {rates[3]:8.0f} {row.ratio:6.2f}"
        shown += f" {row.warcio / row.bound:9.2f} {GOAL:5.0f}"
        lines.append(f"{row.name:22} {row.records:8} {shown}")
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """0 when every ratio reaches its goal."""
    parser = argparse.ArgumentParser(prog="bench/exchange.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="folder with WARC samples")
    parser.add_argument("--pages", type=int, default=1400)
    parser.add_argument("--moments", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        rows = run(Path(folder), given.corpus, pages=given.pages, moments=given.moments, rounds=given.rounds)
    print(json.dumps([asdict(row) | {"ratio": row.ratio, "goal": GOAL} for row in rows]) if given.json else table(rows))
    return 0 if all(row.ratio >= GOAL for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
