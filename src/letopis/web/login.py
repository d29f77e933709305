"""`/login`, `/logout`, `/setup`, `/join`, the second factor: sessions, the first owner, invitations.

`/language/<code>` sets the language.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup, escape

from letopis.api.access import PrincipalDep
from letopis.api.requests import ArchiveDep, problem_response
from letopis.api.sessions import (
    DEVICE_COOKIE,
    DEVICE_LIFETIME,
    HALF_COOKIE,
    HALF_LIFETIME,
    SESSION_COOKIE,
    SESSION_LIFETIME,
    Sessions,
    cookie_of,
    login_keys,
    network_of,
)
from letopis.archive import Archive
from letopis.archive.accounts import (
    HASHINGS,
    Accounts,
    LoginThrottle,
    SecondFactors,
    User,
    accounts_of,
    invitations_of,
    second_factors_of,
    session_rows_of,
    wants_second_factor,
)
from letopis.archive.audit import record_audit
from letopis.errors import Busy, NotFound, QuotaUsedUp, UsageError, shell_words
from letopis.model import to_millis
from letopis.operations.two_factor import shown_secret
from letopis.web.languages import LANGUAGE_COOKIE, LANGUAGES, translatable
from letopis.web.pages import ExactFormDep, PageRoute, environment, render_page
from letopis.web.qr_code import qr_svg

router = APIRouter(include_in_schema=False)
T = TypeVar("T")


class HashingPool:
    """The few threads in which passwords are hashed: those of pages are never kept waiting by it."""

    most_waiting = 16

    def __init__(self, threads: int = HASHINGS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="letopis-hashing")
        self._begun = 0
        self._most = threads + self.most_waiting

    async def run(self, work: Callable[[], T]) -> T:
        """The work in its turn; Busy, at once, when too many wait already."""
        if self._begun >= self._most:
            raise Busy("too many sign-ins at the moment; try again in a few seconds")
        self._begun += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._begun -= 1


@dataclass
class AuthState:
    """What signing in needs, once an application. `code` lets the first owner in and is shown in the terminal."""

    sessions: Sessions
    accounts: Accounts
    factors: SecondFactors
    wants_factor: Callable[[User], bool]
    throttle: LoginThrottle = field(default_factory=LoginThrottle)
    hashing: HashingPool = field(default_factory=HashingPool)
    code: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    @classmethod
    def of(cls, archive: Archive) -> AuthState:
        """That of an archive."""
        accounts, factors = accounts_of(archive), second_factors_of(archive)
        wants = partial(wants_second_factor, archive)
        sessions = Sessions(
            accounts, session_rows_of(archive), lacks_factor=lambda user: wants(user) and not factors.is_on(user.id)
        )
        return cls(sessions, accounts, factors, wants)

    def needs_owner(self) -> bool:
        """Whether nobody has an account yet."""
        return not self.accounts.users()


def auth_state_of(request: Request) -> AuthState:
    """That of the application."""
    auth: AuthState = request.app.state.auth
    return auth


def _login_page(
    request: Request, status: int = 200, message: str = "", form: Mapping[str, str] = MappingProxyType({})
) -> HTMLResponse:
    """The form, with what was typed into it but for the password."""
    return render_page(
        request, "login.html", status, path="/login", setup=auth_state_of(request).needs_owner(),
        code=form.get("code") or request.query_params.get("setup", ""), name=form.get("name", ""),
        next=local_path(form.get("next") or request.query_params.get("next", "")), message=message,
    )  # fmt: skip


@router.get("/login")
def login_page(request: Request) -> HTMLResponse:
    """The form; at the first start the one that makes an owner."""
    return _login_page(request)


@router.post("/login")
async def login(request: Request, archive: ArchiveDep, form: ExactFormDep) -> Response:
    """Opens a session; says neither whether the name nor whether the password was wrong."""
    auth, name = auth_state_of(request), form.get("name", "")
    device = request.cookies.get(cookie_of(request.scope, DEVICE_COOKIE), "")
    known = bool(device) and await run_in_threadpool(auth.sessions.is_device_of, name, device)
    keys = login_keys(name, address_of(request), device if known else "")
    wait = auth.throttle.begin(*keys)
    if wait:
        return _try_later(wait)
    try:
        user = await auth.hashing.run(partial(auth.accounts.sign_in, name, form.get("password", "")))
    except Busy:
        auth.throttle.give_back(*keys)
        raise
    if user is not None:
        auth.throttle.give_back(*keys)
        auth.throttle.forgive(keys[0])
    return await run_in_threadpool(_after_try, request, archive, user, form, known)


def _try_later(seconds: int) -> Response:
    answer = problem_response(429, "Too many tries", f"wait {seconds} seconds before the next try")
    answer.headers["retry-after"] = str(seconds)
    return answer


def _after_try(
    request: Request, archive: Archive, user: User | None, form: dict[str, str], known_device: bool
) -> Response:
    if user is None:
        record_audit(archive, form.get("name", ""), "login failed", address=address_of(request))
        return _login_page(request, 401, translatable("Name or password is wrong."), form)
    return _password_accepted(request, archive, user, form, known_device=known_device)


def _password_accepted(
    request: Request, archive: Archive, user: User, form: dict[str, str], *, known_device: bool = False
) -> Response:
    """Signs in, or asks for the code of whoever has a second factor, or has to get one now."""
    auth = auth_state_of(request)
    if not auth.factors.is_on(user.id):
        if not auth.wants_factor(user):
            record_audit(archive, user.name, "login", address=address_of(request))
            return signed_in(request, user, form.get("next", ""), known_device=known_device)
        auth.factors.begin(user.id)
    answer = RedirectResponse(f"/login/code?next={quote(local_path(form.get('next', '')))}", 303)
    answer.set_cookie(
        cookie_of(request.scope, HALF_COOKIE), auth.sessions.password_given(user), max_age=HALF_LIFETIME, path="/login",
        secure=request.scope["scheme"] == "https", httponly=True, samesite="strict",
    )  # fmt: skip
    return answer


@router.post("/setup")
async def setup(request: Request, archive: ArchiveDep, form: ExactFormDep) -> Response:
    """Makes the first owner for whoever knows the code on the terminal; never again afterwards."""
    return await auth_state_of(request).hashing.run(partial(_setup, request, archive, form))


def _setup(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    auth, address = auth_state_of(request), address_of(request)
    if not auth.needs_owner():
        return problem_response(403, "Forbidden", "this archive already has accounts; sign in")
    key = f"setup {network_of(address)}"
    wait = auth.throttle.begin(key)
    if wait:
        return _try_later(wait)
    if not hmac.compare_digest(form.get("code", "").encode(), auth.code.encode()):
        wrong = translatable("The code is wrong. It is shown in the terminal where the service was started.")
        return _login_page(request, 403, wrong, form)
    auth.throttle.give_back(key)  # whoever has the code may take as long as they like to find a name and a password
    try:
        user = auth.accounts.add(
            form.get("name", ""), "owner", form.get("password", ""), to_millis(archive.clock()), first=True
        )
    except UsageError as error:
        return _login_page(request, 422, shell_words(error), form)
    auth.code = secrets.token_urlsafe(9)  # one owner a code, also when all accounts are removed one day
    record_audit(archive, user.name, "first owner", address=address)
    return _password_accepted(request, archive, user, {"next": "/welcome"})


def _join_page(request: Request, archive: Archive, token: str, status: int = 200, message: str = "") -> HTMLResponse:
    invitation = invitations_of(archive).find(token, to_millis(archive.clock()))
    return render_page(request, "join.html", status, invitation=invitation, token=token, message=message)


join_router = APIRouter(route_class=PageRoute)


@join_router.get("/join")
def join_page(request: Request, archive: ArchiveDep, invitation: str = "") -> HTMLResponse:
    """What an invitation gives, and the form that takes it; looking at it uses nothing up."""
    return _join_page(request, archive, invitation)


@join_router.post("/join")
async def join(request: Request, archive: ArchiveDep, form: ExactFormDep) -> Response:
    """Makes the account that an invitation is for, and signs it in."""
    return await auth_state_of(request).hashing.run(partial(_join, request, archive, form))


def _join(request: Request, archive: Archive, form: dict[str, str]) -> Response:
    token, now = form.get("invitation", ""), to_millis(archive.clock())
    try:
        user = invitations_of(archive).take(token, form.get("name", ""), form.get("password", ""), now)
    except UsageError as error:
        return _join_page(request, archive, token, 422, shell_words(error))
    record_audit(archive, user.name, "invitation accepted", user.role, address=address_of(request))
    return _password_accepted(request, archive, user, {"next": "/?joined=1"})


@router.post("/logout")
def logout(request: Request, archive: ArchiveDep, principal: PrincipalDep) -> Response:
    """Ends every session of the user."""
    auth = auth_state_of(request)
    if principal.session is not None:
        auth.accounts.end_sessions(principal.session.user.id)
        record_audit(archive, principal.name, "logout", address=address_of(request))
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(cookie_of(request.scope, SESSION_COOKIE), path="/")
    return answer


def signed_in(request: Request, user: User, target: str, *, known_device: bool = False) -> Response:
    """Leads to a path of ours with a fresh session."""
    answer = RedirectResponse(local_path(target), 303)
    begin_session(request, answer, user, known_device=known_device)
    return answer


def begin_session(request: Request, answer: Response, user: User, *, known_device: bool = False) -> None:
    """Gives an answer the cookies of a fresh session."""
    auth, secure = auth_state_of(request), request.scope["scheme"] == "https"
    if not known_device:
        answer.set_cookie(
            cookie_of(request.scope, DEVICE_COOKIE), auth.sessions.know_device(user), max_age=DEVICE_LIFETIME,
            path="/login", secure=secure, httponly=True, samesite="strict",
        )  # fmt: skip
    answer.set_cookie(
        cookie_of(request.scope, SESSION_COOKIE), auth.sessions.issue(user), max_age=SESSION_LIFETIME, path="/",
        secure=secure, httponly=True, samesite="lax",
    )  # fmt: skip


def local_path(target: str) -> str:
    """A path of ours, whatever was asked for: nobody is sent elsewhere from here."""
    fine = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable() and target.isascii()
    return target if fine else "/"


def address_of(request: Request) -> str:
    """Where a request came from, for the audit log."""
    return request.client.host if request.client else ""


language_router = APIRouter(route_class=PageRoute)

_LANGUAGE_LIFETIME = 365 * 86_400


@language_router.get("/language/{code}")
def choose(request: Request, code: str, back: str = "/") -> Response:
    """Sets the cookie and leads back to where the reader was."""
    if code not in LANGUAGES:
        raise NotFound(f"unknown language '{code[:20]}'; choose one of {', '.join(LANGUAGES)}")
    answer = RedirectResponse(local_path(back), 303)
    secure = request.scope["scheme"] == "https"
    answer.set_cookie(
        LANGUAGE_COOKIE, code, max_age=_LANGUAGE_LIFETIME, path="/", secure=secure, httponly=True, samesite="lax"
    )
    return answer


two_factor_router = APIRouter(route_class=PageRoute)


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


@two_factor_router.get("/login/code")
def code_page(request: Request) -> Response:
    """The form; whoever has not given a password is led to that first."""
    user = _who(request)
    if user is None:
        return RedirectResponse("/login", 303)
    return _code_page(request, user, request.query_params.get("next", ""))


@two_factor_router.post("/login/code")
def code(request: Request, archive: ArchiveDep, form: ExactFormDep) -> Response:
    """Opens the session that password and code are for."""
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
