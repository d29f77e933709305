"""The rows of docs/benchmarks.md: what is measured, by which script, against whom, and the goal of each.

A script prints JSON in a form of its own; the `find` of a row takes its figure out of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """What one run found: ours and the best peer in the unit of the row, and the ratio that the goal is about.

    A script that found no peer prints no ratio.
    """

    ours: float
    peer: float | None
    ratio: float | None


@dataclass(frozen=True)
class BenchmarkRun:
    """One script with its words; `{corpus}` stands for the folder with the unpacked data."""

    script: str
    words: tuple[str, ...] = ()

    def command(self, corpus: str = "CORPUS") -> str:
        """What a reader types to get it."""
        return " ".join([f"python bench/{self.script}.py", *(word.format(corpus=corpus) for word in self.words)])


@dataclass(frozen=True)
class BenchmarkRow:
    """One figure of one run. A ratio reaches its goal from below, or from above where `more` is better."""

    name: str
    what: str
    run: BenchmarkRun
    unit: str
    peer: str
    goal: float
    find: Callable[[Any], Figure]
    page: str
    more: bool = False

    def reached(self, ratio: float) -> bool:
        """The goal holds."""
        return ratio >= self.goal if self.more else ratio <= self.goal

    def figure(self, found: Any) -> Figure | None:
        """Its figure in what the script printed; None where the script has no row for it without a peer."""
        try:
            return self.find(found)
        except StopIteration:
            return None


VERSIONS = BenchmarkRun("store", ("--corpus", "{corpus}/open", "--no-growth"))
NEWS = BenchmarkRun("store", ("--corpus", "{corpus}/open-news", "--no-growth"))
UNSEEN = BenchmarkRun("store", ("--each", "{corpus}/open-news-2"))
EACH = BenchmarkRun("store", ("--each", "{corpus}/open", "{corpus}/open-news", "{corpus}/open-news-2"))
GROWTH = BenchmarkRun("store")
CODECS = BenchmarkRun("codecs", ("--corpus", "{corpus}/open-pages"))
CRAWL = BenchmarkRun("crawl", ("--pages", "3000", "--rounds", "2"))
FRONTIER = BenchmarkRun("frontier")
REVISIT = BenchmarkRun("revisit")
CASES = BenchmarkRun("change")
PAIRS = BenchmarkRun("change", ("--corpus", "{corpus}"))
ZREC = BenchmarkRun("zrec", ("--corpus", "{corpus}"))
RANKS = BenchmarkRun("graph", ("--only", "rank"))
MAPS = BenchmarkRun("graph", ("--only", "map"))
CHECKS = BenchmarkRun("graph", ("--only", "check"))
SEARCH = BenchmarkRun("search")
NAMES = BenchmarkRun("search", ("--pages", "3000", "--links", "20"))
INDEX = BenchmarkRun("index_size", ("--pages", "100"))
SERVE = BenchmarkRun("serve")
IDLE = BenchmarkRun("serve", ("--idle",))
REPLAY = BenchmarkRun("replay", ("--corpus", "{corpus}/warc"))
CAPTURE = BenchmarkRun("capture", ("--only", "R5", "--pages", "8"))
BYTES = BenchmarkRun("capture", ("--only", "R6"))
FLEET = BenchmarkRun("scale", ("--repeats", "1", "--pages", "1500", "--puts", "0", "--leases", "0"))
MONITOR = BenchmarkRun("monitor")
DIFF = BenchmarkRun("diff", ("--corpus", "{corpus}"))
IMPORT = BenchmarkRun("exchange", ("--pages", "2800", "--moments", "4", "--corpus", "{corpus}"))
EXTRACT = BenchmarkRun("extract", ("--corpus", "{corpus}/open-pages"))
STARTS = BenchmarkRun("starts", ("--corpus", "{corpus}/open-pages"))


def _named(rows: Iterable[Mapping[str, Any]], key: str, beginning: str) -> Mapping[str, Any]:
    return next(row for row in rows if str(row[key]).startswith(beginning))


def of_store(beginning: str) -> Callable[[Any], Figure]:
    """A row of the store benchmark, which tells all three itself."""

    def find(rows: Sequence[Mapping[str, Any]]) -> Figure:
        row = _named(rows, "what", beginning)
        return Figure(row["ours"], row["peer"], row["ratio"])

    return find


def _growth(rows: Sequence[Mapping[str, Any]]) -> Figure:
    worst = max(row["ratio"] for row in rows if row["what"].startswith("Q19"))
    return Figure(worst, None, worst)


def _codecs(found: Mapping[str, Any]) -> Figure:
    ratio = _named(found["q7"], "contest", "generic")["ratio"]
    return Figure(ratio, 1.0, ratio)


def of_crawl(peer: str, *, over_ours: bool) -> Callable[[Any], Figure]:
    """Milliseconds a page of ours and of a peer; the ratio is the peer's to ours, or ours to the peer's."""

    def find(rows: Sequence[Mapping[str, Any]]) -> Figure:
        ours, theirs = (_named(rows, "name", name)["cpu_ms_a_page"] for name in ("Letopis, 1", peer))
        return Figure(ours, theirs, theirs / ours if over_ours else ours / theirs)

    return find


def of_frontier(beginning: str) -> Callable[[Any], Figure]:
    """Bytes of one kind of URL; the goal is about the bytes themselves."""

    def find(rows: Sequence[Mapping[str, Any]]) -> Figure:
        ours = _named(rows, "what", beginning)["ours"]
        return Figure(ours, None, ours)

    return find


def _index(found: Mapping[str, Any]) -> Figure:
    return Figure(found["words"] + found["links"], found["packs"], found["ratio"])


def of_revisit(policy: str) -> Callable[[Any], Figure]:
    """The world and seed in which a policy comes least near to what is possible."""

    def find(found: Mapping[str, Any]) -> Figure:
        worst = min(row["result"]["of_oracle"] for row in found["worlds"] if row["result"]["policy"] == policy)
        return Figure(worst, 1.0, worst)

    return find


def of_cases(*, noise: bool) -> Callable[[Any], Figure]:
    """Percent of generated trials in which our rule saw a change: the most of noise, the least of changes."""

    def find(found: Mapping[str, Any]) -> Figure:
        rows = [row for row in found["rows"] if row["rule"] == "ours" and (row["case"] == "noise") is noise]
        seen = 100 * (max if noise else min)(row["seen"] for row in rows)
        return Figure(seen, None, seen)

    return find


def of_pairs(*, missed: bool) -> Callable[[Any], Figure]:
    """Percent of pairs judged by people: changes that were not seen, or noise that was told as one."""

    def find(rows: Sequence[Mapping[str, Any]]) -> Figure:
        seen = [row["seen"] for row in rows if row["verdict"] == ("changed" if missed else "noise")]
        wrong = 100 * seen.count(not missed) / len(seen)
        return Figure(wrong, None, wrong)

    return find


def of_zrec(label: str) -> Callable[[Any], Figure]:
    """The row of a label that has the goal: the best peer's."""

    def find(found: Mapping[str, Any]) -> Figure:
        row = next(row for row in found["rows"] if row["what"] == label and row["goal"] is not None)
        return Figure(row["ours"], row["theirs"], row["ratio"])

    return find


