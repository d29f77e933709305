"""Workers as real processes: cancelled, late, too large, killed; nothing lost, nothing done twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import until
from tiny_language import COMMAND, parse

from letopis.archive import Archive
from letopis.archive.job_control import JobControl
from letopis.archive.jobs import COMMAND_LINE, ENDED, JobQueue, JobRow, QueueFull, Requester, claims_of
from letopis.config import DatabaseSettings
from letopis.jobs.supervisor import PackageState, Supervisor, next_packages
from letopis.model import to_millis

ROUNDS = 40 if os.environ.get("LETOPIS_LONG") else 2
ANNA, BERT = Requester("anna", 3, "http"), Requester("bert", 3, "http")
Open = Callable[..., Archive]


def work(archive: Archive, over: Callable[[], bool], **options: float) -> None:
    """Looks after the queue until something holds."""
    patience = time.monotonic() + 300

    def patient() -> bool:
        assert time.monotonic() < patience, "the queue does not move"
        return over()

    supervisor = Supervisor(archive, command=COMMAND, **options)  # type: ignore[arg-type]
    asyncio.run(supervisor.run_until(patient))


def all_ended(queue: JobQueue) -> bool:
    return set(queue.counts()) <= set(ENDED)


def worked_off(
    archive: Archive, *files: bytes, during: Callable[[JobQueue], None] = lambda queue: None
) -> list[JobRow]:
    """The jobs after all of them have ended; `during` is called while they run."""
    queue = JobQueue(archive)
    numbers = [job.id for job in queue.submit_many([parse(file) for file in files], COMMAND_LINE)]

    def over() -> bool:
        during(queue)
        return all_ended(queue)

    work(archive, over)
    return [queue.show(number, COMMAND_LINE) for number in numbers]


def lines(archive: Archive) -> list[list[str]]:
    file = archive.folder / "trace"
    return [line.split(" ") for line in file.read_text().splitlines()] if file.exists() else []


def test_every_end_is_told(open_archive: Open, database: DatabaseSettings) -> None:
    archive = open_archive(database, run_time=3.0, memory=600 * 2**20, max_result=1000)
    said, failed, crashed, late, hog, large, died, deaf, after = worked_off(
        archive,
        b"<query>say</query>",
        b"<query>fail</query>",
        b"<query>crash</query>",
        b"<query>wait</query>",
        b"<query>hog 4000000000</query>",
        b"<query>large 1001</query>",
        b"<query>die</query>",
        b"<query>deaf</query>",
        b"<query>say</query>",
    )
    queue = JobQueue(archive)
    assert (said.state, after.state) == ("done", "done")
    assert b"<say>say private for command line</say>" in queue.output(said.id, COMMAND_LINE)[1]
    assert (failed.state, failed.message) == ("failed", "the site is closed; try tomorrow")
    assert (crashed.state, crashed.message) == ("failed", "KeyError: 'left out'")
    assert "in _work, tiny_language.py line" in queue.log(crashed.id, COMMAND_LINE)
    assert (late.state, late.message[:22]) == ("failed", "it ran longer than 3 s")
    assert (hog.state, "jobs.memory" in hog.message) == ("failed", True)
    assert (large.state, "jobs.max_result" in large.message) == ("failed", True)
    assert (died.state, "SIGKILL" in died.message) == ("failed", True)
    assert (deaf.state, deaf.message[:22]) == ("failed", "it ran longer than 3 s")
    assert "step 1 of 2: wait" in queue.log(late.id, COMMAND_LINE)


def test_a_daemon_ends_a_turn_that_a_wrong_clock_made_endless(open_archive: Open) -> None:
    archive = open_archive()
    queue, wrong = JobQueue(archive), to_millis(archive.clock()) + 73 * 365 * 86_400_000
    lost, after = queue.submit_many([parse(b"<query>say</query>"), parse(b"<query>say</query>")], COMMAND_LINE)
    claims_of(archive).take("p", "killed under a clock of 2099", wrong, wrong + 60_000)
    work(archive, lambda: all_ended(queue))
    assert [queue.show(job.id, COMMAND_LINE).state for job in (lost, after)] == ["failed", "done"]


def test_cancel_reaches_the_running_step(open_archive: Open) -> None:
    archive = open_archive()
    seen: list[float] = []

    def cancel(queue: JobQueue) -> None:
        for job in queue.listed(COMMAND_LINE):
            if job.state == "running" and job.progress > 0 and not job.unwanted:
                seen.append(job.progress)
                JobControl(archive).cancel(job.id, COMMAND_LINE)

    first, deaf, after = worked_off(
        archive, b"<query>wait 1000</query>", b"<query>deaf</query>", b"<query>say</query>",
        during=lambda queue: (cancel(queue), _cancel_deaf(archive, queue))[0],
    )  # fmt: skip
    assert (first.state, deaf.state, after.state) == ("cancelled", "cancelled", "done")
    assert 0 < seen[0] < 0.5
    assert "what it had recorded is kept" in first.message


def _cancel_deaf(archive: Archive, queue: JobQueue) -> None:
    job = queue.show(2, COMMAND_LINE)
    if job.state == "running" and not job.unwanted:
        JobControl(archive).cancel(2, COMMAND_LINE)


def test_an_orderly_stop_puts_the_job_back(open_archive: Open) -> None:
    archive = open_archive()
    queue = JobQueue(archive)
    queue.submit(parse(b'<query name="a">wait 1000</query>'), COMMAND_LINE)
    work(archive, lambda: bool(lines(archive)))
    job = queue.show(1, COMMAND_LINE)
    assert (job.state, job.message) == ("queued", "")
    assert "it is queued again" in queue.log(1, COMMAND_LINE)


def check_the_books(queue: JobQueue, archive: Archive, names: set[str]) -> Counter[str]:
    """Each job ended once; what is done began and ended once; no package had two at once."""
    jobs = queue.listed(COMMAND_LINE, limit=1000)
    trace = lines(archive)
    begun, ended = (Counter(name for what, _, name, _ in trace if what == word) for word in ("begin", "end"))
    assert {job.name for job in jobs} == names
    for job in jobs:
        assert job.state in ("done", "failed")
        assert begun[job.name] <= 1
        if job.state == "done":
            assert (begun[job.name], ended[job.name]) == (1, 1)
    holder: dict[str, str] = {}
    for what, package, name, _ in trace:
        # A job that was killed has no end: it no longer runs when another begins.
        alive = holder.get(package) if what == "begin" else None
        assert alive is None or next(job for job in jobs if job.name == alive).state == "failed"
        holder[package] = name if what == "begin" else ""
        if what == "end":
            del holder[package]
    return Counter(job.state for job in jobs)


def test_kill_9_at_any_moment(open_archive: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whether a kill meets a worker in the middle of a job is left to chance; that some are killed is not."""
    deaths = tmp_path / "deaths"
    monkeypatch.setenv("TINY_DIE_WITHIN", "1.2")
    monkeypatch.setenv("TINY_DEATHS", str(deaths))
    archive = open_archive()
    queue = JobQueue(archive)
    names: set[str] = set()
    for round_number in range(10 * ROUNDS):
        if round_number >= ROUNDS and deaths.exists():
            break
        files = [
            f'<query package="{"pq"[number % 2]}" name="{round_number}-{number}">wait 0.05</query>'.encode()
            for number in range(30)
        ]
        names |= {job.name for job in queue.submit_many([parse(file) for file in files], COMMAND_LINE)}
        work(archive, lambda: all_ended(queue))
        ends = check_the_books(queue, archive, names)
    assert deaths.exists()
    assert ends["done"] > 0


