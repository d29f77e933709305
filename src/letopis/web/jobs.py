"""`/jobs`: runs of all kinds, one of them with its result, how far they are as it happens, and forms to start some.

What is done to a run is done by the operations; a page only says which of them fit its state and who looks.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, get_args

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, StreamingResponse

from letopis.api.door import context_of, document_response
from letopis.archive.index_facts import knows_site
from letopis.archive.jobs import claims_of
from letopis.errors import LetopisError, NotFound, shell_words
from letopis.jobs.documents import read_xml
from letopis.jobs.packages import stylesheet_names
from letopis.model import to_millis
from letopis.model.rights import OWN, WRITE
from letopis.operations import Context, Document, Operation, Value, bind
from letopis.operations import jobs as operations
from letopis.operations.crawls import CrawlScope
from letopis.operations.exchange import PART_KINDS
from letopis.operations.job_rows import Job, requester_of
from letopis.operations.parameters import NoParameters
from letopis.operations.runs import JobNumbers, StartRun, cancel_jobs, delete_jobs, pause_jobs, resume_jobs, start_run
from letopis.tuples import NamedTuple
from letopis.urls import site
from letopis.web.languages import language_of, translatable, translate, use_language
from letopis.web.pages import (
    FAILURE_NAMES,
    NO_ANSWER,
    OUTCOME_NAMES,
    FormDep,
    PageRoute,
    environment,
    form_status,
    render_page,
)
from letopis.web.run_steps import (
    SCOPE_NAMES,
    VALUE_NAMES,
    asked_words,
    begins_anew,
    clock_time,
    failure_words,
    run_progress,
    run_results,
    run_title,
    sent_form,
    step_words,
    takes_sent_file,
)
from letopis.web.tables import TableColumn, first_download, make_table, table_download

router = APIRouter(route_class=PageRoute)

_SIZE = 1000
_SHOWN = 60_000
_LAST_LOOKS = 20
_OPEN_RUNS = 4
_MOST_FAILURES = 100
_EXAMPLE = '<query package="mapgenerator" name="map of example.org">\n  <map site="example.org"/>\n</query>'
_STATES = ("queued", "running", "paused", "done", "failed", "cancelled")
_ACTIONS = {
    "queued": ("pause", "cancel"),
    "running": ("pause", "cancel"),
    "paused": ("resume", "cancel", "delete"),
    "done": ("refresh", "delete"),
    "failed": ("resume", "refresh", "delete"),
    "cancelled": ("resume", "refresh", "delete"),
}
"""What can be done to a run in each state."""
_WITHOUT_FILE = {"done": ("refresh",), "failed": ("resume", "refresh"), "cancelled": ("refresh",)}
"""What cannot work for an import in each: the file that was sent with it is gone, or belongs to that run alone."""
RUN_COLUMNS = (
    TableColumn("name", translatable("Run"), "custom"),
    TableColumn("state", translatable("State"), "custom"),
    TableColumn("package", translatable("Package"), "custom", hidden=True),
    TableColumn("priority", translatable("Priority"), "number", hidden=True),
    TableColumn("owner", translatable("Submitted by"), aside=True),
    TableColumn("submitted", translatable("Submitted"), "ago"),
    TableColumn("took", translatable("Took"), "custom", aside=True),
    TableColumn("message", translatable("Message"), hidden=True),
    TableColumn("actions", translatable("Actions"), "actions"),
)


LOOK_COLUMNS = (
    TableColumn("url", translatable("Page"), "page"),
    TableColumn("status", translatable("Status"), "custom", called=FAILURE_NAMES),
    TableColumn("outcome", translatable("Outcome"), "outcome", called=OUTCOME_NAMES),
)


class JobLine(NamedTuple):
    """A job as the pages show it, with what whoever looks may do to it; it `took` so many seconds."""

    job: Job
    name: str
    state: str
    package: str
    priority: int
    owner: str
    submitted: datetime
    took: float | None
    message: str
    actions: tuple[str, ...]


def _line(context: Context, job: Job) -> JobLine:
    took = round((job.finished - job.started).total_seconds(), 1) if job.started and job.finished else None
    may = context.may(WRITE) and requester_of(context).may_change(job.owner)
    useless = _WITHOUT_FILE.get(job.state, ()) if takes_sent_file(job.name) else ()
    useless += ("resume",) if job.ended and begins_anew(job.name) else ()
    can = [one for one in _ACTIONS[job.state] if may or (one == "refresh" and context.may(WRITE))]
    actions = tuple(one for one in can if one not in useless)
    return JobLine(
        job, f"{job.id} {job.name}".strip(), job.state, job.package, job.priority, job.owner, job.submitted, took,
        job.message, actions,
    )  # fmt: skip


def open_runs(context: Context) -> list[JobLine]:
    """What runs, waits for its turn or is paused, with what whoever looks may do to it."""
    asked = (operations.JobsQuery(state=state, limit=_OPEN_RUNS) for state in ("running", "queued", "paused"))
    return [_line(context, job) for one in asked for job in operations.list_jobs(context, one)]


class _Notice(NamedTuple):
    """What the forms show of a run that was refused: what was written into the one that sent it."""

    status: int = 200
    problem: str = ""
    text: str = _EXAMPLE
    form: Mapping[str, str] = MappingProxyType({})


_NO_NOTICE = _Notice()


@router.get("/jobs")
def jobs(request: Request, state: str = "", package: str = "", before: str = "", like: str = "") -> Response:
    """What waits, runs and is done; newest first. The form is filled in `like` the run with that number."""
    form = (
        sent_form(_bytes(operations.job_query(context_of(request), operations.JobNumber(id=_number(like)))))
        if like
        else {}
    )
    return _list_page(request, {"state": state, "package": package, "before": before}, _Notice(form=form))


def _list_page(request: Request, chosen: dict[str, str], notice: _Notice = _NO_NOTICE) -> Response:
    context = context_of(request)
    given = {name: text for name, text in chosen.items() if text}
    found = operations.list_jobs(context, bind(operations.JobsQuery, {**given, "limit": _SIZE}, context.moment()))
    counts, settings = operations.job_counts(context), context.archive.settings
    table = make_table(request, RUN_COLUMNS, [_line(context, job) for job in found])
    return table_download(table, "runs") or render_page(
        request, "jobs.html", notice.status, table=table, older=found.about["next"], state=given.get("state", ""),
        package=given.get("package", ""), site=request.query_params.get("site", "")[:2000],
        counts=[(name, counts.get(name, 0)) for name in _STATES],
        favourites=list(operations.list_favourites(context, NoParameters())),
        may_write=context.may(WRITE), may_own=context.may(OWN), formats=PART_KINDS, format_names=_FORMAT_NAMES,
        scopes=get_args(CrawlScope), scope_names=SCOPE_NAMES, pause=settings.crawl.delay,
        largest=settings.serve.max_upload, problem=notice.problem, text=notice.text, form=notice.form,
    )  # fmt: skip


@router.post("/jobs/start")
def start(request: Request, form: FormDep) -> Response:
    """One of the common runs, from a small form."""
    context = context_of(request)
    given: dict[str, str | bool] = {name: form[name] for name in _RUN_FIELDS if form.get(name)}
    if form.get("kind") == "crawl":
        given |= {name: form.get(name) == "1" for name in ("requisites", "browser")}
    try:
        made = start_run(context, bind(StartRun, given, context.moment(), door="http"))
    except LetopisError as error:
        return _list_page(request, {}, _Notice(form_status(error), shell_words(error), form=form))
    return _to_job(made)


_FORMAT_NAMES = {
    "wacz": "WACZ", "warc": "WARC", "cdxj": "CDXJ", "har": "HAR", "mhtml": "MHTML",
    "static": "HTML (ZIP)", "parquet": "Parquet", "sqlite": "SQLite", "jsonl": "JSON Lines", "csv": "CSV",
    "markdown": "Markdown", "opml": "OPML", "urls": translatable("List of addresses"),
    "bookmarks": translatable("Bookmarks"),
}  # fmt: skip
"""What people call the formats of downloads; a format that is not named here has its own name."""
_RUN_FIELDS = ("kind", "site", "scope", "depth", "limit", "delay", "format", "check")
_MOST_LISTENERS = 200
_POLL_SECONDS = 1.0
_LONGEST_LISTENING = 3600


@router.get("/jobs/events")
async def progress(request: Request, run: str = "") -> Response:
    """How far the jobs that are not done are, as server-sent events, while somebody looks; of one, its last looks."""
    state = request.app.state
    if state.listeners >= _MOST_LISTENERS:
        return Response(status_code=503, headers={"retry-after": "60"})
    number = _number(run) if run else None
    events = _progress(request, number)
    return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-store"})


async def _progress(request: Request, run: int | None) -> AsyncIterator[str]:
    state, before = request.app.state, ""
    state.listeners += 1
    try:
        for _ in range(_LONGEST_LISTENING):
            if state.stopping or await request.is_disconnected():
                return
            now = await run_in_threadpool(_open_jobs, request, run)
            yield f"data: {now}\n\n" if now != before else ": still here\n\n"
            before = now
            await asyncio.sleep(_POLL_SECONDS)
    finally:
        state.listeners -= 1


environment.filters |= {
    "step": step_words,
    "far": run_progress,
    "run_title": run_title,
    "clock": clock_time,
    "run_failure": failure_words,
    "asked": asked_words,
}


def _open_jobs(request: Request, run: int | None) -> str:
    with use_language(language_of(request)):
        return _open_jobs_in_words(context_of(request), run)


def _open_jobs_in_words(context: Context, run: int | None) -> str:
    found: list[dict[str, Any]] = [
        {
            "id": job.id,
            "state": job.state,
            "step": step_words(job),
            "progress": run_progress(job),
            "message": job.message,
        }
        for wanted in ("queued", "running")
        for job in operations.list_jobs(context, operations.JobsQuery(state=wanted, limit=_SIZE))
    ]
    for one in found:
        if one["id"] == run:
            log = _bytes(operations.job_log(context, operations.JobNumber(id=one["id"]))).decode("utf-8", "replace")
            looks = looks_of(log)
            one["looks"] = [_told(look) for look in looks[:_LAST_LOOKS]]
            one["outcomes"] = _counted(looks)
            one["called"] = {name: translate(called) for name, called in OUTCOME_NAMES.items()}
    return json.dumps(found)


def _told(look: LoggedLook) -> dict[str, str | bool]:
    status = look.status if look.number else translate(FAILURE_NAMES.get(look.status, NO_ANSWER))
    return look._asdict() | {"status": status, "failed": look.failed}


_LOOK_LINE = re.compile(
    r"^\S+ (\d{3}|[a-z-]+) (new|changed|unchanged|unavailable|too-large|refused) (\S+)$", re.MULTILINE
)


class LoggedLook(NamedTuple):
    """What the log of a crawl says of one address."""

    status: str
    outcome: str
    url: str

    @property
    def number(self) -> int:
        """The status of the answer; 0 for none."""
        return int(self.status) if self.status.isdigit() else 0

    @property
    def failed(self) -> bool:
        """Whether somebody was asked and no page came of it."""
        return self.outcome != "refused" and not self.status.startswith(("2", "3"))


def looks_of(log: str) -> list[LoggedLook]:
    """The addresses that a log names, the last one first."""
    return [LoggedLook(*found.groups()) for found in _LOOK_LINE.finditer(log)][::-1]


def _counted(looks: list[LoggedLook]) -> dict[str, int]:
    """How many looks had each outcome, in the order of their names."""
    counts = Counter(look.outcome for look in looks)
    return {name: counts[name] for name in OUTCOME_NAMES if counts[name]}


class FailureReason(NamedTuple):
    """Why addresses could not be fetched, and what to do about it, where that is known."""

    called: str
    advised: str


_ADVICE = {
    "dns": translatable("Check the spelling of the address."),
    "connect": translatable("The server may be down, or the address may be wrong."),
    "timeout": translatable("The server may be busy: try again later."),
    "tls": translatable("The certificate of the server has to be renewed."),
    "robots": translatable("Its owner does not want it to be crawled."),
    "forbidden-address": translatable("Ask whoever runs this service to allow private addresses."),
}
_KINDS_OF_FAILURES = re.compile(r"could be fetched \(([^)]*)\)")


def failure_reasons(job: Job) -> list[FailureReason]:
    """Why a crawl could fetch nothing, in the reader's language; nothing of runs that failed otherwise."""
    found = _KINDS_OF_FAILURES.search(job.message)
    kinds = [one.rpartition(" ")[0] for one in found[1].split(", ")] if found else []
    status = translatable("status {status}")
    return [
        FailureReason(
            translate(status, status=kind) if kind.isdigit() else translate(FAILURE_NAMES.get(kind, NO_ANSWER)),
            translate(_ADVICE[kind]) if kind in _ADVICE else "",
        )
        for kind in kinds
    ]


