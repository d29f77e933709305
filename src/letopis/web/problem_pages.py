"""Errors for people: whoever reads with a browser gets a page where programs get a problem document.

What a page of ours refuses is a page already; here are the rest: addresses that lead nowhere, what the gate refuses,
archived pages that are not there.
"""

from __future__ import annotations

import json
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from letopis.web.pages import problem_page

_FOR_PROGRAMS = ("/api/", "/cdx/", "/web/cdx", "/web/timemap", "/metrics", "/openapi.json", "/healthz")
_PROBLEM = b"application/problem+json"
_OF_THE_BODY = (b"content-type", b"content-length")


class ProblemPages:
    """Turns problem documents into pages for browsers; everything else passes as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"].startswith(_FOR_PROGRAMS) or not _reads_pages(scope):
            await self._app(scope, receive, send)
            return
        replacing = _Replacing(scope, receive, send)
        try:
            await self._app(scope, receive, replacing)
        except Exception:
            await replacing.fault()
            raise


def _reads_pages(scope: Scope) -> bool:
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


class _Replacing:
    """A send that holds a problem document back until it is whole."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._start: Message | None = None
        self._body = b""
        self._sent = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_problem(message):
            self._start = message
        elif self._start is None:
            self._sent = True
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                page = await run_sync(self._page, self._start)
                await page(self._scope, self._receive, self._send)

    async def fault(self) -> None:
        """A page for what nobody foresaw, unless an answer has begun; the server logs where it happened."""
        if not self._sent:
            self._sent = True
            page = await run_sync(problem_page, Request(self._scope), 500, "")
            await page(self._scope, self._receive, self._send)

    def _page(self, start: Message) -> Response:
        problem: dict[str, Any] = json.loads(self._body)
        page = problem_page(Request(self._scope), start["status"], str(problem.get("detail", "")))
        kept = [field for field in start["headers"] if field[0] not in _OF_THE_BODY]
        page.raw_headers.extend(kept)
        return page


def _is_problem(message: Message) -> bool:
    return any(name == b"content-type" and value.startswith(_PROBLEM) for name, value in message["headers"])
