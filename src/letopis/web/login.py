"""`/login`, `/logout`, `/setup`: sessions and the first owner. `/language/<code>`: the reader's language."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse

from letopis.api.access import PrincipalDep
from letopis.api.requests import ArchiveDep, problem_response
from letopis.api.sessions import SESSION_COOKIE, SESSION_LIFETIME, LoginThrottle, Sessions
from letopis.archive import Archive
from letopis.archive.accounts import Accounts, User, accounts_of
from letopis.archive.audit import record_audit
from letopis.errors import NotFound, UsageError
from letopis.model import to_millis
from letopis.web.languages import LANGUAGE_COOKIE, LANGUAGES, translatable
from letopis.web.pages import PageRoute, render_page

router = APIRouter(include_in_schema=False)


@dataclass
class AuthState:
    """What signing in needs, once an application. `code` lets the first owner in and stands on the terminal."""

    sessions: Sessions
    accounts: Accounts
    throttle: LoginThrottle = field(default_factory=LoginThrottle)
    code: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    @classmethod
    def of(cls, archive: Archive) -> AuthState:
        """That of an archive."""
        accounts = accounts_of(archive)
        return cls(Sessions(accounts), accounts)

    def needs_owner(self) -> bool:
        """Whether nobody has an account yet."""
        return not self.accounts.users()


def auth_state_of(request: Request) -> AuthState:
    """That of the application."""
    auth: AuthState = request.app.state.auth
    return auth


def _login_page(request: Request, status: int = 200, message: str = "") -> HTMLResponse:
    return render_page(
        request,
        "login.html",
        status,
        path="/login",
        setup=auth_state_of(request).needs_owner(),
        code=request.query_params.get("setup", ""),
        next=_local(request.query_params.get("next", "")),
        message=message,
    )


@router.get("/login")
def login_page(request: Request) -> HTMLResponse:
    """The form; at the first start the one that makes an owner."""
    return _login_page(request)


@router.post("/login")
async def login(request: Request, archive: ArchiveDep) -> Response:
    """Opens a session; says neither whether the name nor whether the password was wrong."""
    form = await exact_form_of(request)
    return await run_in_threadpool(_login, request, archive, form)


def _login(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    auth, name, address = auth_state_of(request), form.get("name", ""), _address(request)
    keys = (f"address {address}", f"name {name[:64]}")
    wait = auth.throttle.wait(*keys)
    if wait:
        answer = problem_response(429, "Too many tries", f"wait {wait} seconds before the next try")
        answer.headers["retry-after"] = str(wait)
        return answer
    user = auth.accounts.sign_in(name, form.get("password", ""))
    if user is None:
        auth.throttle.failed(*keys)
        record_audit(archive, name, "login failed", address=address)
        return _login_page(request, 401, translatable("Name or password is wrong."))
    auth.throttle.succeeded(keys[1])
    record_audit(archive, user.name, "login", address=address)
    return _signed_in(request, auth, user, form)


@router.post("/setup")
async def setup(request: Request, archive: ArchiveDep) -> Response:
    """Makes the first owner for whoever knows the code on the terminal; never again afterwards."""
    form = await exact_form_of(request)
    return await run_in_threadpool(_setup, request, archive, form)


def _setup(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    auth, address = auth_state_of(request), _address(request)
    if not auth.needs_owner():
        return problem_response(403, "Forbidden", "this archive already has accounts; sign in")
    wait = auth.throttle.wait(f"setup {address}")
    if wait or not hmac.compare_digest(form.get("code", "").encode(), auth.code.encode()):
        auth.throttle.failed(f"setup {address}")
        return problem_response(403, "Forbidden", "the code is wrong; it stands on the terminal of 'letopis serve'")
    try:
        user = auth.accounts.add(form.get("name", ""), "owner", form.get("password", ""), to_millis(archive.clock()))
    except UsageError as error:
        return _login_page(request, 422, str(error))
    record_audit(archive, user.name, "first owner", address=address)
    return _signed_in(request, auth, user, form | {"next": "/welcome"})


@router.post("/logout")
def logout(request: Request, archive: ArchiveDep, principal: PrincipalDep) -> Response:
    """Ends every session of the user."""
    auth = auth_state_of(request)
    if principal.session is not None:
        auth.accounts.end_sessions(principal.session.user.id)
        record_audit(archive, principal.name, "logout", address=_address(request))
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(SESSION_COOKIE, path="/")
    return answer


def _signed_in(request: Request, auth: AuthState, user: User, form: dict[str, str]) -> Response:
    answer = RedirectResponse(_local(form.get("next", "")), 303)
    answer.set_cookie(
        SESSION_COOKIE,
        auth.sessions.issue(user),
        max_age=SESSION_LIFETIME,
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


async def exact_form_of(request: Request) -> dict[str, str]:
    """The fields of a form as they were typed: a password may begin or end with a blank."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > 64 * 1024:
            raise UsageError("the form is too large; send less at once")
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise UsageError("the form has too many fields; send less at once") from None
    return {name: values[0] for name, values in fields.items()}


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


language_router = APIRouter(route_class=PageRoute)

_LANGUAGE_LIFETIME = 365 * 86_400


@language_router.get("/language/{code}")
def choose(request: Request, code: str, back: str = "/") -> Response:
    """Sets the cookie and leads back to where the reader was."""
    if code not in LANGUAGES:
        raise NotFound(f"there are no texts in '{code[:20]}'; choose one of {', '.join(LANGUAGES)}")
    answer = RedirectResponse(_local(back), 303)
    secure = request.scope["scheme"] == "https"
    answer.set_cookie(
        LANGUAGE_COOKIE, code, max_age=_LANGUAGE_LIFETIME, path="/", secure=secure, httponly=True, samesite="lax"
    )
    return answer
