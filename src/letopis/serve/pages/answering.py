"""One page as an answer: rendered, guarded by a content policy, and errors as pages too."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute

from letopis.errors import LetopisError
from letopis.serve.access import principal_of
from letopis.serve.pages.languages import language_of, marked, speaking
from letopis.serve.pages.rendering import environment
from letopis.serve.problems import status_of

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'self'"
)
"""Nothing but our own files: no inline script or style, no other host."""

GUARDED = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-cache, private",
}
_TITLES = {
    400: marked("That does not work"),
    403: marked("Not allowed"),
    404: marked("Not in this archive"),
    413: marked("Too large"),
}


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A template rendered with its values in the reader's language; everything in it is escaped."""
    told = {"path": request.url.path, "address": _address(request), "principal": principal_of(request), **values}
    with speaking(language_of(request)) as language:
        text = environment.get_template(template).render(told)
    headers = GUARDED | {"content-language": language.code, "vary": "Accept-Language, Cookie"}
    return HTMLResponse(text, status, headers=headers)


def _address(request: Request) -> str:
    """Where the reader is, with its question: the way back from the choice of a language."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def error_page(request: Request, error: LetopisError) -> HTMLResponse:
    """What went wrong, as a page that says what to do."""
    status = status_of(error)
    title = _TITLES.get(status, marked("Something went wrong"))
    return page(request, "error.html", status, title=title, message=str(error))


class PageRoute(APIRoute):
    """A route whose errors are read by people."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with LetopisErrors turned into pages."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handle(request)
            except LetopisError as error:
                return await run_in_threadpool(error_page, request, error)

        return guarded
