"""Leases of hosts and turns at addresses, on the engine that every archive has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.catalog.leases import AddressSlots, HostLeases


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


def test_a_record_under_an_old_fence_is_refused(archive: Archive) -> None:
    leases = HostLeases(archive.catalog.database, 1000, 0)
    held = [tuple(row) for row in leases.take("paused", 0, 100, 2)]
    leases.take("other", 100, 200, 1)
    with archive.catalog.transaction() as cursor:
        assert leases.lost(cursor, "paused", held, 300) == {held[0][0]}


def test_the_new_owner_of_an_abandoned_host_waits_its_delay(archive: Archive) -> None:
    leases = HostLeases(archive.catalog.database, 1000, 0)
    leases.take("dead", 0, 5000, 1)
    leases.take("heir", 5000, 9000, 1)
    assert [row[3] for row in leases.held_due("heir", 5000, new=True, limit=9, after=0)] == [6000]


def test_hosts_that_were_given_back_owe_nothing(archive: Archive) -> None:
    leases = HostLeases(archive.catalog.database, 1000, 0)
    hosts = [host for host, _ in leases.take("a", 0, 5000, 6)]
    leases.give_back("a", hosts)
    assert len(leases.take("b", 1, 5000, 6)) == 6
    assert [row[3] for row in leases.held_due("b", 1, new=True, limit=9, after=0)] == [0] * 6


def test_turns_at_an_address_follow_each_other(archive: Archive) -> None:
    addresses = AddressSlots(archive.catalog.database)
    assert [addresses.reserve("192.0.2.1", 10_000, 500) for _ in range(3)] == [0, 500, 1000]
    assert addresses.reserve("192.0.2.2", 10_000, 500) == 0
    assert addresses.reserve("192.0.2.1", 20_000, 500) == 0


def test_a_clock_that_was_set_back_does_not_silence_an_address(archive: Archive) -> None:
    addresses = AddressSlots(archive.catalog.database)
    addresses.reserve("192.0.2.1", 10**12, 500)
    assert addresses.reserve("192.0.2.1", 10_000, 500) == 0