def _ranks(rows: Sequence[Mapping[str, Any]]) -> Figure:
    worst = max((row for row in rows if row["what"].endswith(", ours")), key=lambda row: float(row["ratio"]))
    return Figure(worst["value"], worst["value"] / worst["ratio"], worst["ratio"])


def of_graph(beginning: str) -> Callable[[Any], Figure]:
    """A row of the link benchmark; the goal is about its ratio where it has one, else about its value."""

    def find(rows: Sequence[Mapping[str, Any]]) -> Figure:
        row = _named(rows, "what", beginning)
        ratio = row["ratio"]
        return Figure(row["value"], row["value"] / ratio if ratio else None, ratio or row["value"])

    return find


def of_costs(name: str, base: str, key: str = "us") -> Callable[[Any], Figure]:
    """Microseconds of ours and of the bare library, for benchmarks that give all costs by name."""

    def find(found: Mapping[str, Any]) -> Figure:
        costs = found[key]
        ours, theirs = (cost["us"] if isinstance(cost, dict) else cost for cost in (costs[name], costs[base]))
        return Figure(ours, theirs, ours / theirs)

    return find


def of_serve(*, heavy: bool) -> Callable[[Any], Figure]:
    """The question with the least gain over pywb, of the heavy ones or of all others."""
    names = ("TimeMap", "CDX prefix")

    def find(rows: Sequence[Mapping[str, Any]]) -> Figure:
        chosen = [row for row in rows if row["name"].startswith(names) is heavy]
        worst = min(chosen, key=lambda row: float(row["ratio"]))
        return Figure(worst["ours_ms"], worst["pywb_ms"], worst["ratio"])

    return find


