"""The index follows the log: crash-safe, rebuildable, shared by processes, true after late and dropped versions."""

from __future__ import annotations

import shutil
from base64 import b32decode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis import Archive
from letopis.archive.link_cache import LinkCacheWriter, RecordedPage, link_cache_folder, pack_links
from letopis.config import Settings, StoreSettings
from letopis.errors import LetopisError
from letopis.extract import read_page
from letopis.index.link_index import MAX_SMALL_FRAMES, LinkIndex
from letopis.index.link_reports import links_out
from letopis.index.link_storage import (
    JOURNAL_MAGIC,
    LinkJournal,
    TextColumn,
    empty_segment,
    join_segments,
    pack_columns,
    text_column,
    unpack_columns,
    unpack_segment,
)
from letopis.model import to_millis

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOME = "http://x.org/"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "a") as opened:
        yield opened


def page(*targets: str, title: str = "T") -> bytes:
    return (f"<title>{title}</title>" + "".join(f'<a href="{target}">{target}</a>' for target in targets)).encode()


def targets_at(index: LinkIndex, at: datetime, url: str = HOME) -> list[str]:
    return [row.target.removeprefix(HOME) for row in links_out(index.graph().as_of(to_millis(at)), url)]


def log_of(archive: Archive) -> Path:
    return archive.folder / "index" / "links" / "links.log"


def test_takes_in_only_what_is_new(archive: Archive) -> None:
    index = LinkIndex(archive)
    archive.put(HOME, page("a"), at=START)
    assert index.catch_up() == 1
    archive.put(HOME, page("b"), at=START + DAY)
    assert (index.catch_up(), index.catch_up()) == (1, 0)
    assert targets_at(index, START) == ["a"]
    assert targets_at(index, START + DAY) == ["b"]


def test_a_later_process_goes_on_from_the_last_whole_frame(archive: Archive) -> None:
    archive.put(HOME, page("a"), at=START)
    LinkIndex(archive).catch_up()
    archive.put(HOME, page("b"), at=START + DAY)
    later = LinkIndex(archive)
    assert later.catch_up() == 1
    assert [targets_at(later, START + day * DAY) for day in range(2)] == [["a"], ["b"]]


def test_two_readers_see_what_either_took_in(archive: Archive) -> None:
    one, other = LinkIndex(archive), LinkIndex(archive)
    for day, name in enumerate("abcd"):
        archive.put(HOME, page(name), at=START + day * DAY)
        (one if day % 2 else other).catch_up()
    assert targets_at(one, START + 3 * DAY) == targets_at(other, START + 3 * DAY) == ["d"]
    assert one.graph().segment.ids.tolist() == other.graph().segment.ids.tolist()


