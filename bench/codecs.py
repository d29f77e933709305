"""Q7: every codec on single pages, in the tables of the thesis, and the contest against the thesis' methods.

Dictionaries are trained on one half of the pages and tried on the other, both
ways round, so that no page is compressed with a dictionary that has seen it.
The thesis' best per file includes its lossy methods: the bar is as low as it
can be made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

from letopis import codec
from letopis.errors import CodecRefused

GOAL = 0.80
CLASSES = (*range(10, 101, 10), 1 << 40)
TRAINED = ("zstd-trained", "brotli-joined")
OLD_METHODS = (
    "stored", "gzip", "bzip2", "mgz1", "mbz1", "mgz1i", "mbz1i", "mgz2", "mbz2", "mgz2i", "mbz2i", "fsg", "fsb",
)  # fmt: skip
OURS = ("zstd", "brotli", "xz", "zstd-html", "brotli-html", *TRAINED)


@dataclass
class Row:
    """One method: sizes by page (None where it refused), CPU time both ways."""

    name: str
    sizes: list[int | None] = field(default_factory=list)
    encode: float = 0.0
    decode: float = 0.0
    round_trips: int = 0

    def add(self, method: codec.Codec, page: bytes) -> None:
        """Try one page."""
        start = process_time()
        try:
            data = method.encode(page)
        except CodecRefused:
            self.sizes.append(None)
            return
        made = process_time()
        back = method.decode(data)
        self.encode, self.decode = self.encode + made - start, self.decode + process_time() - made
        self.round_trips += back == page
        self.sizes.append(len(data))


@dataclass(frozen=True)
class Result:
    """All rows over the same pages, with the bytes of dictionaries that had to be trained."""

    pages: list[int]
    rows: dict[str, Row]
    dictionary_bytes: int

    def best(self, names: Iterable[str]) -> list[int]:
        """The smallest size of each page among some methods; without compression when all refuse."""
        chosen = [self.rows[name].sizes for name in names if name in self.rows]
        return [
            min(size for size in (whole, *sizes) if size is not None)
            for whole, *sizes in zip(self.pages, *chosen, strict=True)
        ]

    def ratio(self, names: Iterable[str], extra: int = 0) -> float:
        """The total of a contest as a share of the best per file of the thesis' methods."""
        return (sum(self.best(names)) + extra) / sum(self.best(OLD_METHODS))


def _halves(pages: Sequence[bytes], size: int) -> list[tuple[codec.Dictionary, Sequence[int]]]:
    """A dictionary trained on each half, with the numbers of the pages of the other half."""
    even, odd = range(0, len(pages), 2), range(1, len(pages), 2)
    return [
        (codec.Dictionary.train([pages[number] for number in taught], size), tried)
        for taught, tried in ((even, odd), (odd, even))
    ]


def run(pages: Sequence[bytes], dictionary_size: int, names: Sequence[str]) -> Result:
    """Every method on every page."""
    rows = {name: Row(name) for name in names}
    for page in pages:
        for name, row in rows.items():
            row.add(codec.get(name), page)
    cost = 0
    if dictionary_size and len(pages) >= 20:
        sized: dict[str, list[int | None]] = {name: [None] * len(pages) for name in TRAINED}
        rows.update({name: Row(name) for name in TRAINED})
        for dictionary, tried in _halves(pages, dictionary_size):
            cost += len(dictionary.to_bytes())
            methods: tuple[codec.Codec, ...] = (
                codec.with_dictionary(dictionary)[0],
                codec.with_dictionary(dictionary.joined(codec.html_dictionary()))[1],
            )
            for name, method in zip(TRAINED, methods, strict=True):
                for number in tried:
                    rows[name].add(method, pages[number])
                    sized[name][number] = rows[name].sizes[-1]
        for name in TRAINED:
            rows[name].sizes = sized[name]
    return Result([len(page) for page in pages], rows, cost)


def _class_of(size: int) -> int:
    return next(number for number, bound in enumerate(CLASSES) if size <= bound * 1000)


def _label(number: int) -> str:
    low = CLASSES[number - 1] if number else 0
    return f"> {low}" if number == len(CLASSES) - 1 else f"{low}-{CLASSES[number]}" if low else f"<= {CLASSES[0]}"


def wins(result: Result, names: Sequence[str]) -> list[tuple[str, int, list[int]]]:
    """By size class: how many pages there are and how often each method was the best (ties count for all)."""
    best = result.best(names)
    table = [(_label(number), 0, [0] * len(names)) for number in range(len(CLASSES))]
    for page, size in enumerate(result.pages):
        label, count, won = table[_class_of(size)]
        hits = [result.rows[name].sizes[page] == best[page] for name in names]
        table[_class_of(size)] = (label, count + 1, [old + hit for old, hit in zip(won, hits, strict=True)])
    return [row for row in table if row[1]]


def _print_wins(result: Result, names: Sequence[str]) -> None:
    print("kB        pages " + "".join(f"{name:>15}" for name in names))
    for label, count, won in wins(result, names):
        print(f"{label:10}{count:5} " + "".join(f"{hits:15}" for hits in won))
    print()


def totals(result: Result, names: Sequence[str]) -> list[dict[str, Any]]:
    """By size class and in all: pages, raw bytes, and for each method its bytes and its gain over its origin in %.

    A page that a method refuses counts with its raw size.
    """
    classes: dict[str, list[int]] = {}
    for page, size in enumerate(result.pages):
        classes.setdefault(_label(_class_of(size)), []).append(page)
    order = [label for label in map(_label, range(len(CLASSES))) if label in classes]
    rows = []
    for label, pages in [(label, classes[label]) for label in order] + [("all", list(range(len(result.pages))))]:
        row: dict[str, Any] = {"kB": label, "pages": len(pages), "raw": sum(result.pages[page] for page in pages)}
        for name in names:
            taken, before = (_bytes(result, one, pages) for one in (name, _origin(name)))
            row[name] = {"bytes": taken, "gain": 100 * (1 - taken / before)}
        rows.append(row)
    return rows


