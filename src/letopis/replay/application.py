"""The application of the replay origin: the frame on its base, archived sites on the hosts below, and nothing else.

There are no accounts, no API and no session of ours here. Where reading takes an account, the reader comes from the
service with a code that is used up before any archived script runs, and gets a cookie that scripts cannot read and
that lets read, no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlencode, urlsplit

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from letopis.api.requests import http_status_of
from letopis.api.sessions import cookie_of
from letopis.archive import Archive
from letopis.archive.accounts import accounts_of, session_rows_of
from letopis.errors import LetopisError, UnknownUrl
from letopis.model.rights import READ
from letopis.model.times import timestamp
from letopis.replay.addresses import ReplayKind, latest_millis, parse_address, path_after
from letopis.replay.captures import captures_near
from letopis.replay.csp import SITE_SANDBOX, site_policy
from letopis.replay.frame import (
    FRAME_TYPE,
    FramePlace,
    ShownPage,
    go_to_date,
    not_captured_page,
    replay_bar,
    replay_frame,
)
from letopis.replay.origin import ReplayOrigin, ReplaySite
from letopis.replay.redirects import RedirectCircle
from letopis.replay.sites import (
    OURS,
    SiteRequest,
    browser_script,
    common_fields,
    missing_mark,
    missing_response,
    preflight,
    site_response,
)
from letopis.tuples import NamedTuple
from letopis.web.languages import LANGUAGE_COOKIE, LANGUAGES, language_of, use_language
from letopis.web.pages import STATIC, environment

REPLAY_COOKIE = "letopis_replay"
HOME_COOKIE = "letopis_home"
REPLAY_LIFETIME = 12 * 3600
BAR = "br_"
"""The form of an address that asks for the bar of the frame alone."""
_MOST_BODY = 1024 * 1024


class ReplayHome(NamedTuple):
    """Where readers come from: the service itself. `hosts` are the names under which it may be reached."""

    default: str
    hosts: tuple[str, ...] = ()

    def of(self, request: Request) -> str:
        """The origin that a reader came from, if it is one of ours."""
        named = _cookie(request, HOME_COOKIE)
        return named if named and self.is_ours(named) else self.default

    def is_ours(self, origin: str) -> bool:
        """Whether links may lead there."""
        parts = urlsplit(origin)
        known = {*map(str.lower, self.hosts), "localhost", "127.0.0.1", urlsplit(self.default).hostname}
        return parts.scheme in ("http", "https") and parts.hostname in known and not parts.path.strip("/")


class ReplayApp:
    """Answers on the replay origin."""

    def __init__(self, archive: Archive, origin: ReplayOrigin, home: ReplayHome) -> None:
        self._archive = archive
        self._origin = origin
        self._home = home
        self._static = StaticFiles(directory=STATIC)
        self._rows = session_rows_of(archive)
        self._accounts = accounts_of(archive)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        host = request.headers.get("host", "")
        site = self._origin.site_of(host)
        if site is not None:
            answer = await self._of_site(request, site)
        elif self._origin.is_base(host) and scope["path"].startswith("/static/"):
            await self._static(dict(scope, path=scope["path"].removeprefix("/static"), root_path=""), receive, send)
            return
        elif self._origin.is_base(host):
            answer = await run_in_threadpool(self._guarded, partial(self._of_base, request))
        elif scope["path"] == "/healthz":
            answer = PlainTextResponse("ok")
        else:
            answer = PlainTextResponse("this host name is not accepted; see serve.replay_origin", 421)
        await answer(scope, receive, send)

    def _guarded(self, work: Callable[[], Response]) -> Response:
        try:
            return work()
        except LetopisError as error:
            return PlainTextResponse(f"{error}\n", http_status_of(error))

    # The base: our frame around archived pages.

    def _of_base(self, request: Request) -> Response:
        path = request.scope["path"]
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("only reading", 405)
        if path == f"{OURS}ping":
            fields = {"access-control-allow-origin": request.headers.get("origin", "*"), "vary": "origin"}
            return Response(status_code=204, headers=fields)
        if path == f"{OURS}enter":
            return self._entered(request)
        if not self._may_read(request):
            return RedirectResponse(f"{self._home.of(request)}/replay/enter?to={quote(_path_and_query(request))}", 303)
        if path == "/replay/go":
            return go_to_date(request)
        if path.startswith("/web/"):
            return self._framed(request)
        return RedirectResponse(self._home.of(request), 303)

    def _framed(self, request: Request) -> Response:
        home = self._home.of(request)
        address = parse_address(path_after(request.scope, "/web/"))
        if address.kind is not ReplayKind.MEMENTO:
            return RedirectResponse(f"{home}{_path_and_query(request)}", 303)
        asked = latest_millis(address.stamps[0]) - 999
        inner = self._origin.address(address.url, asked)
        try:
            near = captures_near(self._archive, address.url, asked)
        except UnknownUrl:
            near = None
        if near is None and address.form == BAR:
            return self._rendered(request, lambda: _missing_bar(address.url, home), 404)
        if near is None or inner is None:
            return RedirectResponse(f"{home}{_path_and_query(request)}", 303)
        page = ShownPage(near, near.closest(asked), asked)
        if address.form == BAR:
            return self._rendered(request, lambda: replay_bar(self._archive, page, home))
        place = FramePlace(inner, SITE_SANDBOX, home)
        return self._rendered(request, lambda: replay_frame(self._archive, page, place))

    def _rendered(self, request: Request, text: Callable[[], str], status: int = 200) -> Response:
        base = self._origin.base
        policy = (
            f"default-src 'none'; script-src {base}/static/; style-src {base}/static/; img-src {base}/static/ "
            f"{self._origin.sites}; connect-src {base}/web/; frame-src {self._origin.sites}; "
            f"form-action {base}/replay/; base-uri 'none'; frame-ancestors 'none'"
        )
        with use_language(language_of(request)) as language:
            body = text()
        fields = {
            "content-security-policy": policy, "content-language": language.code, "cache-control": "private, no-cache",
            "referrer-policy": "no-referrer", "x-content-type-options": "nosniff", "vary": "accept-language, cookie",
        }  # fmt: skip
        return Response(body, status, headers=fields, media_type=FRAME_TYPE)

    # Who may read.

    def _entered(self, request: Request) -> Response:
        """Who comes with a code from the service: it is used up and becomes a cookie, as their language does."""
        target, home = request.query_params.get("to", ""), request.query_params.get("home", "")
        answer = RedirectResponse(target if target.startswith("/web/") else self._home.default, 303)
        now = int(time.time())
        owner = self._rows.take(request.query_params.get("code", ""), "entry", now)
        cookies = {cookie_of(request.scope, HOME_COOKIE): home} if self._home.is_ours(home) else {}
        if (spoken := request.query_params.get("language", "")) in LANGUAGES:
            cookies[LANGUAGE_COOKIE] = spoken
        if owner is not None:
            cookies[cookie_of(request.scope, REPLAY_COOKIE)] = self._rows.begin(owner, "replay", now, REPLAY_LIFETIME)
        for name, value in cookies.items():
            answer.set_cookie(
                name, value, max_age=REPLAY_LIFETIME, path="/", domain=self._origin.domain,
                httponly=True, samesite="lax", secure=self._origin.scheme == "https",
            )  # fmt: skip
        answer.headers["referrer-policy"] = "no-referrer"
        return answer

    def _may_read(self, request: Request) -> bool:
        if self._archive.settings.serve.public:
            return True
        owner = self._rows.owner(_cookie(request, REPLAY_COOKIE), "replay", int(time.time()))
        user = self._accounts.by_id(owner) if owner is not None else None
        return user is not None and user.mask & READ == READ

    # The hosts below: archived sites.

    async def _of_site(self, request: Request, site: ReplaySite) -> Response:
        body = b""
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            async for piece in request.stream():
                body += piece
                if len(body) > _MOST_BODY:
                    return PlainTextResponse("too large", 413)
        asked = SiteRequest(site, self._origin, request.scope, body)
        return await run_in_threadpool(self._guarded, partial(self._site_answer, request, asked))

    def _site_answer(self, request: Request, asked: SiteRequest) -> Response:
        path = request.scope["path"]
        if request.headers.get("service-worker"):
            return PlainTextResponse("archived pages have no workers that outlive them", 404)
        if path.startswith(OURS):
            return self._own_file(path.removeprefix(OURS), asked)
        if asked.destination == "document":
            return RedirectResponse(f"{self._origin.base}/web/{timestamp(asked.site.time)}/{asked.url}", 302)
        if request.method == "OPTIONS" and request.headers.get("access-control-request-method"):
            return preflight(asked)
        if not self._may_read(request):
            return PlainTextResponse("sign in to read this archive", 401, headers=common_fields(asked))
        try:
            return site_response(self._archive, asked)
        except UnknownUrl as error:
            if not asked.shows_page:
                return missing_response(asked.key_url, str(error), common_fields(asked))
            answer = not_captured_page(request, asked.url, circle=isinstance(error, RedirectCircle))
            answer.headers.update(common_fields(asked) | {"content-security-policy": site_policy(self._origin)})
            answer.headers["server-timing"] = missing_mark(asked.key_url)
            return answer

    def _own_file(self, name: str, asked: SiteRequest) -> Response:
        if name in ("head.js", "storage.js"):
            return Response(browser_script(name), headers=common_fields(asked), media_type="text/javascript")
        if name == "full":
            fields = common_fields(asked) | {"clear-site-data": '"storage"'}
            return PlainTextResponse("This page stored too much; what it stored was deleted.", headers=fields)
        return PlainTextResponse("there is no such file", 404)


def _missing_bar(url: str, home: str) -> str:
    """Saving is for the service to do, with the reader's rights and by a click of theirs: nobody may write here."""
    values = {"url": url, "home": home, "save": f"{home}/save?{urlencode({'url': url})}"}
    return environment.get_template("replay_missing_bar.html").render(values)


def _path_and_query(request: Request) -> str:
    return "/" + path_after(request.scope, "/")


def _cookie(request: Request, name: str) -> str:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(cookie_of(request.scope, name))
    except CookieError:
        return ""
    return found.value if found else ""
