"""PageRank as the document defines it, on graphs small enough to solve exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.index.page_ranks import pagerank


def exact(sources: np.ndarray, targets: np.ndarray, count: int) -> np.ndarray:
    """The solution of the linear equations themselves."""
    out = np.bincount(sources, minlength=count)
    matrix = np.zeros((count, count))
    for source, target in zip(sources, targets, strict=True):
        matrix[target, source] = 0.85 / out[source]
    return np.linalg.solve(np.eye(count) - matrix, np.full(count, 0.15))


@st.composite
def webs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    count = draw(st.integers(1, 12))
    pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda link: link[0] != link[1])
    links = sorted(draw(st.sets(pair, max_size=40))) if count > 1 else []
    columns = np.array(links, np.int32).reshape(-1, 2)
    return columns[:, 0], columns[:, 1], count


@settings(max_examples=150, deadline=None)
@given(webs())
def test_equals_the_solution_of_the_equations(web: tuple[np.ndarray, np.ndarray, int]) -> None:
    assert pagerank(*web) == pytest.approx(exact(*web), abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(webs(), st.integers(0, 2**32))
def test_any_start_leads_to_the_same_ranks(web: tuple[np.ndarray, np.ndarray, int], seed: int) -> None:
    start = np.random.default_rng(seed).uniform(0.15, 5, web[2])
    assert pagerank(*web, start=start) == pytest.approx(pagerank(*web), abs=1e-6)


def test_a_ring_has_rank_one_everywhere() -> None:
    ring = np.arange(100, dtype=np.int32)
    assert pagerank(ring, np.roll(ring, 1), 100) == pytest.approx(np.ones(100))


def test_a_page_nobody_links_to_has_the_least_rank() -> None:
    ranks = pagerank(np.array([0], np.int32), np.array([1], np.int32), 2)
    assert ranks == pytest.approx([0.15, 0.15 + 0.85 * 0.15])


def test_links_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="order"):
        pagerank(np.array([1, 0], np.int32), np.array([0, 1], np.int32), 2)


def test_no_pages_have_no_ranks() -> None:
    assert len(pagerank(np.zeros(0, np.int32), np.zeros(0, np.int32), 0)) == 0


def one_step(ranks: list[float], links: list[tuple[int, int]]) -> list[float]:
    """The document's formula once: PR(p) = (1 - d) + d * sum of PR(q) / out(q)."""
    shares = [rank / max(1, sum(source == page for source, _ in links)) for page, rank in enumerate(ranks)]
    given = [sum(shares[source] for source, target in links if target == page) for page in range(len(ranks))]
    return [0.15 + 0.85 * sum_ for sum_ in given]


def test_the_formula_step_by_step_leads_to_the_ranks() -> None:
    links = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 2)]
    first = one_step([1.0] * 4, links)
    assert first == pytest.approx([1.0, 0.575, 2.275, 0.15])
    assert one_step(first, links) == pytest.approx([2.08375, 0.575, 1.19125, 0.15])
    ranks = first
    for _ in range(200):
        ranks = one_step(ranks, links)
    columns = np.array(links, np.int32)
    assert pagerank(columns[:, 0], columns[:, 1], 4) == pytest.approx(ranks, abs=1e-6)
    assert sum(ranks) / 4 == pytest.approx(1.0)
