"""The main content of pages: ours beside trafilatura's, by words and by CPU time.

`python bench/main_content.py --corpus DIR --peer ENV/bin/python` with a folder of HTML files and the Python of an
environment that has trafilatura; without a peer, ours alone is timed. With `--judged` three tools that are neither
(readability-lxml, resiliparse, boilerpy3, in the same environment) say what is content: what two of them keep.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from letopis.extract import read_page
from letopis.extract.main_content import content_text

URL = "https://example.org/folder/page.html"
HEADERS = (("Content-Type", "text/html"),)
REPEATS = 3
_PEER = """
import json, sys, time
from pathlib import Path
import trafilatura
for path in sorted(Path(sys.argv[1]).glob("*.html")):
    body, best = path.read_bytes(), 1e9
    for _ in range(int(sys.argv[2])):
        start = time.process_time()
        text = trafilatura.extract(body, include_comments=False)
        best = min(best, time.process_time() - start)
    print(json.dumps([path.name, text or "", best]))
"""
_JUDGES = """
import json, logging, re, sys
from pathlib import Path
from boilerpy3.extractors import ArticleExtractor
from readability import Document
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding
logging.disable(logging.CRITICAL)
boiler = ArticleExtractor(raise_on_failure=False)
for path in sorted(Path(sys.argv[1]).glob("*.html")):
    body = path.read_bytes()
    html = bytes_to_str(body, detect_encoding(body))
    asked = (
        lambda: extract_plain_text(Document(html).summary()),
        lambda: extract_plain_text(html, main_content=True),
        lambda: boiler.get_content(html),
    )
    texts = []
    for ask in asked:
        try:
            texts.append(ask())
        except Exception:
            texts.append("")
    print(json.dumps([path.name, texts]))
"""


class MainText(NamedTuple):
    """What one tool made of a page, and in how many seconds of CPU time."""

    name: str
    text: str
    seconds: float


def ours(corpus: Path) -> list[MainText]:
    found = []
    for path in sorted(corpus.glob("*.html")):
        body, best = path.read_bytes(), float("inf")
        for _ in range(REPEATS):
            start = time.process_time()
            text = content_text(read_page(body, URL, HEADERS), body, HEADERS, "text")
            best = min(best, time.process_time() - start)
        found.append(MainText(path.name, text, best))
    return found


def theirs(corpus: Path, python: Path) -> list[MainText]:
    words = [str(python), "-c", _PEER, str(corpus), str(REPEATS)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [MainText(*json.loads(line)) for line in done.stdout.splitlines()]


def word_counts(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def compare(mine: Sequence[MainText], peer: Sequence[MainText]) -> dict[str, float]:
    """Words of both, of both together, and how alike single pages are (twice the common words by all)."""
    sums = [0, 0, 0]
    alike = []
    for a, b in zip(mine, peer, strict=True):
        here, there = word_counts(a.text), word_counts(b.text)
        common = (here & there).total()
        for at, count in enumerate((here.total(), there.total(), common)):
            sums[at] += count
        alike.append(2 * common / max(1, here.total() + there.total()))
    return {
        "pages": len(mine),
        "words": sums[0],
        "words_peer": sums[1],
        "words_ratio": round(sums[0] / sums[1], 3),
        "found_of_peer": round(sums[2] / sums[1], 3),
        "f1": round(2 * sums[2] / (sums[0] + sums[1]), 3),
        "alike_median": round(statistics.median(alike), 3),
        "alike_mean": round(statistics.mean(alike), 3),
        "pages_alike_95": sum(one >= 0.95 for one in alike),
        "ms_a_page": round(1000 * statistics.mean(one.seconds for one in mine), 2),
        "ms_a_page_peer": round(1000 * statistics.mean(one.seconds for one in peer), 2),
    }


def judged(corpus: Path, python: Path) -> dict[str, Counter[str]]:
    """The words of each page that two of three judges keep, as often as two of them do."""
    done = subprocess.run([str(python), "-c", _JUDGES, str(corpus)], capture_output=True, text=True, check=True)
    found = {}
    for line in done.stdout.splitlines():
        name, texts = json.loads(line)
        a, b, c = map(word_counts, texts)
        found[name] = (a & b) | (a & c) | (b & c)
    return found


def against_judges(texts: Sequence[MainText], content: dict[str, Counter[str]]) -> dict[str, float]:
    """Precision, recall and F1 of the words of all pages, and F1 of single ones, where the judges found any."""
    kept = right = there = 0
    single = []
    for one in texts:
        words, wanted = word_counts(one.text), content[one.name]
        if not wanted:
            continue
        common = (words & wanted).total()
        kept, right, there = kept + words.total(), right + common, there + wanted.total()
        single.append(2 * common / max(1, words.total() + wanted.total()))
    return {
        "pages": len(single),
        "precision": round(right / max(1, kept), 4),
        "recall": round(right / max(1, there), 4),
        "f1": round(2 * right / max(1, kept + there), 4),
        "f1_mean": round(statistics.mean(single), 4),
        "f1_median": round(statistics.median(single), 4),
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--peer", type=Path)
    parser.add_argument("--judged", action="store_true")
    args = parser.parse_args(argv)
    mine = ours(args.corpus)
    if args.peer is None:
        print(json.dumps({"pages": len(mine), "ms_a_page": 1000 * statistics.mean(one.seconds for one in mine)}))
        return 0
    peer = theirs(args.corpus, args.peer)
    rows: dict[str, object] = {"beside": compare(mine, peer)}
    if args.judged:
        content = judged(args.corpus, args.peer)
        rows |= {"Letopis": against_judges(mine, content), "trafilatura": against_judges(peer, content)}
    print(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
