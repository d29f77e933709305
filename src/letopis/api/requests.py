"""What every route shares: the served archive, our origin, streams and RFC 9457 problems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import Scope

from letopis.archive import Archive
from letopis.errors import LetopisError, QuotaUsedUp, shell_words

_HOST = re.compile(r"[A-Za-z0-9.\-_:\[\]]{1,255}", re.ASCII)


def origin_of(scope: Scope) -> str:
    """Scheme and host under which the client reached us."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
    if not _HOST.fullmatch(host):
        address, port = scope.get("server") or ("localhost", 80)
        host = f"{address}:{port}"
    return f"{scope['scheme']}://{host}"


def archive_of(request: Request) -> Archive:
    """The archive that is served."""
    archive: Archive = request.app.state.archive
    return archive


ArchiveDep = Annotated[Archive, Depends(archive_of)]


def streamed_response(pieces: Iterator[str], media_type: str) -> Response:
    """An answer of texts. What goes wrong before the second piece still becomes a proper error.

    Short answers are sent whole: with a length, and without the cost of a stream.
    """
    begun = list(islice(pieces, 2))
    following = next(pieces, None)
    if following is None:
        return Response("".join(begun).encode(), media_type=media_type)
    whole = chain(begun, [following], pieces)
    return StreamingResponse((piece.encode() for piece in whole), media_type=media_type)


PROBLEM_TYPE = "application/problem+json"


class Problem(BaseModel):
    """What went wrong: `title` for programs, `detail` for people."""

    type: str
    title: str
    status: int
    detail: str


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may answer with, for the OpenAPI document."""
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        status: {"model": Problem, "description": _DESCRIPTIONS[status], "content": {PROBLEM_TYPE: schema}}
        for status in (*statuses, 400, 401, 403, 422)
    }


_DESCRIPTIONS = {
    400: "The request is invalid",
    401: "Credentials are missing or wrong",
    403: "Not allowed, or a private address",
    404: "Not found",
    413: "Too large",
    422: "The body or a parameter is invalid",
    429: "Too many of your requests are waiting, or today's quota is used up",
    500: "Stored data is damaged",
    501: "This installation lacks an optional part",
    502: "The requested server did not answer",
    503: "Too many requests at once",
}


def http_status_of(error: LetopisError) -> int:
    """The HTTP status that says the same as the exit status."""
    return error.http_status


def problem_response(status: int, title: str, detail: str) -> JSONResponse:
    """One problem document."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(body, status, media_type=PROBLEM_TYPE)


async def _letopis_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, LetopisError)
    answer = problem_response(http_status_of(error), type(error).__name__, shell_words(error))
    if isinstance(error, QuotaUsedUp):
        answer.headers["retry-after"] = str(error.seconds)
    return answer


async def _validation_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()]
    return problem_response(422, "Does not fit", "; ".join(found[:5]))


async def _http_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    answer = problem_response(
        error.status_code, str(error.detail), f"{request.method} {request.url.path}: {error.detail}"
    )
    answer.headers.update(error.headers or {})
    return answer


async def _fault(request: Request, error: Exception) -> JSONResponse:
    """An unexpected error; the server logs where it happened."""
    return problem_response(500, "Internal error", "the service could not answer this; its log says why")


async def _gone(request: Request, error: Exception) -> Response:
    """A client that disconnected in the middle of a request gets no answer, and it is no error of the server."""
    return Response(status_code=400)


def install_problems(app: FastAPI) -> None:
    """Every error that a route lets through becomes a problem document."""
    app.add_exception_handler(LetopisError, _letopis_problem)
    app.add_exception_handler(RequestValidationError, _validation_problem)
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _fault)
