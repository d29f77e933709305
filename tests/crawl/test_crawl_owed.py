"""Pauses that a killed crawl owes."""

from __future__ import annotations

from pathlib import Path

from letopis.frontier import HostState, HostUpdate
from letopis.look.politeness import JOURNAL_NOTES, PauseJournal

NOW = 1_800_000_000_000
HOST = HostState(7, "a.example", "192.0.2.1")


def facts(ready: int, ip_ready: int = 0) -> HostUpdate:
    return HostUpdate(7, "192.0.2.1", ready, ip_ready, 0.0, 1, 0)


def killed(folder: Path, agent: int = 0, now: int = NOW) -> PauseJournal:
    """An agent that is never closed or settled: its file stays as a kill would leave it."""
    return PauseJournal(folder, agent, now)


def test_a_pause_of_a_finished_fetch_outlives_its_process(tmp_path: Path) -> None:
    killed(tmp_path).ended("a.example", facts(NOW + 60_000, NOW + 5_000), NOW)
    row = PauseJournal(tmp_path, 0, NOW + 1000).corrected(HOST)
    assert (row.ready, row.ip_ready) == (NOW + 60_000, NOW + 5_000)


def test_a_fetch_under_way_owes_its_pause_from_the_next_start_on(tmp_path: Path) -> None:
    killed(tmp_path).begins("a.example", "192.0.2.1", NOW, 2000)
    row = PauseJournal(tmp_path, 0, NOW + 700).corrected(HOST)
    assert (row.ready, row.ip_ready) == (NOW + 2700, NOW + 2700)


def test_an_end_stands_for_its_beginning(tmp_path: Path) -> None:
    first = killed(tmp_path)
    first.begins("a.example", "", NOW, 2000)
    first.ended("a.example", facts(NOW + 2000), NOW)
    assert PauseJournal(tmp_path, 0, NOW + 1500).corrected(HOST).ready == NOW + 2000


def test_what_is_owed_survives_kill_after_kill_and_other_numbers_of_agents(tmp_path: Path) -> None:
    killed(tmp_path, agent=3).ended("a.example", facts(NOW + 60_000), NOW)
    for second in range(5):
        killed(tmp_path, now=NOW + second * 1000)
    assert PauseJournal(tmp_path, 1, NOW + 9000).corrected(HOST).ready == NOW + 60_000


def test_a_run_that_ends_in_order_leaves_nothing(tmp_path: Path) -> None:
    owed = PauseJournal(tmp_path, 0, NOW)
    owed.ended("a.example", facts(NOW + 60_000), NOW)
    owed.settle()
    owed.close()
    assert list(tmp_path.iterdir()) == []


def test_pauses_that_are_over_and_hosts_without_any_stay_as_they_are(tmp_path: Path) -> None:
    killed(tmp_path).ended("a.example", facts(NOW + 1000), NOW)
    after = PauseJournal(tmp_path, 0, NOW + 2000)
    assert after.corrected(HOST) == HOST
    assert after.corrected(HostState(8, "b.example")) == HostState(8, "b.example")


def test_a_clock_that_was_set_back_does_not_silence_a_host(tmp_path: Path) -> None:
    killed(tmp_path).ended("a.example", facts(NOW + 1000), NOW)
    assert PauseJournal(tmp_path, 0, NOW - 30 * 86_400_000).corrected(HOST) == HOST


def test_the_ring_goes_round_and_a_torn_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    owed = killed(tmp_path)
    for number in range(JOURNAL_NOTES + 10):
        owed.ended(f"h{number}.example", facts(NOW + 60_000), NOW + number % 50)
    file = tmp_path / "owed-0"
    file.write_bytes(file.read_bytes()[:-7])
    after = PauseJournal(tmp_path, 0, NOW + 100)
    assert after.corrected(HostState(9, f"h{JOURNAL_NOTES + 5}.example")).ready == NOW + 60_000
    assert after.corrected(HostState(9, "h5.example")).ready == 0
