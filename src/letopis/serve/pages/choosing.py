"""`/language/<code>`: the reader's choice of a language, kept in a cookie."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.errors import NotFound
from letopis.serve.pages.answering import PageRoute
from letopis.serve.pages.languages import COOKIE, LANGUAGES

router = APIRouter(route_class=PageRoute)

_LIFETIME = 365 * 86_400


@router.get("/language/{code}")
def choose(request: Request, code: str, back: str = "/") -> Response:
    """Sets the cookie and leads back to where the reader was."""
    if code not in LANGUAGES:
        raise NotFound(f"there are no texts in '{code[:20]}'; choose one of {', '.join(LANGUAGES)}")
    answer = RedirectResponse(_local(back), 303)
    secure = request.scope["scheme"] == "https"
    answer.set_cookie(COOKIE, code, max_age=_LIFETIME, path="/", secure=secure, httponly=True, samesite="lax")
    return answer


def _local(target: str) -> str:
    """A path of ours, whatever was asked for: nobody is sent elsewhere from here."""
    fine = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable() and target.isascii()
    return target if fine else "/"
