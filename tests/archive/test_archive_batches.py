"""A batch leaves the same record as its looks one by one, whatever repeats in it and whatever comes late."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from services import SCALED

from letopis import Archive, Put
from letopis.catalog.schema import VersionRow
from letopis.catalog.versions import PendingRows

START = datetime(2026, 1, 1, tzinfo=UTC)
URLS = ("http://a.example/", "http://a.example/page", "http://b.example/")
BODIES = (b"one", b"two", b"three")
TYPES = ("text/html", "text/plain")

looks = st.lists(
    st.builds(
        lambda url, body, day, kind: Put(URLS[url], BODIES[body], START + timedelta(days=day), TYPES[kind]),
        st.integers(0, 2), st.integers(0, 2), st.integers(0, 6), st.integers(0, 1),
    ),
    max_size=14,
)  # fmt: skip


def recorded(archive: Archive) -> dict[str, tuple[list[object], list[object]]]:
    """All that is told of each URL."""
    found: dict[str, tuple[list[object], list[object]]] = {}
    for row in archive.catalog.resources.all():
        versions = [(v.number, v.time, v.digest, v.content_type, v.headers) for v in archive.versions(row.url)]
        history = [(c.checked_at, c.status, c.outcome, c.version, c.digest) for c in archive.history(row.url)]
        found[row.url] = (list(versions), list(history))
    return found


def taken_in(folder: Path, batches: Sequence[Sequence[Put]]) -> dict[str, tuple[list[object], list[object]]]:
    with Archive(folder) as archive:
        for batch in batches:
            list(archive.put_many(batch))
        assert list(archive.verify()) == []
        assert list(archive.catalog.integrity()) == []
        return recorded(archive)


@given(looks, st.integers(1, 13))
@settings(max_examples=3 if SCALED else 25, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_batch_leaves_what_its_looks_would_leave_one_by_one(puts: list[Put], cut: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        alone = taken_in(Path(name) / "alone", [[put] for put in puts])
        assert taken_in(Path(name) / "together", [puts]) == alone
        assert taken_in(Path(name) / "parts", [puts[:cut], puts[cut:]]) == alone


@given(st.permutations(range(7)), st.lists(st.integers(0, 2), min_size=7, max_size=7))
@settings(max_examples=3 if SCALED else 25, deadline=None, suppress_health_check=list(HealthCheck))
def test_in_whatever_order_looks_come_in_each_day_has_what_was_seen_then(order: list[int], bodies: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name, Archive(Path(name) / "a") as archive:
        for day in order:
            archive.put(URLS[0], BODIES[bodies[day]], at=START + timedelta(days=day))
        seen = [archive.get(URLS[0], at=START + timedelta(days=day)).body for day in range(7)]
        assert seen == [BODIES[body] for body in bodies]
        told = [check.digest for check in archive.history(URLS[0])]
        assert told == [archive.get(URLS[0], at=START + timedelta(days=day)).digest for day in range(7)]
        assert list(archive.verify()) == []


def test_a_batch_may_repeat_itself_and_come_late(tmp_path: Path) -> None:
    days = [3, 3, 1, 2, 5, 0, 5]
    puts = [Put(URLS[0], BODIES[day % 3], START + timedelta(days=day)) for day in days]
    puts += [Put(URLS[1], BODIES[0], START), Put(URLS[1], BODIES[0], START)]
    assert taken_in(tmp_path / "together", [puts]) == taken_in(tmp_path / "alone", [[put] for put in puts])


def test_versions_of_a_batch_have_rising_numbers_above_all_before(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        list(archive.put_many(Put(url, b"x" + url.encode()) for url in URLS))
        before = [row.id for row in archive.catalog.versions.all()]
        with archive.transaction() as (cursor, _):
            new = PendingRows(cursor, 5)
            row = VersionRow(0, 1, 1, 2**41, 1, 1, 200, None, None)
            given_out = [new.version(row).id, new.version(row._replace(number=2)).id]
            new.write()
        assert given_out == sorted(given_out)
        assert given_out[0] > max(before)
        assert [row.id for row in archive.catalog.versions.all()] == [*before, *given_out]
