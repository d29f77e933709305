"""What a start costs: the commands that people type most, and the first search after a start, in CPU time.

    python bench/starts.py [--corpus FOLDER] [--repeats 20] [--json]

Every figure is the median of all repeats, taken in turns: user and system time of a whole process, from the start of
Python to its end. What a server spends on its first search is read from /proc, without its start. Beside them stands
Python that does nothing. With `--corpus` the archive holds the HTML files below that folder, else generated pages. It
is indexed before, and so the dictionaries of the languages of its pages are where every later process finds them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from urllib.parse import quote

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.measuring import measured, simulated_web  # noqa: E402
from bench.search import page, texts, vocabulary  # noqa: E402
from bench.serving.servers import ours  # noqa: E402
from letopis import Archive, Put  # noqa: E402
from letopis.index.word_index import WordIndex  # noqa: E402

START = datetime(2026, 1, 1, tzinfo=UTC)
GENERATED = 400
EVERYWHERE, NOWHERE = "Letopisweb", "xqzvuwq"
"""A word that every page has, and one that none has: all forms of it are looked for."""
GOALS = {
    "--help": 0.15, "get": 0.15, "check": 0.15, "search": 0.2, "search, found nowhere": 0.2,
    "server, first search": 0.2, "server, first search, found nowhere": 0.2,
}  # fmt: skip
"""Seconds."""


def bodies(corpus: Path | None) -> Iterator[bytes]:
    """The pages of a folder, or generated ones."""
    if corpus is not None:
        yield from (file.read_bytes() for file in sorted(corpus.rglob("*.html")))
        return
    chance = random.Random(5)
    drawn = texts(GENERATED, vocabulary(5_000, chance), chance)
    yield from (page(f"Page {number}", paragraphs) for number, paragraphs in enumerate(drawn))


def filled(folder: Path, corpus: Path | None) -> None:
    """An archive of all pages, each with a word that all have, and its index of words."""
    marked = (body + f"<p>{EVERYWHERE}</p>".encode() for body in bodies(corpus))
    with Archive(folder) as archive:
        puts = (Put(f"http://site{n % 50}.example/{n}", body, START) for n, body in enumerate(marked))
        list(archive.put_many(puts))
        WordIndex(archive).catch_up()


def first_search(archive: Path, word: str) -> float:
    """CPU seconds that a new server takes for its first page with results."""
    served = ours(archive)
    try:
        assert served.ask("/")[0] == 200
        before = served.cpu()
        assert served.ask(f"/search?q={quote(word)}")[0] == 200
        return served.cpu() - before
    finally:
        served.close()


def run(corpus: Path | None, repeats: int) -> dict[str, float]:
    """The median of each command and question, in seconds."""
    with tempfile.TemporaryDirectory() as name, simulated_web(1, 5) as url:
        archive = Path(name) / "archive"
        filled(archive, corpus)
        letopis = [sys.executable, "-m", "letopis.cli", "--archive", str(archive)]
        commands = {
            "bare Python": [sys.executable, "-c", "pass"],
            "--help": [*letopis[:3], "--help"],
            "get": [*letopis, "get", "--offline", url],
            "check": [*letopis, "check", "--now", url],
            "search": [*letopis, "search", EVERYWHERE],
            "search, found nowhere": [*letopis, "search", NOWHERE],
        }
        spent: dict[str, list[float]] = {}
        measured([*letopis, "check", url])
        for _ in range(repeats):
            for what, words in commands.items():
                spent.setdefault(what, []).append(measured(words).seconds)
        for _ in range(max(1, repeats // 4)):
            for what, word in (("server, first search", EVERYWHERE), ("server, first search, found nowhere", NOWHERE)):
                spent.setdefault(what, []).append(first_search(archive, word))
    return {what: round(median(seconds), 4) for what, seconds in spent.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """0 when every goal is reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    found = run(given.corpus, given.repeats)
    if given.json:
        print(json.dumps({"cpu_s": found, "goals": GOALS}))
    else:
        print(f"{'':38}{'CPU s':>8}{'goal':>8}")
        for what, seconds in found.items():
            print(f"{what:38}{seconds:8.3f}{GOALS.get(what, ''):>8}")
    return 0 if all(found[what] <= goal for what, goal in GOALS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
