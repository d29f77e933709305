"""Q17: Memento, CDX and replay, requests a CPU second against pywb on the same captures.

Both servers hold the same captures: Letopis in an archive, pywb in a WARC
file with its own index. Each is a process of its own; what counts is the CPU
time that the process used (user and system, from /proc), not the time of the
client. Rounds are interleaved and the best of each counts.

`--differential N` asks both servers N generated questions and compares their
answers. `--clients N` asks ours with N clients while a crawl writes into the
same archive. `--idle` tells the memory of ours after one request.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# As a script it starts in its own folder.
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.serving.captures import LIST_URLS, MANY, PAGE, START, Scene
from bench.serving.differential import compare
from bench.serving.load import load
from bench.serving.servers import Served, both, ours, stamp_at

LIGHT_GOAL, HEAVY_GOAL = 5.0, 15.0


@dataclass(frozen=True, slots=True)
class Question:
    """One kind of request, as each server wants it."""

    name: str
    ours: str
    theirs: str
    heavy: bool = False
    times: int = 200
    expect: int = 200


@dataclass(frozen=True, slots=True)
class Row:
    """CPU milliseconds a request of both, and how much less ours takes."""

    name: str
    ours: float
    theirs: float
    goal: float

    @property
    def ratio(self) -> float:
        """How many times fewer CPU."""
        return self.theirs / self.ours if self.ours else float("inf")


def questions() -> list[Question]:
    """What people and programs ask most."""
    at = stamp_at(START)
    return [
        Question("TimeGate", f"/web/{PAGE}", f"/coll/{PAGE}", expect=302),
        Question("raw memento", f"/web/{at}id_/{PAGE}", f"/coll/{at}id_/{PAGE}"),
        Question("rewritten memento", f"/web/{at}if_/{PAGE}", f"/coll/{at}/{PAGE}"),
        Question("CDX exact", f"/web/cdx?url={PAGE}", f"/coll/cdx?url={PAGE}"),
        Question("TimeMap, 5,000 captures", f"/web/timemap/link/{MANY}", f"/coll/timemap/link/{MANY}", True, 6),
        Question("CDX prefix, 10,000 rows", f"/web/cdx?url={LIST_URLS}*&limit=10000",
                 f"/coll/cdx?url={LIST_URLS}*&limit=10000", True, 5),
    ]  # fmt: skip


def measure(served: Served, path: str, times: int, expect: int) -> float:
    """CPU milliseconds of the server a request."""
    accept = {"Accept-Datetime": "Mon, 01 Jan 2024 12:00:00 GMT"} if expect == 302 else {}
    for _ in range(2):
        status = served.ask(path, **accept)[0]
        assert status in (expect, 307), f"{served.name} {path}: {status}"
    before = served.cpu()
    for _ in range(times):
        served.ask(path, **accept)
    return (served.cpu() - before) / times * 1000


def run(scene: Scene, rounds: int = 3, report: Callable[[str], None] = lambda text: None) -> list[Row]:
    """All questions, interleaved, the best round of each."""
    rows = []
    with both(scene) as (ours, theirs):
        for question in questions():
            mine, yours = [], []
            for _ in range(rounds):
                mine.append(measure(ours, question.ours, question.times, question.expect))
                yours.append(measure(theirs, question.theirs, max(2, question.times // 4), question.expect))
            goal = HEAVY_GOAL if question.heavy else LIGHT_GOAL
            rows.append(Row(question.name, min(mine), min(yours), goal))
            report(f"{question.name}: {min(mine):.2f} against {min(yours):.2f} ms")
    return rows


def idle_memory(scene: Scene) -> float:
    """Mebibytes of a server that was asked for one page."""
    served = ours(scene.archive)
    try:
        assert served.ask("/")[0] == 200
        return served.memory()
    finally:
        served.close()


def table(rows: list[Row]) -> str:
    """One line a question."""
    lines = [f"{'question':26} {'ours ms':>9} {'pywb ms':>9} {'ratio':>7} {'goal':>6}"]
    lines += [f"{row.name:26} {row.ours:9.3f} {row.theirs:9.2f} {row.ratio:7.1f} {row.goal:6.0f}" for row in rows]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """0 when every ratio reaches its goal, every answer agrees, or no request failed."""
    parser = argparse.ArgumentParser(prog="bench/serve.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--corpus", type=Path, help="not needed: the captures are generated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--differential", type=int, metavar="N", help="compare answers to N generated questions")
    parser.add_argument("--clients", type=int, metavar="N", help="N clients at once while a crawl runs")
    parser.add_argument("--idle", action="store_true", help="the memory of our server after one request")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        if given.clients:
            return load(Path(folder), given.clients, as_json=given.json)
        scene = Scene.make(Path(folder), small=bool(given.differential))
        if given.differential:
            return compare(scene, given.differential, as_json=given.json)
        if given.idle:
            print(json.dumps({"idle_mb": round(idle_memory(scene), 1)}))
            return 0
        rows = run(scene, given.rounds, lambda text: print(text, file=sys.stderr))
    if given.json:
        print(json.dumps([{"name": row.name, "ours_ms": row.ours, "pywb_ms": row.theirs, "ratio": row.ratio,
                           "goal": row.goal} for row in rows]))  # fmt: skip
    else:
        print(table(rows))
    return 0 if all(row.ratio >= row.goal for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
