"""Everything under `/web/`: TimeGate, mementos, TimeMaps, calendar and differences."""

from __future__ import annotations

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from letopis.archive import Archive
from letopis.serve.access import principal_of
from letopis.serve.cdx.routes import finder_of
from letopis.serve.memento.addresses import Address, Kind, Web, asked, parse
from letopis.serve.memento.calendar import calendar
from letopis.serve.memento.differences import difference
from letopis.serve.memento.replay import memento, timegate
from letopis.serve.memento.timemap import timemap
from letopis.serve.origin import origin
from letopis.serve.sessions import ticket_of
from letopis.serve.shared import archive_of, reads_locally
from letopis.serve.signing import desk_of

_SHORT = (Kind.TIMEGATE, Kind.MEMENTO)


async def web(request: Request) -> Response:
    """Answers by what the address asks for; see `addresses`. Lists and differences are made in a thread."""
    archive = archive_of(request)
    address = parse(asked(request.scope, "/web/"))
    if address.kind in _SHORT and reads_locally(archive):
        return _answer(request, archive, address)
    return await run_in_threadpool(_answer, request, archive, address)


def _answer(request: Request, archive: Archive, address: Address) -> Response:
    ours = Web(origin(request.scope), _ticket(request, archive))
    if address.kind is Kind.MEMENTO:
        return memento(archive, ours, address, request.scope, scripts=archive.settings.serve.scripts)
    if address.kind is Kind.TIMEMAP:
        return timemap(archive, finder_of(request), ours, address)
    if address.kind is Kind.CALENDAR:
        return calendar(archive, ours, address, request)
    if address.kind is Kind.DIFF:
        return difference(archive, address)
    return timegate(archive, ours, address, request.headers.get("accept-datetime"))


def _ticket(request: Request, archive: Archive) -> str:
    """What the pages of this answer show to load each other; needed only where reading takes an account."""
    if archive.settings.serve.public:
        return ""
    session = principal_of(request).session
    return desk_of(request).sessions.ticket(session.user) if session else ticket_of(request.scope["path"])


ROUTES = [Route("/web/{rest:path}", web, methods=["GET", "HEAD"])]
