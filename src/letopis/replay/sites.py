"""Archived sites on the replay origin: each request of a page answered from the capture nearest to its time.

The name of the host says which site is meant and when, so every request is answered by itself: no state, no worker in
the browser. Whatever was not captured is 404; nothing is ever asked of the live web, by us or by the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import Response
from starlette.responses import PlainTextResponse
from starlette.types import Scope

from letopis.archive import Archive
from letopis.archive.captures import ArchivedResponse, TimelineCapture, load_as_sent, load_capture, timeline_of
from letopis.bounded import run_bounded
from letopis.errors import TooCostly, UnknownUrl
from letopis.extract.rewriter import ATTRIBUTE_VALUE, Rewriter, carried_text
from letopis.model import from_millis, to_millis
from letopis.model.times import timestamp
from letopis.replay.addresses import http_date, path_after
from letopis.replay.captures import MAX_REWRITTEN, ReplayRequest, body_response, captures_near, is_page
from letopis.replay.csp import connection_policy, header_value, site_policy
from letopis.replay.origin import ReplayOrigin, ReplaySite
from letopis.replay.redirects import RedirectCircle, ShownCapture, ends_in_circle, shown_capture
from letopis.tuples import NamedTuple
from letopis.urls import surt
from letopis.urls.request_keys import HttpRequest, request_url

_QUICKLY_REWRITTEN = 256 * 1024
_FRAMES = ("iframe", "frame", "embed", "object")
_WORKERS = ("worker", "sharedworker")
_SCRIPT_TYPES = ("javascript", "ecmascript")
_MOST_REDIRECTS = 10
_IN_URL = ":/?#[]@!$&'()*+,;=%~"
_KEPT_HEADERS = frozenset(
    {"content-language", "content-disposition", "etag", "last-modified", "age", "expires", "retry-after", "allow"}
)
"""Stored fields that are sent unchanged, besides those that sites name with `X-`."""
_LEFT_OUT = frozenset({"x-frame-options", "x-content-type-options", "x-dns-prefetch-control", "x-accel-redirect"})


class SiteRequest(NamedTuple):
    """What a page asks of an archived site."""

    site: ReplaySite
    origin: ReplayOrigin
    scope: Scope
    body: bytes = b""

    @property
    def fields(self) -> ReplayRequest:
        """Its header fields."""
        return ReplayRequest(self.scope, "")

    @property
    def destination(self) -> str:
        """What the browser wants it for."""
        return self.fields.header(b"sec-fetch-dest") or ""

    @property
    def shows_page(self) -> bool:
        """Whether it is shown as a page, in the frame of Letopis or in one of a page."""
        accepts = (self.fields.header(b"accept") or "").startswith("text/html")
        return self.destination in _FRAMES or (not self.destination and accepts)

    @property
    def url(self) -> str:
        """The original URL."""
        path, mark, query = path_after(self.scope, "/").partition("?")
        return f"{self.site.origin}/{path}{mark}{self.origin.restored(query)}"

    @property
    def key_url(self) -> str:
        """The address under which its answer is kept: method and body are a part of it."""
        method = self.scope["method"]
        if method in ("GET", "HEAD"):
            return self.url
        body = self.origin.restored(self.body.decode("latin-1")).encode("latin-1")
        return request_url(self.url, HttpRequest(method, self.fields.header(b"content-type") or "", body))


class SiteAnswer(NamedTuple):
    """The capture that answers; `location` is where a redirect leads on the replay origin."""

    moment: TimelineCapture
    stored: ArchivedResponse
    location: str = ""


def site_response(archive: Archive, asked: SiteRequest) -> Response:
    """The answer of an archived site; UnknownUrl where nothing was captured."""
    found = _found(archive, asked)
    fields = common_fields(asked) | {
        "memento-datetime": http_date(found.moment.time),
        "content-security-policy": site_policy(asked.origin),
    }
    if found.location:
        return Response(status_code=302, headers=fields | {"location": found.location})
    stored = found.stored
    body, note = _prepared(asked, found)
    if note:
        fields["letopis-note"] = note
    response = body_response(stored, body, fields, asked.fields.range)
    for name, value in stored.headers:
        lower = name.lower()
        if lower in _KEPT_HEADERS or (lower.startswith("x-") and lower not in _LEFT_OUT and name.isascii()):
            response.headers.append(lower, header_value(value))
    return response


def common_fields(asked: SiteRequest) -> dict[str, str]:
    """What every answer of an archived site carries. Other archived sites may read it, pages elsewhere may not."""
    fields = {
        "cache-control": "private, no-cache",
        "referrer-policy": "unsafe-url",
        "cross-origin-resource-policy": "same-site",
        "origin-agent-cluster": "?1",
        "x-dns-prefetch-control": "off",
        "timing-allow-origin": "*",
        "connection-allowlist": connection_policy(asked.origin),
        "vary": "origin, sec-fetch-dest",
    }
    sender = asked.fields.header(b"origin") or ""
    if sender == "null" or asked.origin.original(sender) is not None:
        fields["access-control-allow-origin"] = sender
        fields["access-control-expose-headers"] = "*"
        if sender != "null":
            fields["access-control-allow-credentials"] = "true"
    return fields


def missing_mark(url: str) -> str:
    """The value of `Server-Timing` that shows pages, and programs that replay them, what the archive does not have."""
    return f'missing;desc="{quote(url, safe=_IN_URL)}"'


def missing_response(url: str, detail: str = "", fields: dict[str, str] | None = None) -> Response:
    """The requested URL is not in the archive. The icon that browsers request from every site gets an empty answer."""
    headers = (fields or {}) | {"server-timing": missing_mark(url)}
    if urlsplit(url).path == "/favicon.ico":
        return Response(status_code=204, headers=headers)
    return PlainTextResponse(f"{detail or url}\n", 404, headers=headers)


def preflight(asked: SiteRequest) -> Response:
    """What a browser asks before it sends a page's request to another archived site: all of them may."""
    wanted = asked.fields.header(b"access-control-request-headers") or "*"
    fields = {"access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE", "access-control-max-age": "600"}
    return Response(status_code=204, headers=common_fields(asked) | fields | {"access-control-allow-headers": wanted})


