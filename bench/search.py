"""Search over 20,000 pages: one word, the ten best with snippets, in CPU time (Q16).

Ours answers as of now and as of a past day; bare tantivy and SQLite's FTS5 hold the newest pages alone and know
nothing of dates, word forms, kinds of blocks or freshness. `python bench/search.py` makes its own pages; with `--links`
each has as many links to others, whose texts find those pages too, which is more than the peers answer. Then a further
peer, `tantivy, with names`, keeps the texts of links to each page in a field of its document and asks both fields.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Document, Occur, Query, SnippetGenerator

from letopis import Archive, Put
from letopis.index.anchor_index import ANCHOR_WEIGHT
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.word_index import WordIndex

GOAL = 1.3
START = datetime(2026, 1, 1, tzinfo=UTC)
PAST = START + timedelta(days=10)
VOWELS, CONSONANTS = "aeiou", "bdfgklmnprstvz"


def vocabulary(size: int, chance: random.Random) -> list[str]:
    """Words that look like words and of which no two are equal."""
    words: dict[str, None] = {}
    while len(words) < size:
        pairs = chance.randint(2, 4)
        words["".join(chance.choice(CONSONANTS) + chance.choice(VOWELS) for _ in range(pairs))] = None
    return list(words)


def texts(count: int, words: list[str], chance: random.Random) -> Iterator[list[str]]:
    """Paragraphs of pages; words as frequent as in real texts."""
    weights = [1 / (rank + 3) for rank in range(len(words))]
    sums, total = [], 0.0
    for weight in weights:
        total += weight
        sums.append(total)
    for _ in range(count):
        drawn = chance.choices(words, cum_weights=sums, k=300)
        yield [" ".join(drawn[at : at + 60]) for at in range(0, 300, 60)]


def page(title: str, paragraphs: Sequence[str], links: str = "") -> bytes:
    inner = "".join(f"<p>{text}</p>" for text in paragraphs) + links
    return f'<html lang="xx"><head><title>{title}</title></head><body><h1>{title}</h1>{inner}</body></html>'.encode()


def address(number: int) -> str:
    return f"http://site{number % 50}.example/page{number}"


def links_among(pages: list[list[str]], count: int, chance: random.Random) -> str:
    """Links to any pages, each called by three words as frequent as in the texts."""
    return " ".join(f'<a href="{address(target)}">{text}</a>' for target, text in drawn_links(pages, count, chance))


def drawn_links(pages: list[list[str]], count: int, chance: random.Random) -> Iterator[tuple[int, str]]:
    """The number of the page that each link leads to, and its text."""
    words = " ".join(chance.choice(pages)).split() if count else []
    return ((chance.randrange(len(pages)), " ".join(chance.sample(words, 3))) for _ in range(count))


def names_of(pages: list[list[str]], links: int) -> list[list[str]]:
    """For each page the texts of links to it, of the same links that `puts` records."""
    names: list[list[str]] = [[] for _ in pages]
    chance = random.Random(6)
    for number in range(len(pages)):
        for target, text in drawn_links(pages, links, chance):
            if target != number:
                names[target].append(text)
    return names


def puts(pages: list[list[str]], links: int = 0) -> Iterator[Put]:
    """Every page, and for each fourth one an older version with other words."""
    chance = random.Random(6)
    for number, paragraphs in enumerate(pages):
        shown = page(f"Page {number}", paragraphs, links_among(pages, links, chance))
        if number % 4 == 0:
            older = pages[(number + 7) % len(pages)]
            yield Put(address(number), page(f"Page {number}", older), START)
            yield Put(address(number), shown, START + timedelta(days=20))
        else:
            yield Put(address(number), shown, START + timedelta(days=1))


def bare_tantivy(folder: Path, pages: list[list[str]], names: list[list[str]] | None = None) -> Callable[[str], object]:
    """With `names` the texts of links to each page are searched, too."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("url", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", stored=True)
    if names is not None:
        builder.add_text_field("names", index_option="freq")
    schema = builder.build()
    folder.mkdir()
    index = tantivy.Index(schema, str(folder))
    writer = index.writer(64_000_000, 1)
    for number, paragraphs in enumerate(pages):
        called = {} if names is None else {"names": names[number]}
        writer.add_document(Document(url=address(number), text="\n".join(paragraphs), **called))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def ask(word: str) -> object:
        query = asked = Query.term_query(schema, "text", word)
        if names is not None:
            called = Query.boost_query(Query.term_query(schema, "names", word, "freq"), ANCHOR_WEIGHT)
            asked = Query.boolean_query([(Occur.Should, query), (Occur.Should, called)])
        hits = searcher.search(asked, 10, count=False).hits
        generator = SnippetGenerator.create(searcher, query, schema, "text")
        found = []
        for score, address in hits:
            document = searcher.doc(address)
            found.append((document["url"], score, generator.snippet_from_doc(document).to_html()))
        return found

    return ask


