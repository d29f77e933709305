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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.measuring import measured  # noqa: E402

PEERS = ROOT / ".bench" / "graph"
NODES, LINKS = 1_000_000, 10_000_000
SITE_PAGES, SITE_BROKEN = 5_001, 50
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
    from letopis.graph import pagerank  # noqa: PLC0415

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
    from backports import zstd  # noqa: PLC0415

    from letopis.graph.addresses import Addresses  # noqa: PLC0415
    from letopis.graph.columns import Texts  # noqa: PLC0415
    from letopis.graph.graph import Graph, History  # noqa: PLC0415
    from letopis.graph.journal import Journal  # noqa: PLC0415
    from letopis.graph.segment import Segment  # noqa: PLC0415
    from letopis.graph.states import ERROR, Answered, as_states, stretches  # noqa: PLC0415
    from letopis.urls import url_key  # noqa: PLC0415

    urls = ["http://big.example/"] + [f"http://big.example/{number}.html" for number in range(1, NODES)]
    pages = np.arange(NODES, dtype=np.int32)
    chance = np.random.default_rng(3)
    targets = chance.integers(0, NODES, (NODES, 10)).astype(np.int32)
    targets[:, 0] = (pages.astype(np.int64) * 5 + 1) % NODES
    small = np.zeros(NODES, np.uint8)
    segment = Segment(
        names=Texts.of(["big.example"]), urls=Texts.of(urls), keys=np.array([url_key(url) for url in urls]),
        hosts=np.zeros(NODES, np.int32), ids=np.arange(1, NODES + 1), pages=pages,
        times=np.full(NODES, 1000), statuses=np.full(NODES, 200, np.int16), sizes=np.full(NODES, 9000),
        digests=np.arange(NODES), link_keys=np.arange(NODES), judged=small, roles=small,
        finals=np.full(NODES, -1, np.int32), counts=np.full(NODES, 10, np.int32), types=Texts.of(["text/html"] * NODES),
        titles=Texts.of([f"Page {number}" for number in range(NODES)]), languages=Texts.of(["en"] * NODES),
        targets=targets.reshape(-1), kinds=np.zeros(NODES * 10, np.uint8),
        text_frames=np.zeros(1, np.int64), text_links=np.full(1, NODES * 10),
    )  # fmt: skip
    broken = [row for url in range(99, NODES, 100) for row in stretches(url, [Answered(2000, ERROR, 404)])]
    journal = Journal(folder / "links.log")
    journal.append(segment.pack(), NODES, NODES)
    texts = Journal(folder / "texts.log")
    texts.append(zstd.compress(b"\n" * (LINKS - 1), 1), NODES, NODES)
    addresses = Addresses.of(segment)
    return Graph(segment, History(segment, segment.times), addresses, as_states(broken), texts), journal.size()


def run_map() -> list[Row]:
    """Q15: CPU seconds of each question on a million pages, and the most memory a link."""
    with tempfile.TemporaryDirectory() as folder:
        return _ask(*million_pages(Path(folder)))


def _ask(graph: Any, disk: int) -> list[Row]:
    from letopis.graph import MAP_FORMATS, broken_links, site_map  # noqa: PLC0415

    rows = [_row("index on disk", disk / LINKS, "B a link")]
    tracemalloc.start()
    moment = graph.as_of(3000, "big.example")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    rows.append(_row("memory, graph and as-of at its peak", (graph.nbytes + peak) / LINKS, "B a link", 1.0, 40))
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


def site_files() -> dict[str, bytes]:
    """A site of 5,001 pages in a tree of ten, with 50 links to pages that are not there."""
    names = [_word(number) for number in range(SITE_PAGES)]
    files = {}
    for number, name in enumerate(names):
        below = [names[child] for child in range(number * 10 + 1, min(number * 10 + 11, SITE_PAGES))]
        others = [names[(number * 7 + step) % SITE_PAGES] for step in range(20)]
        links = "".join(f'<li><a href="/{other}.html">{other}</a></li>' for other in [*below, *others])
        lost = f'<a href="/lost-{name}.html">lost</a>' if number % 100 == 50 else ""
        text = f"<p>{'The quick brown fox jumps over the lazy dog. ' * 40}</p>"
        body = f"<!DOCTYPE html><html lang=en><title>{name}</title><body><ul>{links}</ul>{lost}{text}</body></html>"
        files[f"/{name}.html" if number else "/"] = body.encode()
    return files


def _word(number: int) -> str:
    """A name in letters alone: addresses that differ in numbers only would look like a trap."""
    letters = ""
    while True:
        number, rest = divmod(number, 26)
        letters = chr(97 + rest) + letters
        if not number:
            return f"page-{letters}"


def serve_site() -> int:
    """Serves the site on a free port, whose number is the first line it prints."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # noqa: PLC0415

    files = site_files()
    files[f"/{_word(0)}.html"] = files["/"]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = files.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
    return 0


def run_check(peer: bool) -> list[Row]:
    """Q20: CPU seconds of a link check from nothing to the list of broken links, and how many were found."""
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    base = f"http://127.0.0.1:{int(server.stdout.readline())}/"
    try:
        crawled, asked, found = _check_ours(base)
        ours = crawled + asked
        theirs, seen = _check_linkchecker(base) if peer else (None, 0)
    finally:
        server.terminate()
        server.wait()
    rows = [
        _row(f"link check, ours: {found} of {SITE_BROKEN}", ours, "s CPU", theirs, 0.1),
        _row("  of it the crawl", crawled, "s CPU"),
        _row("  of it reading links and the answer", asked, "s CPU"),
    ]
    if theirs is not None:
        rows.append(_row(f"link check, LinkChecker: {seen} of {SITE_BROKEN}", theirs, "s CPU", theirs))
    return rows


def _cpu_of(command: list[str]) -> tuple[float, str]:
    """CPU seconds of a child and what it printed."""
    spent = measured(command)
    if spent.status not in (0, 1):
        print(f"{' '.join(command[:6])} ended with status {spent.status}", file=sys.stderr)
    return spent.seconds, spent.out


def _check_ours(base: str) -> tuple[float, float, int]:
    with tempfile.TemporaryDirectory() as folder:
        letopis = [sys.executable, "-m", "letopis.cli", "--archive", str(Path(folder) / "a")]
        crawled, _ = _cpu_of([*letopis, "crawl", base, "--once", "--delay", "0", "-q"])
        asked, rows = _cpu_of([*letopis, "broken", base, "--json", "-q"])
    return crawled, asked, sum('"status": 404' in line for line in rows.splitlines())


def _check_linkchecker(base: str) -> tuple[float, int]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "linkcheckerrc"
        settings.write_text("[checking]\nmaxrequestspersecond=100000\nthreads=10\n")
        command = [str(peer_python()), "-m", "linkcheck", "-f", str(settings), "-o", "csv", "--no-status", base]
        seconds, told = _cpu_of(command)
    return seconds, sum("404" in line and "lost-" in line for line in told.splitlines())


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
        rows += run_check(peer)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="not used: all data is generated")
    parser.add_argument("--only", default="rank,map,check")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--no-linkchecker", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rank", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.rank:
        return rank_here(*args.rank)
    if args.serve:
        return serve_site()
    rows = run(args.only.split(","), repeats=args.repeats, peer=not args.no_linkchecker)
    print(json.dumps(rows)) if args.json else shown(rows)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT / "src"))
    sys.exit(main())
