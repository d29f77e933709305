from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from letopis.archive import Archive, identify
from letopis.config import Settings, StoreSettings
from letopis.errors import UnknownUrl, UnknownVersion, UsageError
from letopis.model import Outcome, Put

URL = "http://example.org/page"
DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def archive(tmp_path: Path):  # type: ignore[no-untyped-def]
    with Archive(tmp_path / "a") as opened:
        yield opened


def test_put_counts_versions_from_zero(archive: Archive) -> None:
    results = [archive.put(URL, body, START + n * DAY) for n, body in enumerate([b"A", b"B", b"C"])]
    assert [(result.number, result.stored) for result in results] == [(0, True), (1, True), (2, True)]


@pytest.mark.parametrize("body", [None, "text", 5, [b"x"]])
def test_a_body_that_is_no_bytes_is_refused_and_nothing_stored(archive: Archive, body: object) -> None:
    with pytest.raises(UsageError, match="give bytes"):
        archive.put(URL, body)  # type: ignore[arg-type]
    with pytest.raises(UnknownUrl):
        archive.get(URL)


def test_every_kind_of_bytes_is_stored(archive: Archive) -> None:
    for body in (bytearray(b"A"), memoryview(b"B")):
        archive.put(URL, body)  # type: ignore[arg-type]
        assert archive.get(URL).body == bytes(body)


@pytest.mark.parametrize("number", [10**30, -(10**30), 1 << 31, 2])
def test_a_number_beyond_all_versions_is_no_damage(archive: Archive, number: int) -> None:
    archive.put(URL, b"A", START)
    with pytest.raises(UnknownVersion, match="it has 1"):
        archive.get(URL, version=number)


@pytest.mark.parametrize("where", [5, b"folder", "", []])
def test_what_is_no_path_makes_no_archive(where: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is not the folder of an archive"):
        Archive(where)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_newest_needs_no_number(archive: Archive) -> None:
    archive.put(URL, b"A", START)
    archive.put(URL, b"B", START + DAY)
    newest = archive.get(URL)
    assert (newest.body, newest.number, newest.time, newest.valid_until) == (b"B", 1, START + DAY, None)


def test_identical_version_is_told_and_not_stored(archive: Archive) -> None:
    archive.put(URL, b"A", START)
    before = archive.stats().pack_bytes
    again = archive.put(URL, b"A", START + DAY)
    assert (again.stored, again.number) == (False, 0)
    assert archive.stats().pack_bytes == before
    assert [check.outcome for check in archive.history(URL)] == [Outcome.NEW, Outcome.UNCHANGED]


def test_identical_version_can_be_recorded_instead(tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=Settings(store=StoreSettings(same="record"))) as archive:
        archive.put(URL, b"A", START)
        archive.put(URL, b"A", START + DAY)
        assert [version.number for version in archive.versions(URL)] == [0, 1]
        assert archive.stats().contents == 1


def test_equal_content_of_many_urls_is_stored_once(archive: Archive) -> None:
    urls = [f"http://example.org/{n}" for n in range(5)]
    list(archive.put_many(Put(url, b"shared " * 100, START) for url in urls))
    assert archive.stats().contents == 1
    assert {archive.get(url).body for url in urls} == {b"shared " * 100}


def test_returning_content_is_a_version_that_costs_no_content(archive: Archive) -> None:
    for n, body in enumerate([b"A", b"B", b"A"]):
        archive.put(URL, body, START + n * DAY)
    assert [version.digest for version in archive.versions(URL)][0::2] == [identify(b"A").text] * 2
    assert archive.stats().contents == 2


def test_version_valid_at_a_time(archive: Archive) -> None:
    for n, body in enumerate([b"A", b"B", b"C"]):
        archive.put(URL, body, START + n * DAY)
    assert archive.get(URL, at=START + 1.5 * DAY).body == b"B"
    assert archive.get(URL, at=START - DAY).body == b"A", "before the first: the oldest"
    assert archive.get(URL, at=START + 9 * DAY).body == b"C"


def test_missing_url_and_missing_version_are_errors_of_their_own(archive: Archive) -> None:
    with pytest.raises(UnknownUrl):
        archive.get(URL)
    archive.put(URL, b"A")
    with pytest.raises(UnknownVersion, match="numbered from 0"):
        archive.get(URL, version=1)


def test_older_version_that_comes_late_moves_the_numbers_of_later_ones(archive: Archive) -> None:
    archive.put(URL, b"A", START)
    archive.put(URL, b"C", START + 2 * DAY)
    late = archive.put(URL, b"B", START + DAY)
    assert (late.number, late.stored) == (1, True)
    assert [archive.get(URL, version=n).body for n in range(3)] == [b"A", b"B", b"C"]
    assert archive.get(URL).number == 2


def test_late_copy_of_the_next_version_makes_it_begin_earlier(archive: Archive) -> None:
    archive.put(URL, b"A", START)
    archive.put(URL, b"B", START + 2 * DAY)
    assert not archive.put(URL, b"B", START + DAY).stored
    assert [version.time for version in archive.versions(URL)] == [START, START + DAY]


def test_clock_that_jumps_back_keeps_checks_in_order(tmp_path: Path) -> None:
    clock = [START + DAY]
    with Archive(tmp_path / "a", clock=lambda: clock[-1]) as archive:
        for body in (b"A", b"B", b"C"):
            archive.put(URL, body)
            clock.append(START)
        assert [version.number for version in archive.versions(URL)] == [0, 1, 2]
        stamps = [version.time for version in archive.versions(URL)]
        assert stamps == sorted(set(stamps))


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from([b"A", b"B", b"C"])), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_arrival_gives_versions_in_the_order_of_time(
    tmp_path_factory: pytest.TempPathFactory, arrivals: list[tuple[int, bytes]]
) -> None:
    with Archive(tmp_path_factory.mktemp("a")) as archive:
        for day, body in arrivals:
            archive.put(URL, body, START + day * DAY)
        versions = archive.versions(URL)
        assert [version.number for version in versions] == list(range(len(versions)))
        assert [version.time for version in versions] == sorted(version.time for version in versions)
        assert all(a.digest != b.digest for a, b in itertools.pairwise(versions))
        assert archive.get(URL).number == len(versions) - 1
        assert len(archive.history(URL)) <= len(arrivals)


def test_two_processes_worth_of_archives_write_in_turns(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as one, Archive(tmp_path / "a") as two:
        for n in range(10):
            (one if n % 2 else two).put(URL, b"%d" % n, START + n * DAY)
        assert [one.get(URL, version=n).body for n in range(10)] == [b"%d" % n for n in range(10)]
        assert two.get(URL).body == b"9"


def test_an_archive_that_was_closed_is_not_opened_again_by_a_question(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://a.test/", b"one")
    archive.close()
    for question in (
        lambda: archive.get("http://a.test/"),
        lambda: archive.put("http://a.test/", b"two"),
        archive.stats,
    ):
        with pytest.raises(UsageError, match="the archive is closed"):
            question()