def of_monitor(beginning: str, *, absolute: bool = False) -> Callable[[Any], Figure]:
    """A row of the monitor benchmark; the goal is about the value itself where it is `absolute`."""

    def find(rows: Sequence[Mapping[str, Any]]) -> Figure:
        row = _named(rows, "what", beginning)
        return Figure(row["ours"], row["peer"], row["ours"] if absolute else row["ratio"])

    return find


def of_diff(pair: str) -> Callable[[Any], Figure]:
    """Milliseconds of the difference that people see, beside lxml's; the goal is about ours."""

    def find(rows: Sequence[Mapping[str, Any]]) -> Figure:
        costs = {row["method"]: row["cpu_s"] for row in rows if row["pair"] == pair}
        theirs = costs.get("lxml htmldiff")
        ours = 1000 * costs["ours visual"]
        return Figure(ours, None if theirs is None else 1000 * theirs, ours)

    return find


def _import(rows: Sequence[Mapping[str, Any]]) -> Figure:
    worst = min(rows, key=lambda row: float(row["bound"] / row["ours"]))
    return Figure(worst["ours"], worst["bound"], worst["bound"] / worst["ours"])


def of_capture(way: str) -> Callable[[Any], Figure]:
    """Processor seconds a page of one way beside a browser that only loads."""

    def find(found: Mapping[str, Any]) -> Figure:
        ours, plain = found["R5"][way], found["R5"]["plain"]
        return Figure(ours, plain, ours / plain)

    return find


def of_replay(name: str, *, over_peer: bool = False) -> Callable[[Any], Figure]:
    """A figure of Letopis and of ReplayWeb.page; the goal is about ours, or about ours beside theirs."""

    def find(found: Mapping[str, Any]) -> Figure:
        ours, theirs = (found["figures"][player][name] for player in ("letopis", "replayweb.page"))
        return Figure(ours, theirs, ours / theirs if over_peer else ours)

    return find


def of_bytes(what: str) -> Callable[[Any], Figure]:
    """Bytes of ten captures of a page, beside those of ten WACZ files."""

    def find(found: Mapping[str, Any]) -> Figure:
        row = found[f"R6 {what}"]
        return Figure(row["archive_bytes"], row["wacz_bytes"], row["archive_bytes"] / row["wacz_bytes"])

    return find


def _fleet(found: Mapping[str, Any]) -> Figure:
    most = max(row["pages_a_second"] for row in found["model"] if row["agents"] == 1000 and row["offered"] == 60)
    return Figure(most, None, most)


def _foretold(found: Mapping[str, Any]) -> Figure:
    worst = max(found["checked"], key=lambda row: abs(1 - float(row["cpu_foretold"] / row["cpu_measured"])))
    return Figure(worst["cpu_measured"], worst["cpu_foretold"], abs(1 - worst["cpu_foretold"] / worst["cpu_measured"]))


def of_starts(what: str) -> Callable[[Any], Figure]:
    """Seconds of one start beside those of Python alone; the goal is about ours."""

    def find(found: Mapping[str, Any]) -> Figure:
        ours = found["cpu_s"][what]
        return Figure(ours, found["cpu_s"]["bare Python"], ours)

    return find


