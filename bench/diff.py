"""Q21: differences for people, side by side with lxml's htmldiff and difflib.

Pages are generated (or taken from `--corpus DIR`, a folder with `open` and
`open-news`). CPU time, best of interleaved repeats. Whatever has not ended after
so much CPU time, however busy the machine is, is stopped and shown as such.
"""

from __future__ import annotations

import argparse
import difflib
import json
import multiprocessing
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

from lxml.html.diff import htmldiff

from letopis.change.diff_formats import char_diff, diff_as_json, side_by_side_html, unified_diff, word_diff
from letopis.change.visual_diff import visual_html

Pair = tuple[str, str]
Work = Callable[[str, str], object]
_SYLLABLES = ["ka", "lo", "mi", "ren", "sta", "vo", "dru", "pel", "tin", "sor", "ba", "che"]
PATIENCE = 20.0


def page(seed: int, size: int) -> list[str]:
    """Lines of an HTML page of about `size` bytes with words of its own."""
    rand = random.Random(seed)
    vocabulary = ["".join(rand.choices(_SYLLABLES, k=rand.randint(1, 5))) for _ in range(4000)]
    lines: list[str] = []
    length = 0
    while length < size:
        tag = rand.choice(("p", "li", "div", "td", "h2"))
        text = " ".join(rand.choices(vocabulary, k=rand.randint(3, 40)))
        link = f' <a href="/{rand.choice(vocabulary)}/{rand.randrange(9999)}">{rand.choice(vocabulary)}</a>'
        lines.append(f'<{tag} class="c{rand.randrange(30)}">{text}{link}</{tag}>\n')
        length += len(lines[-1])
    return lines


def related(size: int) -> Pair:
    """Two states of one page: some lines edited, some new, some gone."""
    rand = random.Random(7)
    old = page(1, size)
    new = list(old)
    for at in rand.sample(range(len(new)), max(1, len(new) // 20)):
        new[at] = new[at].replace(" ", " changed ", 2)
    del new[len(new) // 3 : len(new) // 3 + 3]
    new[len(new) // 2 : len(new) // 2] = page(3, 1500)
    return _html(old), _html(new)


def unrelated(size: int) -> Pair:
    """Two pages that share nothing but tags and a language."""
    return _html(page(11, size)), _html(page(12, size))


def _html(lines: list[str]) -> str:
    return f"<html><head><title>t</title></head><body>\n{''.join(lines)}</body></html>\n"


def html_diff_table(old: str, new: str) -> object:
    return difflib.HtmlDiff().make_file(old.splitlines(), new.splitlines())


def difflib_unified(old: str, new: str) -> object:
    return list(difflib.unified_diff(old.splitlines(True), new.splitlines(True)))


OURS: dict[str, Work] = {
    "ours visual": visual_html,
    "ours side by side": side_by_side_html,
    "ours unified": unified_diff,
    "ours words": word_diff,
    "ours chars": char_diff,
    "ours json": diff_as_json,
}
PEERS: dict[str, Work] = {
    "lxml htmldiff": htmldiff,
    "difflib.HtmlDiff": html_diff_table,
    "difflib unified": difflib_unified,
}
GOALS = {("related 100 KB", "ours visual"): 0.020, ("unrelated 1 MB", "ours visual"): 1.0}


def _worker(work: Work, pair: Pair, out: multiprocessing.queues.Queue[float]) -> None:
    started = process_time()
    work(*pair)
    out.put(process_time() - started)


def patient(work: Work, pair: Pair, seconds: float) -> float | None:
    """CPU seconds in a process of its own; None when it does not end in time."""
    context = multiprocessing.get_context("fork")
    out: multiprocessing.queues.Queue[float] = context.Queue()
    child = context.Process(target=_worker, args=(work, pair, out))
    child.start()
    while child.is_alive():
        child.join(0.2)
        if child.is_alive() and _spent(child.pid) > seconds:
            child.kill()
    return out.get(timeout=5) if child.exitcode == 0 else None


def _spent(pid: int | None) -> float:
    """CPU seconds of a process, asked from outside: a limit set inside would make its own clock coarse."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pairs(corpus: str) -> dict[str, Pair]:
    found = {
        "related 100 KB": related(100_000),
        "unrelated 1 MB": unrelated(1_000_000),
        "unrelated 5 MB": unrelated(5_000_000),
    }
    if corpus:
        found |= real_pairs(Path(corpus))
    return found


def real_pairs(folder: Path) -> dict[str, Pair]:
    """A specification edited, and two news pages of different sites cut to 1 MB."""
    files = sorted((folder / "open" / "w3-org" / "paymentrequest").glob("*.html"))[7:9]
    spec = [file.read_text("utf-8", "replace") for file in files]
    news = [file.read_text("utf-8", "replace") for file in sorted((folder / "open-news").glob("*/index/0010.html"))]
    return {
        f"real edit {len(spec[0]) // 1000} KB": (spec[0], spec[1]),
        "real news 0.8 MB": (news[0], news[2][:830_000]),
    }


def run(corpus: str = "", repeats: int = 5, patience: float = PATIENCE) -> list[dict[str, object]]:
    """One row a pair and method, with CPU seconds (None: did not end)."""
    rows: list[dict[str, object]] = []
    for name, pair in pairs(corpus).items():
        large = len(pair[0]) > 300_000
        best: dict[str, float | None] = {}
        for _ in range(1 if large else repeats):
            for method, work in (OURS | PEERS).items():
                if method in best and best[method] is None:
                    continue
                spent = patient(work, pair, patience)
                known = best.get(method)
                best[method] = spent if known is None or spent is None else min(known, spent)
        reference = best.get("lxml htmldiff")
        for method, seconds in best.items():
            ratio = seconds / reference if seconds is not None and reference else None
            rows.append(
                {"pair": name, "method": method, "cpu_s": seconds, "ratio": ratio, "goal": GOALS.get((name, method))}
            )
    return rows


def table(rows: list[dict[str, object]]) -> str:
    lines = [f"{'pair':<20} {'method':<20} {'CPU ms':>10} {'to htmldiff':>12} {'goal ms':>8}"]
    for row in rows:
        seconds, ratio, goal = row["cpu_s"], row["ratio"], row["goal"]
        spent = f"{seconds * 1000:.1f}" if isinstance(seconds, float) else "no end"
        share = f"{ratio:.2f}" if isinstance(ratio, float) else ""
        wanted = f"{goal * 1000:.0f}" if isinstance(goal, float) else ""
        lines.append(f"{row['pair']:<20} {row['method']:<20} {spent:>10} {share:>12} {wanted:>8}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--corpus", default="", help="folder with `open` and `open-news`; generated pages alone without it"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--patience", type=float, default=PATIENCE, help="seconds of CPU after which a method counts as endless"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    rows = run(options.corpus, options.repeats, options.patience)
    print(json.dumps(rows) if options.json else table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
