"""Analyses as pieces on a Dask cluster: the same answers as in one process, whoever dies on the way."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import distributed
import pytest
from dask_workers import OF_THE_LIBRARY, Workers
from services import ObjectServer
from written_warc import export_warc

from letopis.archive import Archive, cluster
from letopis.archive.cluster import (
    ClusterRunner,
    CompactionTask,
    LocalRunner,
    PieceRunner,
    compact_jointly,
    compact_range,
    document_ranges,
)
from letopis.archive.compaction import CompactReport
from letopis.config import ArchiveSettings, DatabaseSettings, Settings, StoreSettings
from letopis.errors import Busy, NotReady, UsageError
from letopis.exchange import selection
from letopis.exchange.cdx import cdxj_lines
from letopis.exchange.parquet_export import export_parquet
from letopis.exchange.selection import ExportSelection
from letopis.exchange.wacz_export import export_wacz
from letopis.index import link_index, near_duplicates
from letopis.index import word_index as words_follower
from letopis.index.link_index import LinkIndex, catch_up_on_cluster
from letopis.index.map_formats import MAP_FORMATS
from letopis.index.near_duplicates import DuplicatePair, duplicates_in_site, duplicates_of_page
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.site_maps import site_map
from letopis.index.word_index import WordIndex
from letopis.model import Put, to_millis

pytestmark = OF_THE_LIBRARY
HOSTS, PAGES = 3, 8
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
P = TypeVar("P")
R = TypeVar("R")


def page(host: int, number: int, day: int) -> bytes:
    """Pages of a tree; every third is nearly the one before it."""
    like = number - number % 3
    words = " ".join(f"word{like}x{place} of many" for place in range(60))
    links = "".join(f'<a href="/{child}">child {child}</a>' for child in (2 * number + 1, 2 * number + 2))
    last = f"<p>Told on day {day} as number {number}.</p>" if number % 3 else f"<p>Told on day {day}.</p>"
    return f"<html><title>Page {number} of {host}</title><p>{words}</p>{links}{last}</html>".encode()


def puts() -> Iterator[Put]:
    for day in range(3):
        for host in range(HOSTS):
            for number in range(PAGES):
                moment = NOON + timedelta(days=day, seconds=host * PAGES + number)
                yield Put(f"http://h{host}.example/{number or ''}", page(host, number, day), moment)


@pytest.fixture(autouse=True)
def _many_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever leads cuts even a small archive into many."""
    for module, name, value in (
        (link_index, "PIECE", 10),
        (link_index, "_STRETCH", 60),
        (words_follower, "PIECE", 10),
        (near_duplicates, "_PIECE", 4),
        (selection, "_URLS", 4),
        (cluster, "MIN_RANGE_DOCUMENTS", 4),
    ):
        monkeypatch.setattr(module, name, value)


@contextmanager
def some_hundred_versions(database: str, store: StoreSettings, folder: Path) -> Iterator[Archive]:
    where = ArchiveSettings(path=str(folder / "machine"))
    with Archive.open(Settings(archive=where, database=DatabaseSettings(url=database), store=store)) as archive:
        list(archive.put_many(puts()))
        yield archive


@pytest.fixture(scope="module")
def all_read(
    new_database: Callable[[], str], object_server: ObjectServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Archive]:
    with some_hundred_versions(new_database(), object_server.settings(), tmp_path_factory.mktemp("read")) as archive:
        yield archive


@pytest.fixture
def filled(all_read: Archive, tmp_path: Path) -> Iterator[Archive]:
    """An archive that all tests read; what one puts beside it is its own."""
    folder, all_read.folder = all_read.folder, tmp_path / "machine"
    yield all_read
    all_read.folder = folder


@pytest.fixture
def loose(new_database: Callable[[], str], object_server: ObjectServer, tmp_path: Path) -> Iterator[Archive]:
    """An archive that a test may compact."""
    with some_hundred_versions(new_database(), object_server.settings(), tmp_path) as archive:
        yield archive


@pytest.fixture
def spread(client: Any, all_read: Archive) -> PieceRunner:
    return ClusterRunner(lambda: client, all_read.settings)


