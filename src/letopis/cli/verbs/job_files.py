"""Commands of `jobs` that know the job language: submit, show, refresh, packages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from letopis.archive import Archive
from letopis.catalog.job_claims import JobClaims
from letopis.catalog.jobs import DONE, ENDED, JobRow
from letopis.cli.context import CliContext, read_file, verb, write_output
from letopis.cli.verbs.jobs import job_row
from letopis.errors import UsageError
from letopis.jobs import COMMAND_LINE, JobSubmitter
from letopis.jobs.language import packages, parse_job_file, result_json
from letopis.jobs.result_styles import apply_stylesheet
from letopis.jobs.supervisor import Supervisor
from letopis.model import to_millis
from letopis.operations.answers import json_value

_POLL_SECONDS = 0.2
_FAILED_STATUS = 1

wait_option = click.option("--wait", is_flag=True, help="Wait until it is worked off, and print the result.")
output_option = click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="Write to a file.")


def job_submitter(archive: Archive) -> JobSubmitter:
    """The queue of an archive, asked in the language of job files."""
    return JobSubmitter(archive, partial(parse_job_file, settings=archive.settings))


@verb("submit", "letopis jobs submit map.xml --wait", "letopis jobs submit news.xml --keep --json")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE")
@wait_option
@click.option("--keep", is_flag=True, help="Keep the question under its name, to be asked again.")
@click.option("--system", is_flag=True, help="Let the jobs of people go first.")
@output_option
def submit_verb(given: CliContext, file: Path, wait: bool, keep: bool, system: bool, target: Path | None) -> int:
    """Put the question of an XML FILE (- for standard input) into the queue; prints the number of its job."""
    if target is not None and not wait:
        raise UsageError("-o needs --wait; later results are written by 'letopis jobs show ID --result -o FILE'")
    data = read_file(file)
    with given.open() as archive:
        job = job_submitter(archive).submit(data, replace(COMMAND_LINE, system=system), keep=keep)
        return _print_job(given, archive, job, wait, target)


@verb("refresh", "letopis jobs refresh 7", "letopis jobs refresh news --wait")
@click.argument("what", metavar="ID|NAME")
@wait_option
@output_option
def refresh_verb(given: CliContext, what: str, wait: bool, target: Path | None) -> int:
    """Ask again: a job by its number, or a question that is kept by its name."""
    with given.open(create=False) as archive:
        number = int(what) if what.isascii() and what.isdigit() else what
        return _print_job(given, archive, job_submitter(archive).refresh(number, COMMAND_LINE), wait, target)


def _print_job(given: CliContext, archive: Archive, job: JobRow, wait: bool, target: Path | None) -> int:
    """The number of the job; with `wait` its result, and a failure as exit status."""
    if not wait:
        given.output.row(job_row(job), str(job.id))
        return 0
    given.output.remark(f"job {job.id} waits in package {job.package}")
    queue = job_submitter(archive)
    try:
        _wait_for_job(archive, lambda: queue.show(job.id, COMMAND_LINE), given.output.remark)
    except KeyboardInterrupt:
        given.output.complain(f"job {job.id} stays in the queue; 'letopis jobs cancel {job.id}' takes it out")
        raise
    job = queue.show(job.id, COMMAND_LINE)
    if given.as_json and target is None:
        given.output.row(job_row(job), "")
    else:
        write_output(given, queue.result(job.id, COMMAND_LINE), target)
    if job.state != DONE:
        given.output.complain(f"job {job.id} {job.state}: {job.message}")
    return 0 if job.state == DONE else _FAILED_STATUS


def _wait_for_job(archive: Archive, job: Callable[[], JobRow], remark: Callable[[str], None]) -> None:
    """Waits for the daemon; where none runs, works off the package itself."""
    turns, told = JobClaims(archive.catalog.database), ""

    def over() -> bool:
        nonlocal told
        now = job()
        if now.step != told:
            told = now.step
            remark(f"step {told}")
        return now.state in ENDED

    while not over():
        if turns.kept(to_millis(archive.clock())):
            time.sleep(_POLL_SECONDS)
        else:
            asyncio.run(_supervise(archive, job().package, over))


async def _supervise(archive: Archive, package: str, over: Callable[[], bool]) -> None:
    await Supervisor(archive, only=package).run_until(over)


@verb("show", "letopis jobs show 7", "letopis jobs show 7 --result --xslt text", "letopis jobs show 7 --log")
@click.argument("number", type=int, metavar="ID")
@click.option("--result", "wanted", flag_value="result", help="Print the result XML; with --json the same as JSON.")
@click.option("--log", "wanted", flag_value="log", help="Print the log.")
@click.option("--query", "wanted", flag_value="query", help="Print the job file.")
@click.option("--xslt", metavar="FILE", help="Show the result as a stylesheet does: a file, a known name, or own.")
@output_option
def show_verb(given: CliContext, number: int, wanted: str | None, xslt: str | None, target: Path | None) -> int:
    """Show a job: where it stands, its result, or its log."""
    with given.open(create=False) as archive:
        queue = job_submitter(archive)
        job = queue.show(number, COMMAND_LINE)
        if wanted == "log":
            write_output(given, queue.log(number, COMMAND_LINE).encode(), target)
        elif wanted == "query":
            write_output(given, queue.text(number, COMMAND_LINE) + b"\n", target)
        elif wanted == "result" or xslt:
            result = queue.result(number, COMMAND_LINE)
            if xslt:
                result = _apply_stylesheet(archive, queue, job, result, xslt)
            elif given.as_json:
                result = result_json(result).encode() + b"\n"
            write_output(given, result, target)
        else:
            given.output.row(job_row(job), _described(job))
    return 0


def _apply_stylesheet(archive: Archive, queue: JobSubmitter, job: JobRow, result: bytes, xslt: str) -> bytes:
    """By the file of this name, else by the stylesheet that is known by it."""
    is_file = Path(xslt).is_file() or "." in xslt or "/" in xslt
    stylesheet = read_file(Path(xslt)) if is_file else xslt
    return apply_stylesheet(result, queue.text(job.id, COMMAND_LINE), stylesheet, archive.settings)


def _described(job: JobRow) -> str:
    facts = {name: value for name, value in job_row(job).items() if value not in (None, "")}
    return "\n".join(f"{name}: {json_value(value)}" for name, value in facts.items())


@verb("packages", "letopis jobs packages")
def packages_verb(given: CliContext) -> None:
    """List the packages that questions can be put to, with where each comes from."""
    known = packages(given.settings()).values()
    rows = [{"name": one.name, "description": one.description, "origin": one.origin} for one in known]
    given.output.rows(rows, ("name", "description", "origin"))
