"""Pages of a URL with very many versions and checks read what they show, found by number and time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from letopis.archive import Archive, NewCapture
from letopis.model import Outcome, to_millis

URL = "http://a.test/x"
START = datetime(2024, 1, 1, tzinfo=UTC)
COUNT = 1300


@pytest.fixture(scope="module")
def often(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """A page with a new version at every second check."""
    end = START + timedelta(hours=2 * COUNT)
    with Archive(tmp_path_factory.mktemp("often") / "archive", clock=lambda: end) as archive:
        archive.commit(
            [
                NewCapture(
                    URL, to_millis(START + timedelta(hours=hour)), 200, (("Content-Type", "text/plain"),),
                    b"version %d" % (hour // 2), Outcome.NEW, dated=True,
                )
                for hour in range(2 * COUNT)
            ]
        )  # fmt: skip
        yield archive


class RowCounter:
    """Counts the rows that a catalogue's database hands out."""

    def __init__(self, archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        database = archive.catalog.database
        ask = database.all

        def counted(*asked: Any) -> Any:
            found = list(ask(*asked))
            self.rows += len(found)
            return found

        monkeypatch.setattr(database, "all", counted)


def test_a_portion_of_versions_is_found_by_its_numbers(often: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = often.versions(URL)
    assert [one.number for one in everything] == list(range(COUNT))
    assert all(a.valid_until == b.time for a, b in pairwise(everything))
    assert everything[-1].valid_until is None
    counter = RowCounter(often, monkeypatch)
    assert often.answers.versions(URL, 700, 25) == everything[700:725]
    assert counter.rows <= 510
    assert often.answers.versions(URL, COUNT - 3) == everything[-3:]


def test_versions_since_a_time_begin_there(often: Archive) -> None:
    everything = often.versions(URL)
    for number in (0, 1, 499, 500, 501, COUNT - 1):
        since = to_millis(everything[number].time)
        assert next(often.answers.versions_since(URL, since)) == everything[number]
        later = list(often.answers.versions_since(URL, since + 1))
        assert later == everything[number + 1 :]


def test_the_last_checks_are_those_of_the_whole_history(often: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = often.history(URL)
    assert len(everything) == 2 * COUNT == often.answers.count_checks(URL)
    assert [one.checked_at for one in everything] == sorted(one.checked_at for one in everything)
    counter = RowCounter(often, monkeypatch)
    assert often.answers.newest_checks(URL, 50) == everything[-50:]
    assert counter.rows <= 1200
    assert often.answers.newest_checks(URL, 10**6) == everything


def test_checks_of_a_span_are_those_of_the_history(often: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = often.history(URL)
    start, end = everything[1999].checked_at, everything[2020].checked_at
    counter = RowCounter(often, monkeypatch)
    assert list(often.answers.checks(URL, to_millis(start), to_millis(end))) == everything[1999:2021]
    assert counter.rows <= 2000


def test_the_check_that_brought_each_version_is_found(often: Archive) -> None:
    brought = {one.version: one for one in often.history(URL) if one.outcome in ("new", "changed")}
    assert often.answers.checks_of_versions(URL, [498, 499, 500, 501]) == {n: brought[n] for n in (498, 499, 500, 501)}
    assert often.answers.checks_of_versions(URL, []) == {}
