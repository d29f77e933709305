"""Turns at hosts and addresses: who may ask when, whatever becomes of those who asked before."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.archive.queues import HostState, pause_rows
from letopis.errors import NotReady
from letopis.look.politeness import FetchResult, Politeness, PolitenessBook, open_book, tell_once
from letopis.look.slots import MappedSlots, MemorySlots, RowSlots, Slot, Slots

NOW = 1_800_000_000_000
DAY = 86_400_000
HOST, IP = "a.example", "192.0.2.1"
CRAWL, CHECK = Politeness(delay=1.0, ip_delay=1.0), Politeness(delay=0.0, ip_delay=0.0)

Open = Callable[[Politeness, bool], PolitenessBook]


@pytest.fixture(params=["file", "rows"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same book again and again, as processes do."""
    with Archive(tmp_path / "a") as archive:
        books: list[PolitenessBook] = []

        def open_one(politeness: Politeness, crawls: bool) -> PolitenessBook:
            slots: Slots = (
                MappedSlots(tmp_path / "politeness")
                if request.param == "file"
                else RowSlots(pause_rows(archive), 60_000)
            )
            books.append(PolitenessBook(slots, politeness, crawls=crawls))
            return books[-1]

        yield open_one
        for book in books:
            book.close()


def ended(at: int, **result: object) -> FetchResult:
    return FetchResult(at, ip=IP, **result)  # type: ignore[arg-type]


def test_a_turn_begins_at_once_and_the_pause_counts_from_its_end(opened: Open) -> None:
    crawl, check = opened(CRAWL, True), opened(CHECK, False)
    assert crawl.begin(HOST, IP, 0.0, NOW) == 0
    assert check.begin(HOST, "", 0.0, NOW + 5000) > 0, "the host is being asked"
    crawl.end(HOST, ended(NOW + 6000))
    assert check.begin(HOST, "", 0.0, NOW + 6100) == 900
    assert check.begin(HOST, "", 0.0, NOW + 7000) == 0


def test_a_crawl_keeps_its_delay_after_somebody_else_asked(opened: Open) -> None:
    crawl, check = opened(CRAWL, True), opened(CHECK, False)
    assert check.begin(HOST, IP, 0.0, NOW) == 0
    check.end(HOST, ended(NOW + 10))
    assert crawl.begin(HOST, IP, 0.0, NOW + 10) == 1000
    assert check.begin("b.example", "192.0.2.2", 0.0, NOW + 10) == 0, "another host at another address"


def test_checks_alone_keep_their_own_delay_only(opened: Open) -> None:
    first, second = opened(CHECK, False), opened(CHECK, False)
    for number in range(5):
        book = (first, second)[number % 2]
        assert book.begin(HOST, IP, 0.0, NOW + number) == 0
        book.end(HOST, ended(NOW + number))


def test_while_a_crawl_is_at_a_host_its_delay_is_kept_by_all_also_among_others(opened: Open) -> None:
    crawl, check = opened(CRAWL, True), opened(CHECK, False)
    crawl.arrive(HostState(1, HOST, IP, crawl_delay=2.0), NOW)
    for number in range(3):
        at = NOW + number * 2000
        assert check.begin(HOST, IP, 0.0, at) == 0
        check.end(HOST, ended(at))
        assert check.begin(HOST, IP, 0.0, at + 1) == 1999
    assert check.begin("b.example", IP, 0.0, NOW + 4001) == 999, "hosts that share an address share its delay"


def test_the_delay_of_robots_txt_is_kept_too(opened: Open) -> None:
    crawl = opened(CRAWL, True)
    assert crawl.begin(HOST, IP, 5.0, NOW) == 0
    crawl.end(HOST, ended(NOW, crawl_delay=5.0))
    assert crawl.begin(HOST, IP, 5.0, NOW) == 5000
    assert opened(CHECK, False).begin(HOST, IP, 0.0, NOW) >= 5000


def test_a_delay_of_robots_txt_is_kept_up_to_five_minutes(opened: Open) -> None:
    crawl = opened(CRAWL, True)
    assert crawl.begin(HOST, IP, 86400.0, NOW) == 0
    crawl.end(HOST, ended(NOW, crawl_delay=86400.0))
    assert crawl.begin(HOST, IP, 86400.0, NOW) == 300_000


