"""A line for every request, in the form that all tools for web logs read. Off unless the owner names a file."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from letopis.errors import NotReady
from letopis.serve.access import principal_of_scope

# A ticket lets its bearer read: it is nobody's business but the reader's.
_TICKET = re.compile(r"(?<=/web/~)[\w.-]+", re.ASCII)
_ODD = re.compile(r"[\x00-\x1f\x7f\"\\]")


def opened(file: Path) -> logging.Handler:
    """The file to write to; NotReady when it cannot be written."""
    try:
        return WatchedFileHandler(file, encoding="utf-8")
    except OSError as error:
        raise NotReady(f"cannot write the access log {file}: {error.strerror}; correct serve.access_log") from None


class AccessLog:
    """Writes the combined log format; whoever rotates the file may move it away at any time."""

    def __init__(self, app: ASGIApp, lines: logging.Handler, clock: Callable[[], datetime]) -> None:
        self._app = app
        self._lines = lines
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; its line is written when the answer is over, whatever became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, size = 500, 0

        async def counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            self._write(_line(scope, self._clock(), status, size))

    def _write(self, line: str) -> None:
        self._lines.emit(logging.LogRecord("access", logging.INFO, "", 0, line, None, None))


def _line(scope: Scope, now: datetime, status: int, size: int) -> str:
    client = scope["client"][0] if scope.get("client") else "-"
    fields = {name: value.decode("latin-1") for name, value in scope["headers"] if name in (b"referer", b"user-agent")}
    query = scope["query_string"].decode("latin-1")
    path = _TICKET.sub("...", scope["path"]) + (f"?{query}" if query else "")
    asked = f"{scope['method']} {path} HTTP/{scope['http_version']}"
    who = principal_of_scope(scope).name or "-"
    referer, agent = fields.get(b"referer", "-"), fields.get(b"user-agent", "-")
    time = now.strftime("%d/%b/%Y:%H:%M:%S %z")
    return f'{client} - {_safe(who)} [{time}] "{_safe(asked)}" {status} {size} "{_safe(referer)}" "{_safe(agent)}"'


def _safe(text: str) -> str:
    """Nothing that ends a field or a line."""
    return _ODD.sub(lambda odd: f"\\x{ord(odd[0]):02x}", text)
