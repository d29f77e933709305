"""What the pages remember: how long it holds, who works it out, and how much of the time that takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from letopis.errors import NotFound
from letopis.web.cache import PageCache


class Made:
    """Counts how often it was made; takes as much CPU time as it is told."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.count = 0
        self.seconds = seconds

    def __call__(self) -> int:
        began = time.thread_time()
        while time.thread_time() - began < self.seconds:
            pass
        self.count += 1
        return self.count


@pytest.fixture
def now() -> list[float]:
    return [0.0]


@pytest.fixture
def known(now: list[float]) -> PageCache:
    """With one worker: what is asked for last is made last."""
    return PageCache(lambda: now[0], workers=1)


def caught_up(known: PageCache) -> None:
    """Everything that was asked for before is made: the worker takes one after the other."""
    last = object()
    while known.soon(last, 1, lambda: "next in line") is None:
        pass


def test_values_are_made_once_and_again_when_old(known: PageCache, now: list[float]) -> None:
    make = Made()
    assert [known.get("a", 5, make) for _ in range(3)] == [1, 1, 1]
    now[0] = 5.0
    assert known.get("a", 5, make) == 2
    threads = [threading.Thread(target=known.get, args=("b", 5, make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert make.count == 3


def test_a_first_value_that_took_long_once_is_soon_waited_for_again(known: PageCache, now: list[float]) -> None:
    make = Made(0.11)
    assert known.get("a", 1, make) == 1
    make.seconds = 0.0
    now[0] += 1.0
    assert known.get("a", 1, make) == 1
    caught_up(known)
    now[0] += 1.0
    assert known.get("a", 1, make) == 3


def made_dear(known: PageCache, now: list[float], key: str, make: Made) -> None:
    """A value that a reader has waited for once while it was made anew is known to take long."""
    known.get(key, 1, make)
    now[0] += 1.0
    assert known.get(key, 1, make) == 2


def test_dear_values_are_renewed_in_the_background_and_hold_longer(known: PageCache, now: list[float]) -> None:
    make = Made(0.06)
    made_dear(known, now, "a", make)
    now[0] += 2.0
    assert known.get("a", 1, make) == 2
    caught_up(known)
    assert make.count == 2
    now[0] = 1000.0
    assert known.get("a", 1, make) == 2
    caught_up(known)
    assert known.get("a", 1, make) == 3


def test_what_took_long_once_is_never_waited_for_again(known: PageCache, now: list[float]) -> None:
    make = Made(0.3)
    assert known.get("a", 1, make) == 1
    make.seconds = 0.0
    for count in (1, 2, 3):
        now[0] += 1.0
        assert known.get("a", 1, make) == count
        caught_up(known)


def test_a_value_holds_as_long_as_its_state_and_no_longer(known: PageCache, now: list[float]) -> None:
    make = Made()
    assert [known.get("a", 0, make, state) for state in (1, 1, 2, 2)] == [1, 1, 2, 2]
    now[0] = 1e6
    assert known.get("a", 0, make, 2) == 2
    assert known.get("a", 0, make, 3) == 3


def test_a_dear_value_of_another_state_is_shown_until_the_new_one_is_there(known: PageCache, now: list[float]) -> None:
    make = Made(0.06)
    assert [known.get("a", 0, make, state) for state in (1, 2)] == [1, 2]
    now[0] = 1000.0
    assert known.get("a", 0, make, 3) == 2
    caught_up(known)
    now[0] = 2000.0
    assert known.get("a", 0, make, 3) == 3
    caught_up(known)
    assert make.count == 3


def test_all_values_together_are_renewed_in_a_fiftieth_of_the_time(known: PageCache, now: list[float]) -> None:
    makes = [Made(0.06) for _ in range(5)]
    for state in ("first", "second"):
        for number, make in enumerate(makes):
            known.get(number, 0, make, state)
    for second in range(100, 140):
        now[0] = float(second)
        for number, make in enumerate(makes):
            known.get(number, 0, make, second)
        caught_up(known)
    renewed = sum(make.count - 2 for make in makes)
    assert 3 <= renewed <= 40 / (50 * 0.06) + 1


def test_a_reader_does_not_wait_for_a_first_value_that_takes_long(now: list[float]) -> None:
    go_on = threading.Event()
    known = PageCache(lambda: now[0])
    asked: list[bool | None] = []
    reader = threading.Thread(target=lambda: asked.append(known.soon("slow", 1, go_on.wait)))
    reader.start()
    assert known.soon("quick", 1, lambda: "at once") == "at once"
    reader.join(300)
    assert asked == [None]
    go_on.set()
    while known.soon("slow", 1, go_on.wait) is None:
        pass
    assert known.get("slow", 1, go_on.wait) is True


def test_a_long_queue_of_first_values_grows_no_further(now: list[float]) -> None:
    go_on, known = threading.Event(), PageCache(lambda: now[0], workers=1)
    asking = [threading.Thread(target=known.soon, args=(number, 1, go_on.wait)) for number in range(16)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(300)
    assert known.soon("one more", 1, lambda: "at last") is None
    go_on.set()
    while known.soon("one more", 1, lambda: "at last") is None:
        pass
    assert known.get("one more", 1, lambda: "made anew") == "at last"


def test_what_went_wrong_is_told_to_whoever_asked_and_tried_again_for_the_next(known: PageCache) -> None:
    def fail() -> int:
        raise NotFound("nothing was known then")

    asked: list[Callable[[], int]] = [fail, fail, Made()]
    for make in asked[:2]:
        with pytest.raises(NotFound, match="nothing was known then"):
            known.soon("a", 1, make)
    assert known.soon("a", 1, asked[2]) == 1


def test_a_value_that_cannot_be_renewed_stays(known: PageCache, now: list[float]) -> None:
    def fail() -> int:
        raise NotFound("gone")

    made_dear(known, now, "a", Made(0.06))
    for second in (1000.0, 2000.0):
        now[0] = second
        assert known.get("a", 1, fail) == 2
        caught_up(known)
    make = Made()
    now[0] = 3000.0
    assert known.get("a", 1, make) == 2
    caught_up(known)
    assert make.count == 1


def test_what_was_not_asked_for_longest_is_forgotten_first(known: PageCache) -> None:
    often, once = Made(), Made()
    known.get("often", 1000, often)
    known.get("once", 1000, once)
    for number in range(200):
        known.get(number, 1000, Made())
        known.get("often", 1000, often)
    known.get("once", 1000, once)
    assert (often.count, once.count) == (1, 2)
