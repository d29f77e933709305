"""What reading an HTML page costs: the bare parse, ours, and lxml, in CPU time.

`python bench/extract.py --corpus DIR --size 30` with a folder of HTML files, of which those of about 6, 30 or 100 KB
are read; without a folder, generated pages.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from urllib.parse import urljoin

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from letopis.extract import read_page

URL = "https://example.org/folder/page.html"
HEADERS = (("Content-Type", "text/html"),)
GOAL = 3.0
SIZES = {6: (3_000, 9_000), 30: (20_000, 45_000), 100: (60_000, 150_000)}
"""Which pages count as those of so many kilobytes."""


def bare(body: bytes) -> object:
    return LexborHTMLParser(body)


def ours_skim(body: bytes) -> object:
    return read_page(body, URL, HEADERS, mode="skim", detect_language=False)


def ours_basic(body: bytes) -> object:
    return read_page(body, URL, HEADERS, mode="basic", detect_language=False)


def ours_full(body: bytes) -> object:
    return read_page(body, URL, HEADERS, detect_language=False)


def ours_language(body: bytes) -> object:
    return read_page(body, URL, HEADERS)


def lxml_links(body: bytes) -> object:
    tree = etree.fromstring(body, etree.HTMLParser())
    refs = [element.get("href") or element.get("src") for element in tree.iter("a", "img", "link", "script")]
    return [urljoin(URL, ref) for ref in refs if ref], "".join(map(str, tree.itertext()))


PEERS: dict[str, Callable[[bytes], object]] = {
    "selectolax, parse alone": bare,
    "ours, links alone": ours_skim,
    "ours, title and links": ours_basic,
    "ours, full": ours_full,
    "ours, full with language": ours_language,
    "lxml, links and text": lxml_links,
}


def generated(count: int, size: int = 30) -> list[bytes]:
    """Pages of about so many kilobytes, two links a kilobyte, from a fixed seed."""
    source = random.Random(7)
    return [_page(source, 2 * size) for _ in range(count)]


def _page(source: random.Random, entries: int) -> bytes:
    words = ["water", "stone", "letter", "morning", "garden", "silver", "window", "music", "river", "paper"]
    parts = ["<!doctype html><html lang=en><head><title>A page</title></head><body><div id=main class=wrap><div>"]
    for number in range(entries):
        text = " ".join(source.choices(words, k=60))
        parts.append(
            f'<div class="entry"><h3>{text[:40]}</h3>\n<p class="text">{text} '
            f'<a href="/{text[:5]}/{number}.html" class="more" title="more">{text[:20]}</a></p></div>\n'
        )
    return ("".join(parts) + "</div></div></body></html>").encode()


def pages_of(corpus: Path | None, size: int, count: int = 60) -> list[bytes]:
    if corpus is None:
        return generated(count, size)
    least, most = SIZES[size]
    bodies = (path.read_bytes() for path in sorted(corpus.rglob("*.html")) if least < path.stat().st_size < most)
    return list(islice(bodies, count))


def run(pages: Sequence[bytes], repeats: int = 7) -> dict[str, float]:
    """Microseconds of CPU time a page: the best of interleaved repeats for each page, then the mean."""
    best = {name: [float("inf")] * len(pages) for name in PEERS}
    gc.collect()
    for _ in range(repeats):
        for name, work in PEERS.items():
            for at, body in enumerate(pages):
                start = time.process_time_ns()
                work(body)
                best[name][at] = min(best[name][at], time.process_time_ns() - start)
    return {name: sum(times) / len(times) / 1000 for name, times in best.items()}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--size", type=int, choices=SIZES, default=30)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    pages = pages_of(args.corpus, args.size)
    if not pages:
        print(f"no HTML files of about {args.size} KB there", file=sys.stderr)
        return 3
    costs = run(pages, args.repeats)
    base = costs["selectolax, parse alone"]
    if args.json:
        rows = {name: {"us": round(cost, 1), "ratio": round(cost / base, 2)} for name, cost in costs.items()}
        print(json.dumps({"pages": len(pages), "rows": rows, "goal": GOAL}))
        return 0
    print(f"{len(pages)} pages, {sum(map(len, pages)) // len(pages)} bytes a page; goal for full: {GOAL}")
    print(f"{'':28}{'us a page':>12}{'ratio':>8}")
    for name, cost in costs.items():
        print(f"{name:28}{cost:12.1f}{cost / base:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
