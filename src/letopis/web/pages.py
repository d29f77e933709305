"""What every page shares: templates and their filters, the route class, forms, dates, long lists, addresses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, quote, unquote, unquote_plus, urlsplit

from anyio.to_thread import run_sync
from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from letopis import __version__
from letopis.api.access import principal_of
from letopis.api.requests import archive_of, http_status_of
from letopis.archive import Archive
from letopis.archive.activity import find_page
from letopis.archive.index_facts import count_site_pages
from letopis.config.loader import format_size
from letopis.errors import LetopisError, UsageError, shell_words
from letopis.model import rfc3339, stamp14
from letopis.replay.addresses import embedded_url, path_after
from letopis.schedule.policies import format_span
from letopis.tuples import NamedTuple
from letopis.urls import host
from letopis.urls.rules import without_tracking
from letopis.web.engine_words import error_words, finding_words, full_sentence
from letopis.web.languages import (
    LANGUAGES,
    current_language,
    grouped,
    language_name,
    language_of,
    translatable,
    translate,
    translate_count,
    use_language,
)
from letopis.web.watch_form import every_words

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_STAMPED = re.compile(r"^(?:\d{1,14}(?:[a-z]{2}_|\*)?|\*)/")
_OURS = re.compile(r"(?:at|alert|from|to|view|saved\.now|(?:v|c|in|out)\.\w+)=")
_IN_PATH = "/:@!$&'()*+,;=-._~[]"


def short_time(moment: datetime | None) -> str:
    """`2026-03-01 12:00`, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if moment else ""


_rendered_at: ContextVar[datetime | None] = ContextVar("letopis_rendered_at", default=None)
_FAR = 32 * 86_400
_JUST_NOW = 60
_SAID_HERE = (
    translatable("just now"), translatable("in a moment"), translatable("due now"), translatable("{span} ago"),
    translatable("in {span}"),
)  # fmt: skip
"""For the translations."""


def relative_time(moment: datetime | None) -> str:
    """`5 min ago`, `in 2 h`, as seen from when the page was made; times further away than a month are days."""
    now = _rendered_at.get()
    if moment is None or now is None:
        return short_time(moment)
    seconds = (now - moment).total_seconds()
    if abs(seconds) > _FAR:
        return iso_day(moment)
    if abs(seconds) < _JUST_NOW:
        return translate("just now" if seconds >= 0 else "in a moment")
    span = format_span(abs(seconds)).split(" ")
    return translate("{span} ago" if seconds > 0 else "in {span}", span=" ".join(span[:2]))


def due_time(moment: datetime | None) -> str:
    """When something is to come, in the same words."""
    now = _rendered_at.get()
    return translate("due now") if moment and now and moment <= now else relative_time(moment) or "–"


def iso_day(moment: datetime | None) -> str:
    """`2026-03-01`, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d") if moment else ""


def input_minute(moment: datetime) -> str:
    """`2026-03-01T12:00`, UTC, as an input for times wants it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M")


def human_size(count: float) -> str:
    """`812 B`, `4.1 kB`, as the reader's language writes it."""
    step = 0
    while count >= 1000 and step < len(_UNITS) - 1:
        count, step = count / 1000, step + 1
    return f"{count:.0f} {_UNITS[step]}" if step == 0 else f"{decimal(count)} {_UNITS[step]}"


def decimal(value: float, places: int = 1) -> str:
    """`4.1`, or `4,1`."""
    return f"{value:.{places}f}".replace(".", current_language().decimal)


def share(part: float) -> str:
    """`12.5 %`."""
    return f"{decimal(100 * part)}\u00a0%"


def url_in_path(url: str) -> str:
    """A page's address as it stands inside one of ours: as it is, escaped only where it has a query."""
    return quote(url, safe=_IN_PATH) if "?" in url else url


def bare_url(url: str) -> str:
    """An address without its scheme, for lists."""
    return url.partition("://")[2] or url


