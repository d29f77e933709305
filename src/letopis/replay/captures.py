"""One capture as it was: found by date, loaded, rewritten and framed for browsers, byte for byte for programs."""

from __future__ import annotations

import re
from datetime import datetime

from fastapi import Request, Response
from markupsafe import Markup
from starlette.types import Scope

from letopis.archive import Archive
from letopis.archive.captures import ArchivedResponse, CaptureNeighbours, TimelineCapture, load_capture, timeline_of
from letopis.errors import UnknownUrl
from letopis.extract.rewriter import Rewriter
from letopis.model import from_millis, rfc3339
from letopis.model.times import timestamp
from letopis.replay.addresses import (
    ReplayAddress,
    ReplayUrls,
    http_date,
    latest_millis,
    memento_links,
    parse_http_date,
    resource_links,
)
from letopis.replay.csp import (
    RAW_POLICY,
    SAFE_HEADERS,
    allowed_origin,
    original_headers,
    replay_policy,
    safe_content_type,
    sandbox_flags,
)
from letopis.web.languages import PageLanguage, language_of, translatable, translate, use_language
from letopis.web.pages import environment, short_time

_PAGE_TYPES = ("text/html", "application/xhtml+xml")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE | re.ASCII)
_WIDE = (b"\xff\xfe", b"\xfe\xff")
MAX_REWRITTEN = 16 * 1024 * 1024
"""Larger pages are shown as they are stored."""


def is_page(stored: ArchivedResponse) -> bool:
    """Whether a browser would show it as a page."""
    return stored.content_type.partition(";")[0].strip().lower() in _PAGE_TYPES


def rewritten_body(web: ReplayUrls, stored: ArchivedResponse, moment: TimelineCapture) -> bytes:
    """The body with its links led to the same date; bytes that are no text of ours to read stay."""
    kind = stored.content_type.partition(";")[0].strip().lower()
    page, sheet = kind in _PAGE_TYPES, kind == "text/css"
    if not (page or sheet) or len(stored.body) > MAX_REWRITTEN or stored.body.startswith(_WIDE):
        return stored.body
    charset = _charset(stored)
    text = stored.body.decode(charset, "surrogateescape")
    folder = web.folder(moment.time)
    rewriter = Rewriter(moment.url, lambda target, _: folder + target)
    return (rewriter.html(text) if page else rewriter.css(text)).encode(charset, "surrogateescape")


def _charset(stored: ArchivedResponse) -> str:
    """UTF-8 where it is named or fits; else one byte a character, which keeps every byte."""
    named = _CHARSET.search(stored.content_type)
    if named is None or named[1].lower() in ("utf-8", "utf8", "us-ascii"):
        return "utf-8"
    return "latin-1"


def replay_frame(web: ReplayUrls, near: CaptureNeighbours, moment: TimelineCapture, sandbox: str) -> str:
    """Our page around an archived one, in the language being spoken: what it is, when it was, what lies beside it."""
    at = from_millis(moment.time)
    values = {
        "url": moment.url,
        "at": at,
        "shown_at": Markup('<time datetime="{}">{}</time>').format(rfc3339(at), short_time(at)),
        "steps": _steps(web, near),
        "inner": web.origin + web.inside(moment.time, moment.url, "if_"),
        "sandbox": sandbox,
        "calendar": f"{web.origin}/web/*/{moment.url}",
    }
    return environment.get_template("replay.html").render(values)


def _steps(web: ReplayUrls, near: CaptureNeighbours) -> list[tuple[str, str, datetime]]:
    """The ways to other captures; the first and the newest only where they are not the next ones anyway."""
    ways = [(translatable("Earlier"), near.before), (translatable("Later"), near.after)]
    if near.before is not None and near.first.time < near.before.time:
        ways.insert(0, (translatable("First"), near.first))
    if near.after is not None and near.last.time > near.after.time:
        ways.append((translatable("Newest"), near.last))
    return [
        (translate(name), web.memento(to.time, to.url), from_millis(to.time)) for name, to in ways if to is not None
    ]


RAW = "id_"
_ALWAYS = 2**62
"""A time after every capture."""

_FRAME_TYPE = "text/html; charset=utf-8"


def not_captured(url: str) -> UnknownUrl:
    """What is answered for a URL without captures."""
    return UnknownUrl(f"{url} was never captured here")


