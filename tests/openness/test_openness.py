"""Letopis and its judges agree: every try in its quick form, and the page that shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tries import Try

from openness import PAGE, RESULTS, TRIES, page


@pytest.mark.parametrize("one", TRIES, ids=lambda one: one.name)
def test_the_judge_has_nothing_to_say(one: Try, tmp_path: Path) -> None:
    score = one.quick(tmp_path)
    assert score.differing == ()
    assert score.questions > 0


def test_the_page_shows_what_came_out_last() -> None:
    results = json.loads(RESULTS.read_text("utf-8"))
    assert set(results) == {one.name for one in TRIES}
    assert PAGE.read_text("utf-8") == page(results), "run `python tests/openness/openness.py --page`"


def test_everything_agreed_when_the_peers_were_asked_last() -> None:
    results = json.loads(RESULTS.read_text("utf-8"))
    assert {name: agreed for name, (agreed, asked) in results.items() if agreed != asked} == {}
