"""Jobs: queries in XML that wait in a queue, run one after another, and leave a result.

A query may be stored under a name (a favourite) and run again, also automatically. A job is visible to its owner and
to accounts with the rights in its `permission`; it runs with the rights of its submitter.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Literal

from letopis.archive import OWN, READ, WRITE
from letopis.archive.job_control import job_files, remove_old_jobs
from letopis.archive.jobs import JobQuery, JobQueue
from letopis.errors import NotFound, UsageError
from letopis.jobs.documents import result_json, result_xml
from letopis.jobs.packages import packages, stylesheet_named, transform_result
from letopis.model import json_value
from letopis.operations.context import Context
from letopis.operations.job_files import fetched_urls, parse_job_file, refuse_steps, with_permission
from letopis.operations.job_rows import (
    XML_TYPE,
    ForgottenQuery,
    Job,
    JobFile,
    JobState,
    PackageInfo,
    RemovedJobs,
    StoredQuery,
    ended_result,
    job_of,
    requester_of,
    stored_query_of,
)
from letopis.operations.operation import Document, Rows, Value, operation
from letopis.operations.parameters import CLI_ONLY, NoParameters, Parameters, parameter

MAX_JOBS = 10_000
_MAX_NUMBER = 2**63 - 1
_PIECE = 1 << 20
_PRIVATE = {"cache-control": "no-cache, private"}
_ID = "Number of the job."
_NAME = "Name under which the query is stored."
_FILE = "Job file: <query package=... name=...> around its steps; - for standard input."
_WAIT = "Wait until it has ended, and print the result."


def read_query(context: Context, data: bytes) -> JobQuery:
    """A query that whoever asks may have run; what they may not ask for is refused before it is queued."""
    settings = context.archive.settings
    query = parse_job_file(data, settings)
    context.refuse_private(fetched_urls(query))
    refuse_steps(query, requester_of(context).rights, settings)
    return with_permission(query, settings)


# Submitting


class SubmitCommand(Parameters):
    """Which query, and whether to store it."""

    xml: bytes = parameter(_FILE, argument=True, metavar="FILE", media_type=XML_TYPE)
    keep: bool = parameter("Store the query under its name, to be run again.", default=False)
    system: bool = parameter("Run after the jobs of people.", default=False, doors=CLI_ONLY)
    wait: bool = parameter(_WAIT, default=False, doors=CLI_ONLY)


@operation(
    "submit_job", right=WRITE, verb="jobs submit", route=("POST", "/jobs"), status=201, errors=(404, 429),
    document_with=("wait",), sentence=lambda job: str(job.id),
    examples=("letopis jobs submit map.xml --wait", "letopis jobs submit news.xml --keep --json"),
)  # fmt: skip
def submit_job(context: Context, asked: SubmitCommand) -> Value[Job] | Document:
    """Queue the query of a job file; returns the job, or with --wait its result.

    Private and loopback addresses are refused over HTTP unless the owner allowed them.
    """
    requester = requester_of(context)
    requester = requester._replace(system=requester.system or asked.system)
    job = job_of(JobQueue(context.archive).submit(read_query(context, asked.xml), requester, keep=asked.keep))
    return ended_result(context, job) if asked.wait else Value(job)


class KeepCommand(Parameters):
    """Which query."""

    xml: bytes = parameter(_FILE, argument=True, metavar="FILE", media_type=XML_TYPE)


@operation(
    "keep_query", right=WRITE, verb="jobs keep", route=("POST", "/jobs/favourites"), status=201, errors=(404,),
    sentence=lambda query: f"stored as '{query.name}'", examples=("letopis jobs keep news.xml",),
)  # fmt: skip
def keep_query(context: Context, asked: KeepCommand) -> Value[StoredQuery]:
    """Store a query under its name without running it now; with a refresh it runs when its time comes."""
    return Value(
        stored_query_of(JobQueue(context.archive).store_query(read_query(context, asked.xml), requester_of(context)))
    )


class RefreshCommand(Parameters):
    """What to run again."""

    what: str = parameter(
        "Number of a job, or name of a stored query.", named="id", argument=True, metavar="ID|NAME", longest=200
    )
    by_name: bool = parameter("Treat a number as a name.", named="name", default=False, doors=CLI_ONLY)
    wait: bool = parameter(_WAIT, default=False, doors=CLI_ONLY)


@operation(
    "refresh_job", right=WRITE, verb="jobs refresh", route=("POST", "/jobs/{id}/refresh"), status=201,
    errors=(404, 429), creates=False, document_with=("wait",), sentence=lambda job: str(job.id),
    examples=("letopis jobs refresh 7", "letopis jobs refresh news --wait"),
)  # fmt: skip
def refresh_job(context: Context, asked: RefreshCommand) -> Value[Job] | Document:
    """Run a job or a stored query again, unless it is waiting already."""
    is_number = asked.what.isascii() and asked.what.isdigit() and not asked.by_name
    job = _refreshed(context, int(asked.what) if is_number else asked.what)
    return ended_result(context, job) if asked.wait else Value(job)


class FavouriteQuery(Parameters):
    """Which stored query."""

    name: str = parameter(_NAME, argument=True, longest=200)


@operation(
    "refresh_favourite", right=WRITE, route=("POST", "/jobs/favourites/{name}/refresh"), status=201, errors=(404, 429)
)
def refresh_favourite(context: Context, asked: FavouriteQuery) -> Value[Job]:
    """Run a stored query again, unless it is waiting already."""
    return Value(_refreshed(context, asked.name))


def _refreshed(context: Context, what: int | str) -> Job:
    queue, requester = JobQueue(context.archive), requester_of(context)
    text = queue.stored_text(what, requester) if isinstance(what, str) else queue.text(what, requester)
    return job_of(queue.refresh(what, read_query(context, text), requester))


# Lists; their routes stand before those of single jobs, whose paths fit all names


class JobsQuery(Parameters):
    """Which jobs."""

    state: JobState | None = parameter("Only jobs in this state.", default=None)
    package: str | None = parameter("Only jobs of this package.", default=None, longest=64)
    owner: str | None = parameter("Only jobs of this user.", default=None, longest=64)
    before: int | None = parameter(
        "Only jobs with smaller numbers.", default=None, metavar="ID", at_least=1, at_most=_MAX_NUMBER
    )
    limit: int = parameter("Maximum number of jobs.", default=100, at_least=1, at_most=MAX_JOBS)


@operation(
    "jobs", right=READ, verb="jobs list", route=("GET", "/jobs"),
    columns=("id", "state", "package", "name", "priority", "progress", "owner", "submitted"),
    about={"next": int | None},
    examples=("letopis jobs list", "letopis jobs list --state queued --package downloader --json"),
)  # fmt: skip
def list_jobs(context: Context, asked: JobsQuery) -> Rows[Job]:
    """List jobs that you may see, newest first; `next` is where the following ones begin."""
    chosen = {"state": asked.state, "package": asked.package, "owner": asked.owner}
    found = JobQueue(context.archive).listed(requester_of(context), asked.limit, **chosen, before=asked.before)
    return Rows(map(job_of, found), {"next": found[-1].id if len(found) == asked.limit else None})


def job_counts(context: Context) -> dict[str, int]:
    """How many jobs are in each state."""
    return JobQueue(context.archive).counts()


@operation(
    "favourites", right=READ, verb="jobs favourites", route=("GET", "/jobs/favourites"),
    columns=("name", "owner", "package", "refresh", "due", "answer", "uses"),
    examples=("letopis jobs favourites", "letopis jobs favourites --json"),
)  # fmt: skip
def list_favourites(context: Context, asked: NoParameters) -> Rows[StoredQuery]:
    """List stored queries, with when they run again."""
    return Rows(map(stored_query_of, JobQueue(context.archive).stored_queries(requester_of(context))))


@operation(
    "packages", right=READ, verb="jobs packages", route=("GET", "/jobs/packages"), examples=("letopis jobs packages",)
)
def list_packages(context: Context, asked: NoParameters) -> Rows[PackageInfo]:
    """List the packages for queries, and where each comes from."""
    known = packages(context.archive.settings).values()
    shown = context.may(OWN)  # where folders lie is not for everybody
    return Rows(PackageInfo(one.name, one.description, one.origin if shown or not one.folder else "") for one in known)


@operation(
    "favourite", right=READ, verb="jobs favourite", route=("GET", "/jobs/favourites/{name}"), errors=(404,),
    examples=("letopis jobs favourite news",),
)  # fmt: skip
def show_favourite(context: Context, asked: FavouriteQuery) -> Document:
    """Show the job file of a stored query."""
    text = JobQueue(context.archive).stored_text(asked.name, requester_of(context))
    return Document([text, b"\n"], XML_TYPE, _PRIVATE)


@operation(
    "forget_favourite", right=WRITE, verb="jobs forget", route=("DELETE", "/jobs/favourites/{name}"), errors=(404,),
    creates=False, sentence=lambda query: f"{query.name} is no longer stored", examples=("letopis jobs forget news",),
)  # fmt: skip
def forget_favourite(context: Context, asked: FavouriteQuery) -> Value[ForgottenQuery]:
    """Remove a stored query and its refresh; its results stay until old jobs are removed."""
    return Value(ForgottenQuery(JobQueue(context.archive).forget(asked.name, requester_of(context)).name))


class CleanCommand(Parameters):
    """The minimum age of the jobs."""

    older_than: timedelta | None = parameter(
        "Only jobs that ended longer ago than this; default: the setting jobs.keep_for.", default=None
    )


@operation(
    "clean_jobs", right=OWN, verb="jobs clean", route=("POST", "/jobs/clean"), step="cleaner", creates=False,
    sentence=lambda removed: f"{removed.jobs} jobs removed",
    examples=("letopis jobs clean", "letopis jobs clean --older-than 7d"),
)  # fmt: skip
def clean_jobs(context: Context, asked: CleanCommand) -> Value[RemovedJobs]:
    """Remove old jobs with their results and files; the last good result of a stored query stays."""
    older_than = None if asked.older_than is None else asked.older_than.total_seconds()
    return Value(RemovedJobs(remove_old_jobs(context.archive, older_than)))


# One job


class JobNumber(Parameters):
    """Which job."""

    id: int = parameter(_ID, argument=True, at_least=1, at_most=_MAX_NUMBER)


class ShowQuery(JobNumber):
    """Which job, and which part of it."""

    result: bool = parameter("Print the result XML; with --json the same as JSON.", default=False, doors=CLI_ONLY)
    log: bool = parameter("Print the log.", default=False, doors=CLI_ONLY)
    query: bool = parameter("Print the job file.", default=False, doors=CLI_ONLY)
    xslt: str | None = parameter(
        "Show the result as a stylesheet does: a file, a known name, or own.", default=None, metavar="FILE|NAME",
        doors=CLI_ONLY,
    )  # fmt: skip


def _described(job: Job) -> str:
    return "\n".join(f"{name}: {value}" for name, value in json_value(job).items() if value not in (None, ""))


@operation(
    "job", right=READ, verb="jobs show", route=("GET", "/jobs/{id}"), errors=(404,),
    document_with=("result", "log", "query", "xslt"), sentence=_described,
    examples=("letopis jobs show 7", "letopis jobs show 7 --result --xslt text", "letopis jobs show 7 --log"),
)  # fmt: skip
def show_job(context: Context, asked: ShowQuery) -> Value[Job] | Document:
    """Show a job: its state and how far it is; on the command line also its result, log or job file."""
    if asked.log + asked.query + (asked.result or asked.xslt is not None) > 1:
        raise UsageError("--result, --log and --query show different things; give one of them")
    if asked.log:
        return job_log(context, JobNumber(id=asked.id))
    if asked.query:
        return job_query(context, JobNumber(id=asked.id))
    if asked.xslt is not None and _is_file(asked.xslt):
        return _result(context, asked.id, _stylesheet_file(asked.xslt))
    if asked.result or asked.xslt is not None:
        form: Literal["xml", "json"] = "json" if context.form == "json" else "xml"
        return job_result(context, ResultQuery(id=asked.id, xslt=asked.xslt or "", format=form))
    return Value(job_of(JobQueue(context.archive).show(asked.id, requester_of(context))))


def _is_file(xslt: str) -> bool:
    return Path(xslt).is_file() or "." in xslt or "/" in xslt


def _stylesheet_file(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}; give a readable stylesheet") from None


class ResultQuery(JobNumber):
    """Which result, and in which form."""

    xslt: str = parameter("A stylesheet by its name; own: that of the query.", default="", longest=100)
    format: Literal["xml", "json"] = parameter("Output format if no stylesheet is named.", default="xml")


@operation("job_result", right=READ, route=("GET", "/jobs/{id}/result"), errors=(404,))
def job_result(context: Context, asked: ResultQuery) -> Document:
    """Show the result of a job that has ended, as XML or JSON, or as a stylesheet makes it."""
    if asked.format == "json" and not asked.xslt:
        row, steps = JobQueue(context.archive).output(asked.id, requester_of(context))
        return Document([result_json(result_xml(row, steps)), "\n"], "application/json", _PRIVATE)
    return _result(context, asked.id, asked.xslt)


def _result(context: Context, number: int, xslt: bytes | str) -> Document:
    queue, requester = JobQueue(context.archive), requester_of(context)
    row, steps = queue.output(number, requester)
    data = result_xml(row, steps)
    if isinstance(xslt, str) and xslt:
        xslt = stylesheet_named(xslt, row.package, queue.text(number, requester), context.archive.settings)
    if xslt:
        data = transform_result(data, xslt)
    return Document([data], _media_type(data), _PRIVATE)


def _media_type(data: bytes) -> str:
    """The type that the first characters of a result tell."""
    start = data[:500].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")) or (start.startswith(b"<?xml") and b"<html" in start):
        return "text/html; charset=utf-8"
    return XML_TYPE if start.startswith(b"<") else "text/plain; charset=utf-8"


@operation("job_log", right=READ, route=("GET", "/jobs/{id}/log"), errors=(404,))
def job_log(context: Context, asked: JobNumber) -> Document:
    """Show the log of a job so far."""
    text = JobQueue(context.archive).log(asked.id, requester_of(context))
    return Document([text], "text/plain; charset=utf-8", _PRIVATE)


@operation("job_query", right=READ, route=("GET", "/jobs/{id}/query"), errors=(404,))
def job_query(context: Context, asked: JobNumber) -> Document:
    """Show the job file of a job."""
    text = JobQueue(context.archive).text(asked.id, requester_of(context))
    return Document([text, b"\n"], XML_TYPE, _PRIVATE)


@operation(
    "job_files", right=READ, verb="jobs files", route=("GET", "/jobs/{id}/files"), listed="files", errors=(404,),
    examples=("letopis jobs files 7",),
)  # fmt: skip
def list_job_files(context: Context, asked: JobNumber) -> Rows[JobFile]:
    """List the files that a job has written, as an export does."""
    job = JobQueue(context.archive).show(asked.id, requester_of(context))
    return Rows(JobFile(name, file.stat().st_size) for name, file in job_files(context.archive, job.id).items())


class JobFileQuery(JobNumber):
    """Which file of which job."""

    name: str = parameter("Name of the file.", argument=True, longest=200)


@operation(
    "job_file", right=READ, verb="jobs file", route=("GET", "/jobs/{id}/files/{name}"), errors=(404,),
    examples=("letopis jobs file 7 example.org-2026-03-01.warc.gz -o example.warc.gz",),
)  # fmt: skip
def job_file(context: Context, asked: JobFileQuery) -> Document:
    """Show a file that a job has written."""
    job = JobQueue(context.archive).show(asked.id, requester_of(context))
    file = job_files(context.archive, job.id).get(asked.name)
    if file is None:
        raise NotFound(f"job {job.id} has written no file '{asked.name[:70]}'; see the list of its files")
    headers = {**_PRIVATE, "content-disposition": f'attachment; filename="{_plain_name(file.name)}"'}
    return Document(_pieces(file), "application/octet-stream", headers, path=file)


def _plain_name(name: str) -> str:
    """The name of a file as a header can hold it."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._- ") else "_" for sign in name)


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            yield piece


def job_number(text: str) -> int:
    """The number of a job that a text gives."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MAX_NUMBER):
        raise UsageError(f"id: '{text[:70]}' is not the number of a job; see the list of jobs")
    return int(text)
