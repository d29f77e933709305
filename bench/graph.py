"""Links at scale: PageRank against scipy and rustworkx, maps of a million pages, a link check against LinkChecker.

`python bench/graph.py [--only rank,map,check]`. Peers live in `.bench/graph`,
an environment of their own that is made when it is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
import venv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.linking import Checked, by_letopis, by_linkchecker, by_wget, planted, serve  # noqa: E402

PEERS = ROOT / ".bench" / "graph"
NODES, LINKS = 1_000_000, 10_000_000
Row = dict[str, Any]


# Peers are run by their own interpreter, with this file as their script.


def web(kind: str, nodes: int = NODES, links: int = LINKS) -> tuple[Any, Any]:
    """Distinct links in the order of their sources; targets evenly or by a power law."""
    chance = np.random.default_rng(7)
    sources = chance.integers(0, nodes, links)
    targets = chance.integers(0, nodes, links) if kind == "even" else (nodes * chance.random(links) ** 3).astype(int)
    pairs = np.unique((sources * nodes + targets)[sources != targets])
    return (pairs // nodes).astype(np.int32), (pairs % nodes).astype(np.int32)


def by_scipy(sources: Any, targets: Any) -> None:
    import scipy.sparse as sparse  # type: ignore[import-untyped,unused-ignore] # noqa: PLC0415

    out = np.maximum(np.bincount(sources, minlength=NODES), 1)
    matrix = sparse.csr_matrix(((0.85 / out)[sources], (targets, sources)), shape=(NODES, NODES))
    ranks = np.ones(NODES)
    for _ in range(200):
        following = matrix @ ranks + 0.15
        moved, ranks = np.abs(following - ranks).sum(), following
        if moved <= 1e-8 * NODES:
            break


def by_rustworkx(sources: Any, targets: Any) -> None:
    import rustworkx  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415

    graph = rustworkx.PyDiGraph()
    graph.add_nodes_from([None] * NODES)
    graph.add_edges_from_no_data(list(zip(sources.tolist(), targets.tolist(), strict=True)))
    start = time.process_time()
    rustworkx.pagerank(graph, alpha=0.85, tol=1e-8 * NODES, max_iter=200)
    print(json.dumps({"seconds": time.process_time() - start}))


def by_ours(sources: Any, targets: Any) -> None:
    from letopis.index.page_ranks import pagerank  # noqa: PLC0415

    pagerank(sources, targets, NODES)


RANKERS: dict[str, Callable[[Any, Any], None]] = {"ours": by_ours, "scipy": by_scipy, "rustworkx": by_rustworkx}


def rank_here(name: str, kind: str) -> int:
    """Prints the CPU seconds of one ranking; rustworkx tells its own, without the making of its graph."""
    links = web(kind)
    start = time.process_time()
    RANKERS[name](*links)
    if name != "rustworkx":
        print(json.dumps({"seconds": time.process_time() - start}))
    return 0


def peer_python() -> Path:
    """The interpreter of the peers' environment."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        venv.create(PEERS, with_pip=True)
        wanted = ["numpy", "scipy", "rustworkx", "linkchecker"]
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
    return python


def run_ranks(repeats: int) -> list[Row]:
    """Q14: seconds of CPU from links in memory to ranks, interleaved; the best of the repeats."""
    rows = []
    for kind in ("even", "power law"):
        best = dict.fromkeys(RANKERS, float("inf"))
        for _ in range(repeats):
            for name in RANKERS:
                python = sys.executable if name == "ours" else str(peer_python())
                told = subprocess.run(
                    [python, __file__, "--rank", name, kind], capture_output=True, text=True, check=True
                )
                best[name] = min(best[name], float(json.loads(told.stdout)["seconds"]))
        rows += [_row(f"PageRank, {kind}, {name}", cost, "s CPU", best["scipy"], 1.0) for name, cost in best.items()]
    return rows


