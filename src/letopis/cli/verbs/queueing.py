"""The queue of questions: the verb `jobs`, and what only looks at the queue or takes out of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from letopis.catalog.jobs import STATES, JobRow
from letopis.catalog.stored_queries import QueryRow
from letopis.cli.context import Given, VerbGroup, shared_options, verb
from letopis.jobs import COMMAND_LINE, Queue, Wanted
from letopis.model import from_millis

_HOMES = {
    "submit": "asking",
    "list": "queueing",
    "show": "asking",
    "cancel": "queueing",
    "refresh": "asking",
    "favourites": "queueing",
    "forget": "queueing",
    "packages": "asking",
}
COLUMNS = ("id", "state", "package", "name", "priority", "progress", "owner", "submitted")


class _Group(VerbGroup):
    """A verb with verbs of its own. They are imported when called: looking at the queue needs no parsers."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use."""
        return list(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The attribute of its module with the verb's name."""
        if cmd_name not in _HOMES:
            return None
        command: click.Command = getattr(import_module(f"letopis.cli.verbs.{_HOMES[cmd_name]}"), cmd_name + "_verb")
        return command


@click.group("jobs", cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
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


def _kept_row(query: QueryRow) -> dict[str, Any]:
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
def list_verb(given: Given, state: str | None, package: str | None, owner: str | None, limit: int) -> None:
    """List jobs, newest first."""
    with given.open(create=False) as archive:
        jobs = Queue(archive).listed(COMMAND_LINE, Wanted(state, package, owner), limit)
    given.output.rows(map(job_row, jobs), COLUMNS)


@verb("cancel", "letopis jobs cancel 7")
@click.argument("numbers", nargs=-1, required=True, type=int, metavar="ID...")
def cancel_verb(given: Given, numbers: tuple[int, ...]) -> None:
    """Take jobs out of the queue; one that runs is told to stop, and keeps what it has recorded."""
    with given.open(create=False) as archive:
        for number in numbers:
            job = Queue(archive).cancel(number, COMMAND_LINE)
            told = "is cancelled" if job.state == "cancelled" else "is told to stop"
            given.output.row(job_row(job), f"job {job.id} {told}")


@verb("favourites", "letopis jobs favourites", "letopis jobs favourites --json")
def favourites_verb(given: Given) -> None:
    """List questions that are kept under a name, with when they are asked again."""
    with given.open(create=False) as archive:
        kept = Queue(archive).favourites(COMMAND_LINE)
    given.output.rows(map(_kept_row, kept), ("name", "owner", "package", "refresh", "due", "answer", "uses"))


@verb("forget", "letopis jobs forget news")
@click.argument("name")
def forget_verb(given: Given, name: str) -> None:
    """Keep a question no longer, and ask it no longer by itself; its results stay until the cleaner comes."""
    with given.open(create=False) as archive:
        Queue(archive).forget(name, COMMAND_LINE)
    given.output.row({"name": name, "removed": True}, f"{name} is no longer kept")