environment.filters["run_reasons"] = failure_reasons


@router.post("/jobs")
def submit(request: Request, form: FormDep) -> Response:
    """A query from the form, or one that is stored."""
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
        return _list_page(request, {}, _Notice(form_status(error), shell_words(error), text or _EXAMPLE))
    return _to_job(made)


def _to_job(made: Value[Job] | Document) -> Response:
    assert isinstance(made, Value)
    return RedirectResponse(f"/jobs/{made.value.id}", 303)


@router.post("/jobs/forget")
def forget(request: Request, form: FormDep) -> Response:
    """A query that is stored no longer."""
    operations.forget_favourite(context_of(request), operations.FavouriteQuery(name=form.get("name", "")))
    return RedirectResponse("/jobs", 303)


@router.get("/jobs/{number}")
def show(request: Request, number: str, xslt: str = "", stopping: str = "", outcome: str = "") -> Response:
    """One job: how far it is, its result as a stylesheet shows it, its log, its text; its addresses of one outcome."""
    context, wanted = context_of(request), operations.JobNumber(id=_number(number))
    found = operations.show_job(context, operations.ShowQuery(id=wanted.id))
    assert isinstance(found, Value)
    job, text = found.value, _bytes(operations.job_query(context, wanted))
    styles = stylesheet_names(job.package, text, context.archive.settings)
    plain = job.ended and xslt not in styles
    log = operations.job_log(context, wanted)
    looks = looks_of(_bytes(log).decode("utf-8", "replace"))
    result = operations.job_result(context, operations.ResultQuery(id=job.id)) if plain else None
    results = run_results(request, _bytes(result)) if result is not None else []
    failures, listed = [look for look in looks if look.failed], [one for one in looks if outcome in ("", one.outcome)]
    every = make_table(request, LOOK_COLUMNS, listed, "a", _LAST_LOOKS, place="last") if job.ended and looks else None
    tables = {f"run-{job.id}-{one.step}": one.table for one in results if one.table is not None}
    tables |= {f"run-{job.id}-addresses": every} if every else {}
    place = _site(text)
    return first_download(tables) or render_page(
        request, "job.html", line=_line(context, job), behind=_behind(context, job), failure=failure_words(job),
        query=text, stopping=bool(stopping) and job.state == "running",
        result=_cut(result) if result is not None else "", styles=styles, style=xslt if xslt in styles else "",
        log=_cut(log), text=_cut(operations.job_query(context, wanted)), results=results, site=place,
        called=VALUE_NAMES, known=bool(place) and knows_site(context.archive, place), outcomes=_counted(looks),
        looks=looks[:_LAST_LOOKS], every=every, failures=failures, same=len(looks) == len(failures) <= _LAST_LOOKS,
        sent=sent_form(text), outcome=outcome,
        elapsed=max(0, int((context.moment() - job.started).total_seconds())) if job.started else 0,
        most_failures=_LAST_LOOKS if every else _MOST_FAILURES,
        files=list(operations.list_job_files(context, wanted)),
    )  # fmt: skip


