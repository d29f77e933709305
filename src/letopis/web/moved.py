"""`/moved.js`: what the script `static/moved.js` asks on the page of a site that says that something was not found.

It is a script and not JSON, so that any site may ask it by one tag, without being named in the settings.
"""

from __future__ import annotations

import json

from fastapi import APIRouter, Request, Response

from letopis.api.door import context_of
from letopis.errors import LetopisError
from letopis.model import stamp14
from letopis.operations.moved_pages import MovedPage, MovedPageQuery, moved

router = APIRouter()


@router.get("/moved.js")
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
