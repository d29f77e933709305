"""One at a time a package, across processes: claims, signs of life, and what a lost worker may still write."""

from __future__ import annotations

import threading

from tiny_language import parse

from letopis.archive import Archive
from letopis.archive.job_control import JobControl
from letopis.archive.jobs import COMMAND_LINE, JobClaim, JobClaims, JobOutcome, JobQueue, WorkerReport, claims_of

DONE = JobOutcome("done", "", b"<a/>", "log\n")


def taken(turns: JobClaims, now: int = 0, until: int = 10, holder: str = "w", package: str = "p") -> JobClaim:
    claim = turns.take(package, holder, now, until)
    assert claim is not None
    return claim


def test_nothing_is_taken_from_an_empty_queue(archive: Archive, queue: JobQueue) -> None:
    turns = claims_of(archive)
    assert turns.take("p", "w", 0, 10) is None
    queue.submit(parse(b"<query>say</query>"), COMMAND_LINE)
    turns.finish(taken(turns), 1, DONE)
    assert turns.take("p", "w", 2, 12) is None
    assert turns.open_packages(2) == []


def test_a_package_has_one_turn_and_others_have_theirs(archive: Archive, queue: JobQueue) -> None:
    queue.submit_many([parse(b"<query>say</query>")] * 2 + [parse(b'<query package="q">say</query>')], COMMAND_LINE)
    turns = claims_of(archive)
    assert turns.open_packages(0) == ["p", "q"]
    first = taken(turns)
    assert turns.take("p", "other", 9, 20) is None
    assert turns.open_packages(9) == ["q"]
    assert taken(turns, package="q").job == 3
    assert turns.finish(first, 5, DONE)
    assert taken(turns, now=5).job == 2


def test_a_sign_of_life_keeps_the_turn(archive: Archive, queue: JobQueue) -> None:
    queue.submit_many([parse(b"<query>say</query>")] * 2, COMMAND_LINE)
    turns = claims_of(archive)
    claim = taken(turns)
    assert turns.beat(claim, 30, WorkerReport("1/2 map", 0.25, "so far\n"))
    assert turns.take("p", "other", 29, 99) is None
    assert turns.reap(29) == []
    job = queue.show(claim.job, COMMAND_LINE)
    # The clock of the archive is far beyond the turn: whoever looks says what is lost.
    assert (job.state, job.step, job.progress) == ("failed", "1/2 map", 0.25)
    assert queue.log(claim.job, COMMAND_LINE) == "so far\n"


def test_a_worker_that_was_thought_dead_can_write_nothing(archive: Archive, queue: JobQueue) -> None:
    queue.submit_many([parse(b"<query>say</query>")] * 2, COMMAND_LINE)
    turns = claims_of(archive)
    late = taken(turns, until=10, holder="late")
    fresh = taken(turns, now=10, until=2**62, holder="fresh")
    assert (late.job, fresh.job) == (1, 2)
    assert not turns.beat(late, 99, WorkerReport("x", 0.5, None))
    assert not turns.finish(late, 11, DONE)
    assert not turns.put_back(late, 0, "")
    assert turns.abandon("late", 11, "gone", "") is None
    job = queue.show(1, COMMAND_LINE)
    assert (job.state, job.finished) == ("failed", 10)
    assert "its worker died" in job.message
    assert turns.finish(fresh, 12, DONE)
    assert queue.show(2, COMMAND_LINE).state == "done"


def test_jobs_of_the_dead_are_said_to_have_failed_also_when_nothing_follows(archive: Archive, queue: JobQueue) -> None:
    queue.submit(parse(b"<query>say</query>"), COMMAND_LINE)
    turns = claims_of(archive)
    taken(turns)
    assert turns.reap(9) == []
    assert turns.reap(10) == [1]
    assert turns.reap(10) == []


def test_a_worker_known_to_be_dead_is_told_at_once(archive: Archive, queue: JobQueue) -> None:
    queue.submit_many([parse(b"<query>say</query>")] * 2, COMMAND_LINE)
    turns = claims_of(archive)
    claim = taken(turns, until=2**62, holder="w7")
    turns.beat(claim, 2**62, WorkerReport("s", 0.0, "before\n"))
    assert turns.abandon("w7", 3, "it was killed", "last words\n") == 1
    assert queue.show(1, COMMAND_LINE).message == "it was killed"
    assert queue.log(1, COMMAND_LINE) == "before\nlast words\n"
    assert taken(turns, now=3, until=2**62).job == 2


def test_a_job_put_back_keeps_its_place(archive: Archive, queue: JobQueue) -> None:
    queue.submit_many([parse(b"<query>say</query>")] * 2, COMMAND_LINE)
    turns = claims_of(archive)
    assert turns.put_back(taken(turns), 0, "stopped\n")
    assert queue.show(1, COMMAND_LINE).state == "queued"
    assert taken(turns).job == 1


def test_a_running_job_learns_that_it_is_unwanted(archive: Archive, queue: JobQueue) -> None:
    queue.submit(parse(b"<query>say</query>"), COMMAND_LINE)
    turns = claims_of(archive)
    claim = taken(turns, until=2**62)
    assert not turns.unwanted(claim)
    assert JobControl(archive).cancel(1, COMMAND_LINE).state == "running"
    assert turns.unwanted(claim)


def test_many_takers_never_share_a_job(archive: Archive, queue: JobQueue) -> None:
    queue.submit_many([parse(b"<query>say</query>")] * 12, COMMAND_LINE)
    done: list[int] = []
    inside = threading.Semaphore(1)

    def work(name: str) -> None:
        turns = claims_of(archive)
        while len(done) < 12:
            claim = turns.take("p", name, 0, 2**62)
            if claim is not None:
                assert inside.acquire(blocking=False)
                done.append(claim.job)
                inside.release()
                assert turns.finish(claim, 0, DONE)

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert done == list(range(1, 13))


def test_daemons_say_that_they_look_after_the_queue(archive: Archive) -> None:
    turns = claims_of(archive)
    assert not turns.kept(0)
    turns.keep("d", 10)
    turns.keep("e", 5)
    assert turns.kept(9)
    assert not turns.kept(10)
    turns.keep("d", 0)
    assert turns.kept(4)
    assert not turns.kept(5)
