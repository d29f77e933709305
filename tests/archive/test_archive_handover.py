"""What a crawl hands over comes back as it was, and what is lost, half written or about another version does not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.archive import Identity, RecordedCapture
from letopis.archive.link_cache import (
    MAGIC,
    CachedLinks,
    LinkCacheReader,
    LinkCacheWriter,
    RecordedPage,
    link_cache_folder,
    links_of_page,
    pack_links,
)
from letopis.model import Link, LinkType, Observation, Outcome, Page, Response

URL = "http://x.org/"
SHA1 = bytes(range(20))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
text = st.text(max_size=12)
pages = st.builds(
    Page,
    st.just(URL),
    st.just("text/html"),
    title=text,
    language=st.sampled_from(("", "cs", "en")),
    links=st.lists(st.builds(Link, text, st.sampled_from(list(LinkType)), text, text, text), max_size=5).map(tuple),
)


def page(*targets: str, title: str = "T", warnings: tuple[str, ...] = ()) -> Page:
    links = tuple(Link(target, LinkType.A, f"to {target}") for target in targets)
    return Page(URL, "text/html", title=title, links=links, warnings=warnings)


def recorded(version: int, sha1: bytes = SHA1, outcome: Outcome = Outcome.NEW) -> RecordedCapture:
    return RecordedCapture(URL, 1, 1000 + version, outcome, 0, version, Identity(sha1, 7), True)


def look(shown: Page | None, outcome: Outcome = Outcome.NEW) -> Observation:
    return Observation(Response(URL, URL, 200, (), b"", NOON), outcome, shown)


def hand(folder: Path, first: int, count: int = 1, **bounds: int) -> None:
    handover = LinkCacheWriter(folder, **bounds)
    numbers = range(first, first + count)
    handover.add([look(page(f"{URL}{number}")) for number in numbers], [recorded(number) for number in numbers])


def found(folder: Path, *numbers: int) -> list[int]:
    """Which of these versions have been handed over."""
    stretch = LinkCacheReader(folder).between(min(numbers), max(numbers))
    return [number for number in numbers if stretch.of(number, 1000 + number, SHA1)]


@settings(max_examples=200, deadline=None)
@given(st.lists(pages, min_size=1, max_size=4))
def test_leads_come_back_as_they_were(shown: list[Page]) -> None:
    versions, frame = pack_links([RecordedPage(number, number, SHA1, one) for number, one in enumerate(shown)])
    stretch = CachedLinks()
    stretch.add(frame, len(versions))
    for number, one in enumerate(shown):
        leads = links_of_page(one)
        # Whatever has line ends where none belong is not handed over at all.
        fits = not any("\n" in part for part in (one.title, *leads.targets))
        came = stretch.of(number, number, SHA1)
        assert came == (leads._replace(targets=tuple(leads.targets)) if fits else None)


@settings(max_examples=200, deadline=None)
@given(pages)
def test_every_link_has_one_line(shown: Page) -> None:
    lines = links_of_page(shown).lines.decode("utf-8", "surrogatepass").split("\n")
    assert len(lines) == max(1, len(shown.links))
    for line, link in zip(lines, shown.links, strict=False):
        assert line.partition("\t")[0].split() == link.text.split()


def test_another_time_or_content_under_the_same_number_is_not_taken_for_it() -> None:
    versions, frame = pack_links([RecordedPage(5, 1000, SHA1, page("/a"))])
    stretch = CachedLinks()
    stretch.add(frame, len(versions))
    assert stretch.of(5, 1000, SHA1) is not None
    assert stretch.of(5, 1001, SHA1) is stretch.of(5, 1000, bytes(20)) is stretch.of(6, 1000, SHA1) is None


def test_pages_that_became_versions_are_handed_over(tmp_path: Path) -> None:
    LinkCacheWriter(tmp_path).add(
        [look(page("/a")), look(None), look(page("/b"), Outcome.CHANGED), look(page("/c"), Outcome.UNCHANGED)],
        [recorded(1), recorded(2), recorded(3, outcome=Outcome.CHANGED), recorded(4, outcome=Outcome.UNCHANGED)],
    )
    assert found(tmp_path, 1, 2, 3, 4) == [1, 3]


def test_pages_that_were_not_read_whole_are_left_to_the_index(tmp_path: Path) -> None:
    other = Page(URL, "application/pdf", title="T")
    LinkCacheWriter(tmp_path).add([look(page("/a", warnings=("cut off",))), look(other)], [recorded(1), recorded(2)])
    assert not list(link_cache_folder(tmp_path).glob("*"))


def test_several_crawls_hand_over_side_by_side(tmp_path: Path) -> None:
    for first in (1, 101, 51):
        hand(tmp_path, first, 10)
    assert found(tmp_path, 1, 10, 11, 51, 60, 101, 110) == [1, 10, 51, 60, 101, 110]


def test_only_what_reaches_beyond_the_index_is_kept(tmp_path: Path) -> None:
    hand(tmp_path, 1, 10)
    hand(tmp_path, 11, 10)
    LinkCacheReader(tmp_path).drop(10)
    assert found(tmp_path, 10, 11) == [11]


def test_a_crawl_goes_on_after_its_file_was_taken_in(tmp_path: Path) -> None:
    handover = LinkCacheWriter(tmp_path)
    for number in (1, 2, 3):
        handover.add([look(page("/a"))], [recorded(number)])
        if number == 2:
            LinkCacheReader(tmp_path).drop(number)
    assert found(tmp_path, 1, 2, 3) == [3]


def test_files_that_nobody_asks_for_stay_bounded(tmp_path: Path) -> None:
    handover = LinkCacheWriter(tmp_path, file_bytes=1000, most_bytes=5000)
    for number in range(100):
        handover.add([look(page(f"{URL}{number}"))], [recorded(number)])
    assert sum(file.stat().st_size for file in link_cache_folder(tmp_path).iterdir()) <= 5000 + 300
    assert found(tmp_path, 0, 99) == [99]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_flipped_or_missing_byte_loses_frames_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("flip")
    handover = LinkCacheWriter(folder)
    for number in (1, 2, 3):
        handover.add([look(page(f"{URL}{number}"))], [recorded(number)])
    (file,) = link_cache_folder(folder).iterdir()
    raw = bytearray(file.read_bytes())
    if data.draw(st.booleans()):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del raw[data.draw(st.integers(0, len(raw) - 1)) :]
    file.write_bytes(raw)
    stretch = LinkCacheReader(folder).between(1, 3)
    for number in (1, 2, 3):
        assert stretch.of(number, 1000 + number, SHA1) in (None, links_of_page(page(f"{URL}{number}")))
    LinkCacheReader(folder).drop(3)


def test_a_file_of_another_kind_says_nothing(tmp_path: Path) -> None:
    link_cache_folder(tmp_path).mkdir(parents=True)
    (link_cache_folder(tmp_path) / "x.leads").write_bytes(b"something else, longer than " + MAGIC * 9)
    assert found(tmp_path, 1) == []


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "index").write_bytes(b"in the way")
    hand(tmp_path, 1)
    assert found(tmp_path, 1) == []
    LinkCacheReader(tmp_path).drop(1)
