"""Precision and recall on real pairs of versions, judged by a reader.

Needs the corpora, unpacked; LETOPIS_CORPUS names the folder that holds `open`,
`open-news` and `open-news-2`. Each pair is compared as in an archive that made the visits
before it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bench.change import plot  # noqa: E402
from bench.judging import Answer, Pair, Told, answers, pairs_of  # noqa: E402

TABLES = ("pairs.tsv", "pairs-blind.tsv", "pairs-third.tsv", "pairs-fourth.tsv")
HELD_OUT = "pairs-held-out.tsv"
"""Labelled before any rule was run on it."""


@pytest.mark.parametrize(
    ("table", "least"),
    [("pairs.tsv", 60), ("pairs-blind.tsv", 30), ("pairs-third.tsv", 40), ("pairs-fourth.tsv", 50), (HELD_OUT, 300)],
)
def test_tables_of_pairs_are_sound(table: str, least: int) -> None:
    pairs = pairs_of(Path(__file__).parent / table)
    assert len(pairs) >= least
    assert len({(pair.old, pair.new) for pair in pairs}) == len(pairs)
    assert all(len(pair.old) == len(pair.new) == 64 and pair.reason for pair in pairs)
    assert {pair.verdict for pair in pairs} == {"changed", "noise"}


def test_no_pair_is_judged_twice() -> None:
    pairs = [(pair.old, pair.new) for table in (*TABLES, HELD_OUT) for pair in pairs_of(Path(__file__).parent / table)]
    assert len(set(pairs)) == len(pairs)


def told_of(table: str) -> Told:
    """How the detector does on a table; skipped loudly where the corpora are not at hand."""
    corpus = Path(os.environ.get("LETOPIS_CORPUS", "none"))
    if not all((corpus / folder).is_dir() for folder in ("open", "open-news", "open-news-2")):
        pytest.skip("LETOPIS_CORPUS does not name the unpacked corpora: real pairs were NOT judged")
    pairs = pairs_of(Path(__file__).parent / table)
    found = answers(corpus, pairs)
    assert len(found) == len(pairs)
    return Told.of([(answer.pair.changed, answer.seen) for answer in found])


@pytest.mark.parametrize("table", TABLES)
def test_real_pairs_are_judged_like_a_reader(table: str) -> None:
    told = told_of(table)
    assert told.alarm_rate == 0, told
    assert told.recall >= 0.99, told


def test_no_news_of_the_held_out_pairs_is_missed_and_two_in_a_hundred_alarms_are_false() -> None:
    told = told_of(HELD_OUT)
    assert told.missed == 0, told
    assert told.alarm_rate <= 0.02, told


def test_figures_are_counted_as_they_are_named() -> None:
    told = Told.of([(True, True), (True, True), (True, False), (False, True), (False, False)])
    assert told == (2, 1, 1, 1)
    assert (told.precision, told.recall, told.alarm_rate) == (2 / 3, 2 / 3, 0.5)


def test_both_error_rates_are_drawn_for_every_table(tmp_path: Path) -> None:
    pairs = [Pair("a", "b", "changed", "news"), Pair("b", "c", "noise", "clock")]
    rows = [Answer(pair, "here", pair.changed, score, ()) for pair, score in zip(pairs, (0.4, 0.0), strict=True)]
    plot({"first": rows, "second": rows}, tmp_path / "change.html")
    drawn = (tmp_path / "change.html").read_text()
    for text in ("first: scores", "second: error rates", "false alarms", "threshold"):
        assert text in drawn
