"""Mementos: one capture as it was, for browsers and for programs."""

from __future__ import annotations

from fastapi import Request, Response
from starlette.types import Scope

from letopis.archive import Archive
from letopis.catalog.moments import Around, Moment
from letopis.errors import UnknownUrl
from letopis.serve.memento.addresses import Address, Web
from letopis.serve.memento.cage import RAW_POLICY, SAFE, content_type, original_headers, policy
from letopis.serve.memento.links import memento_links, resource_links
from letopis.serve.memento.stored import Stored, load, timeline
from letopis.serve.memento.view import frame, is_page, rewritten
from letopis.serve.pages.languages import Language, language_of, speaking
from letopis.serve.stamps import http_stamp, latest, parse_http_date, stamp

RAW = "id_"
_ALWAYS = 2**62
"""A time after every capture."""

_HTML = "text/html; charset=utf-8"


def not_captured(url: str) -> UnknownUrl:
    """What is answered for a URL without captures."""
    return UnknownUrl(f"{url} was never captured here")


def timegate(archive: Archive, web: Web, address: Address, accept: str | None) -> Response:
    """The capture closest to the date asked for, else the newest; as a redirect."""
    time = _ALWAYS if accept is None else parse_http_date(accept)
    near = timeline(archive, address.url).around(time)
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


def memento(archive: Archive, web: Web, address: Address, scope: Scope, *, scripts: bool) -> Response:
    """The capture of exactly this second, the last one if there are several; or the way to the closest one."""
    digits = address.stamps[0]
    end = latest(digits)
    near = timeline(archive, address.url).around(end)
    if near is None:
        raise not_captured(address.url)
    moment = near.upto if near.upto is not None and near.upto.time >= end - 999 else near.closest(end)
    if stamp(moment.time) != digits:
        location = web.origin + web.inside(moment.time, moment.url, address.form)
        return Response(status_code=302, headers={"location": location, "link": resource_links(web, moment.url)})
    framed = language_of(Request(scope)) if _wants_frame(scope, address) else None
    return _shown(archive, web, near, moment, address.form, framed, scripts)


def _wants_frame(scope: Scope, address: Address) -> bool:
    """Browsers say when they show a whole page; programs get the capture itself."""
    kinds = [value for name, value in scope["headers"] if name == b"sec-fetch-dest"]
    return not address.form and kinds == [b"document"]


def _shown(
    archive: Archive, web: Web, near: Around, moment: Moment, form: str, framed: Language | None, scripts: bool
) -> Response:
    """The capture; inside our frame where that has a language."""
    named = [("first", near.first), ("prev", near.before), ("", moment), ("next", near.after), ("last", near.last)]
    fields = {
        "memento-datetime": http_stamp(moment.time),
        "link": f"{resource_links(web, moment.url)}, {memento_links(web, named)}",
        "access-control-allow-origin": "*",
        **SAFE,
    }
    stored = load(archive, moment)
    if stored.location:
        fields["location"] = web.origin + web.inside(moment.time, stored.location, form)
    if framed is not None and is_page(stored) and not stored.location:
        return _framed(web, near, moment, fields, framed)
    return _bytes(web, moment, stored, fields, form, scripts)


def _framed(web: Web, near: Around, moment: Moment, fields: dict[str, str], language: Language) -> Response:
    fields["content-security-policy"] = _frame_policy(web.origin)
    fields |= {"vary": "sec-fetch-dest, accept-language, cookie", "content-language": language.code}
    with speaking(language):
        return Response(frame(web, near, moment), headers=fields, media_type=_HTML)


def _frame_policy(origin: str) -> str:
    return (
        f"default-src 'none'; style-src {origin}/static/; frame-src {origin}/web/; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _bytes(web: Web, moment: Moment, stored: Stored, fields: dict[str, str], form: str, scripts: bool) -> Response:
    raw = form == RAW
    fields["content-security-policy"] = RAW_POLICY if raw else policy(web.origin, scripts=scripts)
    body = stored.body if raw else rewritten(web, stored, moment)
    if stored.content_type:
        fields["content-type"] = content_type(stored.content_type)
    if not form:
        fields["vary"] = "sec-fetch-dest"
    response = Response(body, stored.status, headers=fields)
    for name, value in original_headers(stored.headers):
        response.headers.append(name, value)
    return response
