"""Who is asking, and whether they may: rights of operations and pages, checked before anything else of a request."""

from __future__ import annotations

import hmac
import re
from functools import cache
from typing import Annotated, Any
from urllib.parse import parse_qs, quote

from anyio.to_thread import run_sync
from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from letopis.api.requests import origin_of, problem_response
from letopis.api.sessions import Session, Sessions, session_cookie
from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.audit import UseCounter
from letopis.model import to_millis
from letopis.model.rights import OWN, READ, WRITE
from letopis.operations import Operation, Parameter
from letopis.operations.operation import all_operations
from letopis.tuples import NamedTuple

API = "/api/v1"
"""The prefix of the routes of operations."""
PUBLIC = 0
"""Needs no account."""

_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SIGNING_IN = ("/login", "/login/code", "/setup", "/join")
_PUBLIC_PATHS = (*_SIGNING_IN, "/healthz", "/as-of", "/openapi.json", "/docs")
_PUBLIC_FOLDERS = ("/static/", "/language/", "/docs/")


class PathPermission(NamedTuple):
    """What a path needs: to be read, and to be written to."""

    path: str
    read: int
    write: int


_PAGES = (
    PathPermission("/accounts/users", OWN, OWN),
    PathPermission("/accounts", WRITE, WRITE),
    PathPermission("/welcome", OWN, OWN),
    PathPermission("/settings", READ, OWN),
    PathPermission("/statistics", OWN, OWN),
    PathPermission("/audit", OWN, OWN),
    PathPermission("/crawl", READ, OWN),
    PathPermission("/logout", READ, READ),
    PathPermission("/alerts", READ, READ),
    PathPermission("/mcp", READ, READ),
)
"""Pages, with all below them, that differ from the rule: reading needs READ, anything else WRITE."""


_OF_A_PERSON = frozenset(
    f"/accounts{form}"
    for form in ("", "/password", "/language", "/two-factor", "/two-factor/confirm", "/two-factor/off")
)
"""What everybody who signed in does with their own account, whatever their role."""


class _RouteRight(NamedTuple):
    """The right that an operation states, with the method and the path of its route, and whether it takes a file."""

    method: str
    path: re.Pattern[str]
    right: int
    uploads: bool


def upload_of(operation: Operation[Any, Any]) -> Parameter | None:
    """The parameter of an operation that is a file in the body of a request; None where there is none."""
    return next((one for one in operation.parameters_in("http") if one.kind == "file"), None)


@cache
def _route_rights() -> list[_RouteRight]:
    """All of them in the order in which routes are tried."""
    return [
        _RouteRight(one.route.method, compile_path(API + one.route.path)[0], one.right, upload_of(one) is not None)
        for one in all_operations().values()
        if one.route
    ]


def _route_of(method: str, path: str) -> _RouteRight | None:
    """The access of the operation at a path; None if there is none."""
    if not path.startswith(API + "/"):
        return None
    asked = "GET" if method == "HEAD" else method
    return next((route for route in _route_rights() if route.method == asked and route.path.match(path)), None)


def required_permission(method: str, path: str) -> int:
    """The permission that a request needs: that of its operation, of its page, or by the rule."""
    if path in _PUBLIC_PATHS or path.startswith(_PUBLIC_FOLDERS):
        return PUBLIC
    stated = _route_of(method, path)
    if stated is not None:
        return stated.right
    safe = method in _READ_METHODS
    for need in _PAGES:
        if path == need.path or path.startswith(need.path + "/"):
            return need.read if safe else need.write
    return READ if safe else WRITE


MAX_BODY = 16 * 1024 * 1024
"""Largest body of a request that is no file."""

MAX_FORM = 64 * 1024
_FORM = b"application/x-www-form-urlencoded"
_API_PREFIXES = ("/api/", "/web/", "/cdx/", "/feed/", "/metrics", "/mcp")
_KEY = "letopis.principal"


class Principal(NamedTuple):
    """Who is asking. `csrf` is set for people who signed in with a browser."""

    name: str = ""
    mask: int = 0
    session: Session | None = None

    @property
    def csrf(self) -> str:
        """What forms of this person must carry in a field `csrf`."""
        return self.session.csrf if self.session else ""

    def may(self, permission: int) -> bool:
        """Whether all of a permission is given."""
        return self.mask & permission == permission


ANONYMOUS = Principal()


def principal_of_scope(scope: Scope) -> Principal:
    """Who is asking; nobody before the gate has looked."""
    found: Principal = scope.get(_KEY, ANONYMOUS)
    return found


def principal_of(request: Request) -> Principal:
    """Who is asking."""
    return principal_of_scope(request.scope)


PrincipalDep = Annotated[Principal, Depends(principal_of)]