def test_two_daemons_share_a_queue(open_archive: Open, database: DatabaseSettings) -> None:
    archive = open_archive(database)
    queue = JobQueue(archive)
    files = [f'<query package="{"pq"[n % 2]}" name="{n}">wait 0.02</query>'.encode() for n in range(12)]
    names = {job.name for job in queue.submit_many([parse(file) for file in files], COMMAND_LINE)}

    async def both() -> None:
        daemons = [Supervisor(archive, command=COMMAND, slice_seconds=0.3) for _ in range(2)]
        await asyncio.gather(*(daemon.run_until(lambda: all_ended(queue)) for daemon in daemons))

    asyncio.run(both())
    assert check_the_books(queue, archive, names) == {"done": 12}


def test_a_job_outlives_a_daemon_that_was_killed(open_archive: Open) -> None:
    archive = open_archive()
    queue = JobQueue(archive)
    queue.submit_many([parse(b'<query name="a">wait 1</query>'), parse(b'<query name="b">say</query>')], COMMAND_LINE)
    daemon = subprocess.Popen([*COMMAND, str(archive.folder)])
    until(lambda: bool(lines(archive)))
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    until(lambda: queue.show(1, COMMAND_LINE).state == "done")
    assert queue.show(2, COMMAND_LINE).state == "queued"
    work(archive, lambda: all_ended(queue))
    assert check_the_books(queue, archive, {"a", "b"}) == {"done": 2}


