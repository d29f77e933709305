"""Floors for Q11 and Q21 on small generated data. Lowering one needs a reason in the commit."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pacing import cpu, lowest

from letopis.change.diff_formats import unified_diff
from letopis.change.visual_diff import visual_html

BENCH = Path(__file__).parents[2] / "bench"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def change() -> ModuleType:
    return script("change")


def test_generated_data_is_the_one_the_floors_were_set_on(change: ModuleType) -> None:
    new, history, _ = change.trial("one sentence", change.WORLDS[0], 1)
    text = "\n".join((new.text, *(page.text for page in history)))
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "e162e7b0154f63816bc344dee28cb21c70c69f83f6c6460889c0f40536cc7385"
    )


def test_q11_no_false_alarms_and_all_changes_seen(change: ModuleType) -> None:
    for row in change.run(trials=20, rules=("ours",)):
        if row["case"] == "noise":
            assert row["seen"] == 0, row
        else:
            assert row["seen"] >= 0.99, row


@pytest.mark.timed
def test_q21_marked_page_of_100_kb_within_60_ms() -> None:
    diff = script("diff")
    old, new = diff.related(100_000)
    assert lowest(lambda: cpu(lambda: visual_html(old, new), 3), 0.060) <= 0.060
    assert lowest(lambda: cpu(lambda: unified_diff(old, new), 3), 0.060) <= 0.060


@pytest.mark.timed
def test_q21_unrelated_pages_of_1_mb_within_2_s() -> None:
    diff = script("diff")
    old, new = diff.unrelated(1_000_000)
    assert lowest(lambda: cpu(lambda: visual_html(old, new), 1), 2.0) <= 2.0