def _found(archive: Archive, asked: SiteRequest) -> SiteAnswer:
    """The nearest capture. A page is redirected; other requests get what is at the end of the redirects."""
    url = asked.key_url
    for _ in range(_MOST_REDIRECTS):
        moment = _member(archive, asked, url) or captures_near(archive, url, asked.site.time).closest(asked.site.time)
        shown = shown_capture(archive, moment)
        if shown.target is None:
            return SiteAnswer(shown.moment, _as_sent(archive, asked, shown))
        if surt(shown.target.url) == surt(moment.url):
            answer = timeline_of(archive, moment.url).closest_answer(asked.site.time)
            if answer is not None:
                return SiteAnswer(answer, load_capture(archive, answer))
        location = asked.origin.address(shown.target.url, asked.site.time)
        if location is not None and asked.shows_page and ends_in_circle(archive, moment, asked.site.time):
            raise RedirectCircle(f"{url} was captured as a redirect in a circle")
        if location is not None:
            return SiteAnswer(shown.moment, shown.stored, location)
        url = shown.target.url
    raise UnknownUrl(f"{asked.url} leads nowhere")


def _as_sent(archive: Archive, asked: SiteRequest, shown: ShownCapture) -> ArchivedResponse:
    """What the server sent for a page that a browser captured whole: its scripts run again, on what they ran on then.

    On what they had made of it they would make everything twice.
    """
    moment = shown.moment
    if not asked.shows_page or archive.attached(SetTimes).of(moment.url, moment.time) is None:
        return shown.stored
    return load_as_sent(archive, moment, shown.stored)


_MOST_SETS = 64


