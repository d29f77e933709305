"""`docs/reliability.md`: each guarantee about faults, with what was tried and found, generated from the counts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from campaign_results import RESULTS, Tried
from reliability_promises import promise_lines

GOALS = {"histories": 10_000, "kills": 1000, "damages": 1000, "soak": 3600}
FUZZ_GOAL = 1_000_000
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


class ReliabilityRow(NamedTuple):
    """A guarantee, the command that tests it, and what was fixed because of it. `counted` names rows of the results."""

    what: str
    promised: str
    command: str
    counted: str = ""
    mended: str = ""


ROWS = (
    ReliabilityRow(
        "kill -9 at every write of every kind of process",
        "nothing acknowledged is lost, `verify` finds nothing, the next process needs no manual repair",
        "`make campaign`; `tests/crash`",
        "kills",
        "a restore that was killed before its first pack was refused as 'not empty'",
    ),
    ReliabilityRow(
        "random histories: put, check, compact, retention, repair, kill, an older catalogue, publish, clone, pull",
        "every acknowledged version reads byte-exact after each step; every clone equals its origin",
        "`make campaign`; `tests/exchange/replica/test_histories.py`, `tests/archive/test_pack_facts.py`",
        "histories",
        "packs were published without others that they depend on; packs beyond the mark of the catalogue were not read "
        "before compaction, also in object stores; a copy of a rebuilt catalogue did not see newer packs before "
        "the next write; on a very busy machine an expression for names was reported as too slow",
    ),
    ReliabilityRow(
        "flipped, missing, blank or misplaced bytes in packs, catalogue and published files",
        "correct bytes or a named error; after `verify --repair`, `verify` finds nothing. In a clone, `pull --fill` "
        "restores what was lost, and `verify` names the damaged pack until it is cloned again",
        "`make campaign`; `tests/archive/test_archive_repair.py`, `tests/store/test_store_verify.py`",
        "damages",
        "if a flipped bit turned a number of a row into a text, reading raised an unnamed error; a repair never "
        "finished if damage had put rows out of order; a damaged definition of a table stopped the repair too and lost "
        "accounts and watches; an unreadable newest log was never removed; damaged JSON of one watch affected all of "
        "them; a damaged index of words failed every search; a pack that was away during a repair, or had the name of "
        "another, was removed unread",
    ),
    ReliabilityRow(
        "an hour of crawl, watches, jobs, serve, puts, compaction, publication, clones, backups and exports at once",
        "nothing is lost, memory and descriptors of the daemon do not grow",
        "`make soak`",
        "soak",
        "threads left their connection to the catalogue open when they ended",
    ),
    ReliabilityRow(
        "full, failing and read-only disks, lost permissions, clocks that jump",
        "a clear error, no damage, work continues once there is space",
        "`tests/store/test_store_faults.py`, `tests/archive/test_archive_repair.py`, "
        "`tests/archive/test_archive_read_only.py`, `tests/operations/test_wrong_clock.py`",
        mended="a full disk was reported as damage; visits planned while the clock showed 2099 never happened",
    ),
    ReliabilityRow(
        "a repair while a daemon runs",
        "the next write of the daemon is refused and reported",
        "`test_who_holds_a_catalogue_that_a_repair_replaces_is_refused`",
        mended="it continued to write to the replaced file",
    ),
    ReliabilityRow(
        "backups and restores: folder and bucket, files and PostgreSQL, interrupted at any point",
        "everything is of one moment, every byte is compared, one command restores it",
        "`tests/archive/test_archive_backups.py`, `tests/scale/test_scaled_backups.py`",
        mended="there was no backup of archives in PostgreSQL and object stores; a backup took another archive for "
        "the same where sizes agreed; a restore that was repeated after its check was interrupted took accounts back",
    ),
    ReliabilityRow(
        "misbehaving servers: drips, endless bodies, bombs, broken chunks, floods, loops, resets, TLS and DNS faults",
        "bounded time and memory, no effect on other pages and hosts, the outcome is recorded",
        "`tests/fetch`, `tests/look`, `tests/crawl`",
    ),
    ReliabilityRow(
        "requests to private and metadata addresses, also by redirects, robots.txt, sitemaps, names and proxies",
        "refused unless the owner allowed them; the address of the actual connection decides",
        "`tests/crawl/test_crawl_private.py`, `tests/api/test_access.py`",
        mended="crawls planned over HTTP reached private addresses through robots.txt, sitemaps and names",
    ),
    ReliabilityRow(
        "archived pages",
        "cannot run scripts on the origin of the service, read sessions or contact other servers",
        "`tests/replay`, `tests/browser`",
        mended="WebRTC, popups and tickets in addresses",
    ),
    ReliabilityRow(
        "accounts: guessing, crowds, removed users, forged sessions, many at one setup code",
        "attempts are counted before hashing, hashing has a small pool, ids are never reused, one owner per code",
        "`tests/api/test_access.py`, `tests/web/test_people.py`",
        mended="40 hashes ran at once, ids were reused, one code created 12 owners",
    ),
    ReliabilityRow(
        "1,100 connections that never end their headers, against 1,024 descriptors",
        "everybody else is served",
        "`test_eleven_hundred_slow_connections_keep_nobody_from_being_served`",
        mended="nobody was served, 500 were open after 70 s; 600 MB of one header were kept in memory",
    ),
    ReliabilityRow(
        "documents built to exhaust a parser: nesting, attributes, links, blanks, PDF",
        "a budget of time and memory for each, and a note of what was omitted",
        "`tests/api/test_hostile_documents.py`, `tests/test_bounded.py`",
        mended="stalls of more than a minute in rewriting, differences, search and feeds; forty questions about whole "
        "sites took all threads for minutes",
    ),
)


def page_text(results: dict[str, Tried]) -> str:
    """The page; the same counts give the same text."""
    lines = [
        "# Reliability",
        "",
        "What Letopis guarantees when things go wrong, how this is tested, and how often. Counts are totals of all",
        "runs so far, which the commands add to [reliability.json](reliability.json). `python tools/campaign.py page`",
        "writes this page. Rows without a count are tests that `make test` runs. Each trial has a number and can be",
        "repeated.",
        "",
        "| what | guarantee | command | trials | faults found | fixed |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_row(row, results) for row in ROWS),
        "",
        "## Faults and their tests",
        "",
        *promise_lines(),
        "",
        "## Kills by kind of process",
        "",
        "| process | kills |",
        "| --- | --- |",
        *(f"| {name.removeprefix('kills of ')} | {one.count:,} |" for name, one in _with(results, "kills of ")),
        "",
        "## Inputs per format",
        "",
        f"`make fuzz` feeds every format with damaged inputs; the goal is {FUZZ_GOAL:,} per format. A reader may",
        "return a result or refuse; anything else, or taking more than two seconds, is a fault.",
        "",
        "| format | inputs | faults found | fixed |",
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
        f"{told.get('processes', 0):,.0f} actions in addition to the daemon, {told.get('killed', 0):,.0f} processes "
        f"killed, {told.get('stored', 0):,.0f} versions stored. The memory of the daemon was "
        f"{told.get('megabytes_first', 0):,.0f} MB once settled and {told.get('megabytes_last', 0):,.0f} MB at the "
        f"end; it had at most {told.get('descriptors_first', 0):,.0f} and {told.get('descriptors_last', 0):,.0f} "
        "open descriptors.",
    ]


def write_page(results: dict[str, Tried]) -> None:
    """Writes the page beside its counts."""
    RESULTS.with_name(PAGE.name).write_text(page_text(results))
