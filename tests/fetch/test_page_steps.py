"""Steps on a page as lines of text."""

from __future__ import annotations

import pytest

from letopis.errors import UsageError
from letopis.fetch.page_steps import MOST_STEPS, PageStep, parse_steps


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("click #more", PageStep("click", "#more")),
        ("  click  a[href='/x'] ", PageStep("click", "a[href='/x']")),
        ("type [name=q] = two words", PageStep("type", "[name=q]", "two words")),
        ("type #q = a = b", PageStep("type", "#q", "a = b")),
        ("select #year = 2024", PageStep("select", "#year", "2024")),
        ("wait 2.5", PageStep("wait", "", seconds=2.5)),
        ("wait .results", PageStep("wait", ".results")),
    ],
)
def test_a_line_is_a_step(line: str, step: PageStep) -> None:
    assert parse_steps([line]) == (step,)


@pytest.mark.parametrize(
    "line", ["", "click", "jump high", "type #q", "type  = x", "wait -1", "wait 3600", "click " + "x" * 3000]
)
def test_what_is_no_step_is_refused(line: str) -> None:
    with pytest.raises(UsageError):
        parse_steps([line])


def test_steps_are_bounded_in_number() -> None:
    with pytest.raises(UsageError, match="50 steps at most"):
        parse_steps(["wait 1"] * (MOST_STEPS + 1))
