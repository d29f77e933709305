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

from letopis.change import Bounds, Level, as_json, chars, pieces, unified, words
from letopis.change.text_diff import lines_of, words_of

TEXTS = st.text(alphabet="ab cd\n.é\r\u2028", max_size=80)


@given(TEXTS, TEXTS, st.sampled_from([1, 2, 3]))
@settings(max_examples=250, deadline=None)
def test_pieces_hold_both_texts_whole(old: str, new: str, level: Level) -> None:
    found = pieces(old, new, level)
    assert "".join(piece.old for piece in found) == old
    assert "".join(piece.new for piece in found) == new
    assert all(piece.old == piece.new for piece in found if piece.tag == "equal")
    assert all(one.tag != "equal" or two.tag != "equal" for one, two in itertools.pairwise(found))


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_cutting_loses_nothing(text: str) -> None:
    assert "".join(lines_of(text)) == text
    assert "".join(words_of(text)) == text


@given(TEXTS, TEXTS)
@settings(max_examples=100, deadline=None)
def test_no_time_left_still_gives_a_right_answer(old: str, new: str) -> None:
    bounds = Bounds(seconds=0.0)
    found = pieces(old, new, 3, bounds)
    assert "".join(piece.new for piece in found) == new


def test_time_running_out_falls_back_to_lines() -> None:
    ticks = itertools.count()
    bounds = Bounds(seconds=1.0, clock=lambda: next(ticks) * 10.0)
    found = pieces("the old line\n", "the new line\n", 3, bounds)
    assert [piece.tag for piece in found] == ["replace"]
    assert bounds.coarse


@pytest.mark.skipif(shutil.which("patch") is None, reason="the patch program is not installed")
@given(st.lists(st.sampled_from("abcd"), max_size=20), st.lists(st.sampled_from("abcd"), max_size=20), st.booleans())
@settings(max_examples=30, deadline=None)
def test_unified_is_applied_by_patch(tmp_path_factory: Any, old: list[str], new: list[str], end: bool) -> None:
    folder: Path = tmp_path_factory.mktemp("patch")
    before, after = "".join(x + "\n" for x in old), "\n".join(new) + ("\n" if end and new else "")
    difference = unified(before, after)
    (folder / "file").write_text(before)
    if difference:
        subprocess.run(["patch", "-s", "file"], cwd=folder, input=difference, text=True, check=True, timeout=20)
    assert not after or (folder / "file").read_text() == after


def test_unified_has_the_usual_form() -> None:
    old = "".join(f"line {n}\n" for n in range(1, 21))
    new = old.replace("line 10\n", "line ten\n")
    assert unified(old, new, "a", "b") == (
        "--- a\n+++ b\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n line 11\n line 12\n line 13\n"
    )


def test_unified_of_equal_texts_is_empty() -> None:
    assert unified("a\n", "a\n") == words("a\n", "a\n") == chars("a\n", "a\n") == ""


def test_names_cannot_forge_lines() -> None:
    assert unified("a\n", "b\n", "x\n+++ y", "z").splitlines()[0] == "--- x +++ y"


def test_words_and_characters_are_marked() -> None:
    assert words("The quick fox\n", "The slow fox\n") == "The [-quick-]{+slow+} fox\n"
    assert chars("colour here\n", "color here\n") == "colo[-u-]r here\n"
    assert "\x1b[32" in words("a\n", "a b\n", marks="ansi")


def test_long_equal_parts_are_cut() -> None:
    old = "".join(f"line {n}\n" for n in range(1000))
    text = words(old, old.replace("line 500\n", "row 500\n"))
    assert len(text) < 600
    assert "[-line-]{+row+} 500" in text


def test_json_positions_lead_back_to_the_texts() -> None:
    old, new = "one two three\nfour\n", "one too three\nfour five\n"
    answer = json.loads(json.dumps(as_json(old, new)))
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
        found = pieces(old, new, level, Bounds(seconds=0.3))
        assert process_time() - started < 3
        assert "".join(piece.new for piece in found) == new
