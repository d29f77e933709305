"""Q1-Q6, Q19 and Q23: the store on real versions, through a real archive.

Every version is put by itself, durably, in the order of time; then the
archive is compacted and every version read back and compared. Sizes stand
against solid archives of the same versions, times against gzip of the same
pages, both measured in the same run; rounds are interleaved and the best of
each counts. All times are CPU times. Settings are taken from the environment
(`LETOPIS_STORE_CHAIN=20`).

`--each` measures what nothing was learned ahead of: every site of the corpora in an archive of its own, against
`xz -9e` of the same site alone. What comes with Letopis (a text of usual HTML) was made of none of these sites.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from time import process_time

# As a script it starts in its own folder.
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.storing import growth, variants
from bench.storing.corpus import Document, arrivals, load
from bench.storing.peers import PEERS
from letopis.archive import Archive
from letopis.config import Settings
from letopis.config import load_settings as settings

GOALS = {"Q1": 0.88, "Q2": 0.86, "Q3": 120.0, "Q4": 0.8, "Q5": 8.0, "Q6": 2.0, "Q19": 1.3, "Q23": 8.0}
UNSEEN = {"Q1": 0.88, "Q2": 0.95}
"""Of sites that nothing was tuned on, each alone."""
_BOUND, _WORK = 2_000_000, 8
_HEAVY = 200_000
"""Pages of this mean size are news: their total is held against Q2."""


@dataclass(frozen=True)
class Row:
    """One figure. `ours` and `peer` are in the unit named, the ratio is what the goal is about."""

    what: str
    unit: str
    ours: float
    peer: float | None
    ratio: float
    goal: float | None


class Bench:
    """One archive filled from a corpus, measured step by step."""

    def __init__(self, archive: Archive, documents: Sequence[Document], repeats: int, sample: int) -> None:
        self._archive = archive
        self._documents = documents
        self._repeats = repeats
        self._sample = sample

    def ingest(self) -> Row:
        """Q6: puts one at a time, each durable, beside gzip -9 of the same page."""
        ours = peer = 0.0
        count = 0
        for put in arrivals(self._documents):
            start = process_time()
            self._archive.put(put.url, put.body, put.at)
            middle = process_time()
            zlib.compress(put.body, 9)
            ours, peer = ours + middle - start, peer + process_time() - middle
            count += 1
        return _timed("Q6 put, gzip -9 = 1", ours / count, peer / count, "Q6")

    def compact(self) -> Row:
        """Q23: what a full compaction takes, beside gzip -9 of every version."""
        start = process_time()
        self._archive.compact()
        ours = process_time() - start
        start = process_time()
        for document in self._documents:
            for body in document.bodies:
                zlib.compress(body, 9)
        return _timed("Q23 full compaction, gzip -9 = 1", ours, process_time() - start, "Q23")

    def newest(self, when: str) -> Row:
        """Q4: the newest version of each document."""
        cases = [(document.url, None, document.bodies[-1]) for document in self._documents]
        return self._reads(f"Q4 read newest {when}, gunzip = 1", cases * 3, "Q4")

    def old(self) -> Row:
        """Q5: versions other than the newest, drawn at random among all of them."""
        every = [
            (document.url, number, body)
            for document in self._documents
            for number, body in enumerate(self._numbered(document)[:-1])
        ]
        chosen = random.Random(5).sample(every, min(self._sample, len(every)))
        return self._reads("Q5 read an old version, gunzip = 1", chosen, "Q5")

    def exact(self) -> list[Row]:
        """Reads everything back; how many versions differ, and the greatest share of the bound that one took."""
        wrong, most, count = 0, 0.0, 0
        for document in self._documents:
            for number, body in enumerate(self._numbered(document)):
                found = self._archive.get(document.url, version=number)
                wrong += found.body != body
                most = max(most, found.decoded_bytes / max(_BOUND, _WORK * len(body)))
                count += 1
        return [
            Row("versions that read differently", "of all", wrong, count, wrong, 0.0),
            Row("most coder output, max(2 MB, 8 x size) = 1", "", most, None, most, 1.0),
        ]

    def catalogue(self) -> Row:
        """Q3: bytes of the catalogue a version."""
        stats = self._archive.stats()
        return Row(
            "Q3 catalogue",
            "bytes a version",
            stats.catalog_bytes,
            None,
            stats.catalog_bytes / stats.versions,
            GOALS["Q3"],
        )

    def sizes(self, peers: Sequence[str]) -> Iterator[Row]:
        """Q1 or Q2: all bytes of all packs, held against each peer."""
        ours = self._archive.stats().pack_bytes
        raw = sum(len(body) for document in self._documents for body in document.bodies)
        mean = raw / sum(len(document.bodies) for document in self._documents)
        name = "Q2" if mean > _HEAVY else "Q1"
        found = ((peer, PEERS[peer](self._documents)) for peer in peers)
        return (
            Row(
                f"{name} packs, {peer} = 1", "bytes", ours, size, ours / size, GOALS[name] if peer == "xz -9e" else None
            )
            for peer, size in found
            if size
        )

    def _numbered(self, document: Document) -> list[bytes]:
        """The versions that were stored: one equal to the version before it is none."""
        kept = [document.bodies[0]]
        for body in document.bodies[1:]:
            if body != kept[-1]:
                kept.append(body)
        return kept

    def _reads(self, what: str, cases: Sequence[tuple[str, int | None, bytes]], goal: str) -> Row:
        """Case by case, ours and gunzip in turn; the least of the rounds counts for each case."""
        ours = peer = 0.0
        for url, number, body in cases:
            zipped = zlib.compress(body, 9)
            read = partial(self._archive.get, url, version=number)
            spent = _interleaved((read, partial(zlib.decompress, zipped)), self._repeats)
            ours, peer = ours + spent[0], peer + spent[1]
        return _timed(what, ours / len(cases), peer / len(cases), goal)


def _interleaved(actions: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The least CPU time of each action, which take turns."""
    best = [float("inf")] * len(actions)
    for _ in range(repeats):
        for index, action in enumerate(actions):
            start = process_time()
            action()
            best[index] = min(best[index], process_time() - start)
    return best


