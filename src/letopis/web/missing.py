"""`/missing`: what a replayed page asked for and the archive does not have, and its fetching for whoever may.

The frame of the replay has no rights: it leads here with the addresses, and here somebody decides.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from letopis.api.door import context_of
from letopis.errors import BadUrl, UsageError
from letopis.model import Outcome
from letopis.operations import bind
from letopis.operations.checks import CheckCommand, check
from letopis.urls import parse_user_url
from letopis.web.pages import PageRoute, fields_of, render_page

router = APIRouter(route_class=PageRoute)

MOST_FETCHED = 100
"""Resources of one page that are fetched at once."""


@router.get("/missing")
def list_missing(
    request: Request, page: str, at: str = "", url: Annotated[list[str] | None, Query()] = None
) -> Response:
    """Names what is missing, and asks whether to fetch it."""
    return render_page(request, "missing.html", page=parse_user_url(page), at=_digits(at), urls=_addresses(url or []))


@router.post("/missing")
async def fetch_missing(request: Request) -> Response:
    """Fetches it by a check of each, as whoever asks may, and leads back to the page at its time."""
    fields = await fields_of(request)
    return await run_in_threadpool(_fetched, request, fields)


def _fetched(request: Request, fields: dict[str, list[str]]) -> Response:
    urls, context = _addresses(fields.get("url", [])), context_of(request)
    if not urls:
        raise UsageError("nothing was named that could be fetched")
    answer = check(context, bind(CheckCommand, {"url": urls, "as": "", "now": True}, context.moment(), door="http"))
    found = list(answer)
    if all(one.outcome is Outcome.REFUSED for one in found):
        for fault in answer.faults:
            raise fault
    page, at = parse_user_url(fields.get("page", [""])[0]), _digits(fields.get("at", [""])[0])
    return RedirectResponse(f"/web/{at}/{page}" if at else f"/web/{page}", 303)


def _addresses(texts: list[str]) -> list[str]:
    """Those that are addresses of the web, each once."""
    found: dict[str, None] = {}
    for text in texts:
        try:
            found[parse_user_url(text)] = None
        except BadUrl:
            continue
    return list(found)[:MOST_FETCHED]


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isascii() and char.isdigit())[:14]
