"""`docs/reliability.md`: each row of the promises about faults, with what was tried and found, made of the counts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from campaign_results import RESULTS, Tried
from reliability_promises import promise_lines

GOALS = {"histories": 10_000, "kills": 1000, "damages": 1000, "soak": 3600}
FUZZ_GOAL = 1_000_000
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


class ReliabilityRow(NamedTuple):
    """A promise, the command that tries it, and what was mended because of it. `counted` names rows of the results."""

    what: str
    promised: str
    command: str
    counted: str = ""
    mended: str = ""


ROWS = (
    ReliabilityRow(
        "kill -9 at every write of every kind of process",
        "nothing acknowledged is lost, `verify` is clean, the next process needs no hands",
        "`make campaign`; `tests/crash`",
        "kills",
        "a restore that was killed before its first pack was refused as 'not empty'",
    ),
    ReliabilityRow(
        "random histories: put, look, compact, retention, repair, kill, an older catalogue, publish, clone, pull",
        "every acknowledged version reads byte-exact after each step; every clone equals its origin",
        "`make campaign`; `tests/exchange/replica/test_histories.py`, `tests/archive/test_pack_facts.py`",
        "histories",
        "packs that others lean on are published with them; packs beyond the catalogue's mark are taken in before "
        "compaction, in object stores too; a copy of a catalogue that was built anew did not see newer packs before "
        "the next write; on a very busy machine an expression for names was called too slow",
    ),
    ReliabilityRow(
        "flipped, missing, blank or misplaced bytes in packs, catalogue and published files",
        "right bytes or a named error; after `verify --repair` nothing complains, but for a clone: `pull --fill` "
        "brings back what it lost, and `verify` goes on naming the damaged pack until it is cloned anew",
        "`make campaign`; `tests/archive/test_archive_repair.py`, `tests/store/test_store_verify.py`",
        "damages",
        "a number of a row that a flipped bit made a text ended a read with an unnamed error; a repair never ended "
        "where damage put rows out of their order; a damaged definition of a table stopped the repair too and cost "
        "accounts and watches; a newest log of which nothing could be read was never removed; damaged JSON of one "
        "watch stopped all of them; a damaged index of words failed every search",
    ),
    ReliabilityRow(
        "an hour of crawl, watches, jobs, serve, puts, compaction, publication, clones, backups and exports at once",
        "nothing lost, memory and descriptors of the daemon flat",
        "`make soak`",
        "soak",
        "each thread that ended left its connection to the catalogue open",
    ),
    ReliabilityRow(
        "full, failing and read-only disks, lost permissions, clocks that jump",
        "a clear error, nothing damaged, work goes on when space is back",
        "`tests/store/test_store_faults.py`, `tests/archive/test_archive_repair.py`, "
        "`tests/archive/test_archive_read_only.py`, `tests/operations/test_wrong_clock.py`",
        mended="a full disk was called damage; visits planned under a clock of 2099 were never made",
    ),
    ReliabilityRow(
        "a repair while a daemon runs",
        "the daemon is refused when it next writes, and says so",
        "`test_who_holds_a_catalogue_that_a_repair_replaces_is_refused`",
        mended="it went on writing to the file that had been set aside",
    ),
    ReliabilityRow(
        "backups and restores: folder and bucket, files and PostgreSQL, cut off at any point",
        "one moment of everything, every byte compared, restored by one command",
        "`tests/archive/test_archive_backups.py`, `tests/scale/test_scaled_backups.py`",
        mended="archives in PostgreSQL and object stores had no backup of their own",
    ),
    ReliabilityRow(
        "the misbehaving web: drips, endless bodies, bombs, broken chunks, floods, loops, resets, TLS and DNS faults",
        "bounded time and memory, other pages and hosts unharmed, the outcome recorded",
        "`tests/fetch`, `tests/look`, `tests/crawl`",
    ),
    ReliabilityRow(
        "requests to private and metadata addresses, also by redirects, robots.txt, sitemaps, names and proxies",
        "refused unless the owner allowed them, judged on the address really connected to",
        "`tests/crawl/test_crawl_private.py`, `tests/api/test_access.py`",
        mended="crawls planned over HTTP asked inside through robots.txt, sitemaps and names",
    ),
    ReliabilityRow(
        "archived pages",
        "cannot script our origin, read sessions or phone home",
        "`tests/replay`, `tests/browser`",
        mended="WebRTC, popups and tickets in addresses",
    ),
    ReliabilityRow(
        "accounts: guessing, crowds, removed users, forged sessions, many at one setup code",
        "counted before hashing, a small pool, ids never given again, one owner a code",
        "`tests/api/test_access.py`, `tests/web/test_people.py`",
        mended="40 hashes at once, ids reused, 12 owners of one code",
    ),
    ReliabilityRow(
        "1,100 connections that never end their headers, against 1,024 descriptors",
        "everybody else is served meanwhile",
        "`test_eleven_hundred_slow_connections_keep_nobody_from_being_served`",
        mended="nobody was served, 500 were open after 70 s",
    ),
    ReliabilityRow(
        "bombs of structure: nesting, attributes, links, blanks, PDF",
        "a budget of time and memory each, and a note of what was left out",
        "`tests/api/test_hostile_documents.py`, `tests/test_bounded.py`",
        mended="stalls of a minute and more in rewriting, differences, search and feeds",
    ),
)


def page_text(results: dict[str, Tried]) -> str:
    """The page; the same counts give the same text."""
    lines = [
        "# Reliability",
        "",
        "What is promised when things go wrong, how it is tried, and how often it was. Counts are those of all runs so",
        "far, added up in [reliability.json](reliability.json) by the commands; `python tools/campaign.py page` writes",
        "this page. Rows without a count are tests, which `make test` runs. A try has a number and can be made again.",
        "",
        "| what | promised | command | tried | found | mended |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_row(row, results) for row in ROWS),
        "",
        "## Line by line",
        "",
        *promise_lines(),
        "",
        "## Kills by kind of process",
        "",
        "| process | kills |",
        "| --- | --- |",
        *(f"| {name.removeprefix('kills of ')} | {one.count:,} |" for name, one in _with(results, "kills of ")),
        "",
        "## Inputs a format",
        "",
        f"`make fuzz` feeds every format with damaged inputs; the goal is {FUZZ_GOAL:,} a format. A reader may answer",
        "or refuse; whatever else happens, or takes two seconds, is a fault.",
        "",
        "| format | inputs | found | mended |",
        "| --- | --- | --- | --- |",
        *(
            f"| {name.removeprefix('fuzz ')} | {one.count:,} | {one.found} | {one.mended} |"
            for name, one in _with(results, "fuzz ")
        ),
        "",
        *_soak_lines(results.get("soak")),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _with(results: dict[str, Tried], start: str) -> list[tuple[str, Tried]]:
    return sorted((name, one) for name, one in results.items() if name.startswith(start))


def _row(row: ReliabilityRow, results: dict[str, Tried]) -> str:
    tried = results.get(row.counted, Tried())
    goal = GOALS.get(row.counted)
    unit = " s" if row.counted == "soak" else ""
    count = f"{tried.count:,}{unit} of {goal:,}{unit}" if goal else "each run"
    found = str(tried.found) if row.counted else ""
    mended = "; ".join(part for part in (f"{tried.mended} of {tried.found}" if tried.found else "", row.mended) if part)
    return f"| {row.what} | {row.promised} | {row.command} | {count} | {found} | {mended} |"


def _soak_lines(tried: Tried | None) -> list[str]:
    if tried is None:
        return []
    told = tried.figures
    return [
        "## The last soak",
        "",
        f"{told.get('processes', 0):,.0f} actions beside the daemon, {told.get('killed', 0):,.0f} processes killed, "
        f"{told.get('stored', 0):,.0f} versions put in. Once settled, the daemon's memory was "
        f"{told.get('megabytes_first', 0):,.0f} MB, at the end {told.get('megabytes_last', 0):,.0f} MB, its "
        f"descriptors at most {told.get('descriptors_first', 0):,.0f} and {told.get('descriptors_last', 0):,.0f}.",
    ]


def write_page(results: dict[str, Tried]) -> None:
    """Writes the page beside its counts."""
    RESULTS.with_name(PAGE.name).write_text(page_text(results))