class Deadly:
    """Kills a worker when the first answer has come."""

    def __init__(self, spread: PieceRunner, workers: Workers) -> None:
        self._spread = spread
        self._workers = workers
        self.killed = False

    def each(self, work: Callable[[Archive, P], R], pieces: Iterable[P]) -> Iterator[R]:
        for answer in self._spread.each(work, pieces):
            if not self.killed:
                self.killed = True
                self._workers.kill_one()
            yield answer


def links_of(archive: Archive, folder: str, spread: PieceRunner | None) -> tuple[bytes, str]:
    """The file of the index, and a map made of it."""
    archive.folder = archive.folder.with_name(folder)
    index = LinkIndex(archive)
    took = index.catch_up() if spread is None else catch_up_on_cluster(spread, archive, index)
    assert took == 3 * HOSTS * PAGES
    found = site_map(index.graph(), "h1.example", to_millis(NOON + timedelta(days=9)))
    return (archive.folder / "index" / "links" / "links.log").read_bytes(), "".join(MAP_FORMATS["json"].write(found))


def test_pages_read_by_a_cluster_make_the_same_index_of_links_and_the_same_map(
    filled: Archive, spread: PieceRunner
) -> None:
    assert links_of(filled, "here", None) == links_of(filled, "there", spread)


def words_found(archive: Archive, folder: str, spread: PieceRunner | None) -> list[list[tuple[str, int, float]]]:
    """What some questions find, without what depends on the hour of asking."""
    archive.folder = archive.folder.with_name(folder)
    index = WordIndex(archive, spread)
    assert index.catch_up() == 3 * HOSTS * PAGES
    then = NOON + timedelta(days=1, hours=6)
    asked = [
        parse_word_query("word3x7"),
        parse_word_query('"told on day 1"', at=then),
        parse_word_query("title:page child"),
    ]
    return [[(hit.url, hit.version, hit.why.words) for hit in search(index, one, 50)] for one in asked]


def test_words_read_by_a_cluster_are_found_as_those_read_here(filled: Archive, spread: PieceRunner) -> None:
    alone = words_found(filled, "here", None)
    assert all(alone)
    assert words_found(filled, "there", spread) == alone


def test_duplicates_are_those_that_one_process_finds(filled: Archive, spread: PieceRunner) -> None:
    inside = duplicates_in_site(filled, "h0.example", 0.7)
    assert len(inside) == 5
    assert duplicates_in_site(filled, "h0.example", 0.7, spread=spread) == inside
    everywhere = duplicates_of_page(filled, "http://h0.example/4", 0.7)
    assert {pair.other for pair in everywhere} >= {"http://h1.example/4", "http://h2.example/5"}
    assert duplicates_of_page(filled, "http://h0.example/4", 0.7, spread=spread) == everywhere


@pytest.mark.parametrize("latest", [False, True])
def test_a_warc_of_a_cluster_has_the_same_bytes(filled: Archive, spread: PieceRunner, latest: bool) -> None:
    alone, together = io.BytesIO(), io.BytesIO()
    chosen = ExportSelection(latest=latest)
    assert export_warc(filled, alone, chosen) == export_warc(filled, together, chosen, spread=spread)
    assert alone.getvalue() == together.getvalue()


def test_other_exports_of_a_cluster_have_the_same_bytes(filled: Archive, spread: PieceRunner, tmp_path: Path) -> None:
    alone, together = (list(cdxj_lines(filled, ExportSelection(), spread=how)) for how in (None, spread))
    assert alone == together
    for name, how in (("here", None), ("there", spread)):
        export_wacz(filled, tmp_path / f"{name}.wacz", ExportSelection(), spread=how)
        export_parquet(filled, tmp_path / name, ExportSelection(), spread=how)
    assert (tmp_path / "here.wacz").read_bytes() == (tmp_path / "there.wacz").read_bytes()
    for table in ("checks", "versions", "links"):
        file = f"{table}.parquet"
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "there" / file).read_bytes()


