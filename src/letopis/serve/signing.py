"""Signing in and out, and making the first owner."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts, User
from letopis.catalog.audit import Audit, Deed
from letopis.errors import UsageError
from letopis.model import to_millis
from letopis.serve.access import ThePrincipal
from letopis.serve.pages.answering import page
from letopis.serve.pages.languages import marked
from letopis.serve.problems import problem
from letopis.serve.sessions import COOKIE, LIFETIME, Sessions
from letopis.serve.shared import TheArchive
from letopis.serve.throttle import Throttle

router = APIRouter(include_in_schema=False)


@dataclass
class Desk:
    """What signing in needs, once an application. `code` lets the first owner in and is told on the terminal."""

    sessions: Sessions
    accounts: Accounts
    audit: Audit
    throttle: Throttle = field(default_factory=Throttle)
    code: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    @classmethod
    def of(cls, archive: Archive) -> Desk:
        """The desk of an archive."""
        accounts = Accounts(archive.catalog.database)
        return cls(Sessions(accounts), accounts, Audit(archive.catalog.database))

    def needs_owner(self) -> bool:
        """Whether nobody has an account yet."""
        return not self.accounts.users()


def desk_of(request: Request) -> Desk:
    """The application's desk."""
    desk: Desk = request.app.state.desk
    return desk


def _page(request: Request, status: int = 200, message: str = "") -> HTMLResponse:
    return page(
        request,
        "login.html",
        status,
        path="/login",
        setup=desk_of(request).needs_owner(),
        code=request.query_params.get("setup", ""),
        next=_local(request.query_params.get("next", "")),
        message=message,
    )


@router.get("/login")
def login_page(request: Request) -> HTMLResponse:
    """The form; at the first start the one that makes an owner."""
    return _page(request)


@router.post("/login")
async def login(request: Request, archive: TheArchive) -> Response:
    """Opens a session; says neither whether the name nor whether the password was wrong."""
    form = await _form(request)
    return await run_in_threadpool(_login, request, archive, form)


def _login(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    desk, name, address = desk_of(request), form.get("name", ""), _address(request)
    keys = (f"address {address}", f"name {name[:64]}")
    wait = desk.throttle.wait(*keys)
    if wait:
        answer = problem(429, "Too many tries", f"wait {wait} seconds before the next try")
        answer.headers["retry-after"] = str(wait)
        return answer
    user = desk.accounts.sign_in(name, form.get("password", ""))
    if user is None:
        desk.throttle.failed(*keys)
        _note(desk, archive, name, "login failed", address)
        return _page(request, 401, marked("Name or password is wrong."))
    desk.throttle.succeeded(keys[1])
    _note(desk, archive, user.name, "login", address)
    return _welcome(request, desk, user, form)


@router.post("/setup")
async def setup(request: Request, archive: TheArchive) -> Response:
    """Makes the first owner for whoever knows the code on the terminal; never again afterwards."""
    form = await _form(request)
    return await run_in_threadpool(_setup, request, archive, form)


def _setup(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    desk, address = desk_of(request), _address(request)
    if not desk.needs_owner():
        return problem(403, "Forbidden", "this archive already has accounts; sign in")
    wait = desk.throttle.wait(f"setup {address}")
    if wait or not hmac.compare_digest(form.get("code", "").encode(), desk.code.encode()):
        desk.throttle.failed(f"setup {address}")
        return problem(403, "Forbidden", "the code is wrong; it stands on the terminal of 'letopis serve'")
    try:
        user = desk.accounts.add(form.get("name", ""), "owner", form.get("password", ""), to_millis(archive.clock()))
    except UsageError as error:
        return _page(request, 422, str(error))
    _note(desk, archive, user.name, "first owner", address)
    return _welcome(request, desk, user, form | {"next": "/welcome"})


@router.post("/logout")
def logout(request: Request, archive: TheArchive, principal: ThePrincipal) -> Response:
    """Ends every session of the user."""
    desk = desk_of(request)
    if principal.session is not None:
        desk.accounts.end_sessions(principal.session.user.id)
        _note(desk, archive, principal.name, "logout", _address(request))
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(COOKIE, path="/")
    return answer


def _welcome(request: Request, desk: Desk, user: User, form: dict[str, str]) -> Response:
    answer = RedirectResponse(_local(form.get("next", "")), 303)
    answer.set_cookie(
        COOKIE,
        desk.sessions.issue(user),
        max_age=LIFETIME,
        path="/",
        secure=request.scope["scheme"] == "https",
        httponly=True,
        samesite="lax",
    )
    return answer


def _local(target: str) -> str:
    """A path of ours, whatever was asked for: nobody is sent elsewhere from here."""
    fine = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable() and target.isascii()
    return target if fine else "/"


async def _form(request: Request) -> dict[str, str]:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > 64 * 1024:
            raise UsageError("the form is too large")
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise UsageError("the form has too many fields") from None
    return {name: values[0] for name, values in fields.items()}


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _note(desk: Desk, archive: Archive, who: str, action: str, address: str) -> None:
    desk.audit.note(Deed(to_millis(archive.clock()), who, action, "", address))
