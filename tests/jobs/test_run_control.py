"""Jobs that are paused, resumed and deleted: durable, for those who may, and a crawl goes on where it was."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripted_site import ScriptedSite
from tiny_language import parse

from letopis.archive import Archive
from letopis.archive.job_control import CrawlJournal, JobControl, job_folder, remove_old_jobs
from letopis.archive.jobs import COMMAND_LINE, JobOutcome, JobQueue, Requester, claims_of
from letopis.config import CrawlSettings, DatabaseSettings, Settings
from letopis.errors import NotFound, Refused, UsageError
from letopis.jobs.documents import read_xml
from letopis.jobs.supervisor import Supervisor
from letopis.operations import Context
from letopis.operations.jobs import ResultQuery, job_result
from letopis.operations.runs import JobNumbers, StartRun, delete_jobs, pause_jobs, resume_jobs, start_run

SAY = b"<query>say</query>"
ANNA, BERT = Requester("anna", 3, "http"), Requester("bert", 3, "http")
PAGES = 40


def test_a_paused_job_waits_until_it_is_resumed_whoever_opens_the_archive(
    open_archive: Callable[..., Archive], database: DatabaseSettings
) -> None:
    archive = open_archive(database)
    queue, claims, control = JobQueue(archive), claims_of(archive), JobControl(archive)
    queue.submit(parse(SAY), COMMAND_LINE)
    assert control.pause(1, COMMAND_LINE).state == "paused"
    again = open_archive(database)
    assert JobQueue(again).show(1, COMMAND_LINE).state == "paused"
    assert claims_of(again).open_packages(0) == []
    assert claims_of(again).take("p", "w", 0, 10) is None
    assert control.resume(1, COMMAND_LINE).state == "queued"
    assert claims.take("p", "w", 0, 10) is not None


def test_a_wish_that_comes_while_its_worker_stops_or_dies_is_not_lost(archive: Archive, queue: JobQueue) -> None:
    claims, control = claims_of(archive), JobControl(archive)
    queue.submit_many([parse(SAY)] * 3, COMMAND_LINE)
    far = 2**62
    stopped = claims.take("p", "w", 0, far)
    assert stopped
    control.pause(stopped.job, COMMAND_LINE)
    assert claims.put_back(stopped, 1, "log\n")
    cancelled = claims.take("p", "w", 0, far)
    assert cancelled
    JobControl(archive).cancel(cancelled.job, COMMAND_LINE)
    assert claims.put_back(cancelled, 1, "log\n")
    killed = claims.take("p", "killed", 0, far)
    assert killed
    control.pause(killed.job, COMMAND_LINE)
    claims.abandon("killed", 1, "it died", "")
    states = [queue.show(claim.job, COMMAND_LINE).state for claim in (stopped, cancelled, killed)]
    assert states == ["paused", "cancelled", "paused"]
    control.resume(stopped.job, COMMAND_LINE)
    again = claims.take("p", "w", 5, far)
    assert again
    assert again.job == stopped.job
    assert queue.show(stopped.job, COMMAND_LINE).started == 0, "it began before it was paused"
    control.resume(cancelled.job, COMMAND_LINE)
    assert claims.finish(again, 6, JobOutcome("done", "", b"<r/>", ""))
    assert claims.take("p", "w", 7, far)
    assert queue.show(cancelled.job, COMMAND_LINE).started == 7, "what had ended begins anew"


def test_a_pause_does_not_take_a_cancel_back_and_a_resume_takes_back_a_pause(archive: Archive, queue: JobQueue) -> None:
    claims, control = claims_of(archive), JobControl(archive)
    queue.submit_many([parse(SAY)] * 2, COMMAND_LINE)
    first = claims.take("p", "w", 0, 2**62)
    assert first
    JobControl(archive).cancel(first.job, COMMAND_LINE)
    control.pause(first.job, COMMAND_LINE)
    assert claims.put_back(first, 1, "")
    assert queue.show(first.job, COMMAND_LINE).state == "cancelled"
    second = claims.take("p", "w", 0, 2**62)
    assert second
    control.pause(second.job, COMMAND_LINE)
    control.resume(second.job, COMMAND_LINE)
    assert not claims.unwanted(second)
    assert claims.finish(second, 2, JobOutcome("done", "", b"", ""))
    with pytest.raises(UsageError, match="is done"):
        control.resume(second.job, COMMAND_LINE)
    with pytest.raises(UsageError, match="nothing to pause"):
        control.pause(second.job, COMMAND_LINE)


def test_only_whose_job_it_is_and_owners_pause_resume_and_delete(archive: Archive, queue: JobQueue) -> None:
    control = JobControl(archive)
    number = queue.submit(parse(SAY), ANNA).id
    for change in (control.pause, control.resume, control.delete):
        with pytest.raises(Refused, match="belongs to 'anna'"):
            change(number, BERT)
    assert control.pause(number, COMMAND_LINE).state == "paused"
    assert control.resume(number, ANNA).state == "queued"


def test_a_deleted_job_is_gone_with_all_it_had_and_its_number_is_not_given_out_again(
    archive: Archive, queue: JobQueue
) -> None:
    claims, control = claims_of(archive), JobControl(archive)
    number = queue.submit(parse(SAY), COMMAND_LINE).id
    with pytest.raises(UsageError, match="cancel it first"):
        control.delete(number, COMMAND_LINE)
    claim = claims.take("p", "w", 0, 2**62)
    assert claim
    CrawlJournal(archive, number).prepare()
    job_folder(archive, number).mkdir(parents=True)
    (job_folder(archive, number) / "export.wacz").write_bytes(b"x")
    claims.finish(claim, 1, JobOutcome("failed", "no", b"<a/>", "log\n"))
    control.delete(number, COMMAND_LINE)
    with pytest.raises(NotFound):
        queue.show(number, COMMAND_LINE)
    assert queue.listed(COMMAND_LINE) == []
    assert queue.counts() == {}
    assert not job_folder(archive, number).exists()
    after = queue.submit(parse(SAY), COMMAND_LINE).id
    assert after > number
    assert remove_old_jobs(archive, older_than=-3600) == 1


# Crawls by real workers


@pytest.fixture
def crawling(tmp_path: Path, scripted_site: ScriptedSite) -> Iterator[Archive]:
    """An archive that commits each look, politely enough that somebody can come in between."""
    scripted_site.set("/robots.txt", b"", 404)
    for number in range(PAGES):
        links = "".join(f'<a href="/{number * 3 + one}">x</a>' for one in (1, 2, 3) if number * 3 + one < PAGES)
        scripted_site.set("/" if number == 0 else f"/{number}", f"<title>{number}</title>{links}".encode())
    settings = Settings(crawl=CrawlSettings(delay=0.1, commit_every=0.0))
    with Archive(tmp_path / "archive", settings=settings) as archive:
        yield archive


def asked(site: ScriptedSite) -> Counter[str]:
    return Counter(path for _, path, _ in site.log if path != "/robots.txt")


def linger(site: ScriptedSite) -> threading.Event:
    """From the middle on every answer takes a while until the event is set: a busy machine comes in time as well."""
    reached = threading.Event()
    site.before = lambda: len(site.log) > PAGES // 2 and reached.wait(3)
    return reached


def work(archive: Archive, over: Callable[[], bool]) -> None:
    patience = time.monotonic() + 300

    def patient() -> bool:
        assert time.monotonic() < patience, "the queue does not move"
        return over()

    asyncio.run(Supervisor(archive).run_until(patient))


def state_of(archive: Archive, number: int = 1) -> str:
    return JobQueue(archive).show(number, COMMAND_LINE).state


def begin(archive: Archive, site: ScriptedSite) -> Context:
    context = Context(archive, rights=7, origin="cli", private_ok=True)
    start_run(context, StartRun(kind="crawl", site=site.url("/"), depth=9, requisites=False))
    return context


def check_result(context: Context) -> None:
    root = read_xml(b"".join(job_result(context, ResultQuery(id=1)).bytes()), "the result")
    download = root.find("download")
    assert download is not None
    assert download.get("fetched") == str(PAGES)
    assert [level.get("pages") for level in download.iter("level")] == ["1", "3", "9", "27"]


def test_a_paused_crawl_stays_paused_over_a_restart_and_goes_on_where_it_was(
    crawling: Archive, scripted_site: ScriptedSite
) -> None:
    context, reached = begin(crawling, scripted_site), linger(scripted_site)

    def pause() -> bool:
        if sum(asked(scripted_site).values()) >= 6 and state_of(crawling) == "running":
            pause_jobs(context, JobNumbers(ids=("1",)))
        return state_of(crawling) != "running" and bool(scripted_site.log)

    work(crawling, pause)
    reached.set()
    before = asked(scripted_site)
    assert (state_of(crawling), 6 <= len(before) < PAGES) == ("paused", True)
    looked = iter(range(3))
    work(crawling, lambda: next(looked, None) is None)  # a daemon that starts again leaves it alone
    assert (state_of(crawling), asked(scripted_site)) == ("paused", before)
    assert crawling.stats().versions == len(before)
    resume_jobs(context, JobNumbers(ids=("1",)))
    work(crawling, lambda: state_of(crawling) == "done")
    assert asked(scripted_site) == Counter({path: 1 for path in scripted_site.pages if path != "/robots.txt"})
    check_result(context)
    log = JobQueue(crawling).log(1, COMMAND_LINE)
    assert log.count(f"200 new {scripted_site.url('/')}\n") == 1
    assert list(CrawlJournal(crawling, 1).entries()) == []
    assert [row.deleted for row in delete_jobs(context, JobNumbers(ids=("1",)))] == [True]


def test_a_crawl_whose_worker_is_killed_goes_on_with_at_most_the_page_in_hand_asked_again(
    crawling: Archive, scripted_site: ScriptedSite
) -> None:
    context, reached = begin(crawling, scripted_site), linger(scripted_site)
    killed: list[int] = []

    def kill() -> bool:
        if len(asked(scripted_site)) >= 6 and not killed:
            killed.extend(worker_pids())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            if killed:
                reached.set()
        return state_of(crawling) == "failed"

    work(crawling, kill)
    assert killed
    resume_jobs(context, JobNumbers(ids=("1",)))
    work(crawling, lambda: state_of(crawling) == "done")
    counts = asked(scripted_site)
    assert set(counts) == {path for path in scripted_site.pages if path != "/robots.txt"}
    assert sum(counts.values()) <= PAGES + 1
    check_result(context)


def worker_pids() -> list[int]:
    """Processes that we started and that work off jobs."""
    own = str(os.getpid())
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == own and b"letopis.jobs.language.interpreter" in command:
                found.append(int(folder.name))
    return found
