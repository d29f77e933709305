"""What things cost as an archive grows: put, indexes, opening, newest read, search, map of a site, requests.

python bench/curves.py [--sizes 1000,10000,100000] [--most-words 100000] [--plot FILE.svg] [--json]

Sites of a thousand pages each, ten links and 180 words a page, so that one site is the same at every size and only
what lies beside it grows. All times are CPU times; of reads the least of the repeats counts. Words are indexed up to
`--most-words` pages, since that takes milliseconds a page.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import process_time

# As a script it starts in its own folder.
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.search import texts, vocabulary
from bench.serving.servers import ours, stamp_at
from letopis import Archive, Put
from letopis.index.link_index import LinkIndex
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.site_maps import site_map
from letopis.index.word_index import WordIndex
from letopis.model import to_millis

START = datetime(2026, 1, 1, tzinfo=UTC)
SITE = 1000
"""Pages of a site."""
REPEATS, READS, WORDS = 3, 200, 10
COLOURS = (
    "#2a6fb0", "#c0504d", "#2a7f62", "#8064a2", "#d08b2b", "#444444", "#1aa3b8", "#b03a8c", "#7a7a2a", "#5577aa",
    "#996633",
)  # fmt: skip


@dataclass(frozen=True)
class CurvePoint:
    """What one thing cost at one size."""

    what: str
    pages: int
    cost: float
    unit: str


def address(number: int) -> str:
    """Pages of a site lie beside each other."""
    return f"http://site{number // SITE}.example/{number % SITE or ''}"


def pages(count: int, words: list[str]) -> Iterator[Put]:
    """Each leads to the home page of its site and to nine others there."""
    chance = random.Random(7)
    for number, paragraphs in enumerate(texts(count, words, chance)):
        home = number - number % SITE
        others = [home, *(home + chance.randrange(SITE) for _ in range(9))]
        links = "".join(f'<a href="{address(other)}">page {other}</a>' for other in others if other < count)
        text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs[:3])
        head = f"<html lang=en><title>Page {number}</title>"
        yield Put(address(number), f"{head}<h1>Page {number}</h1>{text}{links}".encode(), START)


def spent(work: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    start = process_time()
    work()
    return process_time() - start


def least(work: Callable[[], object], times: int) -> float:
    """CPU seconds of the best of the repeats, once for each of `times` questions inside it."""
    return min(spent(work) for _ in range(REPEATS)) / times


def points(count: int, folder: Path, most_words: int) -> Iterator[CurvePoint]:
    """All costs at one size."""
    chance = random.Random(count)
    words = vocabulary(20_000, chance)
    with Archive(folder) as archive:
        yield CurvePoint("put", count, 1e6 * spent(lambda: _drained(archive, count, words)) / count, "us a page")
    yield CurvePoint("open", count, 1e3 * least(lambda: Archive(folder).close(), 1), "ms")
    with Archive(folder) as archive:
        chosen = [address(chance.randrange(count)) for _ in range(READS)]
        yield CurvePoint("newest read", count, 1e6 * least(partial(_read, archive, chosen), READS), "us")
        index = LinkIndex(archive)
        yield CurvePoint("index of links", count, 1e6 * spent(index.catch_up) / count, "us a page")
        graph, at = index.graph(), to_millis(START) + 1
        yield CurvePoint("map of a site", count, 1e3 * least(lambda: site_map(graph, "site0.example", at), 1), "ms")
        if count <= most_words:
            yield from _searched(archive, count, words)
    pages_served = {
        "serve: a raw memento": f"/web/{stamp_at(START)}id_/{address(count // 2)}",
        "serve: CDX of a page": f"/web/cdx?url={address(count // 2)}",
    }
    if count <= most_words:
        pages_served["serve: hits of a word, for people"] = f"/search?q={words[100]}"
    yield from _requested(folder, count, pages_served)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    yield CurvePoint("disk with indexes", count, size / count, "bytes a page")


def _drained(archive: Archive, count: int, words: list[str]) -> None:
    for _ in archive.put_many(pages(count, words)):
        pass


def _read(archive: Archive, urls: Sequence[str]) -> None:
    for url in urls:
        archive.get(url)


def _searched(archive: Archive, count: int, words: list[str]) -> Iterator[CurvePoint]:
    index = WordIndex(archive)
    yield CurvePoint("index of words", count, 1e6 * spent(index.catch_up) / count, "us a page")
    asked = [parse_word_query(word) for word in words[100 : 100 + WORDS]]
    cost = least(lambda: [search(index, query) for query in asked], WORDS)
    yield CurvePoint("search, ten best of a word", count, 1e6 * cost, "us")


def _requested(folder: Path, count: int, paths: Mapping[str, str]) -> Iterator[CurvePoint]:
    """CPU of the server for each of some answers."""
    server = ours(folder)
    try:
        for what, path in paths.items():
            for _ in range(5):
                assert server.ask(path)[0] == 200, path
            before = server.cpu()
            for _ in range(READS):
                server.ask(path)
            yield CurvePoint(what, count, 1e6 * (server.cpu() - before) / READS, "us")
    finally:
        server.close()


def growth(found: Sequence[CurvePoint]) -> dict[str, float]:
    """The exponent of each curve from its first to its last point: 0 does not grow, 1 grows with the archive."""
    curves = {what: [point for point in found if point.what == what] for what in dict.fromkeys(p.what for p in found)}
    return {
        what: math.log(of[-1].cost / of[0].cost) / math.log(of[-1].pages / of[0].pages)
        for what, of in curves.items()
        if len(of) > 1
    }


def table(found: Sequence[CurvePoint]) -> str:
    """One line a thing, one column a size."""
    sizes = sorted({point.pages for point in found})
    costs = {(point.what, point.pages): point for point in found}
    grown = growth(found)
    lines = [f"{'':28}" + "".join(f"{size:>12,}" for size in sizes) + f"{'unit':>16}{'exponent':>10}"]
    for what in dict.fromkeys(point.what for point in found):
        of = [costs.get((what, size)) for size in sizes]
        unit = next(point.unit for point in of if point)
        cells = "".join(f"{point.cost:>12,.1f}" if point else f"{'-':>12}" for point in of)
        lines.append(f"{what:28}{cells}{unit:>16}{grown.get(what, 0):>10.2f}")
    return "\n".join(lines)


def plot(found: Sequence[CurvePoint]) -> str:
    """All curves over the number of pages, each as a multiple of its first point, both scales logarithmic."""
    sizes = sorted({point.pages for point in found})
    left, wide, low, high = 60, 460, 300, 260
    tall = math.log10(max(4.0, *(_over_first(found, point) for point in found)))
    step = wide / max(1.0, math.log10(sizes[-1] / sizes[0]))

    def at(pages: int, ratio: float) -> tuple[float, float]:
        return left + step * math.log10(pages / sizes[0]), low - 20 - high * max(-0.06, math.log10(ratio) / tall)

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 340" role="img">']
    parts.append(
        "<style>text{font:12px sans-serif;fill:#555}@media(prefers-color-scheme:dark){text{fill:#bbb}}</style>"
    )
    for size in sizes:
        x = at(size, 1)[0]
        parts.append(f'<text x="{x:.0f}" y="{low + 16}" text-anchor="middle">{size:,}</text>')
    for ratio in (1, 2, 4, 10, 100):
        if math.log10(ratio) <= tall:
            y = at(sizes[0], ratio)[1]
            parts.append(f'<text x="{left - 10}" y="{y + 4:.0f}" text-anchor="end">x {ratio}</text>')
            parts.append(f'<line x1="{left}" x2="{left + wide}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>')
    for number, what in enumerate(dict.fromkeys(point.what for point in found)):
        colour = COLOURS[number % len(COLOURS)]
        line = " ".join("{:.1f},{:.1f}".format(*at(p.pages, _over_first(found, p))) for p in found if p.what == what)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{left + wide + 20}" y="{30 + 20 * number}" style="fill:{colour}">{what}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _over_first(found: Sequence[CurvePoint], point: CurvePoint) -> float:
    return point.cost / next(other.cost for other in found if other.what == point.what)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--most-words", type=int, default=100_000)
    parser.add_argument("--corpus", help="not needed: pages are generated")
    parser.add_argument("--plot", type=Path, help="write the picture to this file")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    found: list[CurvePoint] = []
    for size in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            for point in points(size, Path(folder) / "archive", given.most_words):
                print(f"{point.pages:>9} {point.what:28} {point.cost:.1f} {point.unit}", file=sys.stderr, flush=True)
                found.append(point)
    if given.plot:
        given.plot.write_text(plot(found))
    print(json.dumps([asdict(point) for point in found]) if given.json else table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
