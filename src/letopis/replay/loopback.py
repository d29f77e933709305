"""Archived sites for a browser of our own, on a port of loopback: `python -m letopis.replay.loopback`.

The settings come as one line of JSON, and sites are served until standard input ends, under a name that nobody else
knows: whoever shares the machine finds the port, and gets nothing without the name. Pages come without our frame.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from dataclasses import replace
from typing import Any

import uvicorn
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from letopis.api.server import listen
from letopis.archive import Archive
from letopis.config import load_settings
from letopis.replay.addresses import latest_millis, parse_address, path_after
from letopis.replay.application import ReplayApp, ReplayHome
from letopis.replay.origin import ReplayOrigin
from letopis.replay.sites import missing_response


class WithoutFrame:
    """Leads from the address of a frame to the page in it, and asks for pages as a frame would: they come alone."""

    def __init__(self, app: ASGIApp, origin: ReplayOrigin) -> None:
        self._app = app
        self._origin = origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        fields = dict(scope["headers"])
        if self._origin.is_base(fields.get(b"host", b"").decode("latin-1")):
            await self._page(scope)(scope, receive, send)
            return
        if fields.get(b"sec-fetch-dest") == b"document":
            scope = dict(scope, headers=list((fields | {b"sec-fetch-dest": b"iframe"}).items()))
        await self._app(scope, receive, send)

    def _page(self, scope: Scope) -> Response:
        address = parse_address(path_after(scope, "/web/"))
        inner = self._origin.address(address.url, latest_millis(address.stamps[0]) - 999)
        return RedirectResponse(inner, 302) if inner is not None else missing_response(address.url)


async def serve_loopback(changed: dict[str, Any]) -> None:
    """Prints the origin, and serves until the other end of standard input is closed."""
    settings = load_settings(None, {}, changed)
    settings = replace(settings, serve=replace(settings.serve, public=True))
    listening = listen("127.0.0.1", 0)
    origin = ReplayOrigin("http", f"r{secrets.token_hex(12)}.localhost:{listening.getsockname()[1]}")
    with Archive(settings=settings) as archive:
        app = WithoutFrame(ReplayApp(archive, origin, ReplayHome(origin.base)), origin)
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        sys.stdout.write(f"{origin.base}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        server.should_exit = server.force_exit = True
        await serving


if __name__ == "__main__":
    asyncio.run(serve_loopback(json.loads(sys.stdin.readline())))