ROWS = (
    BenchmarkRow("Q1", "packs of slowly changing pages", VERSIONS, "bytes", "xz -9e, solid", 0.88,
                 of_store("Q1 packs, xz -9e"), "store"),
    BenchmarkRow("Q2", "packs of news front pages", NEWS, "bytes", "xz -9e, solid", 0.86,
                 of_store("Q2 packs, xz -9e"), "store"),
    BenchmarkRow("Q1", "packs of slowly changing pages, each of 22 sites alone", EACH, "mean", "xz -9e of the site",
                 0.88, of_store("Q1 mean"), "store"),
    BenchmarkRow("Q2", "packs of news front pages, each of 10 sites alone", EACH, "mean", "xz -9e of the site", 0.95,
                 of_store("Q2 mean"), "store"),
    BenchmarkRow("Q2", "packs of front pages that nothing was tuned on", UNSEEN, "mean", "xz -9e of the site", 0.95,
                 of_store("Q2 mean"), "store"),
    BenchmarkRow("Q3", "catalogue a version", VERSIONS, "bytes", "", 120, lambda rows: Figure(
        (row := _named(rows, "what", "Q3"))["ratio"], None, row["ratio"]), "store"),
    BenchmarkRow("Q4", "read newest after compaction", VERSIONS, "ms", "gunzip", 0.8,
                 of_store("Q4 read newest after"), "store"),
    BenchmarkRow("Q4", "read newest after compaction, news", NEWS, "ms", "gunzip", 0.8,
                 of_store("Q4 read newest after"), "store"),
    BenchmarkRow("Q5", "read an old version", VERSIONS, "ms", "gunzip", 8, of_store("Q5"), "store"),
    BenchmarkRow("Q5", "read an old version, news", NEWS, "ms", "gunzip", 8, of_store("Q5"), "store"),
    BenchmarkRow("Q6", "put, durable", VERSIONS, "ms", "gzip -9", 2, of_store("Q6"), "store"),
    BenchmarkRow("Q7", "single pages, best of the contest", CODECS, "share", "the thesis' methods", 0.78, _codecs,
                 "codecs"),
    BenchmarkRow("Q8", "crawl of 6 KB pages, Scrapy's time over ours", CRAWL, "ms a page", "Scrapy", 14,
                 of_crawl("Scrapy, default", over_ours=True), "crawl", more=True),
    BenchmarkRow("Q8", "crawl beside the bare libraries", CRAWL, "ms a page", "bare libraries", 1.5,
                 of_crawl("bare", over_ours=False), "crawl"),
    BenchmarkRow("Q9", "memory of a seen URL", FRONTIER, "bytes", "", 20, of_frontier("memory of 10"), "frontier"),
    BenchmarkRow("Q9", "memory of a queued URL", FRONTIER, "bytes", "", 60, of_frontier("memory of 1,"), "frontier"),
    BenchmarkRow("Q10", "freshness, worst world", REVISIT, "share", "oracle", 0.99, of_revisit("optimal"), "revisit",
                 more=True),
    BenchmarkRow("Q10", "captured changes, worst world", REVISIT, "share", "oracle", 0.97, of_revisit("captured"),
                 "revisit", more=True),
    BenchmarkRow("Q11", "false alarms, generated pages", CASES, "%", "", 0, of_cases(noise=True), "change"),
    BenchmarkRow("Q11", "changes seen, generated pages", CASES, "%", "", 99, of_cases(noise=False), "change",
                 more=True),
    BenchmarkRow("Q11", "missed news, real pairs judged blind", PAIRS, "%", "", 0, of_pairs(missed=True), "change"),
    BenchmarkRow("Q11", "false alarms, real pairs judged blind", PAIRS, "%", "", 2, of_pairs(missed=False), "change"),
    BenchmarkRow("Q12", "zrec file, grouped", ZREC, "bytes", "zstd -19, solid", 1.12, of_zrec("size grouped"), "zrec"),
    BenchmarkRow("Q12", "zrec file, ungrouped", ZREC, "bytes", "zstd -19, solid", 1.18, of_zrec("size ungrouped"),
                 "zrec"),
    BenchmarkRow("Q13", "bytes on the wire, much changed", ZREC, "bytes", "best of zchunk, zsync, rsync, casync", 0.60,
                 of_zrec("A -> B"), "zrec"),
    BenchmarkRow("Q13", "bytes on the wire, little changed", ZREC, "bytes", "best of zchunk, zsync, rsync, casync",
                 0.45, of_zrec("A -> C"), "zrec"),
    BenchmarkRow("Q14", "PageRank, 10 M links", RANKS, "s", "scipy", 1.0, _ranks, "graph"),
    BenchmarkRow("Q15", "map of a million pages, memory a link", MAPS, "bytes", "", 40, of_graph("memory, graph"),
                 "graph"),
    BenchmarkRow("Q16", "search, one word, ten best", SEARCH, "us", "bare tantivy", 1.3,
                 of_costs("ours, now", "tantivy, bare"), "search"),
    BenchmarkRow("Q16", "search with link texts", NAMES, "us", "bare tantivy", 1.3,
                 of_costs("ours, now", "tantivy, bare"), "search"),
    BenchmarkRow("Q17", "light requests, pywb's time over ours, worst", SERVE, "ms", "pywb", 5,
                 of_serve(heavy=False), "serve", more=True),
    BenchmarkRow("Q17", "heavy requests, pywb's time over ours, worst", SERVE, "ms", "pywb", 15, of_serve(heavy=True),
                 "serve", more=True),
    BenchmarkRow("Q18", "1,000 unchanged URLs, 304", MONITOR, "s", "urlwatch", 0.2, of_monitor("letopis, ETag"),
                 "monitor"),
    BenchmarkRow("Q18", "1,000 unchanged URLs, no validators", MONITOR, "s", "urlwatch", 0.2,
                 of_monitor("letopis, no validators"), "monitor"),
    BenchmarkRow("Q18", "a slightly changed version", MONITOR, "bytes", "urlwatch", 1000,
                 of_monitor("bytes a changed version, compacted", absolute=True), "monitor"),
    BenchmarkRow("Q19", "ten times as much, worst", GROWTH, "x", "", 1.3, _growth, "store"),
    BenchmarkRow("Q20", "link check of 5,001 pages", CHECKS, "s", "LinkChecker", 0.1, of_graph("link check, ours"),
                 "graph"),
    BenchmarkRow("Q21", "difference of 100 KB pages", DIFF, "ms", "lxml htmldiff", 20, of_diff("related 100 KB"),
                 "diff"),
    BenchmarkRow("Q21", "difference of unrelated 1 MB pages", DIFF, "ms", "lxml htmldiff", 1000,
                 of_diff("unrelated 1 MB"), "diff"),
    BenchmarkRow("Q22", "index of words and links, small history", INDEX, "bytes", "the packs", 1.0, _index, "search"),
    BenchmarkRow("Q23", "full compaction", VERSIONS, "ms", "gzip -9", 8, of_store("Q23"), "store"),
    BenchmarkRow("Q23", "full compaction, news", NEWS, "ms", "gzip -9", 8, of_store("Q23"), "store"),
    BenchmarkRow("Q24", "first search, letopis search", STARTS, "s", "bare Python", 0.2, of_starts("search"), "starts"),
    BenchmarkRow("Q24", "first search, a word found nowhere", STARTS, "s", "bare Python", 0.2,
                 of_starts("search, found nowhere"), "starts"),
    BenchmarkRow("Q24", "first search of a server", STARTS, "s", "bare Python", 0.2,
                 of_starts("server, first search"), "starts"),
    BenchmarkRow("Q24", "first search of a server, a word found nowhere", STARTS, "s", "bare Python", 0.2,
                 of_starts("server, first search, found nowhere"), "starts"),
    BenchmarkRow("Q25", "WARC import, worst of the files", IMPORT, "s", "bare libraries", 0.85, _import, "exchange",
                 more=True),
    BenchmarkRow("Q26", "1,000 agents, each with 60 pages a second to fetch, by the model", FLEET, "pages a second", "",
                 20_000, _fleet, "scale", more=True),
    BenchmarkRow("Q26", "CPU a page of a fleet, farthest from the model", FLEET, "ms", "by the model", 0.2, _foretold,
                 "scale"),
    BenchmarkRow("extraction", "a page read whole", EXTRACT, "us", "bare parse", 3.0,
                 of_costs("ours, full", "selectolax, parse alone", "rows"), "extract"),
    BenchmarkRow("start", "letopis --help", STARTS, "s", "bare Python", 0.15, of_starts("--help"), "starts"),
    BenchmarkRow("start", "letopis get of a kept page", STARTS, "s", "bare Python", 0.15, of_starts("get"), "starts"),
    BenchmarkRow("start", "letopis check of an unchanged page", STARTS, "s", "bare Python", 0.15, of_starts("check"),
                 "starts"),
    BenchmarkRow("memory", "letopis serve, idle", IDLE, "MiB", "", 80, lambda found: Figure(
        found["idle_mb"], None, found["idle_mb"]), "serve"),
    BenchmarkRow("R1", "resources found at replay", REPLAY, "share", "ReplayWeb.page", 0.99, of_replay("R1"), "replay",
                 more=True),
    BenchmarkRow("R2", "script errors that the capture did not have", REPLAY, "errors", "ReplayWeb.page", 1.0,
                 of_replay("R2", over_peer=True), "replay"),
    BenchmarkRow("R3", "pages that look as captured", REPLAY, "share", "ReplayWeb.page", 0.95, of_replay("R3"),
                 "replay", more=True),
    BenchmarkRow("R4", "requests that left for the live web", REPLAY, "requests", "ReplayWeb.page", 0, of_replay("R4"),
                 "replay"),
    BenchmarkRow("R5", "a capture with a browser and its picture", CAPTURE, "s", "plain Chromium", 1.2,
                 of_capture("letopis"), "replay"),
    BenchmarkRow("R5", "the same without the picture", CAPTURE, "s", "plain Chromium", 1.2,
                 of_capture("no picture"), "replay"),
    BenchmarkRow("R5", "with the picture, of pages with a part that loads late", CAPTURE, "s", "plain Chromium", 1.2,
                 of_capture("letopis, with a part that loads late"), "replay"),
    BenchmarkRow("R5", "with the picture, of pages with a script that waits for readers", CAPTURE, "s",
                 "plain Chromium", 1.2, of_capture("letopis, with a script that waits for readers"), "replay"),
    BenchmarkRow("R6", "ten captures of a page with its requisites", BYTES, "bytes", "ten WACZ files", 0.25,
                 of_bytes("requisites"), "replay"),
    BenchmarkRow("R6", "ten captures with a browser, a picture each", BYTES, "bytes", "ten WACZ files", 0.25,
                 of_bytes("browser"), "replay"),
)  # fmt: skip

