"""`/jobs`: the queue, one job with its result, and forms to submit."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from letopis.api.access import principal_of
from letopis.api.jobs import job_queue_of, requester_of, sandboxed_result, styled_result
from letopis.api.requests import ArchiveDep
from letopis.catalog.jobs import ENDED, STATES, JobRow
from letopis.errors import LetopisError, NotFound
from letopis.jobs import JobFilter
from letopis.jobs.queue import job_output_names
from letopis.jobs.result_styles import stylesheet_names
from letopis.model import from_millis
from letopis.model.rights import WRITE
from letopis.schedule.policies import format_span
from letopis.web.pages import PageRoute, form_of, render_page

router = APIRouter(route_class=PageRoute)

_SIZE = 50
_SHOWN = 60_000
_EXAMPLE = '<query package="mapgenerator" name="map of example.org">\n  <map site="example.org"/>\n</query>'


class JobLine(NamedTuple):
    """A job as the pages show it."""

    job: JobRow
    submitted: datetime
    started: datetime | None
    took: str
    may_cancel: bool


def _line(request: Request, job: JobRow) -> JobLine:
    started = None if job.started is None else from_millis(job.started)
    took = format_span((job.finished - job.started) / 1000) if job.started and job.finished else ""
    open_one = job.state not in ENDED and requester_of(request).may_change(job.owner)
    return JobLine(job, from_millis(job.submitted), started, took, open_one and _may_submit(request))


def _may_submit(request: Request) -> bool:
    return principal_of(request).may(WRITE)


@router.get("/jobs")
def jobs(request: Request, state: str = "", package: str = "", before: str = "") -> Response:
    """What waits, runs and is done; newest first."""
    return _shown(request, state if state in STATES else "", package, before)


def _shown(
    request: Request, state: str, package: str, before: str, status: int = 200, problem: str = "", text: str = ""
) -> Response:
    queue, asker = job_queue_of(request), requester_of(request)
    place = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    found = queue.listed(asker, JobFilter(state or None, package or None, before=place), _SIZE)
    counts = queue.counts()
    return render_page(
        request,
        "jobs.html",
        status,
        lines=[_line(request, job) for job in found],
        older=found[-1].id if len(found) == _SIZE else None,
        state=state,
        package=package,
        counts=[(name, counts.get(name, 0)) for name in STATES],
        favourites=[(row, row.due and from_millis(row.due)) for row in queue.favourites(asker)],
        may_write=_may_submit(request),
        problem=problem,
        text=text or _EXAMPLE,
    )


@router.post("/jobs")
async def submit(request: Request) -> Response:
    """A question from the form, or one that is kept."""
    form = await form_of(request)
    return await run_in_threadpool(_submit, request, form)


def _submit(request: Request, form: dict[str, str]) -> Response:
    queue, asker = job_queue_of(request), requester_of(request)
    try:
        if form.get("favourite"):
            job = queue.refresh(form["favourite"], asker)
        else:
            job = queue.submit(form.get("xml", "").encode(), asker, keep=bool(form.get("keep")))
    except NotFound:
        raise
    except LetopisError as error:
        return _shown(request, "", "", "", 422, str(error), form.get("xml", ""))
    return RedirectResponse(f"/jobs/{job.id}", 303)


@router.post("/jobs/forget")
async def forget(request: Request) -> Response:
    """A question that is kept no longer."""
    form = await form_of(request)
    await run_in_threadpool(job_queue_of(request).forget, form.get("name", ""), requester_of(request))
    return RedirectResponse("/jobs", 303)


@router.get("/jobs/{number}")
def show(request: Request, archive: ArchiveDep, number: str, xslt: str = "") -> Response:
    """One job: how far it is, its result as a stylesheet shows it, its log, its text."""
    queue, asker = job_queue_of(request), requester_of(request)
    job = queue.show(_number(number), asker)
    text = queue.text(job.id, asker)
    styles = stylesheet_names(text, archive.settings)
    return render_page(
        request,
        "job.html",
        line=_line(request, job),
        ended=job.state in ENDED,
        result=_cut(queue.result(job.id, asker)) if job.state in ENDED and xslt not in styles else "",
        styles=styles,
        style=xslt if xslt in styles else "",
        log=_cut(queue.log(job.id, asker).encode()),
        text=_cut(text),
        files=job_output_names(archive, job.id),
        may_write=_may_submit(request),
    )


def _cut(data: bytes) -> str:
    text = data[:_SHOWN].decode("utf-8", "replace")
    return text + "\n…" if len(data) > _SHOWN else text


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFound(f"there is no job '{text[:40]}'; the list shows all")
    return int(text)


@router.get("/jobs/{number}/result")
def result(request: Request, number: str, xslt: str = "") -> Response:
    """The whole result, in a cage of its own."""
    return sandboxed_result(styled_result(request, _number(number), xslt[:64]))


@router.post("/jobs/{number}/cancel")
async def cancel(request: Request, number: str) -> Response:
    """Takes a job out of the queue."""
    await run_in_threadpool(job_queue_of(request).cancel, _number(number), requester_of(request))
    return RedirectResponse(f"/jobs/{number}", 303)


@router.post("/jobs/{number}/refresh")
async def refresh(request: Request, number: str) -> Response:
    """Asks again."""
    job = await run_in_threadpool(job_queue_of(request).refresh, _number(number), requester_of(request))
    return RedirectResponse(f"/jobs/{job.id}", 303)