def test_a_deleted_index_is_built_again(archive: Archive) -> None:
    for day in range(3):
        archive.put(HOME, page(str(day)), at=START + day * DAY)
    first = LinkIndex(archive).graph()
    shutil.rmtree(archive.folder / "index")
    again = LinkIndex(archive).graph()
    assert again.segment.pack() == first.segment.pack()


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_half_a_frame_at_the_end_is_taken_in_again(archive: Archive, cut: int) -> None:
    archive.put(HOME, page("a"), at=START)
    LinkIndex(archive).catch_up()
    archive.put(HOME, page("b"), at=START + DAY)
    LinkIndex(archive).catch_up()
    log = log_of(archive)
    log.write_bytes(log.read_bytes()[:-cut])
    index = LinkIndex(archive)
    assert index.catch_up() == 1
    assert targets_at(index, START + DAY) == ["b"]
    assert targets_at(index, START) == ["a"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_flipped_byte_is_noticed_and_what_follows_is_taken_in_again(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    with Archive(tmp_path_factory.mktemp("flip")) as archive:
        index = LinkIndex(archive)
        for day, name in enumerate("ab"):
            archive.put(HOME, page(name), at=START + day * DAY)
            index.catch_up()
        log = log_of(archive)
        raw = bytearray(log.read_bytes())
        raw[data.draw(st.integers(16, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        log.write_bytes(raw)
        assert [targets_at(LinkIndex(archive), START + day * DAY) for day in range(2)] == [["a"], ["b"]]


@pytest.mark.parametrize("name", ["links.log", "texts.log"])
@pytest.mark.parametrize("at", [3, 50, -3])
def test_a_damaged_index_answers_as_before_and_is_built_again(archive: Archive, name: str, at: int) -> None:
    for day in range(3):
        archive.put(HOME, page(f"{day}a", f"{day}b"), at=START + day * DAY)
        LinkIndex(archive).catch_up()
    damaged = log_of(archive).with_name(name)
    raw = bytearray(damaged.read_bytes())
    raw[at] ^= 1
    damaged.write_bytes(raw)
    graph = LinkIndex(archive).graph()
    for day in (2, 1, 0):
        found = links_out(graph.as_of(to_millis(START + day * DAY)), HOME)
        assert [row.text for row in found] == [f"{day}a", f"{day}b"]
    built = LinkIndex(archive).graph().segment
    texts = LinkJournal(log_of(archive).with_name("texts.log"))
    assert len(built.targets) == 6
    assert all(texts.read(frame) for frame in built.text_frames.tolist())


def test_a_file_of_another_kind_is_no_index_and_is_replaced(archive: Archive) -> None:
    archive.put(HOME, page("a"), at=START)
    log = log_of(archive)
    log.parent.mkdir(parents=True)
    log.write_bytes(b"something else entirely")
    assert targets_at(LinkIndex(archive), START) == ["a"]


def as_written_before(file: Path) -> None:
    """Gives a file the number of the format before, in which links of other sites were recorded."""
    data = file.read_bytes()
    file.write_bytes(data[:14] + b"1" + data[15:])


def hand_over_wrong_link(archive: Archive, target: str) -> None:
    """Leaves in the cache of a crawl what is not in the page."""
    version = archive.answers.by_id(1)
    wrong = read_page(page(target), HOME, detect_language=False, mode="basic")
    recorded = RecordedPage(1, to_millis(version.time), b32decode(version.digest), wrong)
    LinkCacheWriter(archive.folder).put(*pack_links([recorded]))


def test_an_index_with_links_of_other_sites_is_built_again(archive: Archive) -> None:
    archive.put(HOME, page("/right"), at=START)
    hand_over_wrong_link(archive, "http://another.org/wrong")
    assert targets_at(LinkIndex(archive), START) == ["http://another.org/wrong"]
    for name in ("links.log", "texts.log"):
        as_written_before(archive.folder / "index" / "links" / name)
    assert LinkIndex(archive).known() == (0, 1)
    assert targets_at(LinkIndex(archive), START) == ["right"]
    assert log_of(archive).read_bytes().startswith(JOURNAL_MAGIC)


def test_links_that_an_earlier_crawl_left_are_read_anew(archive: Archive) -> None:
    archive.put(HOME, page("/right"), at=START)
    hand_over_wrong_link(archive, "http://another.org/wrong")
    (left,) = link_cache_folder(archive.folder).iterdir()
    as_written_before(left)
    assert targets_at(LinkIndex(archive), START) == ["right"]
    assert not left.exists()


def test_lost_texts_are_read_out_of_the_archive(archive: Archive) -> None:
    archive.put(HOME, page("a"), at=START)
    index = LinkIndex(archive)
    graph = index.graph()
    (archive.folder / "index" / "links" / "texts.log").write_bytes(JOURNAL_MAGIC)
    assert [row.text for row in links_out(graph.as_of(to_millis(START)), HOME)] == ["a"]
    assert len(graph.as_of(to_millis(START)).targets) == 1


def test_equal_links_of_the_next_version_are_a_pointer(archive: Archive) -> None:
    index = LinkIndex(archive)
    for day, title in enumerate("ABC"):
        archive.put(HOME, page("a", "b", title=title), at=START + day * DAY)
    graph = index.graph()
    assert graph.segment.counts.tolist() == [2, -1, -1]
    assert len(graph.segment.targets) == 2
    assert all(targets_at(index, START + day * DAY) == ["a", "b"] for day in range(3))


def test_a_version_that_arrives_late_takes_its_place_in_time(archive: Archive) -> None:
    index = LinkIndex(archive)
    archive.put(HOME, page("new"), at=START + 9 * DAY)
    index.catch_up()
    archive.put(HOME, page("old"), at=START)
    assert targets_at(index, START + DAY) == ["old"]
    assert targets_at(index, START + 9 * DAY) == ["new"]


def test_a_version_that_turns_out_older_is_known_from_then_on(archive: Archive) -> None:
    index = LinkIndex(archive)
    for number in range(20):
        archive.put(f"{HOME}{number}", page("x"), at=START + 9 * DAY)
    archive.put(HOME, page("a"), at=START + 9 * DAY)
    assert targets_at(index, START + DAY) == []
    archive.put(HOME, page("a"), at=START)
    assert targets_at(index, START + DAY) == ["a"]


def test_versions_from_before_1970_have_links_and_are_dropped_like_others(tmp_path: Path) -> None:
    early = datetime(1955, 3, 1, tzinfo=UTC)
    with Archive(tmp_path / "a", settings=Settings(store=StoreSettings(keep_versions=1))) as archive:
        index = LinkIndex(archive)
        for number in range(20):
            archive.put(f"{HOME}{number}", page("x"), at=early)
        for years, name in enumerate("ab"):
            archive.put(HOME, page(name), at=early + years * 365 * DAY)
        assert [targets_at(index, early + days * DAY) for days in (-1, 0, 400)] == [[], ["a"], ["b"]]
        archive.compact()
        assert [targets_at(index, early + days * DAY) for days in (0, 400)] == [[], ["b"]]


def test_versions_that_retention_dropped_are_gone_from_the_past(tmp_path: Path) -> None:
    kept = Settings(store=StoreSettings(keep_versions=1))
    with Archive(tmp_path / "a", settings=kept) as archive:
        index = LinkIndex(archive)
        for number in range(40):
            archive.put(f"{HOME}{number}", page("x", str(number)), at=START)
        for day, name in enumerate("abc"):
            archive.put(HOME, page(name), at=START + day * DAY)
        assert targets_at(index, START) == ["a"]
        archive.compact()
        assert targets_at(index, START) == []
        assert targets_at(index, START + 9 * DAY) == ["c"]


def test_a_log_that_was_rebuilt_rebuilds_the_index(tmp_path: Path) -> None:
    kept = Settings(store=StoreSettings(keep_versions=1))
    with Archive(tmp_path / "a", settings=kept) as archive:
        index = LinkIndex(archive)
        for day in range(6):
            archive.put(HOME, page(str(day)), at=START + day * DAY)
        index.catch_up()
        archive.compact()
        assert targets_at(index, START + 9 * DAY) == ["5"]
        assert index.graph().segment.times.tolist() == [to_millis(START + 5 * DAY)]


def test_many_small_frames_become_one(archive: Archive) -> None:
    index = LinkIndex(archive)
    for number in range(MAX_SMALL_FRAMES + 3):
        archive.put(f"{HOME}{number}", page("x", str(number + 1)), at=START)
        index.catch_up()
    frames = [frame.versions for frame, _ in LinkJournal(log_of(archive)).frames()]
    assert sum(frames) == MAX_SMALL_FRAMES + 3
    assert len(frames) < 5
    assert targets_at(LinkIndex(archive), START, f"{HOME}7") == targets_at(index, START, f"{HOME}7") == ["x", "8"]


def test_the_graph_is_the_same_value_until_something_is_recorded(archive: Archive) -> None:
    index = LinkIndex(archive)
    archive.put(HOME, page("a"), at=START)
    first = index.graph()
    assert index.graph() is first
    archive.put(HOME, page("a"), at=START + DAY)
    assert index.graph() is not first


numbers = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=50)


@settings(max_examples=100, deadline=None)
@given(numbers, st.lists(st.integers(0, 255), max_size=50), st.lists(st.text(max_size=20), max_size=20))
def test_columns_come_back_as_they_were(ints: list[int], small: list[int], words: list[str]) -> None:
    columns = [np.array(ints, np.int32), np.array(ints, np.int64), np.array(small, np.uint8)]
    *arrays, lengths, data = unpack_columns(pack_columns([*columns, TextColumn.of(words)]))
    assert [array.tolist() for array in arrays] == [ints, ints, small]
    found = text_column(lengths, data)
    assert [found[place] for place in range(len(found))] == words


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_frames_of_rubbish_are_damaged_and_nothing_worse(data: bytes) -> None:
    for raw in (data, empty_segment().pack()[: len(data)], empty_segment().pack() + data):
        try:
            unpack_segment(raw)
        except LetopisError:
            continue


def test_segments_join_column_by_column() -> None:
    empty = empty_segment()
    assert join_segments([empty, empty]).pack() == empty.pack()
