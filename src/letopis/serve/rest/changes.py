"""What is new to each client, and a stream of it for pages that are open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from starlette.responses import Response

from letopis.archive import digest_text
from letopis.catalog.clients import Clients, NewVersion
from letopis.model import from_millis, to_millis
from letopis.serve.problems import answers, problem
from letopis.serve.rest.parameters import Limit
from letopis.serve.rest.shapes import AckBody, AckShape, ChangeShape, ChangesShape, Name
from letopis.serve.shared import TheArchive

router = APIRouter(tags=["changes"])

MAX_LISTENERS = 500
POLL_SECONDS = 1.0
QUIET_POLLS = 15
"""After this many polls without news a comment keeps the connection alive."""


def _shape(row: NewVersion) -> ChangeShape:
    return ChangeShape(
        url=row.url,
        title=row.title or "",
        version=row.number,
        time=from_millis(row.time),
        outcome="changed" if row.number else "new",
        meaningful=None if row.meaningful is None else bool(row.meaningful),
        digest=digest_text(row.sha1),
    )


@router.get("/changes", responses=answers())
def changes(archive: TheArchive, client: Annotated[Name, Query()], limit: Limit = 1000) -> ChangesShape:
    """Versions that this client has not acknowledged yet, in the order of recording."""
    clients = Clients(archive.catalog.database)
    after = clients.cursor(client)
    rows = clients.since(after, limit)
    return ChangesShape(changes=[_shape(row) for row in rows], cursor=f"v{rows[-1].id if rows else after}")


@router.post("/changes/ack", responses=answers())
def acknowledge(archive: TheArchive, body: AckBody) -> AckShape:
    """The client has taken everything up to a cursor; it is not told of that again."""
    clients = Clients(archive.catalog.database)
    version = min(int(body.cursor[1:]), clients.newest())
    return AckShape(
        client=body.client, cursor=f"v{clients.acknowledge(body.client, version, to_millis(archive.clock()))}"
    )


@router.get("/events", include_in_schema=False)
async def events(request: Request, archive: TheArchive) -> Response:
    """New versions as server-sent events; `Last-Event-ID` goes on where a connection broke."""
    state = request.app.state
    if state.listeners >= MAX_LISTENERS:
        return problem(503, "Too many listeners", "try again later, or ask /api/v1/changes now and then")
    clients = Clients(archive.catalog.database)
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else None
    if after is None:
        after = await run_in_threadpool(clients.newest)
    return StreamingResponse(
        _events(request, clients, after), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _events(request: Request, clients: Clients, after: int) -> AsyncIterator[str]:
    state = request.app.state
    state.listeners += 1
    quiet = 0
    try:
        yield ": listening\n\n"
        while not await request.is_disconnected() and not state.stopping:
            rows = await run_in_threadpool(clients.since, after, 100)
            for row in rows:
                after = row.id
                yield f"id: {row.id}\nevent: version\ndata: {json.dumps(_shape(row).model_dump(mode='json'))}\n\n"
            quiet = 0 if rows else quiet + 1
            if quiet and quiet % QUIET_POLLS == 0:
                yield ": still here\n\n"
            await asyncio.sleep(0 if rows else POLL_SECONDS)
    finally:
        state.listeners -= 1