def test_a_daemon_says_that_it_is_there_and_leaves_in_order(open_archive: Open) -> None:
    archive = open_archive()
    queue = JobQueue(archive)
    daemon = subprocess.Popen([*COMMAND, str(archive.folder)])
    queue.submit(parse(b'<query name="a">wait 1000</query>'), COMMAND_LINE)
    until(lambda: bool(lines(archive)))
    assert archive.catalog.database.one("SELECT count(*) FROM job_keeper") == (1,)
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(300) == 0
    assert queue.show(1, COMMAND_LINE).state == "queued"
    assert archive.catalog.database.one("SELECT count(*) FROM job_keeper") == (0,)


def test_ten_thousand_jobs_of_one_keep_nobody_else_waiting(open_archive: Open) -> None:
    archive = open_archive(queued=10_000)
    queue = JobQueue(archive)
    queue.submit_many([parse(b'<query package="p" name="many">wait 0.01</query>')] * 10_000, ANNA)
    with pytest.raises(QueueFull):
        queue.submit(parse(b"<query>say</query>"), ANNA)
    other = queue.submit(parse(b'<query package="q" name="short">say</query>'), BERT)
    urgent = queue.submit(parse(b'<query package="p" name="urgent" priority="1">say</query>'), BERT)
    work(archive, lambda: {queue.show(job.id, BERT).state for job in (other, urgent)} == {"done"})
    assert queue.counts()["queued"] > 9_000


def test_one_place_is_shared_by_all_packages(open_archive: Open) -> None:
    archive = open_archive(workers=1, queued=10_000)
    queue = JobQueue(archive)
    queue.submit_many([parse(b'<query package="p">wait 0.01</query>')] * 2_000, ANNA)
    short = queue.submit(parse(b'<query package="q">say</query>'), BERT)
    work(archive, lambda: queue.show(short.id, BERT).state == "done", slice_seconds=0.2)
    assert queue.counts()["queued"] > 1_000


def test_places_go_to_those_who_waited_longest_and_the_dying_pause() -> None:
    known = {"a": PackageState(served=5.0), "b": PackageState(served=3.0), "c": PackageState(served=9.0, failures=3)}
    assert next_packages(["a", "b", "c", "d"], known, 2, 10.0) == ["d", "b"]
    assert next_packages(["a", "b", "c", "d"], known, 9, 10.0) == ["d", "b", "a"]
    assert next_packages(["c"], known, 9, 13.0) == ["c"]
    assert next_packages(["a"], known, 0, 10.0) == ["a"]


def test_private_addresses_are_for_the_command_line(open_archive: Open) -> None:
    archive = open_archive()
    queue = JobQueue(archive)
    queue.submit(parse(b"<query>say</query>"), ANNA)
    work(archive, lambda: all_ended(queue))
    assert b"say public for anna" in queue.output(1, ANNA)[1]


def test_settings_reach_the_worker(open_archive: Open) -> None:
    assert worked_off(open_archive(max_result=2), b"<query>large 3</query>")[0].state == "failed"
