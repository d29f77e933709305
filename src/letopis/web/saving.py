"""`/save?url=`: where the bookmarklet and the share menu of a phone lead with the page that somebody is at.

Reading it asks nobody: the address is shown with what can be done with it, and the form that does it carries the
reader's own rights and the token of their session. So no other site can have anything saved in their name. Only for
somebody who comes from the bar over an archived page, with a code of their own that holds once, the form sends itself.
"""

from __future__ import annotations

import re
import time

from fastapi import APIRouter, Request, Response

from letopis.api.access import principal_of
from letopis.api.requests import ArchiveDep, origin_of
from letopis.archive import Archive
from letopis.archive.accounts import session_rows_of
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
def save_page(request: Request, archive: ArchiveDep, url: str = "", text: str = "", code: str = "") -> Response:
    """The page that was shared and what can be done with it; without one, a form and the bookmarklet."""
    address = shared_address(url, text)
    return render_page(
        request,
        "save.html",
        url=address,
        refused=bool(url or text) and not address,
        known=bool(address) and is_checked(archive, address),
        at_once=bool(address) and _asked_in_bar(request, archive, code),
        bookmarklet=_BOOKMARKLET.format(origin=origin_of(request.scope)),
    )


def _asked_in_bar(request: Request, archive: Archive, code: str) -> bool:
    """Whether whoever is signed in has asked for it in the bar over an archived page; the code is used up."""
    session = principal_of(request).session
    if not code or session is None:
        return False
    return session_rows_of(archive).take(code, "save", int(time.time())) == session.user.id