def test_what_a_server_asks_for_holds_for_crawls_and_for_checks_up_to_five_minutes(opened: Open) -> None:
    crawl, check = opened(CRAWL, True), opened(CHECK, False)
    assert crawl.begin(HOST, IP, 0.0, NOW) == 0
    crawl.end(HOST, ended(NOW, status=503, retry_after=3600.0))
    assert check.begin(HOST, IP, 0.0, NOW + 1000) == 299_000
    assert crawl.begin(HOST, IP, 0.0, NOW + 301_000) == 3_299_000


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({"status": 429, "retry_after": 60.0}, "its server asked for a pause"),
        ({"status": 503, "retry_after": 60.0}, "its server asked for a pause"),
        ({"crawl_delay": 100.0}, "a pause between requests is asked for"),
        ({}, "the pause between requests lasts"),
    ],
)
def test_whoever_waits_for_a_host_learns_why(opened: Open, result: dict[str, object], why: str) -> None:
    first, check = opened(CHECK, False), opened(CHECK, False)
    assert first.begin(HOST, IP, 0.0, NOW) == 0
    assert check.reason(HOST, NOW + 10) == "others ask it as well"
    first.end(HOST, ended(NOW + 20, **result))
    assert check.reason(HOST, NOW + 30) == why


@pytest.mark.parametrize(
    ("patience", "short", "limit"),
    [
        (30.0, [f"{HOST}: others ask it as well; waiting for our turn, 30 s at most"], ", 30 s at most"),
        (math.inf, [], ""),
    ],
)
def test_a_wait_is_told_once_and_a_short_one_to_whoever_has_a_limit(
    patience: float, short: list[str], limit: str
) -> None:
    told: list[str] = []
    tell = tell_once(told.append, patience, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    for _ in range(2):
        tell(HOST, 2.0, "others ask it as well")
        tell(HOST, 20.0, "its server asked for a pause")
    long = f"{HOST} is left alone until 2026-01-01T00:00:20Z: its server asked for a pause; waiting for our turn"
    assert told == [*short, long + limit]


def test_a_host_that_is_down_is_left_to_checks(opened: Open) -> None:
    crawl, check = opened(CRAWL, True), opened(CHECK, False)
    for failures, pause in ((1, 5000), (2, 10_000)):
        at = NOW + failures * 100_000
        assert crawl.begin(HOST, IP, 0.0, at) == 0
        crawl.end(HOST, ended(at, status=0))
        assert crawl.begin(HOST, IP, 0.0, at) == pause
    assert check.begin(HOST, IP, 0.0, at + 1000) == 0, "the crawl keeps away and claims nothing"
    check.end(HOST, ended(at + 1000))
    assert crawl.begin(HOST, IP, 0.0, at + 2000) == 0, "it answers again"


def test_checks_of_a_host_that_stays_down_go_on_however_long_a_crawl_keeps_away(opened: Open) -> None:
    crawl, check = opened(CRAWL, True), opened(CHECK, False)
    for number in range(20):
        at = NOW + number * 15_000
        assert check.begin(HOST, IP, 0.0, at) == 0
        check.end(HOST, ended(at, status=0))
        assert crawl.begin(HOST, IP, 0.0, at + 4000) > 0
    last = at + 4000
    assert check.begin(HOST, IP, 0.0, last) == 0
    check.end(HOST, ended(last, status=0))
    assert check.begin(HOST, IP, 0.0, last + 1) == 999, "the delay of the crawl is kept while it keeps away"


def test_whoever_waits_has_the_next_turn(opened: Open) -> None:
    """A crawl that comes again as soon as it may would otherwise keep others out for ever."""
    crawl, check = opened(CRAWL, True), opened(CHECK, False)
    assert crawl.begin(HOST, IP, 0.0, NOW) == 0
    assert check.begin(HOST, IP, 0.0, NOW + 10) > 0
    crawl.end(HOST, ended(NOW + 20))
    assert check.begin(HOST, IP, 0.0, NOW + 20) == 1000
    assert crawl.begin(HOST, IP, 0.0, NOW + 1020) > 0, "it is claimed"
    assert check.begin(HOST, IP, 0.0, NOW + 1025) == 0
    check.end(HOST, ended(NOW + 1030))
    assert crawl.begin(HOST, IP, 0.0, NOW + 2030) == 0


def test_a_claim_that_nobody_comes_for_is_void_soon(opened: Open) -> None:
    crawl, check = opened(CRAWL, True), opened(CHECK, False)
    assert crawl.begin(HOST, IP, 0.0, NOW) == 0
    crawl.end(HOST, ended(NOW))
    assert check.begin(HOST, IP, 0.0, NOW) == 1000
    assert crawl.begin(HOST, IP, 0.0, NOW + 1500) == 0


def test_hosts_at_one_address_take_turns(opened: Open) -> None:
    first, second = opened(CRAWL, True), opened(CRAWL, True)
    assert first.begin("a.example", IP, 0.0, NOW) == 0
    assert second.begin("b.example", IP, 0.0, NOW) == 1000
    assert second.begin("b.example", IP, 0.0, NOW + 1000) == 0, "a slow answer does not hold the whole address"


def test_a_turn_that_was_given_up_owes_nothing_and_one_that_was_cut_off_its_least_pause(opened: Open) -> None:
    crawl, other = opened(CRAWL, True), opened(CHECK, False)
    assert other.begin(HOST, "", 0.0, NOW) == 0
    other.end(HOST, FetchResult(NOW, asked=False))
    assert other.begin(HOST, "", 0.0, NOW) == 0
    other.end(HOST, FetchResult(NOW, asked=False))
    assert crawl.begin("c.example", "", 0.0, NOW) == 0
    crawl.cut_off("c.example", NOW + 200)
    assert crawl.begin("c.example", "", 0.0, NOW + 300) == 900


def test_pauses_outlive_the_process_that_made_them(opened: Open) -> None:
    crawl = opened(CRAWL, True)
    assert crawl.begin(HOST, IP, 0.0, NOW) == 0
    crawl.end(HOST, ended(NOW, status=429, retry_after=60.0))
    crawl.close()
    row = opened(CRAWL, True).arrive(HostState(7, HOST, IP), NOW + 100)
    assert (row.ready, row.ip_ready) == (NOW + 60_000, NOW + 1000)


def test_a_clock_that_was_set_back_does_not_silence_a_host(opened: Open) -> None:
    crawl = opened(CRAWL, True)
    assert crawl.begin(HOST, IP, 0.0, NOW) == 0
    crawl.end(HOST, ended(NOW, status=503, retry_after=86400.0))
    assert crawl.begin(HOST, IP, 0.0, NOW - 30 * 86_400_000) == 0


def test_a_clock_that_is_set_back_between_two_looks_does_not_silence_a_host(opened: Open) -> None:
    check = opened(CHECK, False)
    assert check.begin(HOST, IP, 0.0, NOW + 10 * DAY) == 0
    check.end(HOST, ended(NOW + 10 * DAY))
    assert check.begin("b.example", "192.0.2.2", 0.0, NOW) == 0
    check.end("b.example", FetchResult(NOW, ip="192.0.2.2"))
    assert check.begin(HOST, IP, 0.0, NOW + 1) == 0, "also where it was set back while another host was asked"


def test_a_decision_that_fails_leaves_the_book_as_it_was(tmp_path: Path) -> None:
    slots = MappedSlots(tmp_path / "politeness")

    def break_off(slot: Slot, address: Slot | None) -> None:
        slot.ready = NOW + DAY
        raise ValueError("stopped")

    assert slots.change(7, 0, NOW, lambda slot, address: slot.ready) == 0
    with pytest.raises(ValueError, match="stopped"):
        slots.change(7, 0, NOW, break_off)
    assert slots.change(7, 0, NOW, lambda slot, address: slot.ready) == 0
    slots.close()


def test_a_turn_that_lasts_when_its_book_is_closed_is_that_of_a_dead(opened: Open) -> None:
    crawl = opened(CRAWL, True)
    assert crawl.begin(HOST, IP, 0.0, NOW) == 0
    crawl.close()
    crawl.cut_off(HOST, NOW)
    crawl.end(HOST, ended(NOW))
    assert opened(CHECK, False).begin(HOST, IP, 0.0, NOW + 10) > 0


def killed_in_its_turn(file: Path, now: int) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from letopis.look.politeness import Politeness, PolitenessBook; from letopis.look.slots import MappedSlots\n"
        "book = PolitenessBook(MappedSlots(Path(sys.argv[1])), Politeness(delay=1.0, ip_delay=1.0), crawls=True)\n"
        f"assert book.begin({HOST!r}, {IP!r}, 3.0, int(sys.argv[2])) == 0\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(file), str(now)]).returncode == -signal.SIGKILL


def test_the_pause_of_a_killed_process_counts_from_when_that_is_found_out(tmp_path: Path) -> None:
    killed_in_its_turn(tmp_path / "politeness", NOW)
    check = PolitenessBook(MappedSlots(tmp_path / "politeness"), CHECK, crawls=False)
    assert check.begin(HOST, "", 0.0, NOW + 700) == 3000
    assert check.begin(HOST, "", 0.0, NOW + 3700) == 0
    check.end(HOST, ended(NOW + 3700))
    assert check.begin(HOST, "", 0.0, NOW + 3700) == 0, "the crawl is no longer at the host"
    check.close()


def test_without_a_lock_the_time_of_a_turn_is_what_ends_it(tmp_path: Path) -> None:
    """Machines that share rows do not see each other die."""
    with Archive(tmp_path / "a") as archive:
        dead = PolitenessBook(RowSlots(pause_rows(archive), 3000), CRAWL, crawls=True)
        assert dead.begin(HOST, IP, 0.0, NOW) == 0
        heir = PolitenessBook(RowSlots(pause_rows(archive), 3000), CRAWL, crawls=True)
        assert 0 < heir.begin(HOST, IP, 0.0, NOW + 2999) <= 1001
        assert heir.begin(HOST, IP, 0.0, NOW + 3000) == 1000
        assert heir.begin(HOST, IP, 0.0, NOW + 4000) == 0


def test_many_pauses_at_once_are_all_remembered_while_the_file_grows(tmp_path: Path) -> None:
    file = tmp_path / "politeness"
    first = PolitenessBook(MappedSlots(file), CRAWL, crawls=True)
    second = PolitenessBook(MappedSlots(file), CRAWL, crawls=True)
    small = file.stat().st_size
    hosts = [f"h{number}.example" for number in range(6000)]
    for number, host in enumerate(hosts):
        assert first.begin(host, f"192.0.2.{number}", 0.0, NOW) == 0
        first.end(host, FetchResult(NOW, ip=f"192.0.2.{number}", retry_after=600.0, status=503))
    assert small < 100_000 < file.stat().st_size < 10_000_000
    assert {second.arrive(HostState(1, host), NOW + 1).ready for host in hosts} == {NOW + 600_000}
    first.close()
    second.close()


def test_a_full_table_forgets_the_shortest_pauses_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("letopis.look.slots._MOST_SLOTS", 512)
    book = PolitenessBook(MappedSlots(tmp_path / "politeness"), CRAWL, crawls=True)
    for number in range(2000):
        assert book.begin(f"h{number}.example", "", 0.0, NOW) == 0
        book.end(f"h{number}.example", FetchResult(NOW, retry_after=100.0 + number, status=503))
    kept = [book.arrive(HostState(1, f"h{number}.example"), NOW).ready > NOW for number in range(1990, 2000)]
    assert sum(kept) >= 9
    book.close()


def test_slots_of_hosts_that_nobody_misses_are_used_again(tmp_path: Path) -> None:
    file = tmp_path / "politeness"
    book = PolitenessBook(MappedSlots(file), CRAWL, crawls=False)
    size = file.stat().st_size
    for number in range(5000):
        at = NOW + number * 1000
        assert book.begin(f"h{number}.example", "", 0.0, at) == 0
        book.end(f"h{number}.example", FetchResult(at))
    assert file.stat().st_size == size
    book.close()


def test_a_file_that_is_none_of_ours_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "politeness").write_bytes(b"something else" * 10_000)
    book = PolitenessBook(MappedSlots(tmp_path / "politeness"), CRAWL, crawls=True)
    assert book.begin(HOST, IP, 0.0, NOW) == 0
    book.close()


