"""The tables 3.3 to 3.7 of the document: slow and fast variants of an archive, and reads of new and old versions mixed.

Each document has an archive of its own. The slow variant is a full compaction, the fast one a quick one; beside them
stand gzip and bzip2 of all versions together, in a slow and a fast variant too. Times are CPU times.
"""

from __future__ import annotations

import bz2
import random
import statistics
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from time import process_time
from typing import Any, Literal

from bench.storing.corpus import Document, arrivals
from letopis.archive import Archive

MIXES = (1, 5, 10)
"""Reads of the three newest versions for each of an older one."""
_NEWEST = 3


@dataclass(frozen=True)
class ReadMix:
    """Reads at one mixture: milliseconds in the mean, and their variance."""

    newest_for_each_old: int
    mean_ms: float
    variance: float


@dataclass(frozen=True)
class VariantRow:
    """One document; sizes in bytes, times in milliseconds a version."""

    document: str
    versions: int
    raw: int
    slow: int
    fast: int
    bzip2_9: int
    bzip2_1: int
    gzip_9: int
    gzip_1: int
    slow_put_ms: float
    fast_put_ms: float
    reads: tuple[ReadMix, ...]


def variants(documents: Sequence[Document], reads: int, seed: int = 1) -> Iterator[VariantRow]:
    """A row for each document; every mixture reads so many versions of its slow archive, in any order."""
    for document in documents:
        whole, count = b"".join(document.bodies), len(document.bodies)
        slow, slow_ms, mixes = _archived(document, "full", reads, seed)
        fast, fast_ms, _ = _archived(document, "quick", 0, seed)
        yield VariantRow(
            document.name, count, len(whole), slow, fast,
            len(bz2.compress(whole, 9)), len(bz2.compress(whole, 1)),
            len(zlib.compress(whole, 9)), len(zlib.compress(whole, 1)),
            slow_ms / count, fast_ms / count, mixes,
        )  # fmt: skip


def _archived(
    document: Document, effort: Literal["full", "quick"], reads: int, seed: int
) -> tuple[int, float, tuple[ReadMix, ...]]:
    """Bytes of the packs, milliseconds for all puts and the compaction, and the reads."""
    with tempfile.TemporaryDirectory() as folder, Archive(folder) as archive:
        start = process_time()
        for put in arrivals([document]):
            archive.put(put.url, put.body, put.at)
        archive.compact(effort=effort)
        spent = process_time() - start
        mixes = tuple(_read(archive, document.url, mix, reads, seed) for mix in MIXES) if reads else ()
        return archive.stats().pack_bytes, 1000 * spent, mixes


def _read(archive: Archive, url: str, mix: int, reads: int, seed: int) -> ReadMix:
    chance = random.Random(seed)
    count = len(archive.versions(url))
    newest, old = range(max(0, count - _NEWEST), count), range(max(1, count - _NEWEST))
    spent = []
    for _ in range(reads):
        number = chance.choice(newest if chance.random() * (mix + 1) < mix else old)
        start = process_time()
        archive.get(url, version=number)
        spent.append(1000 * (process_time() - start))
    return ReadMix(mix, statistics.fmean(spent), statistics.pvariance(spent))


def table(rows: Sequence[VariantRow]) -> Iterator[str]:
    """For people: sizes with their shares of all versions, then times."""
    sizes = ("slow", "fast", "bzip2_9", "bzip2_1", "gzip_9", "gzip_1")
    yield f"{'document':32}{'versions':>9}{'raw':>12}" + "".join(f"{name:>19}" for name in sizes)
    for row in rows:
        cells = (f"{getattr(row, name):,} {100 * getattr(row, name) / row.raw:5.1f} %" for name in sizes)
        yield f"{row.document:32}{row.versions:9}{row.raw:12,}" + "".join(f"{cell:>19}" for cell in cells)
    yield f"\n{'ms a version':32}{'slow put':>10}{'fast put':>10}" + "".join(
        f"{f'{mix}:1 (var.)':>18}" for mix in MIXES
    )
    for row in rows:
        reads = "".join(f"{f'{mix.mean_ms:.3f} ({mix.variance:.3f})':>18}" for mix in row.reads)
        yield f"{row.document:32}{row.slow_put_ms:10.2f}{row.fast_put_ms:10.2f}{reads}"


def as_json(rows: Sequence[VariantRow]) -> list[dict[str, Any]]:
    """Plain values."""
    return [asdict(row) for row in rows]