def _bytes(document: Document) -> bytes:
    return b"".join(document.bytes())


def _cut(document: Document) -> str:
    data = _bytes(document)
    text = data[:_SHOWN].decode("utf-8", "replace")
    return text + "\n…" if len(data) > _SHOWN else text


def _site(text: bytes) -> str:
    """The site that a job is about; empty where it is about none, or several."""
    try:
        steps = list(read_xml(text, "the query").iter())
        found = {
            site(place) for step in steps for place in (step.get("site"), step.tag == "url" and step.text) if place
        }
    except LetopisError:
        return ""
    return found.pop() if len(found) == 1 else ""


class QueuedBehind(NamedTuple):
    """What a job in the queue waits for: one that runs, how many others, and whether anybody works the queue off."""

    running: Job | None
    others: int
    worked: bool


def _behind(context: Context, job: Job) -> QueuedBehind | None:
    if job.state != "queued":
        return None
    running, queued = (
        list(operations.list_jobs(context, operations.JobsQuery(state=state, package=job.package, limit=_SIZE)))
        for state in ("running", "queued")
    )
    turn = (-job.priority, job.submitted, job.id)
    others = sum((-one.priority, one.submitted, one.id) < turn for one in queued)
    worked = claims_of(context.archive).kept(to_millis(context.moment()))
    return QueuedBehind(running[0] if running else None, others, worked)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFound(f"there is no job '{text[:40]}'; see the list of runs")
    return int(text)


