"""Bytes of the indexes of links and words beside those of the packs (Q22).

2,000 generated pages with a history: each has five versions, a day apart, of which every later one has another
paragraph in the place of one of ten; each page has ten links. Packs are those after `compact`. `--corpus DIR` takes the
versions of a folder instead (`<site>/<document>/<NNNN>.html`, oldest first). All bytes of `index/` count.

    python bench/index_size.py
    python bench/index_size.py --corpus open
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

# As a script it starts in its own folder.
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.search import address, links_among, page, texts, vocabulary
from letopis import Archive, Put
from letopis.index.link_index import LinkIndex
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.word_index import WordIndex

GOAL = 1.0
START = datetime(2026, 1, 1, tzinfo=UTC)
VERSIONS, PARAGRAPHS = 5, 10


def generated(count: int) -> Iterator[Put]:
    """Pages with a history, as words are spread in real texts."""
    chance = random.Random(7)
    words = vocabulary(20_000, chance)
    drawn = list(texts(2 * count, words, chance))
    for number in range(count):
        own = (drawn[2 * number] + drawn[2 * number + 1])[:PARAGRAPHS]
        links = links_among(drawn[:count], 10, chance)
        for version in range(VERSIONS):
            if version:
                own[chance.randrange(len(own))] = chance.choice(chance.choice(drawn))
            shown = page(f"Page {number}", own, links)
            yield Put(address(number), shown, START + timedelta(days=version, seconds=number))


def of_corpus(folder: Path) -> Iterator[Put]:
    """All versions of a corpus."""
    for file in sorted(folder.glob("*/*/*.html")):
        url = f"http://{file.parts[-3]}.example/{file.parts[-2]}"
        yield Put(url, file.read_bytes(), START + timedelta(days=int(file.stem)))


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def parts_of(folder: Path) -> dict[str, int]:
    """Bytes of the index of words by the kind of file."""
    found: Counter[str] = Counter()
    for file in folder.rglob("*"):
        if file.is_file():
            found[file.suffix or file.parent.name] += file.stat().st_size
    return dict(found.most_common())


def measure(folder: Path, puts: Iterator[Put]) -> dict[str, Any]:
    with Archive(folder) as archive:
        versions = sum(1 for _ in archive.put_many(puts))
        archive.compact()
        index = WordIndex(archive)
        start = time.process_time()
        index.catch_up()
        spent = time.process_time() - start
        LinkIndex(archive).graph()
        search(index, parse_word_query("page"))
        words, links = (
            size_of(folder / "index" / "words"),
            size_of(folder / "index") - size_of(folder / "index" / "words"),
        )
        parts = parts_of(folder / "index" / "words")
    packs = size_of(folder / "packs")
    return {
        "versions": versions,
        "packs": packs,
        "words": words,
        "links": links,
        "ratio": round((words + links) / packs, 2),
        "cpu_ms_a_version": round(1000 * spent / versions, 2),
        "parts": parts,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        found = measure(Path(name) / "archive", of_corpus(args.corpus) if args.corpus else generated(args.pages))
    if args.json:
        print(json.dumps({**found, "goal": GOAL}))
        return 0
    print(f"{found['versions']} versions; {found['cpu_ms_a_version']} ms of CPU to take one in")
    for name in ("packs", "words", "links"):
        print(f"{name:10}{found[name]:14,} bytes")
    print(f"index / packs {found['ratio']}, goal {GOAL}; words: {found['parts']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
