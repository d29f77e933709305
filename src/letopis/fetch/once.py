"""One fetch for scripts, without a loop of their own."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from letopis.config.sections import FetchSettings
from letopis.fetch.client import Client
from letopis.fetch.cookies import CookieJar
from letopis.fetch.curl import CurlTransport
from letopis.model.web import Request, Response


def once(request: Request, settings: FetchSettings | None = None, *, user_agent: str = "Letopis/0.1") -> Response:
    """Fetches one URL and closes everything again. Not to be called from a running loop."""
    return asyncio.run(_once(request, settings or FetchSettings(), user_agent))


async def _once(request: Request, settings: FetchSettings, user_agent: str) -> Response:
    jar = CookieJar() if settings.cookies else None
    transport = CurlTransport(settings, clock=_now, jar=jar)
    try:
        return await Client(transport, settings, user_agent=user_agent, clock=_now).fetch(request)
    finally:
        await transport.close()


def _now() -> datetime:
    return datetime.now(UTC)