def local_url(url: str, site: str) -> str:
    """The same as a list of a site shows it: without the site where that is its host."""
    text = bare_url(url)
    return text.removeprefix(site) if text.startswith(f"{site}/") else text


environment = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
environment.filters |= {
    "short": short_time,
    "day": iso_day,
    "ago": relative_time,
    "due": due_time,
    "minute": input_minute,
    "size": human_size,
    "setting_size": format_size,
    "number": grouped,
    "decimal": decimal,
    "share": share,
    "inside": url_in_path,
    "bare": bare_url,
    "local": local_url,
    "sentence": full_sentence,
    "said": error_words,
    "tongue": language_name,
    "finding": finding_words,
    "every": every_words,
    "span": lambda seconds: format_span(seconds).replace(".", current_language().decimal),
    "rfc3339": rfc3339,
    "stamp": stamp14,
}
OUTCOME_NAMES = {
    "new": translatable("new"),
    "changed": translatable("changed"),
    "unchanged": translatable("unchanged"),
    "unavailable": translatable("unavailable"),
    "too-large": translatable("too large"),
    "refused": translatable("not asked"),
}
"""One word for each outcome of a look, in every list and while it happens."""
FAILURE_NAMES = {
    "dns": translatable("no such host"),
    "connect": translatable("no connection"),
    "tls": translatable("invalid certificate"),
    "timeout": translatable("no answer in time"),
    "reset": translatable("connection closed"),
    "too-large": translatable("too large"),
    "redirect-loop": translatable("redirect loop"),
    "too-many-hops": translatable("too many redirects"),
    "bad-redirect": translatable("redirect without an address"),
    "robots": translatable("robots.txt forbids it"),
    "forbidden-address": translatable("private address"),
}
NO_ANSWER = translatable("no answer")
"""Why there was no answer, wherever a status would stand; and what is said of all other reasons."""
environment.globals |= {
    "failures_called": FAILURE_NAMES,
    "no_answer": NO_ANSWER,
    "outcomes_called": OUTCOME_NAMES,
    "version": __version__,
    "languages": LANGUAGES,
    "spoken": current_language,
    "_": translate,
    "n_": translate_count,
}

PAGE_CSP = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'self'"
)
"""Nothing but our own files: no inline script or style, no other host."""

PAGE_HEADERS = {
    "content-security-policy": PAGE_CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-cache, private",
}
_MOST_BESIDE = 10_000
"""Addresses of a site up to which somebody who found nothing there waits for their number."""
_TITLES = {
    400: translatable("Invalid request"),
    403: translatable("Not allowed"),
    404: translatable("Not in this archive"),
    413: translatable("Too large"),
    429: translatable("Too many attempts"),
}

_LISTS = {
    "/jobs": translatable("All runs"),
    "/watches": translatable("All watches"),
    "/saved": translatable("All saved searches"),
    "/projects": translatable("All projects"),
    "/docs": translatable("All addresses of the HTTP interface"),
}
"""Where to go on from what is not there."""


def render_page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A template rendered with its values in the reader's language; everything in it is escaped."""
    shared = {
        "path": request.url.path,
        "address": _current_address(request),
        "principal": principal_of(request),
        "site_beside": partial(_site_beside, archive_of(request)),
        **values,
    }
    made_at = _rendered_at.set(archive_of(request).clock())
    try:
        with use_language(language_of(request)) as language:
            text = environment.get_template(template).render(shared)
    finally:
        _rendered_at.reset(made_at)
    headers = PAGE_HEADERS | {"content-language": language.code, "vary": "Accept-Language, Cookie"}
    return HTMLResponse(text, status, headers=headers)


def _current_address(request: Request) -> str:
    """Where the reader is, with its question: the way back from the choice of a language; of a form, where it stood."""
    asked = urlsplit(request.headers.get("referer", "")) if request.method == "POST" else request.url
    if asked.netloc != request.url.netloc:
        return "/"
    return asked.path + (f"?{asked.query}" if asked.query else "")


