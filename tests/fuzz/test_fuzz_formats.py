"""Every format that comes from outside is read or refused, whatever its bytes; `make fuzz` tries an hour long."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import campaign_results

import fuzz as fuzzing

ROUNDS = 300


@pytest.mark.parametrize("name", fuzzing.FORMATS)
def test_sound_inputs_are_read(name: str) -> None:
    corpus = fuzzing.corpus_of(name)
    assert len(corpus) > 0
    for data in corpus:
        fuzzing.FORMATS[name](data)


@pytest.mark.parametrize("name", fuzzing.FORMATS)
def test_damaged_inputs_are_read_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "MOST_SECONDS", float("inf"))  # time is judged by `make fuzz` alone
    assert [found.reason for found in fuzzing.fuzz(name, ROUNDS)] == []


def test_every_corpus_belongs_to_a_format() -> None:
    assert {folder.name for folder in fuzzing.CORPUS.iterdir()} == set(fuzzing.FORMATS)


def test_the_same_seed_gives_the_same_inputs() -> None:
    def inputs(seed: int) -> list[bytes]:
        rng = random.Random(seed)
        return [fuzzing.mutated([b"<a href=x>", b"text"], rng) for _ in range(50)]

    assert inputs(1) == inputs(1) != inputs(2)


def test_what_is_neither_read_nor_refused_is_a_fault() -> None:
    def broken(data: bytes) -> None:
        raise ZeroDivisionError(data[:1])

    assert fuzzing.fault_of(broken, b"x") == "ZeroDivisionError: b'x'"


def test_what_a_run_has_fed_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_results, "RESULTS", tmp_path / "reliability.json")
    monkeypatch.setattr(sys, "argv", ["fuzz", "times", "--seconds", "0.01"])
    assert fuzzing.main() == 0
    assert campaign_results.read_results()["fuzz times"].count >= fuzzing.BATCH
