"""Work in helpers is bounded, done once, remembered, and never keeps others from being served."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from letopis import bounded
from letopis.bounded import BoundedWorkers, Impatience, check_pattern
from letopis.errors import NotReady, TooCostly, UsageError

HERE = "test_bounded"


def told(order: Mapping[str, Any], body: bytes) -> bytes:
    """Who works, and on what."""
    os.write(1, b"noise of a library")
    return f"{os.getpid()} {order.get('word', '')} ".encode() + body


def endless(order: Mapping[str, Any], body: bytes) -> bytes:
    """Never ends."""
    while True:
        pass


def greedy(order: Mapping[str, Any], body: bytes) -> bytes:
    """Takes more memory than there is for it."""
    return b"x" * (1 << 40)


def broken(order: Mapping[str, Any], body: bytes) -> bytes:
    """Dies as a library dies."""
    os.abort()


def misused(order: Mapping[str, Any], body: bytes) -> bytes:
    """Says what is wrong with the order."""
    raise UsageError("the word is missing; give one")


def held(order: Mapping[str, Any], body: bytes) -> bytes:
    """Ends when a file is there, and says in another that it began."""
    Path(order["began"]).touch()
    while not Path(order["end"]).exists():
        time.sleep(0.01)
    return b"ended"


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[BoundedWorkers]:
    """Helpers that know the functions above."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    made = BoundedWorkers()
    yield made
    made.close()


def test_a_helper_answers_and_is_used_again(workers: BoundedWorkers) -> None:
    first, second = (workers.run(f"{HERE}:told", {"word": word}, b"body").split() for word in ("a", "b"))
    assert first[0] == second[0] != str(os.getpid()).encode()
    assert first[1:] == [b"a", b"body"]
    assert workers.started == 1


def test_the_same_work_is_done_once(workers: BoundedWorkers) -> None:
    assert workers.run(f"{HERE}:told", {}, b"x" * 3_000_000) == workers.run(f"{HERE}:told", {}, b"x" * 3_000_000)
    workers.close()
    workers.run(f"{HERE}:told", {}, b"x" * 3_000_000)
    assert workers.started == 1


@pytest.mark.parametrize(
    ("work", "said"), [("endless", "longer than 1 s"), ("greedy", "memory"), ("broken", "failed or needed")]
)
def test_what_is_too_much_is_stopped_and_not_tried_again(workers: BoundedWorkers, work: str, said: str) -> None:
    for _ in range(3):
        with pytest.raises(TooCostly, match=said):
            workers.run(f"{HERE}:{work}", {}, b"", seconds=1.0)
    assert workers.started == 1
    assert workers.run(f"{HERE}:told", {}, b"after").endswith(b"after")


def test_what_neither_computes_nor_ends_is_told_as_what_computes_too_long(
    workers: BoundedWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be asked for again: perhaps the machine was busy."""
    monkeypatch.setattr(bounded, "_LEAST_PATIENCE", 0.0)
    monkeypatch.setattr(bounded, "_PATIENCE", 0)
    order = {"began": str(tmp_path / "began"), "end": str(tmp_path / "end")}
    for tries in (1, 2):
        with pytest.raises(TooCostly, match="longer than 1 s and was stopped"):
            workers.run(f"{HERE}:held", order, b"", seconds=1.0)
        assert workers.started == tries


def test_misuse_is_told_in_its_own_words(workers: BoundedWorkers) -> None:
    with pytest.raises(UsageError, match="the word is missing; give one"):
        workers.run(f"{HERE}:misused", {}, b"")


def test_whoever_cannot_wait_is_refused_while_others_wait(workers: BoundedWorkers, tmp_path: Path) -> None:
    """Thirty requests for one page start one helper; those beyond the bound are told to come again."""
    order = {"began": str(tmp_path / "began"), "end": str(tmp_path / "end")}
    answers: list[bytes] = []
    refused: list[str] = []

    def ask() -> None:
        try:
            with Impatience(waiting=5, seconds=60.0):
                answers.append(workers.run(f"{HERE}:held", order, b"page"))
        except NotReady as error:
            refused.append(str(error))
            if len(refused) == 25:
                Path(order["end"]).touch()

    threads = [threading.Thread(target=ask) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answers), len(refused), workers.started) == (5, 25, 1)
    assert "try again" in refused[0]


@pytest.mark.parametrize("pattern", ["(?:" * 30 + "a?" + "){9}" * 30, "(" * 5 + "a{99}" + "){99}" * 5])
def test_a_pattern_that_nobody_can_wait_for_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="nested repeats"):
        check_pattern(pattern)


def test_patterns_are_told_from_what_is_none() -> None:
    check_pattern("a{2,3}[bc]*")
    for wrong in ("(", "a{2}("):
        with pytest.raises(UsageError, match="not a regular expression"):
            check_pattern(wrong)
