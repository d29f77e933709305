"""Q11: change detection on generated pages with known truth, against the document's rule and simhash.

With `--corpus DIR` (a folder that holds `open`, `open-news` and `open-news-2`)
the pairs of versions that a reader judged are replayed instead, as a real
archive would have met them; misjudged ones are told with the blocks that
decided. `--plot FILE.html` draws the scores of both kinds of pairs, and both
error rates over the threshold.

Every trial is a page of its own: a site frame, a body of its own size, and
noise that differs at each visit (clock, counters, an advertisement, a
session number, relative times). After some visits with noise alone comes one
more with noise and, in four of the five cases, a real change.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import plotly.graph_objects as go
from plotly.subplots import make_subplots
from xxhash import xxh3_64_intdigest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.judging import Answer, Told, answers, pairs_of  # noqa: E402
from letopis.change.fingerprints import fingerprint  # noqa: E402
from letopis.change.profiles import HostProfile  # noqa: E402
from letopis.change.verdict import compare  # noqa: E402
from letopis.config import ChangeSettings  # noqa: E402
from letopis.model import Block, BlockKind, Page  # noqa: E402

TABLES = ("pairs.tsv", "pairs-blind.tsv", "pairs-third.tsv", "pairs-fourth.tsv", "pairs-held-out.tsv")

CASES = ("noise", "list 5/30", "list all new", "one sentence", "1/10 paragraphs")
_SYLLABLES = ["ka", "lo", "mi", "ren", "sta", "vo", "dru", "pel", "tin", "sor"]
_SYLLABLES += ["ba", "che", "gri", "no", "hu", "lim", "fer", "zan", "or", "et"]
P, ITEM, H1, TITLE = BlockKind.PARAGRAPH, BlockKind.ITEM, BlockKind.H1, BlockKind.TITLE


@dataclass(frozen=True, slots=True)
class World:
    """How much the detector knows beforehand."""

    name: str
    visits: int
    host_pages: int


WORLDS = (World("cold: 1 visit", 1, 0), World("4 visits", 4, 0), World("8 visits, host known", 8, 20))


class Site:
    """A generated site: words, frame and advertisements come from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.words = ["".join(self.random.choices(_SYLLABLES, k=self.random.randint(1, 4))) for _ in range(3000)]
        self.head = [Block(ITEM, self.phrase(1, 3)) for _ in range(12)]
        self.foot = [Block(P, self.phrase(8, 20)), Block(P, "© 2026 " + self.phrase(2, 4))]
        self.started = self.random.randint(1000, 90000)

    def phrase(self, least: int, most: int) -> str:
        """Some words with a capital."""
        return " ".join(self.random.choices(self.words, k=self.random.randint(least, most))).capitalize()

    def sentence(self) -> str:
        """Six to sixteen words."""
        return self.phrase(6, 16) + "."

    def paragraph(self) -> str:
        """Two to seven sentences."""
        return " ".join(self.sentence() for _ in range(self.random.randint(2, 7)))

    def body(self, case: str) -> list[Block]:
        """What the page is about."""
        if case.startswith("list"):
            return [Block(ITEM, self.phrase(5, 11)) for _ in range(30)]
        size = 10 if case.startswith("1/10") else self.random.choice((3, 6, 10, 25, 60, 120))
        return [Block(P, self.paragraph()) for _ in range(size)]

    def page(self, body: list[Block], visit: int) -> Page:
        """The body in its frame, with the noise of one visit."""
        title = [Block(TITLE, self.head[0].text), Block(H1, self.head[1].text)]
        blocks = [*title, *self.head, self.clock(visit), *body, *self.noise(visit), *self.foot]
        return Page("http://site.test/", "text/html", blocks=tuple(blocks))

    def clock(self, visit: int) -> Block:
        """Date and time, different at every visit."""
        minute = self.random.randint(0, 59)
        return Block(P, f"{1 + visit % 28}. March 2026 {self.random.randint(0, 23)}:{minute:02}:{minute:02}")

    def noise(self, visit: int) -> list[Block]:
        """What else differs at every visit."""
        rand = self.random
        return [
            Block(P, f"{self.started + 37 * visit + rand.randint(1, 30)} views"),
            Block(P, "Advertisement"),
            Block(P, self.phrase(4, 12)),
            Block(P, f"Posted {rand.randint(2, 59)} minutes ago"),
            Block(P, f"{rand.randint(2, 400)} users online"),
            Block(P, f"request {rand.getrandbits(64):016x}"),
            Block(P, f"Page generated in 0.{rand.randint(100, 999)} s"),
        ]

    def changed(self, body: list[Block], case: str) -> list[Block]:
        """The body after the real change of a case; the same for "noise"."""
        rand = self.random
        if case == "list 5/30":
            return [Block(ITEM, self.phrase(5, 11)) for _ in range(5)] + body[:-5]
        if case == "list all new":
            return [Block(ITEM, self.phrase(5, 11)) for _ in body]
        at = rand.randrange(len(body))
        if case == "1/10 paragraphs":
            return [*body[:at], Block(P, self.paragraph()), *body[at + 1 :]]
        if case == "one sentence":
            sentences = body[at].text.split(". ")
            sentences[rand.randrange(len(sentences))] = self.sentence().rstrip(".")
            return [*body[:at], Block(P, ". ".join(sentences)), *body[at + 1 :]]
        return body


