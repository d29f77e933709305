"""Answers are ordered by the links between pages too, once these have been ranked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letopis import Archive
from letopis.archive.index_facts import record_choice, record_shown
from letopis.cli.main import main
from letopis.config import SearchSettings, Settings
from letopis.index.query_language import parse_word_query
from letopis.index.search_ranking import PageWeights, choice_weight
from letopis.index.search_results import search
from letopis.index.word_index import WordIndex

AT = datetime(2026, 1, 1, tzinfo=UTC)
PAGES = st.integers(1, 10_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two pages with the same text; everybody links to the one that was found later."""
    with Archive(tmp_path / "a", clock=lambda: AT) as archive:
        for name in ("quiet", "famous"):
            archive.put(f"http://example.org/{name}", f"<title>{name}</title><p>The comet returns.".encode(), at=AT)
        for number in range(20):
            body = f"<p>Page {number}</p><a href=/famous>see</a>".encode()
            archive.put(f"http://example.org/{number}", body, at=AT)
    return tmp_path / "a"


def order(folder: Path) -> list[str]:
    with Archive(folder, clock=lambda: AT) as archive:
        return [hit.title for hit in search(WordIndex(archive), parse_word_query("comet"))]


def test_ranks_that_were_worked_out_order_the_answers(folder: Path) -> None:
    assert order(folder) == ["quiet", "famous"]
    assert main(["--archive", str(folder), "rank", "--json"]) == 0
    assert order(folder) == ["famous", "quiet"]


def test_ranks_of_a_site_or_a_past_day_order_nothing(folder: Path) -> None:
    for words in (["rank", "example.org"], ["rank", "--at", "2026-01-01"]):
        assert main(["--archive", str(folder), *words]) == 0
    assert order(folder) == ["quiet", "famous"]


@pytest.mark.parametrize("damage", [b"", b"LTPWGHT1abc", b"nonsense" * 3])
def test_a_damaged_file_of_weights_orders_nothing(folder: Path, damage: bytes) -> None:
    (folder / "index").mkdir(exist_ok=True)
    (folder / "index" / "weights").write_bytes(damage)
    assert order(folder) == ["quiet", "famous"]


@given(st.dictionaries(PAGES, st.floats(0.15, 1e6), max_size=40), PAGES)
def test_weights_come_back_as_they_were_saved(tmp_path_factory: pytest.TempPathFactory, ranks, other) -> None:
    place = tmp_path_factory.mktemp("w")
    made = PageWeights.of(ranks.items())
    made.save(place)
    found = PageWeights.load(place)
    assert found is not None
    for page in [*ranks, other]:
        assert found.weight(page) == made.weight(page)
        assert 0.6 <= found.weight(page) <= 3.0
    if other not in ranks:
        assert found.weight(other) == 1.0


def test_pages_that_people_choose_move_up_only_where_that_is_learned(folder: Path) -> None:
    famous = "http://example.org/famous"
    for learn in (False, True):
        settings = Settings(search=SearchSettings(learn=learn))
        with Archive(folder, clock=lambda: AT, settings=settings) as archive:
            record_shown(archive, [famous, "http://example.org/quiet", "http://example.org/unknown"])
            for _ in range(5):
                record_choice(archive, famous)
            titles = [hit.title for hit in search(WordIndex(archive), parse_word_query("comet"))]
        assert titles == (["famous", "quiet"] if learn else ["quiet", "famous"])


def test_a_chosen_page_is_visited_again_soon(folder: Path) -> None:
    url = "http://example.org/famous"
    with Archive(folder, clock=lambda: AT, settings=Settings(search=SearchSettings(learn=True))) as archive:
        row = archive.catalog.resources.find(url)
        assert row is not None
        far = 2 * 10**12
        with archive.catalog.transaction() as cursor:
            archive.catalog.queues.finish(cursor, [(2, far, b"", row.id)])
        record_choice(archive, url)
        assert archive.catalog.queues.plan_of(row.id)[1] == 1000 * (AT.timestamp() + archive.settings.schedule.min)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_no_number_of_choices_weighs_more_than_twice(shown: int, chosen: int) -> None:
    assert 1.0 <= choice_weight(shown, chosen) <= 2.0
