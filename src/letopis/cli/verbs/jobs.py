"""The verb `jobs`, whose commands are loaded when called: list, cancel, favourites, forget."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from letopis.catalog.jobs import STATES, JobRow, StoredQueryRow
from letopis.cli.context import CliContext, VerbGroup, shared_options, verb
from letopis.jobs import COMMAND_LINE, JobFilter, JobQueue
from letopis.model import from_millis

_MODULES = {
    "submit": "job_files",
    "list": "jobs",
    "show": "job_files",
    "cancel": "jobs",
    "refresh": "job_files",
    "favourites": "jobs",
    "forget": "jobs",
    "packages": "job_files",
}
JOB_COLUMNS = ("id", "state", "package", "name", "priority", "progress", "owner", "submitted")


class _JobsGroup(VerbGroup):
    """A verb with verbs of its own. They are imported when called: looking at the queue needs no parsers."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The attribute of its module with the verb's name."""
        if cmd_name not in _MODULES:
            return None
        command: click.Command = getattr(import_module(f"letopis.cli.verbs.{_MODULES[cmd_name]}"), cmd_name + "_verb")
        return command


@click.group("jobs", cls=_JobsGroup, context_settings={"help_option_names": ["-h", "--help"]})
@shared_options
def jobs_verb() -> None:
    """Questions in XML that wait in a queue, are worked off one after the other, and leave a result."""


jobs_verb.examples = (
    "letopis jobs submit map.xml --wait",
    "letopis jobs list --state queued",
    "letopis jobs show 7 --result --xslt news-rss",
)


def job_row(job: JobRow) -> dict[str, Any]:
    """A job as programs get it."""
    return {
        "id": job.id,
        "state": job.state,
        "package": job.package,
        "name": job.name,
        "priority": job.priority,
        "owner": job.owner,
        "system": bool(job.system),
        "automatic": bool(job.automatic),
        "permission": job.permission,
        "submitted": from_millis(job.submitted),
        "started": None if job.started is None else from_millis(job.started),
        "finished": None if job.finished is None else from_millis(job.finished),
        "step": job.step,
        "progress": round(job.progress, 4),
        "message": job.message,
    }


def _stored_query_row(query: StoredQueryRow) -> dict[str, Any]:
    return {
        "name": query.name,
        "owner": query.owner,
        "package": query.package,
        "refresh": query.refresh,
        "every": query.every / 1000,
        "due": None if query.due is None else from_millis(query.due),
        "answer": query.answer,
        "uses": query.uses,
    }


@verb("list", "letopis jobs list", "letopis jobs list --state queued --package downloader --json")
@click.option("--state", type=click.Choice(STATES), help="Only jobs in this state.")
@click.option("--package", help="Only jobs of this package.")
@click.option("--owner", help="Only jobs of this user.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Most jobs to show.")
def list_verb(given: CliContext, state: str | None, package: str | None, owner: str | None, limit: int) -> None:
    """List jobs, newest first."""
    with given.open(create=False) as archive:
        jobs = JobQueue(archive).listed(COMMAND_LINE, JobFilter(state, package, owner), limit)
    given.output.rows(map(job_row, jobs), JOB_COLUMNS)


@verb("cancel", "letopis jobs cancel 7")
@click.argument("numbers", nargs=-1, required=True, type=int, metavar="ID...")
def cancel_verb(given: CliContext, numbers: tuple[int, ...]) -> None:
    """Take jobs out of the queue; one that runs is told to stop, and keeps what it has recorded."""
    with given.open(create=False) as archive:
        for number in numbers:
            job = JobQueue(archive).cancel(number, COMMAND_LINE)
            told = "is cancelled" if job.state == "cancelled" else "is told to stop"
            given.output.row(job_row(job), f"job {job.id} {told}")


@verb("favourites", "letopis jobs favourites", "letopis jobs favourites --json")
def favourites_verb(given: CliContext) -> None:
    """List questions that are kept under a name, with when they are asked again."""
    with given.open(create=False) as archive:
        kept = JobQueue(archive).favourites(COMMAND_LINE)
    given.output.rows(map(_stored_query_row, kept), ("name", "owner", "package", "refresh", "due", "answer", "uses"))


@verb("forget", "letopis jobs forget news")
@click.argument("name")
def forget_verb(given: CliContext, name: str) -> None:
    """Keep a question no longer, and ask it no longer by itself; its results stay until the cleaner comes."""
    with given.open(create=False) as archive:
        JobQueue(archive).forget(name, COMMAND_LINE)
    given.output.row({"name": name, "removed": True}, f"{name} is no longer kept")