def _bytes(result: Result, name: str, pages: Sequence[int]) -> int:
    sizes = result.rows[name].sizes
    return sum(result.pages[page] if sizes[page] is None else sizes[page] or 0 for page in pages)


def _print_totals(result: Result, names: Sequence[str]) -> None:
    print("kB        pages         raw " + "".join(f"{name:>19}" for name in names))
    for row in totals(result, names):
        cells = (f"{row[name]['bytes']:11} {row[name]['gain']:5.1f} %" for name in names)
        print(f"{row['kB']:10}{row['pages']:5}{row['raw']:12} " + "".join(f"{cell:>19}" for cell in cells))
    print()


def _origin(name: str) -> str:
    """The method that another one is held against: bzip2 for what stands before bzip2, gzip for all others."""
    return "bzip2" if name.startswith("mb") or name == "fsb" else "gzip"


def summary(result: Result) -> list[dict[str, Any]]:
    """One row a method: total, share of the raw size, how often it beat its origin and by how much then, times.

    A page that a method refuses counts with its raw size.
    """
    raw = sum(result.pages)
    found: list[dict[str, Any]] = []
    for row in result.rows.values():
        sizes = [whole if size is None else size for size, whole in zip(row.sizes, result.pages, strict=True)]
        before = [size or 1 for size in result.rows[_origin(row.name)].sizes]
        gains = [1 - size / old for size, old in zip(sizes, before, strict=True) if size < old]
        found.append(
            {
                "method": row.name,
                "pages": sum(size is not None for size in row.sizes),
                "exact": row.round_trips,
                "bytes": sum(sizes),
                "percent": 100 * sum(sizes) / raw,
                "better": len(gains),
                "mean_gain": 100 * sum(gains) / len(gains) if gains else 0.0,
                "encode_ms": 1000 * row.encode / len(sizes),
                "decode_ms": 1000 * row.decode / len(sizes),
            }
        )
    return found


def verdict(result: Result) -> list[dict[str, Any]]:
    """Q7 under its possible readings."""
    alone = ("stored", "zstd", "brotli", "xz")
    generic = (*alone, "zstd-html", "brotli-html")
    rows: list[tuple[str, float]] = [
        ("no dictionary", result.ratio(alone)),
        ("generic dictionary of the package", result.ratio(generic)),
    ]
    if TRAINED[0] in result.rows:
        everything = (*generic, *TRAINED)
        rows.append(("dictionary trained on other pages", result.ratio(everything)))
        rows.append(("the same, both dictionaries counted", result.ratio(everything, result.dictionary_bytes)))
    return [{"contest": name, "ratio": ratio, "goal": GOAL} for name, ratio in rows]


def _print(result: Result) -> None:
    known = [name for name in OLD_METHODS if name in result.rows]
    _print_wins(result, [name for name in ("gzip", "bzip2", "mgz1", "mbz1") if name in known])
    _print_wins(result, known[1:])
    ours = [name for name in OURS if name in result.rows]
    _print_wins(result, ours)
    print("bytes by size class, and how much less than gzip or bzip2 alone")
    _print_totals(result, known[1:])
    _print_totals(result, ours)
    print(
        f"{len(result.pages)} pages, {sum(result.pages)} bytes; best per file of the thesis' methods "
        f"{sum(result.best(known))} ({100 * sum(result.best(known)) / sum(result.pages):.1f} %)\n"
    )
    print(
        f"{'method':16}{'pages':>6}{'exact':>6}{'bytes':>12}{'%':>7}{'better':>7}{'gain %':>8}"
        f"{'enc ms':>9}{'dec ms':>8}"
    )
    for row in summary(result):
        print(
            "{method:16}{pages:6}{exact:6}{bytes:12}{percent:7.2f}{better:7}{mean_gain:8.2f}{encode_ms:9.2f}"
            "{decode_ms:8.2f}".format(**row)
        )
    print(f"\n{'Q7: contest against the best per file of the thesis':52}{'ratio':>7}{'goal':>7}")
    for row in verdict(result):
        print("{contest:52}{ratio:7.3f}{goal:7.2f}".format(**row))
    if result.dictionary_bytes:
        print(f"trained dictionaries as stored: {result.dictionary_bytes} bytes, one for each half of the pages")


def main(argv: list[str]) -> int:
    """Print the tables, or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="folder of pages")
    parser.add_argument("--dictionary", type=int, default=112, help="KiB of the trained dictionaries, 0 for none")
    parser.add_argument("--every", type=int, default=1, help="take every n-th page")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    files = sorted(path for path in given.corpus.rglob("*") if path.is_file())[:: given.every]
    if not files:
        parser.error(f"{given.corpus} holds no files; give a folder of pages")
    result = run([path.read_bytes() for path in files], given.dictionary << 10, codec.names())
    if given.json:
        print(
            json.dumps(
                {
                    "summary": summary(result),
                    "size_classes": totals(result, [name for name in (*OLD_METHODS, *OURS) if name in result.rows]),
                    "q7": verdict(result),
                    "rows": [asdict(row) for row in result.rows.values()],
                }
            )
        )
    else:
        _print(result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
