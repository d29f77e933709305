"""Leases of hosts and pauses that machines share, on the engine that every archive has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.archive.crawl_status import busiest_crawl_hosts, next_visits
from letopis.catalog.leases import HostLeases, PauseRow, PauseRows
from letopis.config import Settings
from letopis.model import from_millis


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a") as made:
        with made.catalog.transaction() as cursor:
            for number in range(6):
                url = f"http://h{number}.example/"
                made.catalog.queues.plan(cursor, made.catalog.resources.ensure(cursor, url).id, 0)
        yield made


def test_a_host_has_one_owner_at_a_time_and_each_has_a_higher_fence(archive: Archive) -> None:
    leases = HostLeases(archive.catalog.database, 1000, 0)
    first = leases.take("a", now=0, until=100, limit=4)
    second = leases.take("b", now=0, until=100, limit=4)
    assert {host for host, _ in first}.isdisjoint({host for host, _ in second})
    assert (len(first), len(second)) == (4, 2)
    later = leases.take("b", now=100, until=200, limit=9)
    assert {fence for _, fence in later} == {2}


@pytest.mark.parametrize("late", [5000, 0])
def test_hosts_with_new_and_with_due_pages_are_found_however_many_are_due(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    monkeypatch.setattr("letopis.catalog.leases._MOST_LATE", late)
    leases = HostLeases(archive.catalog.database, 1000, 3)
    with archive.catalog.transaction() as cursor:
        # The first two were visited and are due at 50 and at 5000; the third had all the pages that it may have.
        cursor.run_many("UPDATE resource SET state = 2, due = ? WHERE host = ?", [(50, 1), (5000, 2)])
        cursor.run("UPDATE host SET fetched = 3 WHERE id = 3")
    assert (leases.busy_hosts(49), leases.busy_hosts(50), leases.busy_hosts(5000)) == (3, 4, 5)
    assert sorted(host for host, _ in leases.take("a", now=60, until=100, limit=9)) == [1, 4, 5, 6]
    assert leases.take("b", now=60, until=100, limit=9) == []
    assert sorted(host for host, _ in leases.take("b", now=5000, until=6000, limit=9)) == [1, 2, 4, 5, 6]


@pytest.mark.parametrize("shared", [False, True])
def test_hosts_that_crawls_ask_most_come_first_with_what_waits_there_on_both_engines(
    tmp_path: Path, scaled_settings: Settings, shared: bool
) -> None:
    with Archive(
        tmp_path / "a", settings=scaled_settings if shared else None, clock=lambda: from_millis(60)
    ) as archive:
        with archive.catalog.transaction() as cursor:
            for url in ("http://b.example/", "http://b.example/new", "http://a.example/", "http://never.example/"):
                archive.catalog.queues.plan(cursor, archive.catalog.resources.ensure(cursor, url).id, 0)
            cursor.run("UPDATE resource SET state = 2, due = 50 WHERE url = ?", ("http://b.example/",))
            cursor.run("UPDATE resource SET state = 2, due = 70 WHERE url = ?", ("http://a.example/",))
            cursor.run_many("UPDATE host SET fetched = ? WHERE name = ?", [(3, "b.example"), (2, "a.example")])
        found = [(one.name, one.fetched, one.waiting, one.due) for one in busiest_crawl_hosts(archive, 9)]
        assert found == [("b.example", 3, 1, 1), ("a.example", 2, 0, 0)]
        assert [one.name for one in busiest_crawl_hosts(archive, 1)] == ["b.example"]
        assert [one.url for one in next_visits(archive, 9)] == ["http://b.example/", "http://a.example/"]


def test_a_look_for_hosts_goes_through_a_few_where_all_have_owners_and_finds_each_that_gets_free(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("letopis.catalog.leases._LOOKED_AT", 2)
    leases, looks = HostLeases(archive.catalog.database, 1000, 0), []
    look = leases._next
    monkeypatch.setattr(leases, "_next", lambda now, late: looks.append(look(now, late)) or looks[-1])
    hosts = [host for host, _ in leases.take("a", 0, 5000, 9)]
    assert sorted(hosts) == [1, 2, 3, 4, 5, 6]
    for host in hosts:
        looks.clear()
        assert leases.take("b", 1, 5000, 1) == []
        assert sum(map(len, looks)) <= 2
        leases.give_back("a", [host])
        found = [taken for _ in range(6) for taken, _ in leases.take("b", 1, 5000, 1)]
        assert found == [host]


def test_agents_share_a_count_of_hosts_until_it_is_old(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("letopis.catalog.leases._COUNT_SHARE", 10**9)
    one, other = (HostLeases(archive.catalog.database, 1000, 0) for _ in range(2))
    assert one.counted_hosts(0) == 6
    with archive.catalog.transaction() as cursor:
        cursor.run("UPDATE resource SET state = 4 WHERE host = 1")
    assert (other.counted_hosts(9_999), other.counted_hosts(10_000)) == (6, 5)
    assert one.counted_hosts(10_001) == 5


def test_only_hosts_without_anything_due_are_spent(archive: Archive) -> None:
    leases = HostLeases(archive.catalog.database, 1000, 0)
    leases.take("a", 0, 5000, 3)
    with archive.catalog.transaction() as cursor:
        cursor.run("UPDATE resource SET state = 4 WHERE host IN (2, 3, 4)")
    held = archive.catalog.database.all("SELECT id FROM host WHERE owner = 'a' AND id IN (2, 3, 4)")
    assert sorted(leases.spent("a", 0, range(1, 7))) == [host for (host,) in held]
    assert leases.spent("a", 0, [1, 5, 6]) == []
    assert leases.spent("b", 0, range(1, 7)) == []


def test_a_record_under_an_old_fence_is_refused(archive: Archive) -> None:
    leases = HostLeases(archive.catalog.database, 1000, 0)
    held = [tuple(row) for row in leases.take("paused", 0, 100, 6)]
    ((taken, _),) = leases.take("other", 100, 200, 1)
    with archive.catalog.transaction() as cursor:
        assert leases.lost(cursor, "paused", held, 300) == {taken}


def test_the_new_owner_of_an_abandoned_host_waits_its_delay(archive: Archive) -> None:
    leases = HostLeases(archive.catalog.database, 1000, 0)
    leases.take("dead", 0, 5000, 1)
    leases.take("heir", 5000, 9000, 6)
    assert sorted(row[3] for row in leases.held_due("heir", 5000, new=True, limit=9, after=0)) == [0] * 5 + [6000]


def test_hosts_that_were_given_back_owe_nothing(archive: Archive) -> None:
    leases = HostLeases(archive.catalog.database, 1000, 0)
    hosts = [host for host, _ in leases.take("a", 0, 5000, 6)]
    leases.give_back("a", hosts)
    assert len(leases.take("b", 1, 5000, 6)) == 6
    assert [row[3] for row in leases.held_due("b", 1, new=True, limit=9, after=0)] == [0] * 6


def test_a_record_is_swapped_by_whoever_saw_its_latest_state(archive: Archive) -> None:
    rows = PauseRows(archive.catalog.database)
    assert rows.read(["a", "b"]) == {}
    assert rows.swap({"a": PauseRow(0, b"one"), "b": PauseRow(0, b"two")}) == {"a", "b"}
    assert rows.read(["a", "b", "c"]) == {"a": PauseRow(1, b"one"), "b": PauseRow(1, b"two")}
    assert rows.swap({"a": PauseRow(0, b"late")}) == set(), "somebody wrote it meanwhile"
    assert rows.swap({"a": PauseRow(1, b"three"), "b": PauseRow(0, b"late")}) == set(), "all or nothing"
    assert rows.swap({"a": PauseRow(1, b"three")}) == {"a"}
    assert rows.read(["a"]) == {"a": PauseRow(2, b"three")}
