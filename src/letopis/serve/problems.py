"""Errors as RFC 9457 problem documents for programs."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from letopis.errors import LetopisError

PROBLEM_TYPE = "application/problem+json"
_STATUS = {2: 400, 3: 404, 4: 502, 5: 413, 6: 500, 7: 403}


class Problem(BaseModel):
    """What went wrong: `title` for programs, `detail` for people."""

    type: str
    title: str
    status: int
    detail: str


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may answer with, for the OpenAPI document."""
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        status: {"model": Problem, "description": _WORDS[status], "content": {PROBLEM_TYPE: schema}}
        for status in (*statuses, 400, 401, 403, 422)
    }


_WORDS = {
    400: "The request makes no sense",
    401: "Credentials are missing or wrong",
    403: "Not allowed, or an address that is not asked",
    404: "There is no such thing",
    413: "Too large",
    422: "The body or a parameter does not fit",
    429: "Too many of yours wait",
    502: "The server asked did not answer",
    503: "Too much at once",
}


def status_of(error: LetopisError) -> int:
    """The HTTP status that says the same as the exit status."""
    return _STATUS.get(error.exit_status, 500)


def problem(status: int, title: str, detail: str) -> JSONResponse:
    """One problem document."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(body, status, media_type=PROBLEM_TYPE)


async def _answer(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, LetopisError)
    return problem(status_of(error), type(error).__name__, str(error))


async def _does_not_fit(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()]
    return problem(422, "Does not fit", "; ".join(found[:5]))


async def _plain(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    answer = problem(error.status_code, str(error.detail), f"{request.method} {request.url.path}: {error.detail}")
    answer.headers.update(error.headers or {})
    return answer


def install_problems(app: FastAPI) -> None:
    """Every error that a route lets through becomes a problem document."""
    app.add_exception_handler(LetopisError, _answer)
    app.add_exception_handler(RequestValidationError, _does_not_fit)
    app.add_exception_handler(HTTPException, _plain)
