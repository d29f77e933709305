"""REST for the job queue: who submits, what is refused, results, logs and files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel
from starlette.responses import FileResponse, Response

from letopis.api.access import principal_of
from letopis.api.models import Time
from letopis.api.requests import ArchiveDep, LimitParam, archive_of, problem_response, problem_responses
from letopis.catalog.jobs import JobRow, StoredQueryRow
from letopis.errors import UsageError
from letopis.fetch import private_ok
from letopis.jobs import JobFilter, JobQuery, JobSubmitter, QueueFull, Requester
from letopis.jobs.language import packages, parse_job_file, result_json
from letopis.jobs.language.job_file import refuse_maintenance, refuse_private_urls, urls_of_query
from letopis.jobs.queue import job_output_file
from letopis.jobs.result_styles import apply_stylesheet
from letopis.model import from_millis
from letopis.model.rights import OWN, READ
from letopis.replay.csp import RAW_POLICY, SAFE_HEADERS


def requester_of(request: Request) -> Requester:
    """Whoever sent a request, with what everybody may do here."""
    principal = principal_of(request)
    public = READ if archive_of(request).settings.serve.public else 0
    system = principal.session is not None and bool(principal.session.user.system)
    return Requester(principal.name, principal.mask | public, "http", system)


def job_queue_of(request: Request) -> JobSubmitter:
    """The queue; what strangers may not ask for is refused before it gets in."""
    archive, owner = archive_of(request), principal_of(request).may(OWN)

    def read(data: bytes) -> JobQuery:
        query = parse_job_file(data, archive.settings)
        if not private_ok(archive.settings.fetch.private, "http"):
            refuse_private_urls(urls_of_query(query))
        if not owner:
            refuse_maintenance(query)
        return query

    return JobSubmitter(archive, read)


router = APIRouter(tags=["jobs"])

State = Literal["queued", "running", "done", "failed", "cancelled"]
Number = Annotated[int, Path(ge=1, lt=2**63, description="Number of the job")]
FavouriteName = Annotated[str, Path(min_length=1, max_length=200, description="Name under which a question is kept")]
FileName = Annotated[str, Path(min_length=1, max_length=200, description="Name of the file")]
_XML: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A job file: `<query package=... name=...>` around its steps",
        "content": {"application/xml": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_XML_ANSWER: dict[int | str, dict[str, Any]] = {200: {"content": {"application/xml": {}}, "description": "XML"}}
_RESULT_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/xml": {}, "application/json": {}, "text/html": {}, "text/plain": {}},
        "description": "The result",
    }
}
_TEXT_ANSWER: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}, "description": "Text"}}

_FILE_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {}}, "description": "The file"}
}
_SANDBOX = {"content-security-policy": RAW_POLICY, "cache-control": "no-cache, private", **SAFE_HEADERS}


class JobShape(BaseModel):
    """One job, as `letopis jobs show --json` prints it."""

    id: int
    state: State
    package: str
    name: str
    priority: int
    owner: str
    system: bool
    automatic: bool
    permission: int
    submitted: Time
    started: Time | None
    finished: Time | None
    step: str
    progress: float
    message: str

    @classmethod
    def of(cls, job: JobRow) -> JobShape:
        """From a row of the catalogue."""
        fields = job._asdict() | {
            name: None if getattr(job, name) is None else from_millis(getattr(job, name))
            for name in ("submitted", "started", "finished")
        }
        return cls(**{name: fields[name] for name in cls.model_fields})


class JobsShape(BaseModel):
    """Jobs, newest first; `next` is the `before` of the following answer."""

    jobs: list[JobShape]
    next: int | None


class FavouriteShape(BaseModel):
    """A question that is kept under a name; `answer` is the job with its last good result."""

    name: str
    owner: str
    package: str
    priority: int
    permission: int
    refresh: str
    every: float
    due: Time | None
    answer: int | None
    uses: int

    @classmethod
    def of(cls, row: StoredQueryRow) -> FavouriteShape:
        """From a row of the catalogue."""
        fields = row._asdict() | {"every": row.every / 1000}
        fields["due"] = None if row.due is None else from_millis(row.due)
        return cls(**{name: fields[name] for name in cls.model_fields})


class FavouritesShape(BaseModel):
    """Questions that are kept, by name."""

    favourites: list[FavouriteShape]


class PackageShape(BaseModel):
    """A package that questions can be put to."""

    name: str
    description: str


class PackagesShape(BaseModel):
    """All packages."""

    packages: list[PackageShape]


class ForgottenShape(BaseModel):
    """A question that is no longer kept."""

    name: str
    removed: bool = True


@router.get("/jobs", responses=problem_responses())
def list_jobs(
    request: Request,
    state: State | None = None,
    package: Annotated[str | None, Query(max_length=64)] = None,
    owner: Annotated[str | None, Query(max_length=64)] = None,
    before: Annotated[int | None, Query(ge=1, lt=2**63, description="Only jobs with smaller numbers")] = None,
    limit: LimitParam = 100,
) -> JobsShape:
    """Jobs that you may see, newest first."""
    wanted = JobFilter(state, package, owner, before)
    found = job_queue_of(request).listed(requester_of(request), wanted, limit)
    return JobsShape(jobs=[JobShape.of(job) for job in found], next=found[-1].id if len(found) == limit else None)


@router.post("/jobs", status_code=201, responses=problem_responses(429), openapi_extra=_XML, response_model=JobShape)
async def submit_job(
    request: Request, keep: Annotated[bool, Query(description="Keep it under its name")] = False
) -> JobShape | Response:
    """Put a question into the queue. Private and loopback addresses are refused unless the owner allowed them."""
    data = await request.body()
    return await run_in_threadpool(_submitted, request, data, keep)


def _submitted(request: Request, data: bytes, keep: bool) -> JobShape | Response:
    try:
        return JobShape.of(job_queue_of(request).submit(_xml(request, data), requester_of(request), keep=keep))
    except UsageError as error:
        return problem_response(422, "Does not fit", str(error))
    except QueueFull as error:
        return problem_response(429, "Queue full", str(error))


def _xml(request: Request, data: bytes) -> bytes:
    kind = request.headers.get("content-type", "application/xml").partition(";")[0].strip().lower()
    if kind not in ("application/xml", "text/xml"):
        raise UsageError(f"a job is sent as application/xml, not as {kind[:60]}")
    return data


@router.get("/jobs/favourites", responses=problem_responses())
def list_favourites(request: Request) -> FavouritesShape:
    """Questions that are kept and that you may see."""
    rows = job_queue_of(request).favourites(requester_of(request))
    return FavouritesShape(favourites=[FavouriteShape.of(row) for row in rows])


@router.post(
    "/jobs/favourites",
    status_code=201,
    responses=problem_responses(),
    openapi_extra=_XML,
    response_model=FavouriteShape,
)
async def keep_favourite(request: Request) -> FavouriteShape | Response:
    """Keep a question under its name without asking it now."""
    data = await request.body()
    return await run_in_threadpool(_kept, request, data)


def _kept(request: Request, data: bytes) -> FavouriteShape | Response:
    try:
        return FavouriteShape.of(job_queue_of(request).keep(_xml(request, data), requester_of(request)))
    except UsageError as error:
        return problem_response(422, "Does not fit", str(error))


@router.get("/jobs/favourites/{name}", responses=problem_responses(404) | _XML_ANSWER, response_class=Response)
def show_favourite(request: Request, name: FavouriteName) -> Response:
    """The job file of a question that is kept."""
    return _sandboxed(job_queue_of(request).favourite_text(name, requester_of(request)), "application/xml")


@router.delete("/jobs/favourites/{name}", responses=problem_responses(404))
def forget_favourite(request: Request, name: FavouriteName) -> ForgottenShape:
    """Keep a question no longer, and refresh it no longer."""
    job_queue_of(request).forget(name, requester_of(request))
    return ForgottenShape(name=name)


@router.post(
    "/jobs/favourites/{name}/refresh", status_code=201, responses=problem_responses(404, 429), response_model=JobShape
)
def ask_favourite(request: Request, name: FavouriteName) -> JobShape | Response:
    """Ask a question that is kept again."""
    return _refreshed(request, name)


@router.get("/jobs/packages", responses=problem_responses())
def list_packages(archive: ArchiveDep) -> PackagesShape:
    """The packages that questions can be put to."""
    known = packages(archive.settings).values()
    return PackagesShape(packages=[PackageShape(name=one.name, description=one.description) for one in known])


@router.get("/jobs/{id}", responses=problem_responses(404))
def show_job(request: Request, id: Number) -> JobShape:
    """One job: where it stands, and how far it is."""
    return JobShape.of(job_queue_of(request).show(id, requester_of(request)))


@router.delete("/jobs/{id}", responses=problem_responses(404))
def cancel_job(request: Request, id: Number) -> JobShape:
    """Take a job out of the queue; one that runs is told to stop."""
    return JobShape.of(job_queue_of(request).cancel(id, requester_of(request)))


@router.post("/jobs/{id}/refresh", status_code=201, responses=problem_responses(404, 429), response_model=JobShape)
def refresh_job(request: Request, id: Number) -> JobShape | Response:
    """Ask the question of a job again; one that waits already is not doubled."""
    return _refreshed(request, id)


def _refreshed(request: Request, what: int | str) -> JobShape | Response:
    try:
        return JobShape.of(job_queue_of(request).refresh(what, requester_of(request)))
    except QueueFull as error:
        return problem_response(429, "Queue full", str(error))


@router.get("/jobs/{id}/result", responses=problem_responses(404) | _RESULT_ANSWER, response_class=Response)
def show_result(
    request: Request,
    id: Number,
    xslt: Annotated[str, Query(max_length=64, description="A stylesheet by its name; own: that of the question")] = "",
    format: Literal["xml", "json"] = "xml",
) -> Response:
    """The result of a job that has ended, as XML or JSON, or as a stylesheet shows it."""
    result = styled_result(request, id, xslt)
    if format == "json" and not xslt:
        return _sandboxed(result_json(result).encode(), "application/json")
    return sandboxed_result(result)


def styled_result(request: Request, number: int, xslt: str) -> bytes:
    """The result of a job, as a stylesheet that is known by name shows it, or as it is."""
    queue, asker = job_queue_of(request), requester_of(request)
    result = queue.result(number, asker)
    return apply_stylesheet(result, queue.text(number, asker), xslt, archive_of(request).settings) if xslt else result


@router.get("/jobs/{id}/log", responses=problem_responses(404) | _TEXT_ANSWER, response_class=Response)
def show_log(request: Request, id: Number) -> Response:
    """What the job has told so far."""
    return _sandboxed(job_queue_of(request).log(id, requester_of(request)).encode(), "text/plain; charset=utf-8")


@router.get("/jobs/{id}/query", responses=problem_responses(404) | _XML_ANSWER, response_class=Response)
def show_query(request: Request, id: Number) -> Response:
    """The job file."""
    return _sandboxed(job_queue_of(request).text(id, requester_of(request)), "application/xml")


@router.get("/jobs/{id}/files/{name}", responses=problem_responses(404) | _FILE_ANSWER, response_class=FileResponse)
def show_file(request: Request, archive: ArchiveDep, id: Number, name: FileName) -> FileResponse:
    """A file that the job has written, as an export does."""
    job = job_queue_of(request).show(id, requester_of(request))
    return FileResponse(
        job_output_file(archive, job.id, name), media_type="application/octet-stream", filename=name, headers=_SANDBOX
    )


def sandboxed_result(data: bytes) -> Response:
    """A result under the type that its first signs tell; it holds words of strangers, so it may do nothing here."""
    start = data[:500].lstrip().lower()
    page = start.startswith((b"<!doctype html", b"<html")) or (start.startswith(b"<?xml") and b"<html" in start)
    kind = "text/html; charset=utf-8" if page else "application/xml" if start.startswith(b"<") else "text/plain"
    return _sandboxed(data, kind)


def _sandboxed(data: bytes, kind: str) -> Response:
    return Response(data, media_type=kind, headers=_SANDBOX)
