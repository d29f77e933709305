"""Errors as RFC 9457 problem documents for programs."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from letopis.errors import LetopisError

_STATUS = {2: 400, 3: 404, 4: 502, 5: 413, 6: 500, 7: 403}


def status_of(error: LetopisError) -> int:
    """The HTTP status that says the same as the exit status."""
    return _STATUS.get(error.exit_status, 500)


def problem(status: int, title: str, detail: str) -> JSONResponse:
    """One problem document."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(body, status, media_type="application/problem+json")


async def _answer(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, LetopisError)
    return problem(status_of(error), type(error).__name__, str(error))


def install_problems(app: FastAPI) -> None:
    """Every LetopisError that a route lets through becomes a problem document."""
    app.add_exception_handler(LetopisError, _answer)