def test_a_long_history_is_exported_in_stretches(filled: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, stretched = io.BytesIO(), io.BytesIO()
    export_warc(filled, alone, ExportSelection())
    monkeypatch.setattr(selection, "_VERSIONS", 2)
    assert len(list(selection.export_parts(filled, ExportSelection()))) > HOSTS * PAGES
    export_warc(filled, stretched, ExportSelection(), spread=LocalRunner(filled))
    assert alone.getvalue() == stretched.getvalue()


def a_warc(archive: Archive, folder: str, spread: PieceRunner | None) -> bytes:
    file = io.BytesIO()
    export_warc(archive, file, ExportSelection(), spread=spread)
    return file.getvalue()


def inside_a_site(archive: Archive, folder: str, spread: PieceRunner | None) -> list[DuplicatePair]:
    return duplicates_in_site(archive, "h0.example", 0.7, spread=spread)


def test_what_pieces_read_is_whole_when_a_worker_is_killed(
    filled: Archive, spread: PieceRunner, workers: Workers
) -> None:
    """One by one: whoever takes the place of the dead may still be on its way when the next one dies."""
    for work in (words_found, links_of, inside_a_site, a_warc):
        alone, deadly = work(filled, f"{work.__name__}-here", None), Deadly(spread, workers)
        assert work(filled, f"{work.__name__}-there", deadly) == alone
        assert deadly.killed
        workers.complete()


def bodies(archive: Archive) -> dict[tuple[str, int], bytes]:
    rows = list(archive.catalog.resources.all())
    return {(row.url, one): archive.get(row.url, version=one).body for row in rows for one in range(row.versions)}


def assert_compacted(archive: Archive, report: CompactReport, before: dict[tuple[str, int], bytes]) -> None:
    assert report.finished
    assert report.documents == HOSTS * PAGES
    assert report.moved == len(before)
    assert report.bytes_after < report.bytes_before / 2
    assert bodies(archive) == before
    assert list(archive.verify()) == []


def test_a_cluster_compacts_as_one_process_does(loose: Archive, client: Any) -> None:
    before, spread = bodies(loose), ClusterRunner(lambda: client, loose.settings)
    assert_compacted(loose, compact_jointly(loose, spread), before)
    assert compact_jointly(loose, spread).moved == 0


def test_a_compaction_is_whole_when_a_worker_is_killed(loose: Archive, client: Any, workers: Workers) -> None:
    before, deadly = bodies(loose), Deadly(ClusterRunner(lambda: client, loose.settings), workers)
    report = compact_jointly(loose, deadly)
    assert deadly.killed
    assert report.finished
    assert bodies(loose) == before
    assert list(loose.verify()) == []


def test_whoever_comes_back_after_a_joint_compaction_moves_nothing(loose: Archive) -> None:
    """A worker that was given up and goes on later would fill a pack that was found to be empty."""
    before = bodies(loose)
    gate = loose.joint_upkeep_gate()
    late = CompactionTask(next(document_ranges(loose.catalog)), frozenset(), "full", to_millis(NOON), gate.number)
    gate.raise_fence()
    with pytest.raises(Busy, match="went to another"):
        compact_range(loose, late)
    gate.give_back()
    with pytest.raises(Busy, match="went to another"):
        compact_range(loose, late)
    assert_compacted(loose, compact_jointly(loose, LocalRunner(loose)), before)


def test_two_joint_compactions_exclude_each_other(filled: Archive) -> None:
    gate = filled.joint_upkeep_gate()
    with pytest.raises(Busy, match="another process compacts"):
        compact_jointly(filled, LocalRunner(filled))
    gate.give_back()


def test_pieces_need_an_archive_that_workers_can_see() -> None:
    with pytest.raises(UsageError, match=r"database\.url"):
        ClusterRunner(lambda: None, Settings())


def test_an_error_of_a_piece_reaches_whoever_asked(filled: Archive, spread: PieceRunner) -> None:
    late = CompactionTask(next(document_ranges(filled.catalog)), frozenset(), "full", to_millis(NOON), 0)
    with pytest.raises(Busy, match="went to another"):
        list(spread.each(compact_range, [late, late, late]))


def test_nobody_connects_to_a_cluster_for_nothing(all_read: Archive) -> None:
    def connect() -> Any:
        raise AssertionError("nothing is to be done")

    assert list(ClusterRunner(connect, all_read.settings).each(compact_range, [])) == []


def test_a_cluster_without_workers_says_so(all_read: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_WORKER_WAIT_SECONDS", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as empty,
        distributed.Client(empty) as alone,
        pytest.raises(NotReady, match="no workers"),
    ):
        list(ClusterRunner(lambda: alone, all_read.settings).each(compact_range, [1]))  # type: ignore[list-item]