def _site_beside(archive: Archive, url: str) -> tuple[str, int, str]:
    """The host of an address that is not here, how many others of it are, and what is known with fewer parameters."""
    name, fewer = host(url), (without_tracking(url), url.partition("?")[0])
    known = (one for one in fewer if one != url and find_page(archive, one) is not None)
    return name, count_site_pages(archive, name, _MOST_BESIDE), next(known, "")


def error_page(request: Request, error: LetopisError) -> HTMLResponse:
    """What went wrong, as a page that says what to do."""
    return problem_page(request, http_status_of(error), shell_words(error))


def form_status(error: LetopisError) -> int:
    """The status of a form that is shown again with what is wrong in it."""
    return 422 if isinstance(error, UsageError) else http_status_of(error)


def problem_page(request: Request, status: int, message: str) -> HTMLResponse:
    """The same of what is known by its status and a sentence; of an unknown address, what can be done with it."""
    title = _TITLES.get(status, translatable("Something went wrong"))
    unknown = _unknown_address(request) if status == 404 else ""
    nowhere = status == 404 and request.scope.get("route") is None and not unknown
    if nowhere:
        title = translatable("No such page")
    if status == 404 and request.url.path == "/join":
        title, nowhere = translatable("This invitation was already used or has expired"), False
    lacking = status == 403 and message.endswith("may not do this; ask an owner of this archive")
    return render_page(
        request, "error.html", status, title=title, message=message, unknown=unknown, nowhere=nowhere, lacking=lacking,
        lists=_LISTS, fault=status == 500,
    )  # fmt: skip


def _unknown_address(request: Request) -> str:
    """The address of the page that was asked for and is not in the archive; empty where none was."""
    for prefix in ("/url/", "/compare/", "/web/"):
        if request.url.path.startswith(prefix):
            path = path_after(request.scope, prefix)
            return _parsed_url(_STAMPED.sub("", path) if prefix == "/web/" else _page_asked(path)) or ""
    if request.url.path.startswith("/site/"):
        return _parsed_url(path_after(request.scope, "/site/").partition("?")[0]) or ""
    return ""


def _page_asked(path: str) -> str:
    """An address with its question, but for the parameters that are ours."""
    where, _, query = path.partition("?")
    rest = "&".join(pair for pair in query.split("&") if pair and not _OURS.match(pair))
    return unquote(where) + (f"?{rest}" if rest else "")


# A longer number, which no database can look up, is the address of no page.
register_url_convertor("row", type("RowNumber", (IntegerConvertor,), {"regex": "[0-9]{1,18}"})())


class PageRoute(APIRoute):
    """A route whose errors are read by people."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with LetopisErrors turned into pages."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handle(request)
            except LetopisError as error:
                return await run_in_threadpool(error_page, request, error)

        return guarded


MOST_FORM_BYTES = 64 * 1024
_MOST_FIELDS, _MOST_EXACT_FIELDS = 200, 50


async def _read_fields(request: Request, most: int, *, blank: bool) -> dict[str, list[str]]:
    """The fields of a form, each with all its values, as they were typed; with those left `blank` or without."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_FORM_BYTES:
            raise UsageError("the form is too large; send less at once")
    try:
        return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=blank, max_num_fields=most)
    except ValueError:
        raise UsageError("the form has too many fields; send less at once") from None


