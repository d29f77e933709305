"""The queue as people use it: asking, seeing, cancelling, asking again, keeping."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from still_clock import Clock
from tiny_language import parse

from letopis.archive import Archive
from letopis.archive.job_control import JobControl, job_folder, remove_old_jobs
from letopis.archive.jobs import COMMAND_LINE, JobOutcome, JobQueue, QueueFull, Requester, claims_of
from letopis.config import DatabaseSettings
from letopis.errors import NotFound, Refused, UsageError
from letopis.jobs.documents import result_xml
from letopis.model import to_millis
from letopis.model.rights import OWN, READ, WRITE

ANNA = Requester("anna", READ | WRITE, "http")
BERT = Requester("bert", READ | WRITE, "http")
OLGA = Requester("olga", READ | WRITE | OWN, "http")
SAY = parse(b"<query>say</query>")


def finish(archive: Archive, package: str = "p", state: str = "done", steps: bytes = b"<a/>") -> int:
    """Works off the first job of a package."""
    turns, now = claims_of(archive), to_millis(archive.clock())
    claim = turns.take(package, "test", now, now + 1000)
    assert claim is not None
    assert turns.finish(claim, now, JobOutcome(state, "" if state == "done" else "why", steps, "a line\n"))
    return claim.job


def test_an_archive_without_jobs_answers_empty(queue: JobQueue) -> None:
    assert queue.listed(COMMAND_LINE) == []
    assert queue.stored_queries(COMMAND_LINE) == []
    assert queue.counts() == {}
    with pytest.raises(NotFound, match="no job 1"):
        queue.show(1, COMMAND_LINE)
    with pytest.raises(NotFound):
        queue.show(2**70, COMMAND_LINE)


def test_a_job_is_queued_done_and_read(queue: JobQueue, archive: Archive, clock: Clock) -> None:
    job = queue.submit(parse(b'<query package="p" name="n" priority="3">say</query>'), ANNA)
    assert (job.state, job.package, job.name, job.priority, job.owner) == ("queued", "p", "n", 3, "anna")
    with pytest.raises(NotFound, match="no result yet"):
        queue.output(job.id, ANNA)
    clock.pass_by(5)
    assert finish(archive) == job.id
    assert result_xml(*queue.output(job.id, ANNA)) == (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<result id="%d" package="p" name="n" started="2026-03-01T00:00:05Z" '
        b'finished="2026-03-01T00:00:05Z" state="done">\n<a/>\n</result>\n' % job.id
    )
    assert queue.log(job.id, ANNA) == "a line\n"
    assert queue.text(job.id, ANNA) == b'<query package="p" name="n" priority="3">say</query>'


def test_a_failure_is_told_in_the_result(queue: JobQueue, archive: Archive) -> None:
    job = queue.submit(SAY, ANNA)
    finish(archive, state="failed", steps=b"")
    assert b'state="failed">\n<error>why</error>\n</result>' in result_xml(*queue.output(job.id, ANNA))


@pytest.mark.parametrize("data", [b"", b"no", b'<query priority="1001">say</query>', b"<query>" + b"x" * 2**20])
def test_what_makes_no_sense_is_refused_and_nothing_is_queued(queue: JobQueue, data: bytes) -> None:
    with pytest.raises(UsageError):
        queue.submit(parse(data), ANNA)
    assert queue.listed(COMMAND_LINE) == []


def test_permissions_decide_who_sees_and_who_asks(queue: JobQueue) -> None:
    hidden = queue.submit(parse(b'<query permission="4">say</query>'), OLGA)
    open_one = queue.submit(parse(b'<query permission="1">say</query>'), ANNA)
    assert [job.id for job in queue.listed(BERT)] == [open_one.id]
    assert [job.id for job in queue.listed(OLGA)] == [open_one.id, hidden.id]
    with pytest.raises(NotFound):
        queue.show(hidden.id, BERT)
    with pytest.raises(Refused, match="may not submit with permission='4'"):
        queue.submit(parse(b'<query permission="4">say</query>'), ANNA)


def test_owners_of_a_job_see_it_after_they_lost_the_permission(queue: JobQueue) -> None:
    job = queue.submit(parse(b'<query permission="4">say</query>'), OLGA)
    assert queue.show(job.id, Requester("olga", READ, "http")).id == job.id
    with pytest.raises(NotFound):
        queue.show(job.id, Requester("", READ, "http"))


def test_a_waiting_job_is_cancelled_by_its_owner_or_an_owner_of_the_archive(archive: Archive, queue: JobQueue) -> None:
    first, second = queue.submit_many([parse(b"<query>say</query>")] * 2, ANNA)
    with pytest.raises(Refused, match="belongs to 'anna'"):
        JobControl(archive).cancel(first.id, BERT)
    assert JobControl(archive).cancel(first.id, ANNA).state == "cancelled"
    assert JobControl(archive).cancel(second.id, OLGA).state == "cancelled"
    with pytest.raises(UsageError, match="already cancelled"):
        JobControl(archive).cancel(first.id, ANNA)


def test_lists_are_chosen_and_paged(queue: JobQueue) -> None:
    for number in range(6):
        text = b'<query package="%s">say</query>' % (b"p" if number % 2 else b"q")
        queue.submit(parse(text), ANNA if number < 3 else BERT)
    assert [job.id for job in queue.listed(ANNA, limit=2)] == [6, 5]
    assert [job.id for job in queue.listed(ANNA, limit=2, before=5)] == [4, 3]
    assert [job.id for job in queue.listed(ANNA, package="q")] == [5, 3, 1]
    assert [job.id for job in queue.listed(ANNA, owner="bert")] == [6, 5, 4]
    assert queue.listed(ANNA, state="done") == []


def test_nobody_fills_the_queue(open_archive: Callable[..., Archive], database: DatabaseSettings) -> None:
    archive = open_archive(database, queued=3)
    queue = JobQueue(archive)
    first = queue.submit_many([parse(b"<query>say</query>")] * 3, ANNA)[0]
    with pytest.raises(QueueFull, match="'anna' has 3 jobs"):
        queue.submit(SAY, ANNA)
    assert queue.submit(SAY, BERT).state == "queued"
    JobControl(archive).cancel(first.id, ANNA)
    assert queue.submit(SAY, ANNA).state == "queued"


def test_asking_again_makes_a_new_job_but_not_while_it_waits(queue: JobQueue, archive: Archive) -> None:
    job = queue.submit(SAY, ANNA)
    assert queue.refresh(job.id, SAY, ANNA).id == job.id
    finish(archive)
    again = queue.refresh(job.id, SAY, BERT)
    assert (again.id, again.owner, again.state) == (job.id + 1, "bert", "queued")


def test_questions_are_kept_asked_and_forgotten(queue: JobQueue, archive: Archive) -> None:
    kept = queue.store_query(parse(b'<query name="news">say</query>'), ANNA)
    assert (kept.name, kept.owner, kept.answer, kept.due) == ("news", "anna", None, None)
    assert queue.listed(ANNA) == []
    job = queue.refresh("news", SAY, BERT)
    assert queue.refresh("news", SAY, ANNA).id == job.id
    finish(archive)
    assert queue.stored_query("news", ANNA).answer == job.id
    assert queue.stored_text("news", BERT) == b'<query name="news">say</query>'
    with pytest.raises(Refused):
        queue.forget("news", BERT)
    queue.forget("news", ANNA)
    with pytest.raises(NotFound):
        queue.refresh("news", SAY, ANNA)
    assert queue.show(job.id, ANNA).stored is None


def test_names_belong_to_their_owners(queue: JobQueue) -> None:
    queue.store_query(parse(b'<query name="news">say</query>'), ANNA)
    queue.store_query(parse(b'<query name="news" package="q">say</query>'), BERT)
    assert queue.stored_query("news", ANNA).package == "p"
    assert queue.stored_query("news", BERT).package == "q"
    queue.store_query(parse(b'<query name="news" package="r">say</query>'), BERT)
    assert [(row.owner, row.package) for row in queue.stored_queries(OLGA)] == [("anna", "p"), ("bert", "r")]


def test_a_question_without_a_name_is_kept_once(queue: JobQueue) -> None:
    for _ in range(2):
        queue.submit(SAY, ANNA, keep=True)
    assert len(queue.stored_queries(ANNA)) == 1


def test_the_cleaner_forgets_what_is_old_but_not_the_answer_of_a_kept_question(
    queue: JobQueue, archive: Archive, clock: Clock
) -> None:
    plain = queue.submit(SAY, ANNA)
    kept = queue.submit(parse(b'<query name="k">say</query>'), ANNA, keep=True)
    finish(archive), finish(archive)
    job_folder(archive, plain.id).mkdir(parents=True)
    clock.pass_by(29 * 86400)
    assert remove_old_jobs(archive) == 0
    waiting = queue.submit(SAY, ANNA)
    clock.pass_by(2 * 86400)
    assert remove_old_jobs(archive) == 1
    assert [job.id for job in queue.listed(ANNA)] == [waiting.id, kept.id]
    assert not job_folder(archive, plain.id).exists()
    assert queue.output(kept.id, ANNA)[1]


def test_numbers_are_never_given_out_twice(queue: JobQueue, archive: Archive, clock: Clock) -> None:
    last = [queue.submit(SAY, ANNA).id for _ in range(3)][-1]
    for _ in range(3):
        finish(archive)
    clock.pass_by(1)
    assert remove_old_jobs(archive, older_than=0) == 2
    assert queue.submit(SAY, ANNA).id == last + 1


def test_tables_of_an_earlier_release_get_the_columns_they_lack(
    queue: JobQueue, archive: Archive, open_archive: Callable[..., Archive], database: DatabaseSettings, clock: Clock
) -> None:
    job = queue.submit(SAY, ANNA, keep=True)
    with archive.catalog.transaction() as cursor:
        for table, column in (("job", "rights"), ("job", "error"), ("job_query", "rights")):
            cursor.run(f"ALTER TABLE {table} DROP COLUMN {column}")
    later = JobQueue(open_archive(database, clock))
    assert (later.show(job.id, ANNA).rights, later.show(job.id, ANNA).error) == (READ | WRITE, "")
    assert [row.rights for row in later.stored_queries(ANNA)] == [READ | WRITE]
    assert later.submit(SAY, OLGA).rights == READ | WRITE | OWN


def test_the_class_of_an_error_is_kept(queue: JobQueue, archive: Archive) -> None:
    job = queue.submit(SAY, ANNA)
    claims, now = claims_of(archive), to_millis(archive.clock())
    claim = claims.take("p", "test", now, now + 1000)
    assert claim is not None
    assert claims.finish(claim, now, JobOutcome("failed", "not here", b"", "", "NotFound"))
    assert queue.show(job.id, ANNA).error == "NotFound"
    assert b'<error class="NotFound">not here</error>' in result_xml(*queue.output(job.id, ANNA))