class AccessGate:
    """Lets requests through to the application, or answers 401 or 403."""

    def __init__(self, app: ASGIApp, archive: Archive, sessions: Sessions) -> None:
        self._app = app
        self._public = READ if archive.settings.serve.public else 0
        self._largest_file = archive.settings.serve.max_upload
        self._accounts, self._clock, self._use = accounts_of(archive), archive.clock, archive.attached(UseCounter)
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal, receive = await self._judge(scope, receive)
        if principal_of_scope(scope) is not ANONYMOUS:
            send = _to_one_reader(send)
        if refusal is not None:
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _judge(self, scope: Scope, receive: Receive) -> tuple[Response | None, Receive]:
        principal = await self._identify(scope)
        if principal is None:
            return _unauthorized("this token is not valid; ask for a new one"), receive
        scope[_KEY] = principal
        permission = required_permission(scope["method"], scope["path"])
        own = principal.session is not None and scope["path"] in _OF_A_PERSON
        if permission != PUBLIC and not own and (principal.mask | self._public) & permission != permission:
            return _refusal(scope, principal), receive
        if scope["method"] in _READ_METHODS:
            return None, receive
        route = _route_of(scope["method"], scope["path"])
        most = self._largest_file if route is not None and route.uploads else MAX_BODY
        return await _checked_body(scope, receive, principal, most)

    async def _identify(self, scope: Scope) -> Principal | None:
        """None for credentials that are wrong. Most requests bring none, and cost nothing here."""
        authorization = _header(scope, b"authorization")
        if authorization:
            kind, _, token = authorization.partition(" ")
            if kind.lower() != "bearer":
                return None
            bearer = await run_sync(self._accounts.bearer, token.strip(), to_millis(self._clock()))
            if bearer:
                self._use.token_used(token.strip())
            return Principal(*bearer) if bearer else None
        if session_cookie(scope) is None:
            return ANONYMOUS
        session = await run_sync(self._sessions.read, scope)
        return Principal(session.user.name, session.user.mask, session) if session else ANONYMOUS


def _to_one_reader(send: Send) -> Send:
    """What somebody got by their account is kept by no cache that others share, whatever its address ends with."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            fields = list(message.get("headers", ()))
            if not any(name.lower() == b"cache-control" for name, _ in fields):
                message = {**message, "headers": [*fields, (b"cache-control", b"private")]}
        await send(message)

    return sent


async def _checked_body(
    scope: Scope, receive: Receive, principal: Principal, most: int
) -> tuple[Response | None, Receive]:
    """Changes by cookie must prove that they come from one of our own pages."""
    length = _header(scope, b"content-length")
    if length.isdigit() and int(length) > most:
        return problem_response(413, "Too large", f"this request has at most {most} bytes"), receive
    if _is_foreign(scope) and (principal.session is not None or scope["path"] in _SIGNING_IN):
        return problem_response(403, "Forbidden", "this request came from another site"), receive
    if principal.session is None:
        return None, _bounded(receive, most)
    token = _header(scope, b"x-csrf-token")
    if not token and _header(scope, b"content-type").encode().startswith(_FORM):
        token, receive = await _form_token(receive)
    if not hmac.compare_digest(token.encode(), principal.csrf.encode()):
        return problem_response(403, "Forbidden", "the form is out of date; load the page again"), receive
    return None, _bounded(receive, most)


def _is_foreign(scope: Scope) -> bool:
    """Whether a browser says that another site, or an archived page, sent this."""
    site = _header(scope, b"sec-fetch-site")
    sender = _header(scope, b"origin")
    return site in ("cross-site", "same-site") or (bool(sender) and sender != origin_of(scope))


async def _form_token(receive: Receive) -> tuple[str, Receive]:
    """The field `csrf` of a form; the body is handed on as it came."""
    body = b""
    more = True
    while more and len(body) <= MAX_FORM:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": more}

    return ("" if more else _field(body, "csrf")), again


def _field(body: bytes, name: str) -> str:
    try:
        return parse_qs(body.decode("latin-1"), max_num_fields=1000).get(name, [""])[0]
    except ValueError:
        return ""


def _bounded(receive: Receive, most: int) -> Receive:
    """Ends the connection of a client that sends more than it announced."""
    total = 0

    async def counted() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        return {"type": "http.disconnect"} if total > most else message

    return counted


def _refusal(scope: Scope, principal: Principal) -> Response:
    if principal is not ANONYMOUS:
        return problem_response(403, "Forbidden", f"'{principal.name}' may not do this; ask an owner of this archive")
    wants_page = scope["method"] == "GET" and b"text/html" in _header(scope, b"accept").encode()
    if wants_page and not scope["path"].startswith(_API_PREFIXES):
        return RedirectResponse(f"/login?next={quote(scope['path'])}", 303)
    return _unauthorized("sign in, or send a token as 'Authorization: Bearer ...'")


def _unauthorized(detail: str) -> Response:
    answer = problem_response(401, "Unauthorized", detail)
    answer.headers["www-authenticate"] = 'Bearer realm="letopis"'
    return answer


def _header(scope: Scope, wanted: bytes) -> str:
    for name, value in scope["headers"]:
        if name == wanted:
            text: str = value.decode("latin-1")
            return text
    return ""
