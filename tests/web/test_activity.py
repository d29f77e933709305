"""What pages ask of the catalogue: the pages of a host without an index by host, and who holds what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_archive import at, look, running

from letopis.archive import Archive
from letopis.archive.activity import DAY, activity_of
from letopis.model import Outcome, to_millis
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=lambda: at(2000)) as opened:
        for number in range(5):
            opened.put(f"http://example.org/{number}", f"<p>{number % 2}</p>".encode(), at(number))
        # The same sorted keys, another host; and a host whose name begins alike.
        opened.put("http://www.example.org/0", b"<p>w</p>", at(6))
        opened.put("http://example.org.uk/0", b"<p>uk</p>", at(7))
        opened.put("http://example.org:8080/0", b"<p>port</p>", at(8))
        opened.record([look("http://example.org/gone", at(9), b"", 404, outcome=Outcome.UNAVAILABLE)])
        yield opened


def test_the_pages_of_a_host_are_its_own_and_the_last_changed_comes_first(archive: Archive) -> None:
    activity = activity_of(archive)
    assert [row.url[-2:] for row in activity.pages("example.org", 3)] == ["/4", "/3", "/2"]
    assert activity.count_pages("example.org") == 6
    assert activity.count_pages("example.org", 2) == 2
    assert [activity.count_pages(name) for name in ("www.example.org", "example.org:8080", "nowhere.example")] == [
        1,
        1,
        0,
    ]


def test_the_pages_of_a_host_can_be_walked_by_address(archive: Archive) -> None:
    activity = activity_of(archive)
    seen: list[str] = []
    after = ""
    while part := activity.pages_after("example.org", 2, after):
        seen += [row.url for _, row in part]
        after = part[-1][0]
    assert seen == [f"http://example.org/{name}" for name in ("0", "1", "2", "3", "4", "gone")]


def test_the_bars_of_the_overview_lead_to_their_days(archive: Archive) -> None:
    archive.put("http://example.org/0", b"<p>news of the next day</p>", at(1500))
    with running(archive) as web:
        days = re.findall(r'<a href="(/\?before=\d+)#changes" aria-label="(\S+): ', web.get("/").text)
        assert [day for _, day in days] == ["2024-01-01", "2024-01-02"]
        shown = [web.get(address).text.partition('id="changes"')[2] for address, _ in days]
        assert ["v1" in text.partition("</ol>")[0] for text in shown] == [False, True]


def test_changes_of_a_host_are_counted_by_day(archive: Archive) -> None:
    archive.put("http://example.org/0", b"<p>news of the day</p>", at(20))
    rows = activity_of(archive).changes("example.org", 0, to_millis(at(100)))
    assert rows == [("http://example.org/0", to_millis(at(20)) // DAY, 1)]


def test_changes_of_a_host_are_counted_by_hour_of_the_day_over_all_days(archive: Archive) -> None:
    for day, minutes in ((0, 70), (1, 75), (1, 600)):
        archive.put("http://example.org/0", f"<p>news {day} {minutes}</p>".encode(), at(day * 1440 + minutes))
    rows = activity_of(archive).changes_by_hour("example.org", 0, to_millis(at(9999)))
    assert rows == [("http://example.org/0", 13, 2), ("http://example.org/0", 22, 1)]


def test_the_same_bytes_are_found_with_those_who_hold_them(archive: Archive) -> None:
    activity = activity_of(archive)
    copies = activity.copies(10)
    assert [row.copies for row in copies] == [3, 2]
    held = activity.holders([row.content for row in copies], 2)
    assert [[url[-1] for url in held[row.content]] for row in copies] == [["0", "2"], ["1", "3"]]
    assert activity.holders([], 2) == {}


def test_watches_come_in_parts_and_are_counted_by_tag(archive: Archive) -> None:
    book = WatchList(archive)
    assert (book.entries(), book.tag_counts()) == ([], {})
    book.add([f"http://example.org/{number}" for number in range(4)], WatchSpec(every=60.0), "news")
    book.add(["http://example.org/gone"], WatchSpec(every=60.0))
    assert [entry.watch.url[-1] for entry in book.entries("news", 2, 2)] == ["2", "3"]
    assert len(book.entries(None, 10)) == 5
    assert book.tag_counts() == {"": 1, "news": 4}
