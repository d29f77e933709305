"""Verbs of the queue that know the language of job files: submit, show, refresh, packages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from letopis.archive import Archive
from letopis.catalog.job_turns import Turns
from letopis.catalog.jobs import DONE, ENDED, JobRow
from letopis.cli.context import Given, verb
from letopis.cli.files import read_file, write_out
from letopis.cli.output import plain
from letopis.cli.verbs.queueing import job_row
from letopis.errors import UsageError
from letopis.jobs import COMMAND_LINE, Questions
from letopis.jobs.language import packages, parse, result_json
from letopis.jobs.styling import styled
from letopis.jobs.supervisor import Supervisor
from letopis.model import to_millis

_POLL_SECONDS = 0.2
_FAILED = 1

wait_option = click.option("--wait", is_flag=True, help="Wait until it is worked off, and print the result.")
output_option = click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="Write to a file.")


def questions(archive: Archive) -> Questions:
    """The queue of an archive, asked in the language of job files."""
    return Questions(archive, partial(parse, settings=archive.settings))


@verb("submit", "letopis jobs submit map.xml --wait", "letopis jobs submit news.xml --keep --json")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE")
@wait_option
@click.option("--keep", is_flag=True, help="Keep the question under its name, to be asked again.")
@click.option("--system", is_flag=True, help="Let the jobs of people go first.")
@output_option
def submit_verb(given: Given, file: Path, wait: bool, keep: bool, system: bool, target: Path | None) -> int:
    """Put the question of an XML FILE (- for standard input) into the queue; prints the number of its job."""
    if target is not None and not wait:
        raise UsageError("-o needs --wait; later results are written by 'letopis jobs show ID --result -o FILE'")
    data = read_file(file)
    with given.open() as archive:
        job = questions(archive).submit(data, replace(COMMAND_LINE, system=system), keep=keep)
        return _told(given, archive, job, wait, target)


@verb("refresh", "letopis jobs refresh 7", "letopis jobs refresh news --wait")
@click.argument("what", metavar="ID|NAME")
@wait_option
@output_option
def refresh_verb(given: Given, what: str, wait: bool, target: Path | None) -> int:
    """Ask again: a job by its number, or a question that is kept by its name."""
    with given.open(create=False) as archive:
        number = int(what) if what.isascii() and what.isdigit() else what
        return _told(given, archive, questions(archive).refresh(number, COMMAND_LINE), wait, target)


def _told(given: Given, archive: Archive, job: JobRow, wait: bool, target: Path | None) -> int:
    """The number of the job; with `wait` its result, and a failure as exit status."""
    if not wait:
        given.output.row(job_row(job), str(job.id))
        return 0
    given.output.remark(f"job {job.id} waits in package {job.package}")
    queue = questions(archive)
    try:
        _work_off(archive, lambda: queue.show(job.id, COMMAND_LINE), given.output.remark)
    except KeyboardInterrupt:
        given.output.complain(f"job {job.id} stays in the queue; 'letopis jobs cancel {job.id}' takes it out")
        raise
    job = queue.show(job.id, COMMAND_LINE)
    if given.as_json and target is None:
        given.output.row(job_row(job), "")
    else:
        write_out(given, queue.result(job.id, COMMAND_LINE), target)
    if job.state != DONE:
        given.output.complain(f"job {job.id} {job.state}: {job.message}")
    return 0 if job.state == DONE else _FAILED


def _work_off(archive: Archive, job: Callable[[], JobRow], remark: Callable[[str], None]) -> None:
    """Waits for the daemon; where none runs, works off the package itself."""
    turns, told = Turns(archive.catalog.database), ""

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
def show_verb(given: Given, number: int, wanted: str | None, xslt: str | None, target: Path | None) -> int:
    """Show a job: where it stands, its result, or its log."""
    with given.open(create=False) as archive:
        queue = questions(archive)
        job = queue.show(number, COMMAND_LINE)
        if wanted == "log":
            write_out(given, queue.log(number, COMMAND_LINE).encode(), target)
        elif wanted == "query":
            write_out(given, queue.text(number, COMMAND_LINE) + b"\n", target)
        elif wanted == "result" or xslt:
            result = queue.result(number, COMMAND_LINE)
            if xslt:
                result = _styled(archive, queue, job, result, xslt)
            elif given.as_json:
                result = result_json(result).encode() + b"\n"
            write_out(given, result, target)
        else:
            given.output.row(job_row(job), _described(job))
    return 0


def _styled(archive: Archive, queue: Questions, job: JobRow, result: bytes, xslt: str) -> bytes:
    """By the file of this name, else by the stylesheet that is known by it."""
    is_file = Path(xslt).is_file() or "." in xslt or "/" in xslt
    stylesheet = read_file(Path(xslt)) if is_file else xslt
    return styled(result, queue.text(job.id, COMMAND_LINE), stylesheet, archive.settings)


def _described(job: JobRow) -> str:
    facts = {name: value for name, value in job_row(job).items() if value not in (None, "")}
    return "\n".join(f"{name}: {plain(value)}" for name, value in facts.items())


@verb("packages", "letopis jobs packages")
def packages_verb(given: Given) -> None:
    """List the packages that questions can be put to, with where each comes from."""
    known = packages(given.settings()).values()
    rows = [{"name": one.name, "description": one.description, "origin": one.origin} for one in known]
    given.output.rows(rows, ("name", "description", "origin"))