_FRAMES = (
    "frames over the documents of a site, a dictionary of tokens per site, versions ordered by similarity, xz and "
    "PPMd for differences: none saves 2 % within the limits for reads"
)
_PICTURES = "tiles, slices, scales, other formats and compression levels of the picture"
TRIED = {
    "Q1 packs of slowly changing pages": _FRAMES,
    "Q2 packs of news front pages": (
        _FRAMES + "; brotli 11 throughout would give 0.898 for three times the CPU of brotli; ids in hexadecimal, "
        "digits or base64, extracted and written in binary, are 2.7 to 6 % larger"
    ),
    "Q2 packs of front pages that nothing was tuned on": (
        "the same; a text trained on pages of all sites is 1.8 % smaller and takes twice the CPU"
    ),
    "Q26 CPU a page of a fleet, farthest from the model": (
        "in runs of a few seconds, half of which is the start; the start of an agent, small commits and links to hosts "
        "of others are in the model since, and the row crawls 24,000 pages"
    ),
    "Q4 read newest after compaction": (
        "fewer steps and copies (1,912 instead of 2,579 operations of the interpreter), reused memory; zstd for all "
        "newest pages is 10 % larger and reaches about 1.0"
    ),
    "Q4 read newest after compaction, news": "the same; brotli alone takes 0.7 to 1.1 times as long as gunzip",
    "Q7 single pages, best of the contest": (
        "a dictionary of 112 KiB trained on other pages gives 0.787, with its own bytes 0.803; the text of the "
        "package needs no samples"
    ),
    "Q8 crawl of 6 KB pages, Scrapy's time over ours": (
        "batches of pages and rows, cached links, a smaller start; uvloop, mypyc, a lower level of zstd and links of "
        "menus remembered with their texts gained nothing significant; pages read without a tree, in C: from 9.5 to 11"
    ),
    "Q8 crawl beside the bare libraries": "the same",
    "Q16 search with link texts": (
        "each clause created once, learned forms looked up once, texts kept as text instead of bytes, fewer steps for "
        "each hit, pages and names held between questions; the peer does not search link texts"
    ),
    "Q20 link check of 5,001 pages": (
        "links and their texts are read once, while pages arrive; the crawl is 1.7 of the 2.0 s, so it needs what Q8 "
        "needs; the same LinkChecker took 31 s at the earlier result, 0.09, and 15 s now"
    ),
    "Q22 index of words and links, small history": (
        "shared documents for versions with the same words, words and their base forms stored once: from 13 to 9.2; "
        "older versions as differences and without positions: 6.8 (real histories: from 50 to 17, and to 11.9 with "
        "differences from near texts); ideal codes for one document per version would take 2.1"
    ),
    "Q23 full compaction, news": (
        "estimates by fast coders, six versions that decide for all, brotli 10: from 85 to 18, and 22 on another day; "
        "coders with equally small output take longer for the differences alone"
    ),
    "Q25 WARC import, worst of the files": (
        "rows in batches, 64 records per frame, one search per record, no JSON, heads in C: from 160 to 101 us; 42 "
        "of these are digests, zstd and SQLite, the rest is Python code; fields parsed once, by name, take 1.6 % less"
    ),
    "extraction a page read whole": (
        "one pass, charsets detected in a fifth of the time, no tree but one pass in C for 93 % of pages: from 6.4 to "
        "3.4; the rest is joining links, making values, and pages that need the tree"
    ),
    "R5 a capture with a browser and its picture": _PICTURES,
    "R5 with the picture, of pages with a part that loads late": _PICTURES,
    "R5 with the picture, of pages with a script that waits for readers": (
        _PICTURES + "; other pauses and scales of scrolling; pages without scripts that wait for readers reach it"
    ),
}
"""What was tried for a row that misses its goal, by its name and what it is; its page has the figures."""