def full_text_5(file: Path, pages: list[list[str]]) -> Callable[[str], object]:
    connection = sqlite3.connect(file)
    connection.execute("CREATE VIRTUAL TABLE page USING fts5(url UNINDEXED, text)")
    rows = ((address(n), "\n".join(parts)) for n, parts in enumerate(pages))
    connection.executemany("INSERT INTO page VALUES (?, ?)", rows)
    connection.commit()
    question = (
        "SELECT url, rank, snippet(page, 1, '<b>', '</b>', '...', 24) "
        "FROM page WHERE page MATCH ? ORDER BY rank LIMIT 10"
    )
    return lambda word: connection.execute(question, (word,)).fetchall()


def ours(archive: Archive, pages: list[list[str]], links: int = 0) -> tuple[WordIndex, float]:
    list(archive.put_many(puts(pages, links)))
    index = WordIndex(archive)
    start = time.process_time()
    taken = index.catch_up()
    return index, taken / (time.process_time() - start)


def measure(peers: dict[str, Callable[[str], object]], words: Sequence[str], repeats: int) -> dict[str, float]:
    """Microseconds of CPU time a question: the best of interleaved repeats for each word, then the mean."""
    best = {name: [float("inf")] * len(words) for name in peers}
    gc.collect()
    for _ in range(repeats):
        for name, ask in peers.items():
            for at, word in enumerate(words):
                start = time.process_time_ns()
                ask(word)
                best[name][at] = min(best[name][at], time.process_time_ns() - start)
    return {name: sum(times) / len(times) / 1000 for name, times in best.items()}


def run(count: int, repeats: int, folder: Path, links: int = 0) -> dict[str, Any]:
    chance = random.Random(5)
    words = vocabulary(30_000, chance)
    pages = list(texts(count, words, chance))
    asked = [words[rank] for rank in (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)]
    with Archive(folder / "archive") as archive:
        index, rate = ours(archive, pages, links)
        # Opened on its own, as every peer is: stored blocks that one row has read are not those that another reads.
        past = WordIndex(archive)
        peers: dict[str, Callable[[str], object]] = {
            "tantivy, bare": bare_tantivy(folder / "bare", pages),
            "ours, now": lambda word: search(index, parse_word_query(word)),
            "ours, as of a past day": lambda word: search(past, parse_word_query(word, at=PAST)),
            "SQLite FTS5": full_text_5(folder / "fts.db", pages),
        }
        if links:
            peers["tantivy, with names"] = bare_tantivy(folder / "named", pages, names_of(pages, links))
        costs = measure(peers, asked, repeats)
    return {"pages": count, "taken_in_a_second": round(rate), "us": {k: round(v, 1) for k, v in costs.items()}}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--links", type=int, default=0, help="links of each page that name other pages")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        result = run(args.pages, args.repeats, Path(name), args.links)
    base = result["us"]["tantivy, bare"]
    ratios = {name: round(cost / base, 2) for name, cost in result["us"].items()}
    if args.json:
        print(json.dumps({**result, "ratio": ratios, "goal": GOAL}))
        return 0
    print(f"{args.pages} pages, ten best with snippets; {result['taken_in_a_second']} versions indexed a CPU second")
    print(f"{'':28}{'us a question':>14}{'ratio':>8}{'goal':>8}")
    for peer, cost in result["us"].items():
        print(f"{peer:28}{cost:14.1f}{ratios[peer]:8.2f}{GOAL if peer.startswith('ours') else '':>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