def _timed(what: str, ours: float, peer: float, goal: str) -> Row:
    return Row(what, "ms", ours * 1000, peer * 1000, ours / peer, GOALS[goal])


def run(corpus: Path, settings: Settings, repeats: int, sample: int, peers: Sequence[str]) -> Iterator[Row]:
    """All rows but those of growth, over one corpus, as they are found."""
    documents = load(corpus)
    with tempfile.TemporaryDirectory() as folder:
        with Archive(folder, settings=settings) as archive:
            bench = Bench(archive, documents, repeats, sample)
            yield bench.ingest()
            yield bench.newest("before compaction")
            yield bench.compact()
        # A closed archive has no write-ahead log, which would count as catalogue.
        with Archive(folder, settings=settings) as archive:
            bench = Bench(archive, documents, repeats, sample)
            yield bench.newest("after compaction")
            yield bench.old()
            yield bench.catalogue()
            yield from bench.sizes(peers)
            yield from bench.exact()


def each(corpora: Sequence[Path], settings: Settings) -> Iterator[Row]:
    """A row a site in an archive of its own, and the means of news and of the others."""
    means: dict[str, list[float]] = {"Q1": [], "Q2": []}
    for corpus in corpora:
        for site in sorted(path for path in corpus.iterdir() if path.is_dir()):
            documents = [one for one in load(corpus) if one.name.startswith(f"{site.name}/")]
            with tempfile.TemporaryDirectory() as folder, Archive(folder, settings=settings) as archive:
                for put in arrivals(documents):
                    archive.put(put.url, put.body, put.at)
                archive.compact()
                (row,) = Bench(archive, documents, 0, 0).sizes(["xz -9e"])
            means[row.what[:2]].append(row.ratio)
            yield replace(row, what=f"{row.what[:2]} {corpus.name}/{site.name}")
    for name, ratios in means.items():
        if ratios:
            mean = sum(ratios) / len(ratios)
            yield Row(f"{name} mean of {len(ratios)} sites, each alone", "", mean, None, mean, UNSEEN[name])


def grown() -> Iterator[Row]:
    """Q19, on generated data."""
    yield from (Row(f"Q19 {name}", "", ratio, None, ratio, GOALS["Q19"]) for name, ratio in growth.run().items())


HEAD = f"{'what':<46} {'ours':>14} {'peer':>14} {'ratio':>8} {'goal':>6}"


def line(row: Row) -> str:
    """A row for people."""
    peer = "" if row.peer is None else f"{row.peer:,.2f}".removesuffix(".00")
    goal = "" if row.goal is None else f"{row.goal:g}"
    ours = f"{row.ours:,.2f}".removesuffix(".00")
    return f"{row.what:<46} {ours:>14} {peer:>14} {row.ratio:>8.3f} {goal:>6}  {row.unit}"


def _print_variants(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    if options.corpus is None:
        parser.error("--variants needs a --corpus of versions")
    rows = list(variants.variants(load(options.corpus), options.reads))
    lines = [json.dumps(variants.as_json(rows))] if options.json else variants.table(rows)
    print("\n".join(lines))
    return 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="folder of <site>/<document>/<NNNN>.html; growth alone without it")
    parser.add_argument("--each", type=Path, nargs="+", metavar="DIR", help="sites of these corpora, each alone")
    parser.add_argument("--repeats", type=int, default=5, help="rounds of reading, of which the best counts")
    parser.add_argument("--sample", type=int, default=200, help="old versions that are read")
    parser.add_argument("--peers", default=",".join(PEERS), help="solid archives to stand against")
    parser.add_argument("--variants", action="store_true", help="the document's tables 3.3 to 3.7 instead, by document")
    parser.add_argument("--reads", type=int, default=3000, help="versions of each document that --variants reads")
    parser.add_argument("--no-growth", action="store_true", help="leave out Q19")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    if options.variants:
        return _print_variants(parser, options)
    peers = [peer for peer in options.peers.split(",") if peer]
    given = settings(None, os.environ)
    measured = each(options.each, given) if options.each else iter(())
    measured = run(options.corpus, given, options.repeats, options.sample, peers) if options.corpus else measured
    rows = chain(measured, () if options.no_growth or options.each else grown())
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
        return 0
    print(HEAD)
    for row in rows:
        print(line(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
