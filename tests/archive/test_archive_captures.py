"""The reading door of captures: what each is, which were redirected, and what the server sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_archive import PAGE, at, fill, look

from letopis.archive import Archive
from letopis.archive.captures import (
    OTHER,
    REPEAT,
    TOO_LARGE,
    VERSION,
    CaptureList,
    KeyRange,
    TimeRange,
    checked_urls,
    load_capture,
    reads_at_once,
    timeline_of,
    version_time,
)
from letopis.archive.details import CheckDetails, redirects_of
from letopis.errors import UsageError
from letopis.exchange.cdx import cdx_rows, cdxj_line
from letopis.model import Hop, Outcome, to_millis
from letopis.urls import surt

EVERYTHING = KeyRange("", "\U0010ffff")
HOP = Hop("http://example.org/a", 302, "/b", "192.0.2.1", (("Location", "/b"),))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    with Archive(tmp_path_factory.mktemp("captures") / "archive", clock=lambda: at(100)) as filled:
        fill(filled)
        large = look("http://example.org/large", at(34), b"", 200, outcome=Outcome.TOO_LARGE)
        filled.record([large])
        yield filled


def listed(archive: Archive, keys: KeyRange = EVERYTHING) -> list[tuple[str, int, int, bool]]:
    """Path, status, kind and whether it was redirected."""
    batches = archive.attached(CaptureList).batches(keys)
    return [
        (row[1].partition("example.org")[2], row[3], row[8], row[7] is not None) for batch in batches for row in batch
    ]


def test_every_capture_says_what_it_is(archive: Archive) -> None:
    page = [row for row in listed(archive) if row[0] == "/page"]
    assert [(status, kind) for _, status, kind, _ in page] == [
        (200, VERSION),
        (200, REPEAT),
        (304, REPEAT),
        (200, VERSION),
        (404, OTHER),
    ]
    assert [row for row in listed(archive) if row[0] in ("/jump", "/large")] == [
        ("/jump", 302, OTHER, False),
        ("/large", 200, TOO_LARGE, False),
    ]


def test_a_redirected_check_is_known_by_its_first_redirect(archive: Archive) -> None:
    assert [row[0] for row in listed(archive) if row[3]] == ["/lost", "/moved"]
    [capture] = archive.attached(CaptureList).of_url("http://example.org/moved")
    assert (capture[7].status, capture[7].location) == (301, "/page") if capture[7] else False


@pytest.mark.parametrize(
    "details",
    [
        CheckDetails(),
        CheckDetails(warnings=("hops",)),
        CheckDetails(error='{"hops":[["http://x/",301,"/","",[]]]}'),
        CheckDetails(blocks=('added paragraph: ,"hops":[',), final_url="http://example.org/hops"),
    ],
)
def test_words_of_a_page_never_make_a_redirect(details: CheckDetails) -> None:
    assert redirects_of(details.pack()) == ()


def test_redirects_come_back_as_they_were_recorded() -> None:
    hops = (HOP, Hop("http://example.org/b", 301, "http://c.example/", "", ()))
    assert redirects_of(CheckDetails(final_url="http://c.example/", hops=hops, warnings=("x",)).pack()) == hops
    assert redirects_of(None) == ()


def test_what_a_text_of_the_server_says_is_no_redirect_in_any_list(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive:
        archive.record([look(PAGE, at(0), b"<p>1</p>", warnings=('"hops":[', ',"hops":["'))])
        assert listed(archive) == [("/page", 200, VERSION, False)]
        moment = timeline_of(archive, PAGE).first()
        assert moment is not None
        assert load_capture(archive, moment).status == 200


def test_a_redirect_of_an_odd_type_stays_one_json_line(tmp_path: Path) -> None:
    odd = Hop(PAGE, 301, "/b", "", (("Content-Type", ' text/"odd\\type; charset=x'),))
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as archive:
        archive.record([look(PAGE, at(0), b"<p>1</p>", hops=(odd,), final_url="http://example.org/b")])
        captures = archive.attached(CaptureList)
        [row] = cdx_rows(captures, list(captures.of_url(PAGE)), "-")
    fields = json.loads(cdxj_line(row).split(" ", 2)[2])
    assert (fields["mime"], fields["status"], fields["length"]) == ("text/", "301", "0")


def test_addresses_that_share_a_key_share_a_timeline_but_not_a_list(archive: Archive) -> None:
    archive.put("http://www.example.org/page", b"<p>www</p>", at(60))
    exactly = KeyRange.exactly(surt(PAGE))
    assert {row[0] for row in listed(archive, exactly)} == {"/page"}
    assert len(listed(archive, exactly)) == 6
    captures = archive.attached(CaptureList)
    assert [row[3] for row in captures.of_url("http://www.example.org/page")] == [200]
    assert len(list(captures.of_url(PAGE, TimeRange(to_millis(at(10)), to_millis(at(30)))))) == 3
    last = timeline_of(archive, PAGE).closest(to_millis(at(99)))
    assert last is not None
    assert (last.url, last.number) == ("http://www.example.org/page", 0)


@pytest.mark.parametrize(
    ("url", "minute", "status", "location"),
    [
        (PAGE, 0, 200, ""),
        (PAGE, 20, 200, ""),
        (PAGE, 40, 404, ""),
        ("http://example.org/moved", 31, 301, PAGE),
        ("http://example.org/jump", 32, 302, PAGE),
        ("http://example.org/lost", 33, 200, ""),
    ],
)
def test_a_capture_is_loaded_as_the_server_answered(
    archive: Archive, url: str, minute: int, status: int, location: str
) -> None:
    moment = timeline_of(archive, url).closest(to_millis(at(minute)))
    assert moment is not None
    loaded = load_capture(archive, moment)
    assert (loaded.status, loaded.location) == (status, location)


def test_checked_addresses_are_listed_whole_or_by_host(archive: Archive) -> None:
    assert {row.url for row in checked_urls(archive, "sub.example.org")} == {"http://sub.example.org/a"}
    assert len(list(checked_urls(archive))) == archive.stats().documents
    row = next(row for row in checked_urls(archive) if row.url == PAGE)
    assert version_time(archive, row.id, 1) == at(30)
    assert version_time(archive, row.id, 2) is None


def test_an_archive_says_whether_its_catalogue_answers(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        archive.ping()
    with pytest.raises(UsageError, match="closed"):
        archive.ping()


@pytest.mark.files
def test_an_embedded_archive_is_read_locally(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        assert archive.reads_locally


@pytest.mark.files
def test_what_is_read_at_once_is_small_and_here(tmp_path: Path) -> None:
    """Whatever is larger, or would have to be asked for elsewhere, is read where nobody else waits."""
    with Archive(tmp_path / "archive", clock=lambda: at(60)) as archive:
        archive.record([look("http://example.org/", at(1), b"five.")])
        capture = timeline_of(archive, "http://example.org/").first()
        assert capture is not None
        assert reads_at_once(archive, capture, 5)
        assert not reads_at_once(archive, capture, 4)
        with archive.catalog.transaction() as cursor:
            cursor.run("UPDATE content SET method = 'absent'")
        assert not reads_at_once(archive, capture, 5)


def test_a_look_that_others_overtook_keeps_its_time_and_its_place(tmp_path: Path) -> None:
    url = "http://example.org/raced"
    with Archive(tmp_path / "archive", clock=lambda: at(60)) as archive:
        archive.record([look(url, at(1), b"A")])
        archive.record([look(url, at(30), b"B")])
        archive.record([look(url, at(20), b"A")])
        archive.record([look(url, at(10), b"C")])
        told = [(check.checked_at, str(check.outcome), check.version) for check in archive.history(url)]
        assert told == [(at(1), "new", 0), (at(10), "changed", 1), (at(20), "changed", 2), (at(30), "changed", 3)]
        assert [archive.get(url, at=at(when)).body for when in (1, 10, 20, 30)] == [b"A", b"C", b"A", b"B"]