async def fields_of(request: Request) -> dict[str, list[str]]:
    """The fields of a form, each with all its values."""
    fields = await _read_fields(request, _MOST_FIELDS, blank=False)
    return {name: [value.strip() for value in values] for name, values in fields.items()}


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, the first value of each."""
    return first_values(await fields_of(request))


async def exact_form_of(request: Request) -> dict[str, str]:
    """The fields of a form as they were typed: a password may begin or end with a blank."""
    return first_values(await _read_fields(request, _MOST_EXACT_FIELDS, blank=True))


def first_values(fields: Mapping[str, list[str]]) -> dict[str, str]:
    """The first value of each field."""
    return {name: values[0] for name, values in fields.items()}


FieldsDep = Annotated[dict[str, list[str]], Depends(fields_of)]
FormDep = Annotated[dict[str, str], Depends(form_of)]
ExactFormDep = Annotated[dict[str, str], Depends(exact_form_of)]
"""What a form sends, for routes that run in a thread: it is read before they begin."""


def listed_addresses(text: str) -> list[str]:
    """The addresses that people list, one per line or with blanks between; a line with other words stays whole, so
    that it is refused as it stands instead of becoming an address a word.
    """
    lines = (line.split() for line in text.splitlines())
    return [
        one
        for words in lines if words
        for one in (words if all("." in word or ":" in word for word in words) else [" ".join(words)])
    ]  # fmt: skip


class PageAddress(NamedTuple):
    """The page that is meant, and the parameters that are ours."""

    url: str
    own: dict[str, str]


def page_address(archive: Archive, scope: Any, prefix: str, names: tuple[str, ...]) -> PageAddress:
    """What `<prefix><url>?<query>` means.

    Parameters with one of our `names` are ours, all others belong to the address. Addresses are taken as they stand;
    one that is not known then is read as escaped, which is how our own links write a query.
    """
    path, _, query = path_after(scope, prefix).partition("?")
    own, rest = _parted(query, names)
    tail = f"?{rest}" if rest else ""
    plain = _parsed_url(path + tail)
    if plain is not None and find_page(archive, plain) is not None:
        return PageAddress(plain, own)
    opened = embedded_url(unquote(path) + tail)
    return PageAddress(opened, own)


def _parsed_url(text: str) -> str | None:
    try:
        return embedded_url(text)
    except UsageError:
        return None


def _parted(query: str, names: tuple[str, ...]) -> tuple[dict[str, str], str]:
    own: dict[str, str] = {}
    rest = []
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        if name in names:
            own[name] = unquote_plus(value)
        else:
            rest.append(pair)
    return own, "&".join(rest)


_FOR_PROGRAMS = ("/api/", "/cdx/", "/web/cdx", "/web/timemap", "/metrics", "/openapi.json", "/healthz")
_PROBLEM = b"application/problem+json"
_OF_THE_BODY = (b"content-type", b"content-length")


class ProblemPages:
    """Turns problem documents into pages for browsers; everything else passes as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"].startswith(_FOR_PROGRAMS) or not _reads_pages(scope):
            await self._app(scope, receive, send)
            return
        replacing = _Replacing(scope, receive, send)
        try:
            await self._app(scope, receive, replacing)
        except Exception:
            await replacing.fault()
            raise


def _reads_pages(scope: Scope) -> bool:
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


class _Replacing:
    """A send that holds a problem document back until it is whole."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._start: Message | None = None
        self._body = b""
        self._sent = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_problem(message):
            self._start = message
        elif self._start is None:
            self._sent = True
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                page = await run_sync(self._page, self._start)
                await page(self._scope, self._receive, self._send)

    async def fault(self) -> None:
        """A page for what nobody foresaw, unless an answer has begun; the server logs where it happened."""
        if not self._sent:
            self._sent = True
            page = await run_sync(problem_page, Request(self._scope), 500, "")
            await page(self._scope, self._receive, self._send)

    def _page(self, start: Message) -> Response:
        problem: dict[str, Any] = json.loads(self._body)
        page = problem_page(Request(self._scope), start["status"], str(problem.get("detail", "")))
        kept = [field for field in start["headers"] if field[0] not in _OF_THE_BODY]
        page.raw_headers.extend(kept)
        return page


def _is_problem(message: Message) -> bool:
    return any(name == b"content-type" and value.startswith(_PROBLEM) for name, value in message["headers"])
