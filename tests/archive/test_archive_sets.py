"""A page and what it used are one set: asked for by time, kept through upkeep, told again by the packs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.config import Settings, StoreSettings
from letopis.errors import NotFound
from letopis.model import Failure, FailureKind, Observation, Outcome, Response, SetMember, WholePage

PAGE = "http://example.org/"
STYLE, LOGO, GONE = (f"http://example.org/{name}" for name in ("style.css", "logo.png", "gone.png"))
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8


def seen(url: str, body: bytes, at: datetime, status: int = 200) -> Observation:
    response = Response(url, url, status, (("Content-Type", "text/html"),), body, at)
    outcome = Outcome.CHANGED if status < 400 else Outcome.UNAVAILABLE
    return Observation(response, outcome)


def page(day: int, body: bytes = b"", screenshot: bytes = PICTURE) -> Observation:
    at = START + day * DAY
    resources = (
        seen(STYLE, b"p { color: %d }" % day * 30, at + timedelta(milliseconds=40)),
        seen(LOGO, b"a logo" * 50, at + timedelta(milliseconds=55)),
        seen(GONE, b"not here", at + timedelta(milliseconds=70), 404),
    )
    whole = WholePage(resources, (), screenshot, f"The price on day {day}")
    return seen(PAGE, body or b"<p>The price is %d</p>" % day * 40, at)._replace(whole=whole)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a", clock=lambda: START + 30 * DAY) as opened:
        opened.record([page(day) for day in range(3)])
        yield opened


def told(archive: Archive) -> list[tuple[object, ...]]:
    """Everything that sets say, with the bytes of their members."""
    return [
        (
            found,
            archive.sets.text(found) if found.has_text else None,
            archive.sets.screenshot(found) if found.has_screenshot else None,
            [
                (one, archive.answers.at(one.url, one.time).body)
                for one in archive.sets.members(found)
                if one.url != GONE
            ],
        )
        for found in archive.sets.of(PAGE)
    ]


def test_a_set_is_a_page_with_its_resources_picture_and_text(archive: Archive) -> None:
    first, *_ = archive.sets.of(PAGE)
    assert (first.time, first.members, first.has_screenshot, first.has_text) == (START, 3, True, True)
    assert archive.sets.screenshot(first) == PICTURE
    assert archive.sets.text(first) == "The price on day 0"
    moments = {one.url: one.time - START for one in archive.sets.members(first)}
    assert moments == {url: timedelta(milliseconds=time) for url, time in ((STYLE, 40), (LOGO, 55), (GONE, 70))}


def test_members_are_checks_of_their_own(archive: Archive) -> None:
    assert [check.outcome for check in archive.history(LOGO)] == [Outcome.NEW, Outcome.UNCHANGED, Outcome.UNCHANGED]
    assert [check.status for check in archive.history(GONE)] == [404, 404, 404]
    assert [archive.get(STYLE, version=number).body[11:12] for number in range(3)] == [b"0", b"1", b"2"]


def test_a_resource_without_an_answer_is_a_check_and_no_member(archive: Archive) -> None:
    failed = Response(GONE, GONE, 0, (), b"", START + 5 * DAY, failure=Failure(FailureKind.DNS, "no such host"))
    look = page(5)
    whole = WholePage((*look.whole.resources[:1], Observation(failed, Outcome.UNAVAILABLE)))  # type: ignore[union-attr]
    archive.record([look._replace(whole=whole)])
    found = archive.sets.of(PAGE)[-1]
    assert [one.url for one in archive.sets.members(found)] == [STYLE]
    assert archive.history(GONE)[-1].error == "no such host"


def test_a_set_may_use_again_what_an_earlier_one_brought(archive: Archive) -> None:
    earlier = archive.sets.members(archive.sets.of(PAGE)[-1])
    other = seen("http://example.org/other", b"<p>other", START + 4 * DAY)
    (done,) = archive.record([other._replace(whole=WholePage((), earlier))])
    assert done.members == earlier
    (found,) = archive.sets.of("http://example.org/other")
    assert archive.sets.members(found) == earlier
    assert archive.stats().checks == 13


@pytest.mark.parametrize(
    ("asked", "answer"), [(-1, 0), (0, 0), (0.4, 0), (0.5, 0), (0.6, 1), (1.9, 2), (2, 2), (400, 2)]
)
def test_the_nearest_set_is_found_by_time(archive: Archive, asked: float, answer: int) -> None:
    found = archive.sets.nearest(PAGE, START + asked * DAY)
    assert found is not None
    assert found.time == START + answer * DAY


def test_a_page_without_sets_has_none(archive: Archive) -> None:
    archive.put("http://example.org/plain", b"plain")
    assert archive.sets.of("http://example.org/plain") == []
    assert archive.sets.of("http://example.org/never") == []
    assert archive.sets.nearest("http://example.org/plain", START) is None


def test_sets_of_a_span_are_those_in_it(archive: Archive) -> None:
    assert [one.time for one in archive.sets.of(PAGE, START + DAY, START + DAY)] == [START + DAY]


def test_what_was_not_kept_is_not_found(archive: Archive) -> None:
    archive.record([page(9)._replace(whole=WholePage())])
    bare = archive.sets.of(PAGE)[-1]
    assert (bare.members, archive.sets.members(bare)) == (0, ())
    with pytest.raises(NotFound, match=r"screenshot of .* was not kept"):
        archive.sets.screenshot(bare)


def test_a_set_costs_a_few_bytes_a_member(tmp_path: Path) -> None:
    def bytes_of(sets: int) -> int:
        with Archive(tmp_path / str(sets), clock=lambda: START + 30 * DAY) as archive:
            for day in range(sets):
                at = START + day * DAY
                members = tuple(
                    seen(f"http://example.org/a/longer/path/to/resource-{number}.png", b"x%d" % number, at)
                    for number in range(200)
                )
                archive.record([seen(PAGE, b"<p>same", at)._replace(whole=WholePage(members))])
            return archive.stats().pack_bytes

    assert (bytes_of(12) - bytes_of(2)) / 10 / 200 < 4


def test_sets_outlive_compaction(archive: Archive) -> None:
    before = told(archive)
    assert len(before) == 3
    archive.compact()
    assert told(archive) == before
    assert list(archive.verify()) == []


@pytest.mark.files
def test_retention_that_drops_a_page_drops_its_set(tmp_path: Path) -> None:
    settings = Settings(store=StoreSettings(keep_versions=1))
    with Archive(tmp_path / "a", settings=settings, clock=lambda: START + 30 * DAY) as archive:
        archive.record([page(day, screenshot=PICTURE + bytes([day])) for day in range(3)])
        archive.compact()
        (left,) = archive.sets.of(PAGE)
        assert archive.sets.screenshot(left) == PICTURE + bytes([2])
        assert list(archive.verify()) == []


@pytest.mark.files
@pytest.mark.parametrize("compacted", [False, True])
def test_a_catalogue_built_anew_has_the_sets_again(tmp_path: Path, compacted: bool) -> None:
    """Also of looks that found the page unchanged, of which packs tell nothing else."""
    with Archive(tmp_path / "a", clock=lambda: START + 30 * DAY) as archive:
        archive.record([page(day, b"<p>always the same</p>") for day in range(3)])
        if compacted:
            archive.compact()
        before, settings = told(archive), archive.settings
    next((tmp_path / "a").glob("catalog*")).write_bytes(b"not a catalogue" * 500)
    assert Archive.repair(settings).rebuilt
    with Archive.open(settings) as archive:
        assert told(archive) == before
        assert [check.outcome for check in archive.history(PAGE)] == [Outcome.NEW, Outcome.UNCHANGED, Outcome.UNCHANGED]
        assert list(archive.verify()) == []
        archive.record([page(4)])
        assert len(told(archive)) == 4


@pytest.mark.files
def test_a_catalogue_from_an_older_copy_learns_of_later_sets(tmp_path: Path) -> None:
    file = tmp_path / "a" / "catalogue.sqlite"
    with Archive(tmp_path / "a", clock=lambda: START + 30 * DAY) as archive:
        archive.record([page(0)])
        archive.catalog.tidy()
        copy = file.read_bytes()
        archive.record([page(1), page(2)])
        before = told(archive)
    for left in (tmp_path / "a").glob("catalog*"):
        left.unlink()
    file.write_bytes(copy)
    with Archive(tmp_path / "a") as archive:
        assert told(archive) == before


def test_members_of_one_moment_are_each_there(archive: Archive) -> None:
    at = START + 8 * DAY
    twice = (seen(STYLE, b"first answer", at), seen(STYLE, b"second answer", at))
    archive.record([page(8)._replace(whole=WholePage(twice))])
    members = archive.sets.members(archive.sets.of(PAGE)[-1])
    assert members == (SetMember(STYLE, at), SetMember(STYLE, at + timedelta(milliseconds=1)))
    assert [archive.answers.at(one.url, one.time).body for one in members] == [b"first answer", b"second answer"]