def _row(what: str, value: float, unit: str, base: float | None = None, goal: float | None = None) -> Row:
    ratio = None if not base else round(value / base, 2)
    return {"what": what, "value": round(value, 3), "unit": unit, "ratio": ratio, "goal": goal}


def million_pages(folder: Path) -> tuple[Any, int]:
    """A site of a million pages, ten links each, one address in a hundred answering 404."""
    from letopis.index.link_graph import Graph, GraphHistory  # noqa: PLC0415
    from letopis.index.link_storage import LinkJournal, LinkSegment, TextColumn  # noqa: PLC0415
    from letopis.index.url_table import ERROR, UrlCheck, UrlTable, url_state_rows, url_states_of  # noqa: PLC0415
    from letopis.urls import url_key  # noqa: PLC0415
    from letopis.zstandard import zstd  # noqa: PLC0415

    urls = ["http://big.example/"] + [f"http://big.example/{number}.html" for number in range(1, NODES)]
    pages = np.arange(NODES, dtype=np.int32)
    chance = np.random.default_rng(3)
    targets = chance.integers(0, NODES, (NODES, 10)).astype(np.int32)
    targets[:, 0] = (pages.astype(np.int64) * 5 + 1) % NODES
    small = np.zeros(NODES, np.uint8)
    segment = LinkSegment(
        names=TextColumn.of(["big.example"]), urls=TextColumn.of(urls), keys=np.array([url_key(url) for url in urls]),
        hosts=np.zeros(NODES, np.int32), ids=np.arange(1, NODES + 1), pages=pages,
        times=np.full(NODES, 1000), statuses=np.full(NODES, 200, np.int16), sizes=np.full(NODES, 9000),
        digests=np.arange(NODES), link_keys=np.arange(NODES), judged=small, roles=small,
        finals=np.full(NODES, -1, np.int32), counts=np.full(NODES, 10, np.int32),
        types=TextColumn.of(["text/html"] * NODES),
        titles=TextColumn.of([f"Page {number}" for number in range(NODES)]), languages=TextColumn.of(["en"] * NODES),
        targets=targets.reshape(-1), kinds=np.zeros(NODES * 10, np.uint8),
        text_frames=np.zeros(1, np.int64), text_links=np.full(1, NODES * 10),
    )  # fmt: skip
    broken = [row for url in range(99, NODES, 100) for row in url_state_rows(url, [UrlCheck(2000, ERROR, 404)])]
    journal = LinkJournal(folder / "links.log")
    journal.append(segment.pack(), NODES, NODES)
    texts = LinkJournal(folder / "texts.log")
    texts.append(zstd.compress(b"\n" * (LINKS - 1), 1), NODES, NODES)

    def read_lines(segment: LinkSegment, number: int) -> list[str]:
        return zstd.decompress(texts.read(int(segment.text_frames[number])) or b"").decode().split("\n")

    graph = Graph(
        segment, GraphHistory(segment, segment.times), UrlTable.of(segment), url_states_of(broken), read_lines
    )
    return graph, journal.size()


def run_map() -> list[Row]:
    """Q15: CPU seconds of each question on a million pages, and the most memory a link."""
    with tempfile.TemporaryDirectory() as folder:
        return _ask(*million_pages(Path(folder)))


def _facts(graph: Any) -> int:
    """Bytes of all columns: links and history, and of each page its address, title, language, type and the rest."""
    addresses = graph.addresses
    segment = [getattr(graph.segment, field.name) for field in fields(graph.segment)]
    found = [*segment, *vars(graph.history).values(), *graph.states, graph.hosts]
    found += [addresses._order, addresses._sorted]
    return sum({id(column): int(column.nbytes) for column in found}.values())