def timegate(archive: Archive, web: ReplayUrls, address: ReplayAddress, accept: str | None) -> Response:
    """The capture closest to the date asked for, else the newest; as a redirect."""
    time = _ALWAYS if accept is None else parse_http_date(accept)
    near = timeline_of(archive, address.url).around(time)
    if near is None:
        raise not_captured(address.url)
    chosen = near.closest(time)
    links = memento_links(web, [("first", near.first), ("", chosen), ("last", near.last)])
    headers = {
        "location": web.memento(chosen.time, chosen.url),
        "vary": "accept-datetime",
        "link": f"{resource_links(web, chosen.url)}, {links}",
    }
    return Response(status_code=302, headers=headers)


def memento(archive: Archive, web: ReplayUrls, address: ReplayAddress, scope: Scope) -> Response:
    """The capture of exactly this second, the last one if there are several; or the way to the closest one."""
    digits = address.stamps[0]
    end = latest_millis(digits)
    near = timeline_of(archive, address.url).around(end)
    if near is None:
        raise not_captured(address.url)
    moment = near.upto if near.upto is not None and near.upto.time >= end - 999 else near.closest(end)
    if timestamp(moment.time) != digits:
        location = web.origin + web.inside(moment.time, moment.url, address.form)
        return Response(status_code=302, headers={"location": location, "link": resource_links(web, moment.url)})
    framed = language_of(Request(scope)) if _wants_frame(scope, address) else None
    return _capture_response(archive, web, near, moment, address.form, framed, allowed_origin(archive, scope))


def _wants_frame(scope: Scope, address: ReplayAddress) -> bool:
    """Browsers say when they show a whole page; programs get the capture itself."""
    kinds = [value for name, value in scope["headers"] if name == b"sec-fetch-dest"]
    return not address.form and kinds == [b"document"]


def _capture_response(
    archive: Archive,
    web: ReplayUrls,
    near: CaptureNeighbours,
    moment: TimelineCapture,
    form: str,
    framed: PageLanguage | None,
    reader: str,
) -> Response:
    """The capture; inside our frame where that has a language. `reader` is another origin that may read it."""
    named = [("first", near.first), ("prev", near.before), ("", moment), ("next", near.after), ("last", near.last)]
    fields = {
        "memento-datetime": http_date(moment.time),
        "link": f"{resource_links(web, moment.url)}, {memento_links(web, named)}",
        **SAFE_HEADERS,
        **({"access-control-allow-origin": reader} if reader else {}),
    }
    sandbox = sandbox_flags(archive)
    stored = load_capture(archive, moment)
    if stored.location:
        fields["location"] = web.origin + web.inside(moment.time, stored.location, form)
    if framed is not None and is_page(stored) and not stored.location:
        response = _framed_response(web, near, moment, fields, framed, sandbox)
    else:
        response = _body_response(web, moment, stored, fields, form, sandbox)
    if archive.settings.serve.cors:
        response.headers.add_vary_header("origin")
    return response


def _framed_response(
    web: ReplayUrls, near: CaptureNeighbours, moment: TimelineCapture, fields: dict[str, str], language: PageLanguage,
    sandbox: str,
) -> Response:  # fmt: skip
    fields["content-security-policy"] = _frame_policy(web.origin)
    fields |= {"vary": "sec-fetch-dest, accept-language, cookie", "content-language": language.code}
    with use_language(language):
        return Response(replay_frame(web, near, moment, sandbox), headers=fields, media_type=_FRAME_TYPE)


def _frame_policy(origin: str) -> str:
    return (
        f"default-src 'none'; style-src {origin}/static/; frame-src {origin}/web/; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _sendable_status(status: int) -> int:
    """The status itself; one that is none of HTTP counts as an error of the server, as clients are told to read it."""
    return status if 200 <= status <= 599 else 502


def _body_response(
    web: ReplayUrls, moment: TimelineCapture, stored: ArchivedResponse, fields: dict[str, str], form: str,
    sandbox: str,
) -> Response:  # fmt: skip
    raw = form == RAW
    fields["content-security-policy"] = RAW_POLICY if raw else replay_policy(web.origin, sandbox)
    body = stored.body if raw else rewritten_body(web, stored, moment)
    if stored.content_type:
        fields["content-type"] = safe_content_type(stored.content_type)
    if not form:
        fields["vary"] = "sec-fetch-dest"
    response = Response(body, _sendable_status(stored.status), headers=fields)
    if response.status_code != stored.status:
        response.headers["x-archive-orig-status"] = str(stored.status)
    for name, value in original_headers(stored.headers):
        response.headers.append(name, value)
    return response
