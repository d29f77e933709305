"""`/jobs`: runs of all kinds, one of them with its result, how far they are as it happens, and forms to start some."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, StreamingResponse
from lxml.etree import _Element

from letopis.api.door import context_of, document_response
from letopis.api.requests import http_status_of
from letopis.errors import LetopisError, NotFound, UsageError, shell_words
from letopis.jobs.documents import read_xml
from letopis.jobs.packages import stylesheet_names
from letopis.model.rights import OWN, WRITE
from letopis.operations import Context, Document, Value, bind
from letopis.operations import jobs as operations
from letopis.operations.exchange import EXPORT_KINDS
from letopis.operations.job_rows import Job, requester_of
from letopis.operations.runs import StartRun, start_run
from letopis.schedule.policies import format_span
from letopis.web.pages import PageRoute, form_of, render_page

router = APIRouter(route_class=PageRoute)

_SIZE = 50
_SHOWN = 60_000
_EXAMPLE = '<query package="mapgenerator" name="map of example.org">\n  <map site="example.org"/>\n</query>'
_STATES = ("queued", "running", "done", "failed", "cancelled")


class JobLine(NamedTuple):
    """A job as the pages show it."""

    job: Job
    took: str
    may_cancel: bool


def _line(context: Context, job: Job) -> JobLine:
    took = format_span((job.finished - job.started).total_seconds()) if job.started and job.finished else ""
    return JobLine(job, took, not job.ended and context.may(WRITE) and requester_of(context).may_change(job.owner))


class _Notice(NamedTuple):
    """What the form shows of a query that was refused."""

    status: int = 200
    problem: str = ""
    text: str = _EXAMPLE


_NO_NOTICE = _Notice()


@router.get("/jobs")
def jobs(request: Request, state: str = "", package: str = "", before: str = "") -> Response:
    """What waits, runs and is done; newest first."""
    return _list_page(request, {"state": state, "package": package, "before": before})


def _list_page(request: Request, chosen: dict[str, str], notice: _Notice = _NO_NOTICE) -> Response:
    context = context_of(request)
    given = {name: text for name, text in chosen.items() if text}
    found = operations.list_jobs(context, bind(operations.JobsQuery, {**given, "limit": _SIZE}, context.moment()))
    counts = operations.job_counts(context)
    return render_page(
        request,
        "jobs.html",
        notice.status,
        lines=[_line(context, job) for job in found],
        older=found.about["next"],
        state=given.get("state", ""),
        package=given.get("package", ""),
        counts=[(name, counts.get(name, 0)) for name in _STATES],
        favourites=list(operations.list_favourites(context, operations.FavouritesQuery())),
        may_write=context.may(WRITE),
        may_own=context.may(OWN),
        formats=EXPORT_KINDS,
        problem=notice.problem,
        text=notice.text,
    )


@router.post("/jobs/start")
async def start(request: Request) -> Response:
    """One of the common runs, from a small form."""
    form = await form_of(request)
    return await run_in_threadpool(_start, request, form)


def _start(request: Request, form: dict[str, str]) -> Response:
    context = context_of(request)
    given: dict[str, str | bool] = {name: form[name] for name in _RUN_FIELDS if form.get(name)}
    given |= {"requisites": form.get("requisites") == "1"} if form.get("kind") == "crawl" else {}
    try:
        made = start_run(context, bind(StartRun, given, context.moment(), door="http"))
    except LetopisError as error:
        status = 422 if isinstance(error, UsageError) else http_status_of(error)
        return _list_page(request, {}, _Notice(status, shell_words(error)))
    return _to_job(made)


_RUN_FIELDS = ("kind", "site", "depth", "limit", "format")
_MOST_LISTENERS = 200
_POLL_SECONDS = 1.0
_LONGEST_LISTENING = 3600


@router.get("/jobs/events")
async def progress(request: Request) -> Response:
    """How far the jobs that are not done are, as server-sent events, while somebody looks."""
    state = request.app.state
    if state.listeners >= _MOST_LISTENERS:
        return Response(status_code=503, headers={"retry-after": "60"})
    return StreamingResponse(_progress(request), media_type="text/event-stream", headers={"cache-control": "no-store"})


async def _progress(request: Request) -> AsyncIterator[str]:
    state, before = request.app.state, ""
    state.listeners += 1
    try:
        for _ in range(_LONGEST_LISTENING):
            if state.stopping or await request.is_disconnected():
                return
            now = await run_in_threadpool(_open_jobs, request)
            yield f"data: {now}\n\n" if now != before else ": still here\n\n"
            before = now
            await asyncio.sleep(_POLL_SECONDS)
    finally:
        state.listeners -= 1


def _open_jobs(request: Request) -> str:
    context = context_of(request)
    found = [
        {"id": job.id, "state": job.state, "step": job.step, "progress": job.progress, "message": job.message}
        for wanted in ("queued", "running")
        for job in operations.list_jobs(context, operations.JobsQuery(state=wanted, limit=_SIZE))
    ]
    return json.dumps(found)


@router.post("/jobs")
async def submit(request: Request) -> Response:
    """A query from the form, or one that is stored."""
    form = await form_of(request)
    return await run_in_threadpool(_submit, request, form)


def _submit(request: Request, form: dict[str, str]) -> Response:
    context, text = context_of(request), form.get("xml", "")
    try:
        if form.get("favourite"):
            made: Value[Job] | Document = operations.refresh_favourite(
                context, operations.FavouriteQuery(name=form["favourite"])
            )
        else:
            keep = bool(form.get("keep"))
            made = operations.submit_job(context, operations.SubmitCommand(xml=text.encode(), keep=keep))
    except LetopisError as error:
        status = 422 if isinstance(error, UsageError) else http_status_of(error)
        return _list_page(request, {}, _Notice(status, shell_words(error), text or _EXAMPLE))
    return _to_job(made)


def _to_job(made: Value[Job] | Document) -> Response:
    assert isinstance(made, Value)
    return RedirectResponse(f"/jobs/{made.value.id}", 303)


@router.post("/jobs/forget")
async def forget(request: Request) -> Response:
    """A query that is stored no longer."""
    name = (await form_of(request)).get("name", "")
    command = operations.FavouriteQuery(name=name)
    await run_in_threadpool(lambda: operations.forget_favourite(context_of(request), command))
    return RedirectResponse("/jobs", 303)


@router.get("/jobs/{number}")
def show(request: Request, number: str, xslt: str = "") -> Response:
    """One job: how far it is, its result as a stylesheet shows it, its log, its text."""
    context, wanted = context_of(request), operations.JobNumber(id=_number(number))
    found = operations.show_job(context, operations.ShowQuery(id=wanted.id))
    assert isinstance(found, Value)
    job, text = found.value, _bytes(operations.job_query(context, wanted))
    styles = stylesheet_names(job.package, text, context.archive.settings)
    plain = job.ended and xslt not in styles
    return render_page(
        request,
        "job.html",
        line=_line(context, job),
        result=_cut(operations.job_result(context, operations.ResultQuery(id=job.id))) if plain else "",
        styles=styles,
        style=xslt if xslt in styles else "",
        log=_cut(operations.job_log(context, wanted)),
        text=_cut(operations.job_query(context, wanted)),
        tables=_tables(operations.job_result(context, operations.ResultQuery(id=job.id))) if plain else [],
        files=[file.name for file in operations.list_job_files(context, wanted)],
        may_write=context.may(WRITE),
    )


class ResultTable(NamedTuple):
    """The rows of one step of a result: the names of its columns and the texts of its cells."""

    step: str
    columns: list[str]
    rows: list[list[str]]
    total: int


_MOST_RESULT_ROWS = 200
_MOST_COLUMNS = 10


def _tables(document: Document) -> list[ResultTable]:
    """The steps of a result whose rows are a table; what is too large to be read here is shown as text."""
    try:
        root = read_xml(_bytes(document), "the result")
    except UsageError:
        return []
    return [table for step in root if len(step) and (table := _table(str(step.tag), list(step))) is not None]


def _table(step: str, rows: list[_Element]) -> ResultTable | None:
    """None where the rows hold more than attributes: a map is a tree, no table."""
    if any(len(row) for row in rows) or not any(row.attrib for row in rows):
        return None
    columns = list(dict.fromkeys(str(name) for row in rows[:_MOST_RESULT_ROWS] for name in row.attrib))[:_MOST_COLUMNS]
    cells = [[str(row.get(name, "")) for name in columns] for row in rows[:_MOST_RESULT_ROWS]]
    return ResultTable(step, columns, cells, len(rows))


def _bytes(document: Document) -> bytes:
    return b"".join(document.bytes())


def _cut(document: Document) -> str:
    data = _bytes(document)
    text = data[:_SHOWN].decode("utf-8", "replace")
    return text + "\n…" if len(data) > _SHOWN else text


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFound(f"there is no job '{text[:40]}'; the list shows all")
    return int(text)


@router.get("/jobs/{number}/result")
def result(request: Request, number: str, xslt: str = "") -> Response:
    """The whole result, in a sandbox of its own."""
    query = operations.ResultQuery(id=_number(number), xslt=xslt)
    return document_response(operations.job_result(context_of(request), query), request)


@router.post("/jobs/{number}/cancel")
async def cancel(request: Request, number: str) -> Response:
    """Takes a job out of the queue."""
    command = operations.CancelCommand(ids=(str(_number(number)),))
    answer = await run_in_threadpool(lambda: operations.cancel_jobs(context_of(request), command))
    for fault in answer.faults:
        raise fault
    return RedirectResponse(f"/jobs/{number}", 303)


@router.post("/jobs/{number}/refresh")
async def refresh(request: Request, number: str) -> Response:
    """Runs it again."""
    command = operations.RefreshCommand(what=str(_number(number)))
    return _to_job(await run_in_threadpool(lambda: operations.refresh_job(context_of(request), command)))
