"""`/save?url=`: where the bookmarklet and the share menu of a phone lead with the page that somebody is at.

Reading it asks nobody: the address is shown with what can be done with it, and the form that does it carries the
reader's own rights and the token of their session. So no other site can have anything saved in their name.
"""

from __future__ import annotations

import re

from fastapi import APIRouter, Request, Response

from letopis.api.requests import ArchiveDep, origin_of
from letopis.archive.activity import is_checked
from letopis.errors import BadUrl
from letopis.urls import parse_user_url
from letopis.web.pages import PageRoute, render_page

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
        request,
        "save.html",
        url=address,
        typed=address or url or text,
        refused=bool(url or text) and not address,
        known=bool(address) and is_checked(archive, address),
        bookmarklet=_BOOKMARKLET.format(origin=origin_of(request.scope)),
    )