def trial(case: str, world: World, seed: int) -> tuple[Page, list[Page], HostProfile]:
    """The new page, its history (newest first) and what is known of its host."""
    site = Site(seed)
    body = site.body(case)
    history = [site.page(body, visit) for visit in range(world.visits)][::-1]
    host = HostProfile()
    for _ in range(world.host_pages):
        host.observe(fingerprint(site.page([Block(P, site.paragraph()) for _ in range(6)], 1)))
    return site.page(site.changed(body, case), world.visits), history, host


def ours(new: Page, history: list[Page], host: HostProfile) -> bool:
    return bool(compare(new, history, host).meaningful)


def document_rule(new: Page, history: list[Page], host: HostProfile) -> bool:
    return bool(compare(new, history, settings=ChangeSettings(count="paragraphs-50")).meaningful)


def simhash_rule(new: Page, history: list[Page], host: HostProfile) -> bool:
    """The usual rule: more than 3 of 64 bits of a simhash over words differ."""
    return (simhash(new.text) ^ simhash(history[0].text)).bit_count() > 3


def simhash(text: str) -> int:
    hashes = [xxh3_64_intdigest(word.encode()) for word in text.lower().split()]
    return sum(1 << bit for bit in range(64) if 2 * sum(value >> bit & 1 for value in hashes) > len(hashes))


RULES: dict[str, Callable[[Page, list[Page], HostProfile], bool]] = {
    "ours": ours,
    "paragraphs-50": document_rule,
    "simhash": simhash_rule,
}


def run(
    trials: int = 200, rules: tuple[str, ...] = tuple(RULES), worlds: tuple[World, ...] = WORLDS, first_seed: int = 0
) -> list[dict[str, object]]:
    """One row a world, case and rule: the share of trials in which a change was seen."""
    rows: list[dict[str, object]] = []
    for world in worlds:
        for case in CASES:
            made = [trial(case, world, seed) for seed in range(first_seed, first_seed + trials)]
            for rule in rules:
                started = process_time()
                seen = sum(RULES[rule](new, list(history), host) for new, history, host in made)
                spent = (process_time() - started) / trials
                rows.append(
                    {
                        "world": world.name,
                        "case": case,
                        "rule": rule,
                        "seen": seen / trials,
                        "cpu_us": round(spent * 1e6),
                    }
                )
    return rows


def fingerprint_cost() -> float:
    """Microseconds for the fingerprint of a page of 30 KB of HTML (150 blocks, 12 KB of text)."""
    site = Site(1)
    page = Page("http://site.test/", "text/html", blocks=tuple(Block(P, site.phrase(4, 20)) for _ in range(150)))
    started = process_time()
    for _ in range(2000):
        fingerprint(page)
    return (process_time() - started) / 2000 * 1e6


def table(rows: list[dict[str, object]]) -> str:
    lines = [f"{'world':<22} {'case':<16} {'rule':<14} {'seen':>7} {'goal':>8} {'CPU us':>8}"]
    for row in rows:
        goal = "0 %" if row["case"] == "noise" else ">= 99 %"
        seen = f"{100 * float(str(row['seen'])):.1f} %"
        lines.append(f"{row['world']:<22} {row['case']:<16} {row['rule']:<14} {seen:>7} {goal:>8} {row['cpu_us']:>8}")
    return "\n".join(lines)


