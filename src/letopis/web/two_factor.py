"""`/login/code`: the second step of signing in, and the first code of whoever has to have a second factor."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup, escape

from letopis.api.requests import ArchiveDep
from letopis.api.sessions import DEVICE_COOKIE, HALF_COOKIE, cookie_of
from letopis.archive import Archive
from letopis.archive.accounts import User
from letopis.archive.audit import record_audit
from letopis.errors import QuotaUsedUp, UsageError, shell_words
from letopis.model import to_millis
from letopis.operations.two_factor import shown_secret
from letopis.web.languages import translatable
from letopis.web.login import address_of, auth_state_of, begin_session, exact_form_of, local_path, signed_in
from letopis.web.pages import PageRoute, environment, render_page
from letopis.web.qr_code import qr_svg

router = APIRouter(route_class=PageRoute)


def _qr_picture(text: str, label: str) -> Markup:
    """A QR code for a template; nothing for a text that is too long for one."""
    try:
        return Markup(qr_svg(text, escape(label)))  # noqa: S704 - drawn here, and its label is escaped
    except UsageError:
        return Markup()


environment.filters["qr"] = _qr_picture
_WRONG = translatable("The code is wrong, or was used already.")


def _code_page(request: Request, user: User, target: str, status: int = 200, message: str = "") -> HTMLResponse:
    """The form for the code; whoever has no second factor yet gets the secret of one as well."""
    pending = auth_state_of(request).factors.pending(user.id)
    return render_page(
        request, "login_code.html", status, secret=shown_secret(user, pending) if pending else None,
        next=local_path(target), message=message, recovery_codes=[],
    )  # fmt: skip


def _who(request: Request) -> User | None:
    """Who has given a password in this browser, and no code yet."""
    return auth_state_of(request).sessions.who_gave_password(
        request.cookies.get(cookie_of(request.scope, HALF_COOKIE), "")
    )


@router.get("/login/code")
def code_page(request: Request) -> Response:
    """The form; whoever has not given a password is led to that first."""
    user = _who(request)
    if user is None:
        return RedirectResponse("/login", 303)
    return _code_page(request, user, request.query_params.get("next", ""))


@router.post("/login/code")
async def code(request: Request, archive: ArchiveDep) -> Response:
    """Opens the session that password and code are for."""
    form = await exact_form_of(request)
    return await run_in_threadpool(_after_code, request, archive, form)


def _after_code(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    user, auth = _who(request), auth_state_of(request)
    if user is None:
        return RedirectResponse("/login", 303)
    target, now, given = form.get("next", ""), to_millis(archive.clock()) // 1000, form.get("code", "")
    recovery_codes: list[str] = []
    kind = "second factor on"
    try:
        if auth.factors.is_on(user.id):
            kind = auth.factors.check(user.id, given, now)
        else:
            recovery_codes = auth.factors.confirm(user.id, given, now)
    except QuotaUsedUp as error:
        answer = _code_page(request, user, target, 429, shell_words(error))
        answer.headers["retry-after"] = str(error.seconds)
        return answer
    except UsageError:
        record_audit(archive, user.name, "login failed", "code", address_of(request))
        return _code_page(request, user, target, 401, _WRONG)
    if not auth.sessions.code_given(request.cookies.get(cookie_of(request.scope, HALF_COOKIE), "")):
        return RedirectResponse("/login", 303)
    record_audit(archive, user.name, "login", kind, address_of(request))
    return _let_in(request, user, target, recovery_codes)


def _let_in(request: Request, user: User, target: str, recovery_codes: list[str]) -> Response:
    """The session; after the very first code with the recovery codes, which are shown this once."""
    device = request.cookies.get(cookie_of(request.scope, DEVICE_COOKIE), "")
    known = auth_state_of(request).sessions.is_device_of(user.name, device)
    if not recovery_codes:
        return signed_in(request, user, target, known_device=known)
    page = render_page(
        request, "login_code.html", secret=None, next=local_path(target), message="", recovery_codes=recovery_codes
    )
    begin_session(request, page, user, known_device=known)
    return page
