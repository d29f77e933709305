from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.change.diff_formats import char_diff, diff_as_json, unified_diff, word_diff
from letopis.change.text_diff import DiffBounds, DiffLevel, diff_pieces, split_lines, split_words

TEXTS = st.text(alphabet="ab cd\n.é\r\u2028", max_size=80)


@given(TEXTS, TEXTS, st.sampled_from([1, 2, 3]))
@settings(max_examples=250, deadline=None)
def test_pieces_hold_both_texts_whole(old: str, new: str, level: DiffLevel) -> None:
    found = diff_pieces(old, new, level)
    assert "".join(piece.old for piece in found) == old
    assert "".join(piece.new for piece in found) == new
    assert all(piece.old == piece.new for piece in found if piece.tag == "equal")
    assert all(one.tag != "equal" or two.tag != "equal" for one, two in itertools.pairwise(found))


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_cutting_loses_nothing(text: str) -> None:
    assert "".join(split_lines(text)) == text
    assert "".join(split_words(text)) == text


@given(TEXTS, TEXTS)
@settings(max_examples=100, deadline=None)
def test_no_time_left_still_gives_a_right_answer(old: str, new: str) -> None:
    bounds = DiffBounds(seconds=0.0)
    found = diff_pieces(old, new, 3, bounds)
    assert "".join(piece.new for piece in found) == new


def test_time_running_out_falls_back_to_lines() -> None:
    ticks = itertools.count()
    bounds = DiffBounds(seconds=1.0, clock=lambda: next(ticks) * 10.0)
    found = diff_pieces("the old line\n", "the new line\n", 3, bounds)
    assert [piece.tag for piece in found] == ["replace"]
    assert bounds.coarse


@pytest.mark.skipif(shutil.which("patch") is None, reason="the patch program is not installed")
@given(st.lists(st.sampled_from("abcd"), max_size=20), st.lists(st.sampled_from("abcd"), max_size=20), st.booleans())
@settings(max_examples=30, deadline=None)
def test_unified_is_applied_by_patch(tmp_path_factory: Any, old: list[str], new: list[str], end: bool) -> None:
    folder: Path = tmp_path_factory.mktemp("patch")
    before, after = "".join(x + "\n" for x in old), "\n".join(new) + ("\n" if end and new else "")
    difference = unified_diff(before, after)
    (folder / "file").write_text(before)
    if difference:
        subprocess.run(["patch", "-s", "file"], cwd=folder, input=difference, text=True, check=True, timeout=300)
    assert not after or (folder / "file").read_text() == after


def test_unified_has_the_usual_form() -> None:
    old = "".join(f"line {n}\n" for n in range(1, 21))
    new = old.replace("line 10\n", "line ten\n")
    assert unified_diff(old, new, "a", "b") == (
        "--- a\n+++ b\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n line 11\n line 12\n line 13\n"
    )


def test_unified_of_equal_texts_is_empty() -> None:
    assert unified_diff("a\n", "a\n") == word_diff("a\n", "a\n") == char_diff("a\n", "a\n") == ""


def test_names_cannot_forge_lines() -> None:
    assert unified_diff("a\n", "b\n", "x\n+++ y", "z").splitlines()[0] == "--- x +++ y"


def test_words_and_characters_are_marked() -> None:
    assert word_diff("The quick fox\n", "The slow fox\n") == "The [-quick-]{+slow+} fox\n"
    assert char_diff("colour here\n", "color here\n") == "colo[-u-]r here\n"


def test_long_equal_parts_are_cut() -> None:
    old = "".join(f"line {n}\n" for n in range(1000))
    text = word_diff(old, old.replace("line 500\n", "row 500\n"))
    assert len(text) < 600
    assert "[-line-]{+row+} 500" in text


def test_json_positions_lead_back_to_the_texts() -> None:
    old, new = "one two three\nfour\n", "one too three\nfour five\n"
    answer = json.loads(json.dumps(diff_as_json(old, new)))
    for entry in answer["operations"]:
        if entry["op"] != "equal":
            assert old[slice(*entry["old"])] == entry["removed"]
            assert new[slice(*entry["new"])] == entry["added"]
    assert answer["level"] == "words"
    assert answer["coarse"] is False


HOSTILE = {
    "one line of one letter": ("a" * 2_000_000, "a" * 1_999_999 + "b"),
    "no lines": ("ab" * 500_000, "ba" * 500_000),
    "blank lines": ("\n" * 200_000, "\n" * 150_000 + "x\n" * 50_000),
    "two kinds of lines": ("a\nb\n" * 50_000, "b\na\na\n" * 40_000),
    "blanks": (" " * 1_000_000, "\t" * 1_000_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_bounded_at_every_level(name: str) -> None:
    old, new = HOSTILE[name]
    for level in (1, 2, 3):
        started = process_time()
        found = diff_pieces(old, new, level, DiffBounds(seconds=0.3))
        assert process_time() - started < 3
        assert "".join(piece.new for piece in found) == new


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("Price 19.90 EUR", "Price 17.50 EUR", "Price [-19.90-]{+17.50+} EUR"),
        ("Open 10:30, ask a@b.org", "Open 10:45, ask a@b.org", "Open [-10:30-]{+10:45+}, ask a@b.org"),
        ("Sum 1,234.56 of v4.3.2", "Sum 1,334.56 of v4.3.3", "Sum [-1,234.56-]{+1,334.56+} of [-v4.3.2-]{+v4.3.3+}"),
        ("They don't say e-mail here", "They didn't say e-mail here", "They [-don't-]{+didn't+} say e-mail here"),
    ],
)
def test_words_and_numbers_are_not_torn(old: str, new: str, shown: str) -> None:
    assert word_diff(old, new).strip() == shown


OLD_PARAGRAPH = "The committee met on the hill and spoke of water, roads and the school for three hours."
NEW_PARAGRAPH = "A storm tore the roof off the school last night, and the mayor of the town spoke to the people."


def test_a_rewritten_paragraph_is_one_rewrite() -> None:
    pieces = diff_pieces(f"Town\n{OLD_PARAGRAPH}\nImprint\n", f"Town\n{NEW_PARAGRAPH}\nImprint\n")
    assert [(piece.tag, piece.old.strip(), piece.new.strip()) for piece in pieces] == [
        ("equal", "Town", "Town"), ("replace", OLD_PARAGRAPH, NEW_PARAGRAPH), ("equal", "Imprint", "Imprint"),
    ]  # fmt: skip


def test_each_line_of_a_changed_run_stands_beside_the_one_it_came_from() -> None:
    old = "One line of text stays here.\nThe second line is about the bus.\nTrams ring in the street.\n"
    new = "A new first line has come.\nOne line of text stays there.\nTrams ring in every street.\n"
    shown = word_diff(old, new)
    assert "One line of text stays [-here-]{+there+}." in shown
    assert "Trams ring in [-the-]{+every+} street." in shown
    assert "{+A new first line has come.\n+}" in shown
    assert "[-The second line is about the bus.\n-]" in shown


def test_crumbs_between_changes_go_with_them() -> None:
    shown = word_diff("We met a large brown and old dog there", "We met a small white and young cat there")
    assert shown.strip() == "We met a [-large brown and old dog-]{+small white and young cat+} there"