def judged(corpus: Path, tables: tuple[str, ...] = TABLES) -> dict[str, list[Answer]]:
    """The detector's answers to the judged pairs of each table."""
    folder = ROOT / "tests" / "change"
    return {name: answers(corpus, pairs_of(folder / name)) for name in tables}


def told_pairs(found: dict[str, list[Answer]]) -> str:
    """One row a table, then the pairs on which detector and reader differ."""
    lines = [
        f"{'table':<18} {'pairs':>6} {'precision':>10} {'recall':>7} {'false alarms':>13} {'goals: 1, .95, 0':>18}"
    ]
    for name, rows in found.items():
        told = Told.of([(row.pair.changed, row.seen) for row in rows])
        alarms = f"{told.alarms}/{told.alarms + told.calm}"
        lines.append(f"{name:<18} {len(rows):>6} {told.precision:>10.3f} {told.recall:>7.3f} {alarms:>13}")
    wrong = [row for rows in found.values() for row in rows if not row.right]
    for row in wrong:
        lines.append(f"{row.where}: {row.pair.verdict} ({row.pair.reason}), score {row.score}")
        lines += [f"    {block.action} {block.kind}: {block.text[:100]}" for block in row.blocks[:6]]
    return "\n".join(lines)


def error_rates(rows: list[Answer], least: float) -> tuple[float, float]:
    """Shares of missed news and of false alarms, had a change been called one from a score of `least` on."""
    told = Told.of([(row.pair.changed, row.score > least) for row in rows])
    return 1 - told.recall, told.alarm_rate


def plot(found: dict[str, list[Answer]], file: Path) -> None:
    """One row a table: how pairs score, and what other thresholds would miss or call in vain."""
    titles = [title for name in found for title in (f"{name}: scores", f"{name}: error rates")]
    figure = make_subplots(len(found), 2, subplot_titles=titles)
    steps = [n / 200 for n in range(61)]
    for at, rows in enumerate(found.values(), 1):
        for verdict, colour in (("changed", "#2a6fb0"), ("noise", "#c0504d")):
            scores = [row.score for row in rows if row.pair.verdict == verdict]
            shape = go.Histogram(
                x=scores, xbins={"start": 0, "end": 1, "size": 0.02}, name=verdict, marker_color=colour
            )
            figure.add_trace(shape, at, 1)
        rates = [error_rates(rows, least) for least in steps]
        for name, values in (("missed", [rate[0] for rate in rates]), ("false alarms", [rate[1] for rate in rates])):
            figure.add_trace(go.Scatter(x=[1 - least for least in steps], y=values, name=name), at, 2)
        line = [ChangeSettings().threshold] * 2
        figure.add_trace(go.Scatter(x=line, y=[0, 1], mode="lines", line_dash="dot", name="threshold"), at, 2)
    figure.update_layout(height=320 * len(found), barmode="overlay", showlegend=False)
    figure.update_traces(opacity=0.7, selector={"type": "histogram"})
    figure.write_html(file, include_plotlyjs=True)


def as_rows(found: dict[str, list[Answer]]) -> list[dict[str, object]]:
    """The answers for programs."""
    return [
        {"table": name, "where": row.where, "verdict": row.pair.verdict, "seen": row.seen, "score": row.score}
        for name, rows in found.items()
        for row in rows
    ]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0, help="take sites that no rule was tuned on")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--corpus", type=Path, help="judge real pairs: the folder that holds `open`, `open-news`...")
    parser.add_argument("--plot", type=Path, help="write the pictures of real pairs to this HTML file")
    options = parser.parse_args(argv)
    if options.corpus:
        found = judged(options.corpus)
        if options.plot:
            plot(found, options.plot)
        print(json.dumps(as_rows(found)) if options.json else told_pairs(found))
        return 0 if any(found.values()) else 3
    rows = run(options.trials, first_seed=options.first_seed)
    cost = fingerprint_cost()
    if options.json:
        print(json.dumps({"rows": rows, "fingerprint_us": cost}))
    else:
        print(table(rows), f"fingerprint of a 30 KB page: {cost:.0f} us", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