class SetTimes:
    """When the members of capture sets were captured, by their sorted keys; for the sets requested last."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: dict[tuple[str, int], dict[str, int] | None] = {}

    def of(self, page: str, time: int) -> dict[str, int] | None:
        """The members of the look that captured a page at a time; None where it was captured alone."""
        key = (page, time)
        if key not in self._known:
            if len(self._known) >= _MOST_SETS:
                self._known.clear()
            self._known[key] = self._read(page, time)
        return self._known[key]

    def _read(self, page: str, time: int) -> dict[str, int] | None:
        found = self._archive.sets.nearest(page, from_millis(time))
        if found is None or to_millis(found.time) // 1000 != time // 1000:
            return None
        return {surt(member.url): to_millis(member.time) for member in self._archive.sets.members(found)}


def _member(archive: Archive, asked: SiteRequest, url: str) -> TimelineCapture | None:
    """The capture of the page in its own check, if the page was captured whole."""
    page = asked.origin.original(asked.fields.header(b"referer") or "")
    if page is None or asked.shows_page:
        return None
    shown = timeline_of(archive, page).closest(asked.site.time)
    members = archive.attached(SetTimes).of(shown.url, shown.time) if shown is not None else None
    time = members.get(surt(url)) if members else None
    return timeline_of(archive, url).closest(time) if time is not None else None


def _prepared(asked: SiteRequest, found: SiteAnswer) -> tuple[bytes, str]:
    """The body as the page may use it, and why it was left as it is, where it was."""
    stored = found.stored
    type_ = stored.content_type.partition(";")[0].strip().lower()
    kind = "style" if type_ == "text/css" else "script" if type_.endswith(_SCRIPT_TYPES) else ""
    if asked.shows_page and is_page(stored):
        kind = "page"
    if not kind or stored.body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return stored.body, ""
    body, note = stored.body, ""
    order = {
        "kind": kind, "url": found.moment.url, "time": asked.site.time, "content_type": stored.content_type,
        "origin": [asked.origin.scheme, asked.origin.host],
    }  # fmt: skip
    try:
        if len(body) <= _QUICKLY_REWRITTEN:
            body = rewrite_for_site(order, body)
        elif len(body) <= MAX_REWRITTEN:
            body = run_bounded("letopis.replay.sites:rewrite_for_site", order, body)
        else:
            note = "links were not rewritten: it is too large"
    except TooCostly as error:
        note = f"links were not rewritten: {error}"
    if kind == "script" and asked.destination in _WORKERS:
        body = browser_script("head.js") + b"\n" + body
    if kind == "page":
        body = with_head_script(body, f' data-time="{timestamp(found.moment.time)}"')
    return body, note


OURS = "/.letopis/"
"""The folder on each archived site that is answered by us and not by the archive."""
_SCRIPTS = Path(__file__).parent / "browser"
_ABSOLUTE = ("http://", "https://", "//")
_FOLLOWED = frozenset({"a", "area", "blockquote", "q", "ins", "del"})
_POLICY = re.compile(r"http-equiv(?=\s*+=\s*+[\"']?\s*+content-security-policy)", re.IGNORECASE)
_SANDBOX = re.compile(rf"([\s\"'/])(sandbox|csp)(?:{ATTRIBUTE_VALUE}|(?=[\s>/]))", re.IGNORECASE)
_IMPORT = re.compile(r"(\b(?:from|import)\s*+\(?\s*+)([\"'])((?:https?:)?//[^\"'\s]++)(?=\2)", re.ASCII)
_HEAD = re.compile(
    r"(?>\xef\xbb\xbf)?+(?>\s++|<\?xml[^>]*+>|<!--.*?-->)*+(?><!doctype[^>]*+>)?+(?>\s++|<!--.*?-->)*+(?><html\b[^>]*+>)?+"
    r"(?>\s++|<!--.*?-->)*+(?><head(?=[\s>])[^>]*+>)?+",
    re.IGNORECASE | re.DOTALL,
)


class SiteRewriter(Rewriter):
    """Leads absolute addresses to the replay origin, at the time of the page."""

    def __init__(self, url: str, lead: Callable[[str], str | None], read: Callable[[str], str] = str) -> None:
        super().__init__(url, lambda target, _: target, read)
        self._led = lead
        self._kind = ""

    def _linked(self, address: str, needed: bool) -> str:
        plain = address.strip()
        if not plain.lower().startswith(_ABSOLUTE) or self._kind in _FOLLOWED:
            return address
        return self._led(plain) or address

    def link(self, address: str, needed: bool = False) -> str:
        """One URL as it is in a page; the same one may lead elsewhere in another tag."""
        return self._linked(address, needed)

    def _tag(self, match: re.Match[str]) -> str:
        self._kind = (match["raw"] or match["name"] or "").lower()
        if self._kind == "script":
            start = match.start("body") - match.start()
            return self._attributes(str(match[0])[:start], "script") + self.script(match["body"])
        return super()._tag(match)

    def _attributes(self, tag: str, name: str) -> str:
        if self._kind == "meta":
            tag = _POLICY.sub("data-http-equiv", tag)
        elif self._kind in ("iframe", "frame"):
            tag = _SANDBOX.sub(r"\1data-archived-\2", tag)
        return super()._attributes(tag, name)

    def css(self, text: str) -> str:
        """A style sheet, or a style attribute of whatever tag."""
        kind, self._kind = self._kind, ""
        styled = super().css(text)
        self._kind = kind
        return styled

    def script(self, text: str) -> str:
        """A script: modules that it names by whole addresses."""
        return _IMPORT.sub(lambda found: f"{found[1]}{found[2]}{self._led(found[3]) or found[3]}", text)


def rewrite_for_site(order: Mapping[str, Any], body: bytes) -> bytes:
    """A body for the replay origin; `kind` is `page`, `style` or `script`."""
    text, carrier, read = carried_text(body, order["content_type"])
    origin, time = ReplayOrigin(*order["origin"]), order["time"]
    rewriter = SiteRewriter(order["url"], lambda target: origin.address(target, time), read)
    change = {"page": rewriter.html, "style": rewriter.css, "script": rewriter.script}[order["kind"]]
    return change(text).encode(carrier, "surrogateescape")


@cache
def browser_script(name: str) -> bytes:
    """One of our scripts for archived pages."""
    return (_SCRIPTS / name).read_bytes()


def with_head_script(page: bytes, attributes: str) -> bytes:
    """A page in which the replay script runs before anything else."""
    text = page.decode("latin-1")
    found = _HEAD.match(text)
    at = found.end() if found is not None else 0
    script = f'<script src="{OURS}head.js"{attributes}></script>'.encode()
    return page[:at] + script + page[at:]
