"""`/watches/many`: one action on several watches; a question comes before what cannot be undone."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from letopis.archive import Archive
from letopis.errors import LetopisError, UsageError
from letopis.monitor.book import WatchBook
from letopis.serve.access import principal_of
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.forms import fields_of
from letopis.serve.pages.marks import Marks
from letopis.serve.pages.watches import Ask, shown
from letopis.serve.shared import TheArchive

router = APIRouter(route_class=PageRoute)


@router.post("/watches/many")
async def many(request: Request, archive: TheArchive) -> Response:
    """Looks now, lets rest, resumes, tags, marks as read or removes the chosen watches."""
    fields = await fields_of(request)
    return await run_in_threadpool(_many, request, archive, fields)


def _many(request: Request, archive: Archive, fields: dict[str, list[str]]) -> Response:
    urls, action = fields.get("url", []), fields.get("action", [""])[0]
    try:
        if not urls:
            raise UsageError("choose at least one watch first")
        if action == "remove" and "confirmed" not in fields:
            return page(request, "confirm.html", urls=urls)
        return _done(request, archive, urls, action, fields.get("tag", [""])[0])
    except LetopisError as error:
        return shown(request, archive, Ask(problem=str(error)), 422)


def _done(request: Request, archive: Archive, urls: list[str], action: str, tag: str) -> Response:
    book = WatchBook(archive)
    actions: dict[str, Callable[[], object]] = {
        "check": lambda: book.resume(urls),
        "resume": lambda: book.resume(urls),
        "pause": lambda: book.pause(urls),
        "tag": lambda: book.retag(urls, tag),
        "read": lambda: _read(request, archive, urls),
        "remove": lambda: [book.remove(url) for url in urls],
    }
    if action not in actions:
        raise UsageError(f"there is no action '{action[:20]}'; choose one of {', '.join(actions)}")
    actions[action]()
    return RedirectResponse(f"/watches?done={'removed' if action == 'remove' else action}", 303)


def _read(request: Request, archive: Archive, urls: list[str]) -> None:
    rows = (archive.catalog.resources.find(url) for url in urls)
    Marks(archive, principal_of(request)).read(row for row in rows if row is not None)
