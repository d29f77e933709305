"""Runs: the common jobs without a job file, and actions on jobs of all kinds: pause, resume, delete.

A run crawls a site, audits it, checks its links, imports or exports files, verifies or compacts the archive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal
from xml.etree import ElementTree

from letopis.archive import WRITE
from letopis.archive.job_control import JobControl
from letopis.archive.jobs import JobRow, Requester
from letopis.errors import LetopisError, UsageError
from letopis.operations.context import Context
from letopis.operations.crawls import CrawlScope
from letopis.operations.job_rows import Job, job_of, requester_of
from letopis.operations.jobs import SubmitCommand, job_number, submit_job
from letopis.operations.operation import Rows, Value, operation
from letopis.operations.parameters import Parameters, parameter
from letopis.tuples import NamedTuple
from letopis.urls import parse_seed_url
from letopis.urls import site as site_of

RunKind = Literal["crawl", "audit", "broken", "export", "verify", "compact"]
_NEED_PLACE = ("crawl", "audit", "broken")
_LANES = {"export": {"package": "mapgenerator"}, "verify": {"package": "sengine"}, "compact": {"package": "sengine"}}
"""Whoever wants a file does not wait until a crawl of days is done."""


class StartRun(Parameters):
    """What to do, where, and how far."""

    kind: RunKind = parameter("What to do.", argument=True)
    site: str | None = parameter("A host, or an address to start from; an export takes all without one.", default=None,
                                 argument=True, metavar="[SITE]")  # fmt: skip
    scope: CrawlScope = parameter("How far from the address a crawl goes.", default="host")
    depth: int = parameter("Maximum number of links from the start of a crawl.", default=3, at_least=0, at_most=100)
    limit: int = parameter("Maximum number of addresses of a crawl.", default=1000, at_least=1, at_most=1_000_000)
    delay: timedelta | None = parameter(
        "Time between two requests of a crawl to a host, if longer than crawl.delay.", default=None
    )
    requisites: bool = parameter("Fetch images and styles of the pages of a crawl too.", default=True)
    browser: bool = parameter("Open the pages of a crawl in a browser.", default=False)
    form: str = parameter("Format of an export.", default="wacz", named="format", longest=20)
    check: Literal["site", "all"] | None = parameter(
        "Before broken links are listed: check what was never checked on the site, or on other hosts as well.",
        default=None,
    )

    def __post_init__(self) -> None:
        if self.kind in _NEED_PLACE and not self.site:
            raise UsageError(f"a run of the kind '{self.kind}' needs a site; give a host or an address")


@operation(
    "start_run", right=WRITE, verb="jobs start", route=("POST", "/runs"), status=201, errors=(403, 404, 429),
    audited="run started", subject=lambda asked: f"{asked.kind} {asked.site or ''}".strip(), numbered=True,
    sentence=lambda job: f"job {job.id}: {job.name}",
    examples=(
        "letopis jobs start crawl https://example.org/ --depth 2",
        "letopis jobs start crawl https://example.org/docs/ --scope prefix --delay 5s",
        "letopis jobs start audit example.org",
        "letopis jobs start broken example.org --check all",
        "letopis jobs start export example.org --format wacz",
        "letopis jobs start verify",
    ),
)  # fmt: skip
def start_run(context: Context, asked: StartRun) -> Value[Job]:
    """Put a common job into the queue: crawl or audit a site, check its links, write it to a file, verify, compact.

    The answer is the job; its result and its files are those of every other one. Verifying and compacting are for
    owners.
    """
    made = submit_job(context, SubmitCommand(xml=_query(asked)))
    assert isinstance(made, Value), "nobody waits for it here"
    return Value(made.value)


def _query(asked: StartRun) -> bytes:
    """The job file that says the same."""
    place = asked.site or ""
    name = f"{asked.kind} of {site_of(place)}" if place else asked.kind
    query = ElementTree.Element("query", {"name": name[:100], **_LANES.get(asked.kind, {})})
    if asked.kind == "crawl":
        step = ElementTree.SubElement(query, "download", _crawl_attributes(asked))
        ElementTree.SubElement(step, "url").text = parse_seed_url(place)
    elif asked.kind == "export":
        where = {"site": site_of(place)} if place else {}
        ElementTree.SubElement(query, "export", {"kind": asked.form, **where})
    else:
        where = {"site": site_of(place)} if asked.kind in _NEED_PLACE else {}
        checked = {"check": asked.check} if asked.kind == "broken" and asked.check else {}
        ElementTree.SubElement(query, asked.kind, where | checked)
    written: bytes = ElementTree.tostring(query, encoding="utf-8")
    return written


def _crawl_attributes(asked: StartRun) -> dict[str, str]:
    chosen = {"maxlevel": str(asked.depth), "limit": str(asked.limit), "requisites": str(asked.requisites).lower()}
    if asked.scope != "host":
        chosen["scope"] = asked.scope
    if asked.browser:
        chosen["browser"] = "true"
    if asked.delay is not None:
        chosen["delay"] = f"{asked.delay.total_seconds():g}s"
    return chosen


# What people do with runs


class JobNumbers(Parameters):
    """Which jobs."""

    ids: tuple[str, ...] = parameter("Numbers of jobs.", named="id", argument=True, metavar="ID...")


class DeletedJob(NamedTuple):
    """A job that was deleted."""

    id: int
    name: str
    deleted: bool = True


def _each(
    context: Context, ids: Sequence[str], change: Callable[[int, Requester], JobRow]
) -> tuple[list[JobRow], list[LetopisError]]:
    """Every job that can be changed is, and what went wrong with the others is told."""
    changed, faults = list[JobRow](), list[LetopisError]()
    for number in [job_number(text) for text in ids]:
        try:
            changed.append(change(number, requester_of(context)))
        except LetopisError as fault:
            faults.append(fault)
    return changed, faults


_CONTROL: dict[str, Any] = {
    "right": WRITE, "listed": "jobs", "single": "id", "creates": False,
    "subject": lambda asked: ", ".join(asked.ids)[:200],
}  # fmt: skip
"""What all operations on jobs that are there have in common."""


@operation(
    "cancel_jobs", verb="jobs cancel", route=("DELETE", "/jobs/{id}"), errors=(404,), audited="job cancelled",
    sentence=lambda job: f"job {job.id} {'is cancelled' if job.state == 'cancelled' else 'is stopping'}",
    examples=("letopis jobs cancel 7",), **_CONTROL,
)  # fmt: skip
def cancel_jobs(context: Context, asked: JobNumbers) -> Rows[Job]:
    """Take jobs out of the queue; one that runs stops within seconds, and keeps what it has recorded."""
    changed, faults = _each(context, asked.ids, JobControl(context.archive).cancel)
    return Rows(map(job_of, changed), faults=faults)


@operation(
    "pause_jobs", verb="jobs pause", route=("POST", "/jobs/{id}/pause"), errors=(404,), audited="job paused",
    sentence=lambda job: f"job {job.id} {'is paused' if job.state == 'paused' else 'is being paused'}",
    examples=("letopis jobs pause 7",), **_CONTROL,
)  # fmt: skip
def pause_jobs(context: Context, asked: JobNumbers) -> Rows[Job]:
    """Pause jobs: one that waits at once, one that runs within seconds. They stay so, also over restarts.

    A crawl goes on where it was when it is resumed, without asking again for what it has; others begin anew.
    """
    changed, faults = _each(context, asked.ids, JobControl(context.archive).pause)
    return Rows(map(job_of, changed), faults=faults)


@operation(
    "resume_jobs", verb="jobs resume", route=("POST", "/jobs/{id}/resume"), errors=(404, 429), audited="job resumed",
    sentence=lambda job: f"job {job.id} is {job.state}", examples=("letopis jobs resume 7",), **_CONTROL,
)  # fmt: skip
def resume_jobs(context: Context, asked: JobNumbers) -> Rows[Job]:
    """Let paused jobs wait for their turn again, and those that failed or were cancelled: a crawl where it was."""
    changed, faults = _each(context, asked.ids, JobControl(context.archive).resume)
    return Rows(map(job_of, changed), faults=faults)


@operation(
    "delete_jobs", verb="jobs delete", route=("POST", "/jobs/{id}/delete"), errors=(404,), audited="job deleted",
    sentence=lambda job: f"job {job.id} is deleted", examples=("letopis jobs delete 7",), **_CONTROL,
)  # fmt: skip
def delete_jobs(context: Context, asked: JobNumbers) -> Rows[DeletedJob]:
    """Remove jobs that have ended or are paused, with results, logs and files; what they recorded stays."""
    changed, faults = _each(context, asked.ids, JobControl(context.archive).delete)
    return Rows((DeletedJob(row.id, row.name) for row in changed), faults=faults)
