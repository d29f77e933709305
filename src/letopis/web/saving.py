"""Pages that the archive lacks: saved from anywhere, fetched for a replay, or found again after a move.

`/save?url=` is where the bookmarklet and the share menu of a phone lead. Reading it fetches nothing: the form carries
the reader's own rights and the token of their session, so no other site can have anything saved in their name.
`/missing` lists what a replayed page asked for and the archive lacks; the replay frame has no rights, so it leads
here. `/moved.js` answers the script `static/moved.js` on a site's own "not found" page; being a script and not JSON,
any site may load it without being named in the settings.
"""

from __future__ import annotations

import json
import re
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from letopis.api.door import context_of
from letopis.api.requests import ArchiveDep, origin_of
from letopis.archive.activity import is_checked
from letopis.errors import BadUrl, LetopisError, UsageError
from letopis.model import Outcome, stamp14
from letopis.operations import bind
from letopis.operations.checks import CheckCommand, check
from letopis.operations.moved_pages import MovedPage, MovedPageQuery, moved
from letopis.urls import parse_user_url
from letopis.web.pages import FieldsDep, PageRoute, render_page

router = APIRouter(route_class=PageRoute)

_ADDRESS = re.compile(r"https?://[^\s<>\"]{1,8000}", re.IGNORECASE)
_BOOKMARKLET = "javascript:location.href='{origin}/save?url='+encodeURIComponent(location.href)"


def shared_address(url: str, text: str) -> str:
    """The address that was meant: some apps send it inside a text; empty where there is none."""
    for candidate in (url, *_ADDRESS.findall(text)[:1]):
        try:
            if candidate.strip():
                return parse_user_url(candidate.strip())
        except BadUrl:
            continue
    return ""


@router.get("/save")
def save_page(request: Request, archive: ArchiveDep, url: str = "", text: str = "") -> Response:
    """The page that was shared and what can be done with it; without one, a form and the bookmarklet."""
    address = shared_address(url, text)
    return render_page(
        request, "save.html", url=address, typed=address or url or text, refused=bool(url or text) and not address,
        known=bool(address) and is_checked(archive, address),
        bookmarklet=_BOOKMARKLET.format(origin=origin_of(request.scope)),
    )  # fmt: skip


moved_router = APIRouter()


@moved_router.get("/moved.js")
def moved_script(request: Request, url: str = "") -> Response:
    """Calls the script with the pages that may be meant; with none where nothing is known of the address."""
    try:
        rows = list(moved(context_of(request), MovedPageQuery(url=url)))
    except LetopisError:
        rows = []
    pages = json.dumps([_shown(request, row) for row in rows])
    return Response(f"letopisMoved({pages});\n", media_type="text/javascript")


def _shown(request: Request, row: MovedPage) -> dict[str, str]:
    """A page with the address that leads to it: its own, or that of its last version here."""
    archived = f"{request.base_url}web/{stamp14(row.time)}/{row.url}"
    href = archived if row.found_by == "archive" else row.url
    return {"href": href, "url": row.url, "title": row.title, "found_by": row.found_by, "day": f"{row.time:%Y-%m-%d}"}


missing_router = APIRouter(route_class=PageRoute)

MOST_FETCHED = 100
"""Resources of one page that are fetched at once."""


@missing_router.get("/missing")
def list_missing(
    request: Request, page: str, at: str = "", url: Annotated[list[str] | None, Query()] = None
) -> Response:
    """Names what is missing, and asks whether to fetch it."""
    return render_page(request, "missing.html", page=parse_user_url(page), at=_digits(at), urls=_addresses(url or []))


@missing_router.post("/missing")
def fetch_missing(request: Request, fields: FieldsDep) -> Response:
    """Fetches it by a check of each, as whoever asks may, and leads back to the page at its time."""
    urls, context = _addresses(fields.get("url", [])), context_of(request)
    if not urls:
        raise UsageError("no address to fetch was given")
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