def test_a_file_that_cannot_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "politeness").mkdir()
    with pytest.raises(NotReady, match="cannot write"):
        MappedSlots(tmp_path / "politeness")


TAKES_TURNS = """
import sys, time
from pathlib import Path
from letopis.look.politeness import FetchResult, Politeness, PolitenessBook
from letopis.look.slots import MappedSlots
book = PolitenessBook(MappedSlots(Path(sys.argv[1])), Politeness(delay=0.01, ip_delay=0.0), crawls=True)
left = 25
while left:
    now = time.time_ns() // 1_000_000
    if wait := book.begin("busy.example", "", 0.0, now):
        time.sleep(wait / 1000)
        continue
    print(now, end=" ")
    time.sleep(0.001)
    now = time.time_ns() // 1_000_000
    print(now, flush=True)
    book.end("busy.example", FetchResult(now))
    left -= 1
"""


def test_processes_never_have_a_turn_at_one_host_at_once(tmp_path: Path) -> None:
    words = [sys.executable, "-c", TAKES_TURNS, str(tmp_path / "politeness")]
    runs = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ) for _ in range(4)]
    lines = [line for run in runs for line in run.communicate(timeout=300)[0].splitlines()]
    turns = sorted(tuple(map(int, line.split())) for line in lines)
    assert len(turns) == 100
    assert [later for earlier, later in itertools.pairwise(turns) if later[0] < earlier[1] + 10] == []


@pytest.mark.files
def test_a_fleet_without_a_delay_shares_nothing(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        book = open_book(archive, CHECK, crawls=True)
        assert (archive.folder / "politeness").exists()
        book.close()
    alone = PolitenessBook(MemorySlots(most=10), CHECK, crawls=True)
    for number in range(100):
        assert alone.begin(f"h{number}.example", "", 0.0, NOW + number * 20_000) == 0
        alone.end(f"h{number}.example", FetchResult(NOW + number * 20_000))
