"""Peers that take minutes look at fewer pages; what that means for all pages is worked out honestly."""

from __future__ import annotations

import pytest
from bench.monitor import Round, rounds, scaled


def test_slow_peers_look_at_some_pages_and_at_one() -> None:
    assert rounds(["letopis", "webchanges"], 1000, 200) == [
        Round("letopis", 1000),
        Round("webchanges", 200),
        Round("webchanges", 1),
    ]


def test_slow_peers_look_at_all_pages_where_these_are_few() -> None:
    assert rounds(["webchanges"], 100, 200) == [Round("webchanges", 100)]


def test_the_start_is_counted_once_and_each_page_as_measured() -> None:
    best = {Round("letopis", 1000): 0.4, Round("webchanges", 201): 5.0, Round("webchanges", 1): 1.0}
    found = scaled(best, 1001)
    assert found["letopis"] == pytest.approx(0.4)
    assert found["webchanges"] == pytest.approx(1.0 + 1000 * 0.02)
