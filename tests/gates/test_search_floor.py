"""Floors of search: its cost beside bare tantivy on small data, and how many word forms are joined."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest
from pacing import lowest

from letopis import Archive
from letopis.config import SearchSettings
from letopis.index.base_forms import BaseForms
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis_demo import languages

MOST = 3.0
"""Of the cost of bare tantivy: on 1,000 pages the fixed part of a question weighs most."""


def load_bench(name: str = "search") -> ModuleType:
    path = Path(__file__).parents[2] / "bench" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"bench_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.timed
def test_a_question_costs_little_more_than_bare_tantivy(tmp_path: Path) -> None:
    bench = load_bench()
    chance = random.Random(5)
    words = bench.vocabulary(5000, chance)
    pages = list(bench.texts(1000, words, chance))
    with Archive(tmp_path / "archive") as archive:
        index, _ = bench.ours(archive, pages)
        askers = {
            "bare": bench.bare_tantivy(tmp_path / "bare", pages),
            "now": lambda word: search(index, parse_word_query(word)),
            "past": lambda word: search(index, parse_word_query(word, at=bench.PAST)),
        }

        def share() -> float:
            costs = bench.measure(askers, [words[rank] for rank in (5, 20, 100, 500)], repeats=12)
            return max(costs["now"], costs["past"]) / costs["bare"]

        assert lowest(share, MOST) <= MOST


@pytest.mark.parametrize(("versions", "most"), [(5, 7.6), (40, 10.1)])
def test_the_indexes_take_few_times_the_packs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: int, most: float
) -> None:
    bench = load_bench("index_size")
    monkeypatch.setattr(bench, "VERSIONS", versions)
    found = bench.measure(tmp_path / "archive", bench.generated(10))
    assert found["ratio"] <= most


@pytest.mark.parametrize(
    ("language", "floor"), [(languages.CZECH, 0.96), (languages.SLOVAK, 0.96), (languages.RUSSIAN, 1.0)]
)
def test_inflected_forms_have_the_base_of_their_first_form(language: languages.DemoLanguage, floor: float) -> None:
    bases = BaseForms(SearchSettings()).of(language.code)
    forms = [(form, row[1]) for row in language.nouns for form in row[2:]]
    joined = sum(bases[form] == bases[first] for form, first in forms)
    assert joined >= floor * len(forms)
