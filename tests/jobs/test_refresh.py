"""Kept questions that ask themselves: at a fixed interval, or as often as their answers are looked at."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from still_clock import Clock
from tiny_language import parse

from letopis.archive import Archive
from letopis.archive.job_control import JobControl
from letopis.archive.jobs import (
    COMMAND_LINE,
    SHORTEST_REFRESH,
    USE_HALF_LIFE,
    JobOutcome,
    JobQueue,
    JobRow,
    RefreshBounds,
    Requester,
    bring_back_jobs,
    claims_of,
    decayed_use_weight,
    enqueue_due_refreshes,
    first_refresh_interval,
    refresh_interval_by_use,
)
from letopis.errors import UsageError
from letopis.model import to_millis

HOUR, DAY = 3_600_000, 86_400_000
BOUNDS = RefreshBounds(600_000, 7 * DAY)


def again(queue: JobQueue, requester: Requester) -> JobRow:
    """The query stored as n, run again."""
    return queue.refresh("n", parse(queue.stored_text("n", requester)), requester)


def work_off(archive: Archive, state: str = "done") -> int:
    turns, now = claims_of(archive), to_millis(archive.clock())
    claim = turns.take("p", "w", now, now + 1000)
    assert claim is not None
    turns.finish(claim, now, JobOutcome(state, "", b"<a/>", ""))
    return claim.job


@given(st.floats(0, 1e6), st.floats(0, 1e6))
@settings(max_examples=100)
def test_more_use_never_means_a_longer_interval(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert BOUNDS.least <= refresh_interval_by_use(high, BOUNDS) <= refresh_interval_by_use(low, BOUNDS) <= BOUNDS.most


@given(st.floats(0, 1e6), st.integers(-DAY, 1000 * DAY))
@settings(max_examples=100)
def test_looks_fade(weight: float, since: int) -> None:
    assert 0 <= decayed_use_weight(weight, since) <= weight
    assert decayed_use_weight(weight, USE_HALF_LIFE) == pytest.approx(weight / 2)


def test_steady_use_gives_about_one_refresh_a_look() -> None:
    weight = 0.0
    for _ in range(2000):
        weight = decayed_use_weight(weight, HOUR) + 1
    assert refresh_interval_by_use(weight, BOUNDS) == pytest.approx(HOUR, rel=0.05)


@pytest.mark.parametrize(
    ("refresh", "millis"), [("", 0), ("1h", HOUR), ("1s", SHORTEST_REFRESH), ("use", BOUNDS.most), ("7 days", 7 * DAY)]
)
def test_first_intervals(refresh: str, millis: int) -> None:
    assert first_refresh_interval(refresh, BOUNDS) == millis


@pytest.mark.parametrize("refresh", ["often", "0", "1000000y", "-1h"])
def test_what_is_no_interval_is_refused(refresh: str) -> None:
    with pytest.raises(UsageError):
        first_refresh_interval(refresh, BOUNDS)


def test_a_fixed_refresh_comes_an_interval_after_the_answer(queue: JobQueue, archive: Archive, clock: Clock) -> None:
    first = queue.submit(parse(b'<query name="n" refresh="1h">say</query>'), COMMAND_LINE)
    clock.pass_by(7200)
    assert enqueue_due_refreshes(archive) == 0  # still waits
    work_off(archive)
    clock.pass_by(3599)
    assert enqueue_due_refreshes(archive) == 0
    clock.pass_by(1)
    assert enqueue_due_refreshes(archive) == 1
    assert enqueue_due_refreshes(archive) == 0
    again = queue.listed(COMMAND_LINE)[0]
    assert (again.automatic, again.owner, again.name, again.id) == (1, first.owner, "n", first.id + 1)
    work_off(archive, "failed")
    assert queue.stored_query("n", COMMAND_LINE).answer == first.id
    clock.pass_by(3600)
    assert enqueue_due_refreshes(archive) == 1


def test_a_lost_refresh_does_not_end_the_rhythm(queue: JobQueue, archive: Archive, clock: Clock) -> None:
    queue.submit(parse(b'<query name="n" refresh="1h">say</query>'), COMMAND_LINE)
    turns, now = claims_of(archive), to_millis(clock())
    turns.take("p", "killed", now, now + 1000)
    clock.pass_by(1)
    assert turns.reap(to_millis(clock())) == [1]
    clock.pass_by(3600)
    assert enqueue_due_refreshes(archive) == 1


def test_a_refresh_that_a_wrong_clock_put_off_comes_when_the_clock_is_right(
    queue: JobQueue, archive: Archive, clock: Clock
) -> None:
    queue.submit(parse(b'<query name="n" refresh="1h">say</query>'), COMMAND_LINE)
    clock.pass_by(73 * 365 * 86400)
    work_off(archive)
    clock.pass_by(-73 * 365 * 86400)
    assert enqueue_due_refreshes(archive) == 0
    assert bring_back_jobs(archive) == 1
    assert enqueue_due_refreshes(archive) == 1
    work_off(archive)
    assert bring_back_jobs(archive) == 0  # one that waits for its own interval is left alone


def test_a_turn_that_a_wrong_clock_made_endless_ends_when_the_clock_is_right(
    queue: JobQueue, archive: Archive, clock: Clock
) -> None:
    queue.submit(parse(b'<query name="n">say</query>'), COMMAND_LINE)
    turns, now = claims_of(archive), to_millis(clock()) + 73 * 365 * DAY
    turns.take("p", "killed", now, now + 60_000)
    assert turns.reap(to_millis(clock())) == []
    bring_back_jobs(archive)
    assert turns.reap(to_millis(clock())) == [1]


def test_an_asked_refresh_takes_the_place_of_the_automatic_one(queue: JobQueue, archive: Archive, clock: Clock) -> None:
    queue.submit(parse(b'<query name="n" refresh="1h">say</query>'), COMMAND_LINE)
    work_off(archive)
    clock.pass_by(3600)
    enqueue_due_refreshes(archive)
    automatic = queue.listed(COMMAND_LINE)[0]
    assert again(queue, COMMAND_LINE)._replace(automatic=1) == automatic
    assert queue.show(automatic.id, COMMAND_LINE).automatic == 0


def test_a_cancelled_refresh_comes_again_later(queue: JobQueue, archive: Archive, clock: Clock) -> None:
    job = queue.submit(parse(b'<query name="n" refresh="1h">say</query>'), COMMAND_LINE)
    JobControl(archive).cancel(job.id, COMMAND_LINE)
    clock.pass_by(3600)
    assert enqueue_due_refreshes(archive) == 1


def test_use_brings_the_next_refresh_nearer_and_disuse_takes_it_away(
    queue: JobQueue, archive: Archive, clock: Clock
) -> None:
    job = queue.submit(parse(b'<query name="n" refresh="use">say</query>'), COMMAND_LINE)
    work_off(archive)
    calm = queue.stored_query("n", COMMAND_LINE)
    assert calm.every == BOUNDS.most
    for _ in range(40):
        queue.output(job.id, COMMAND_LINE)
    busy = queue.stored_query("n", COMMAND_LINE)
    assert busy.uses == 40
    assert busy.every < 7 * HOUR
    assert busy.due is not None
    assert calm.due is not None
    assert busy.due < calm.due
    clock.pass_by(7 * 3600)
    assert enqueue_due_refreshes(archive) == 1
    for _ in range(100):
        work_off(archive)
        due = queue.stored_query("n", COMMAND_LINE).due
        assert due is not None
        clock.pass_by((due - to_millis(clock())) / 1000)
        enqueue_due_refreshes(archive)
        if queue.stored_query("n", COMMAND_LINE).every == BOUNDS.most:
            return
    raise AssertionError("the interval never grew back")


def test_a_stranger_gets_no_more_through_the_refresh_of_another(queue: JobQueue, archive: Archive) -> None:
    """A question of the command line that is asked again through HTTP is held to what HTTP may do."""
    queue.store_query(parse(b'<query name="n">say</query>'), COMMAND_LINE)
    assert again(queue, Requester("anna", 3, "http")).origin == "http"
    work_off(archive)
    assert again(queue, COMMAND_LINE).origin == "cli"