def _ask(graph: Any, disk: int) -> list[Row]:
    from letopis.index.link_reports import broken_links  # noqa: PLC0415
    from letopis.index.map_formats import MAP_FORMATS  # noqa: PLC0415
    from letopis.index.site_maps import site_map  # noqa: PLC0415

    rows = [_row("index on disk", disk / LINKS, "B a link")]
    tracemalloc.start()
    moment = graph.as_of(3000, "big.example")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    rows.append(_row("memory, graph and as-of at its peak", (graph.nbytes + peak) / LINKS, "B a link", goal=40))
    rows.append(_row("  the same with all facts of pages", (_facts(graph) + peak) / LINKS, "B a link", goal=40))
    questions: dict[str, Callable[[], object]] = {
        "as-of graph": lambda: graph.as_of(3000, "big.example"),
        "hierarchical map": lambda: site_map(graph, "big.example", 3000),
        "broken links": lambda: sum(1 for _ in broken_links(moment, "big.example")),
        "map as JSON": lambda: sum(map(len, MAP_FORMATS["json"].write(site_map(graph, "big.example", 3000)))),
    }
    for what, ask in questions.items():
        start = time.process_time()
        ask()
        rows.append(_row(what, time.process_time() - start, "s CPU"))
    return rows


def run_check(peer: bool, repeats: int) -> list[Row]:
    """Q20: CPU seconds of a link check from nothing to the list of broken links, and how many were found.

    All of them one after the other, again and again: of each the run that took least.
    """
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    base = f"http://127.0.0.1:{int(server.stdout.readline())}/"
    checkers: dict[str, Callable[[], Checked]] = {"ours": lambda: by_letopis(base)}
    if peer:
        checkers["LinkChecker"] = lambda: by_linkchecker(base, peer_python())
        checkers["wget --spider -r"] = lambda: by_wget(base)
    try:
        runs = [{name: check() for name, check in checkers.items()} for _ in range(repeats)]
        found = {name: min((run[name] for run in runs), key=lambda run: run.seconds) for name in checkers}
    finally:
        server.terminate()
        server.wait()
    return [row for name, checked in found.items() for row in _check_rows(name, checked, found, planted(base))]


def _check_rows(name: str, checked: Checked, all_of: dict[str, Checked], truth: set[tuple[str, str]]) -> Iterator[Row]:
    base = all_of["LinkChecker"].seconds if "LinkChecker" in all_of else None
    # Wget does not tell where a broken link stands.
    true = truth if any(source for source, _ in checked.broken) else {("", target) for _, target in truth}
    right, wrong = len(checked.broken & true), len(checked.broken - true)
    what = f"link check, {name}: {right} of {len(truth)}" + (f", {wrong} wrong" if wrong else "")
    yield _row(what, checked.seconds, "s CPU", base, 0.1 if name == "ours" else None)
    for part, seconds in checked.parts.items():
        if part:
            yield _row(f"  of it {part}", seconds, "s CPU")


def shown(rows: Sequence[Row]) -> None:
    print(f"{'':44}{'value':>10} {'unit':10}{'ratio':>7}{'goal':>7}")
    for row in rows:
        ratio, goal = ("" if row[name] is None else f"{row[name]:g}" for name in ("ratio", "goal"))
        print(f"{row['what']:44}{row['value']:>10} {row['unit']:10}{ratio:>7}{goal:>7}")


def run(only: Sequence[str], *, repeats: int = 2, peer: bool = True) -> list[Row]:
    rows: list[Row] = []
    if "rank" in only:
        rows += run_ranks(repeats)
    if "map" in only:
        rows += run_map()
    if "check" in only:
        rows += run_check(peer, repeats)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="not used: all data is generated")
    parser.add_argument("--only", default="rank,map,check")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--no-linkchecker", action="store_true", help="leave out LinkChecker and wget")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rank", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.rank:
        return rank_here(*args.rank)
    if args.serve:
        return serve()
    rows = run(args.only.split(","), repeats=args.repeats, peer=not args.no_linkchecker)
    print(json.dumps(rows)) if args.json else shown(rows)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT / "src"))
    sys.exit(main())
