"""Jobs as operations show them: their rows, their requesters, and how to wait for one."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Literal, cast

from letopis import errors
from letopis.archive.accounts import accounts_of
from letopis.archive.jobs import COMMAND_LINE, DONE, ENDED, JobQueue, JobRow, Requester, StoredQueryRow, claims_of
from letopis.errors import LetopisError, NotFound
from letopis.lazy import asyncio, lazy
from letopis.model import from_millis, to_millis
from letopis.model.rights import READ
from letopis.operations.context import Context
from letopis.operations.operation import Document
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.jobs import documents, supervisor
else:
    documents, supervisor = lazy("letopis.jobs.documents"), lazy("letopis.jobs.supervisor")

JobState = Literal["queued", "running", "paused", "done", "failed", "cancelled"]
XML_TYPE = "application/xml"
_POLL_SECONDS = 0.2


class Job(NamedTuple):
    """One job. `progress` is 0 to 1; `error` is the class of the error with which it failed."""

    id: int
    state: JobState
    package: str
    name: str
    priority: int
    owner: str
    system: bool
    automatic: bool
    permission: int
    submitted: datetime
    started: datetime | None
    finished: datetime | None
    step: str
    progress: float
    message: str
    error: str

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ENDED


class StoredQuery(NamedTuple):
    """A query that is stored under a name; `answer` is the job with its last good result, `every` is in seconds."""

    name: str
    owner: str
    package: str
    priority: int
    permission: int
    refresh: str
    every: float
    due: datetime | None
    answer: int | None
    uses: int


class ForgottenQuery(NamedTuple):
    """A query that is no longer stored."""

    name: str
    removed: bool = True


class PackageInfo(NamedTuple):
    """A package that queries can be sent to."""

    name: str
    description: str
    origin: str


class JobFile(NamedTuple):
    """A file that a job has written."""

    name: str
    bytes: int


class RemovedJobs(NamedTuple):
    """How many old jobs were removed."""

    jobs: int


class JobFailed(LetopisError):
    """A job that somebody waited for failed; its exit and HTTP status are those of its error."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"job {job.id} {job.state}: {job.message}")
        kind = getattr(errors, job.error, LetopisError)
        self.exit_status = kind.exit_status
        self.http_status = kind.http_status


def job_of(row: JobRow) -> Job:
    """A job as all doors show it."""
    return Job(
        id=row.id, state=cast(JobState, row.state), package=row.package, name=row.name, priority=row.priority,
        owner=row.owner, system=bool(row.system), automatic=bool(row.automatic), permission=row.permission,
        submitted=from_millis(row.submitted), started=None if row.started is None else from_millis(row.started),
        finished=None if row.finished is None else from_millis(row.finished), step=row.step,
        progress=round(row.progress, 4), message=row.message, error=row.error,
    )  # fmt: skip


def stored_query_of(row: StoredQueryRow) -> StoredQuery:
    """A stored query as all doors show it."""
    due = None if row.due is None else from_millis(row.due)
    return StoredQuery(
        row.name, row.owner, row.package, row.priority, row.permission, row.refresh, row.every / 1000, due,
        row.answer, row.uses,
    )  # fmt: skip


def requester_of(context: Context) -> Requester:
    """Whoever asks, with what everybody may do here."""
    if context.origin == "cli" and not context.user:
        return COMMAND_LINE
    public = READ if context.archive.settings.serve.public else 0
    return Requester(context.user, context.rights | public, context.origin, _is_system(context))


def _is_system(context: Context) -> bool:
    try:
        return bool(accounts_of(context.archive).user(context.user).system)
    except NotFound:
        return False


def ended_result(context: Context, job: Job) -> Document:
    """The result of a job once it has ended; a failure is a fault with the status of its error."""
    try:
        _wait(context, job)
    except KeyboardInterrupt:
        left = f"job {job.id} stays in the queue; 'letopis jobs cancel {job.id}' takes it out"
        raise KeyboardInterrupt(left) from None
    row, steps = JobQueue(context.archive).output(job.id, requester_of(context))
    ended = job_of(row)
    faults = [] if ended.state == DONE else [JobFailed(ended)]
    return Document([documents.result_xml(row, steps)], XML_TYPE, row=ended, faults=faults)


def _wait(context: Context, job: Job) -> None:
    """Waits for the daemon; where none runs, works off the package itself."""
    archive, claims = context.archive, claims_of(context.archive)

    def over() -> bool:
        now = JobQueue(archive).show(job.id, requester_of(context))
        context.progress.show(round(now.progress * 100), f"% of job {job.id} {now.step}".rstrip())
        return now.state in ENDED

    while not over():
        if claims.kept(to_millis(archive.clock())):
            time.sleep(_POLL_SECONDS)
        else:
            asyncio.run(supervisor.Supervisor(archive, only=job.package).run_until(over))