@router.get("/jobs/{number}/result")
def result(request: Request, number: str, xslt: str = "") -> Response:
    """The whole result, in a sandbox of its own."""
    query = operations.ResultQuery(id=_number(number), xslt=xslt)
    return document_response(operations.job_result(context_of(request), query), request)


_CHANGES: dict[str, Operation[JobNumbers, Any]] = {
    "cancel": cancel_jobs, "pause": pause_jobs, "resume": resume_jobs, "delete": delete_jobs,
}  # fmt: skip


@router.post("/jobs/{number}/{what}")
def change(request: Request, number: str, what: str) -> Response:
    """Stops, pauses, resumes, deletes a run, or runs it again."""
    wanted = str(_number(number))
    if what == "refresh":
        return _to_job(operations.refresh_job(context_of(request), operations.RefreshCommand(what=wanted)))
    if what not in _CHANGES:
        raise NotFound(f"unknown action '{what[:40]}' for a run; its page shows the actions")
    answer = _CHANGES[what](context_of(request), JobNumbers(ids=(wanted,)))
    rows = list(answer)
    for fault in answer.faults:
        raise fault
    stopping = what != "resume" and any(getattr(row, "state", "") == "running" for row in rows)
    return RedirectResponse(
        "/jobs" if what == "delete" else f"/jobs/{number}" + ("?stopping=1" if stopping else ""), 303
    )
