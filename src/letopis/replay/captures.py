"""One capture as it was: found by date, loaded, rewritten for browsers, byte for byte for programs. Runs no scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from fastapi import Request, Response
from starlette.types import Scope

from letopis.archive import Archive
from letopis.archive.captures import (
    ArchivedResponse,
    CaptureList,
    CaptureNeighbours,
    KeyRange,
    TimelineCapture,
    reads_at_once,
    timeline_of,
    timeline_of_key,
)
from letopis.bounded import run_bounded
from letopis.errors import TooCostly, UnknownUrl
from letopis.extract.rewriter import rewrite_for_another
from letopis.fetch.ranges import parse_content_range
from letopis.model import header
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
from letopis.replay.frame import FRAME_TYPE, FramePlace, ShownPage, page_path, replay_frame
from letopis.replay.origin import ReplayDoor
from letopis.replay.redirects import RedirectCircle, ends_in_circle, refresh_target, shown_capture
from letopis.tuples import NamedTuple
from letopis.urls import surt
from letopis.web.languages import language_of, use_language

_PAGE_TYPES = ("text/html", "application/xhtml+xml")
_WIDE = (b"\xff\xfe", b"\xfe\xff")
MAX_REWRITTEN = 16 * 1024 * 1024
"""Larger pages are shown as they are stored."""
_QUICKLY_REWRITTEN = 256 * 1024
"""Larger ones are rewritten by a helper, in bounded time."""


def is_page(stored: ArchivedResponse) -> bool:
    """Whether a browser would show it as a page."""
    return stored.content_type.partition(";")[0].strip().lower() in _PAGE_TYPES


class RewrittenBody(NamedTuple):
    """What is sent of a capture, and why its links were left as they are, where they were."""

    body: bytes
    note: str = ""


def rewritten_body(web: ReplayUrls, stored: ArchivedResponse, moment: TimelineCapture) -> RewrittenBody:
    """The body with its links led to the same date; bytes that are no readable text stay."""
    kind = stored.content_type.partition(";")[0].strip().lower()
    page, sheet = kind in _PAGE_TYPES, kind == "text/css"
    if not (page or sheet) or stored.body.startswith(_WIDE):
        return RewrittenBody(stored.body)
    if len(stored.body) > MAX_REWRITTEN:
        return RewrittenBody(stored.body, "links were not rewritten: it is too large")
    order = {"url": moment.url, "folder": web.folder(moment.time), "page": page, "content_type": stored.content_type}
    if len(stored.body) <= _QUICKLY_REWRITTEN:
        return RewrittenBody(rewrite_for_another(order, stored.body))
    try:
        return RewrittenBody(run_bounded("letopis.extract.rewriter:rewrite_for_another", order, stored.body))
    except TooCostly as error:
        return RewrittenBody(stored.body, f"links were not rewritten: {error}")


RAW = "id_"
_SENT_AT_ONCE, _REWRITTEN_AT_ONCE = 64 * 1024, 32 * 1024
"""Bytes of a capture up to which no thread is needed; to read one makes at most 2 MB of coder output."""
_ALWAYS = 2**62
"""A time after every capture."""

_AT_ONCE = 1
"""Seconds up to which a page that refreshes is skipped in a frame, which cannot wait."""


def not_captured(url: str) -> UnknownUrl:
    """What is answered for a URL without captures."""
    return UnknownUrl(f"{url} was never captured here")


def captures_near(archive: Archive, url: str, time: int) -> CaptureNeighbours:
    """The captures of an address around a time; if it has none, of one that means the same."""
    near = timeline_of(archive, url).around(time)
    if near is None:
        keys = similar_keys(archive.attached(CaptureList), surt(url))
        near = timeline_of_key(archive, keys.low).around(time) if keys is not None else None
    if near is None:
        raise not_captured(url)
    return near


def timegate(archive: Archive, web: ReplayUrls, address: ReplayAddress, scope: Scope) -> Response:
    """The capture closest to the requested date, or the newest; as a redirect."""
    accept = dict(scope["headers"]).get(b"accept-datetime")
    time = _ALWAYS if accept is None else parse_http_date(accept.decode("latin-1"))
    near = captures_near(archive, address.url, time)
    chosen = near.closest(time)
    links = memento_links(web, [("first", near.first), ("", chosen), ("last", near.last)])
    headers = {
        "location": web.memento(chosen.time, chosen.url),
        "vary": "accept-datetime",
        "link": f"{resource_links(web, chosen.url)}, {links}",
    }
    response = Response(status_code=302, headers=_readers(archive, scope) | headers)
    if archive.settings.serve.cors:
        response.headers.add_vary_header("origin")
    return response


class FoundMemento(NamedTuple):
    """The capture of exactly a second, the last one if there are several, else the closest one; and those around it."""

    near: CaptureNeighbours
    moment: TimelineCapture


def find_memento(archive: Archive, address: ReplayAddress) -> FoundMemento:
    """What an address names; UnknownUrl when it was never captured."""
    end = latest_millis(address.stamps[0])
    near = captures_near(archive, address.url, end)
    return FoundMemento(near, near.upto if near.upto is not None and near.upto.time >= end - 999 else near.closest(end))


def is_short_work(archive: Archive, moment: TimelineCapture, asked: ReplayRequest) -> bool:
    """Whether a capture is made ready in about a millisecond, which is less than a thread and what waits for it."""
    most = _SENT_AT_ONCE if asked.form == RAW else _REWRITTEN_AT_ONCE
    return not asked.wants_frame and reads_at_once(archive, moment, most)


def memento(archive: Archive, web: ReplayUrls, found: FoundMemento, digits: str, asked: ReplayRequest) -> Response:
    """The capture; or a redirect to it, if it is of another second and no frame shows how far off it is."""
    moment = found.moment
    if timestamp(moment.time) != digits and not (asked.wants_frame and _is_framed(archive, moment)):
        location = web.origin + web.inside(moment.time, moment.url, asked.form)
        fields = {"location": location, "link": resource_links(web, moment.url), **_readers(archive, asked.scope)}
        return Response(status_code=302, headers=fields)
    return _capture_response(archive, web, found, latest_millis(digits) - 999, asked)


def _is_framed(archive: Archive, moment: TimelineCapture) -> bool:
    _, stored, target = shown_capture(archive, moment)
    return target is None and is_page(stored)


def _readers(archive: Archive, scope: Scope) -> dict[str, str]:
    """The field that lets pages of another origin read the answer, where they may."""
    reader = allowed_origin(archive, scope)
    fields = {"access-control-allow-origin": reader} if reader else {}
    return fields | ({"vary": "origin"} if archive.settings.serve.cors else {})


class ReplayRequest(NamedTuple):
    """How a capture is requested: `form` is the kind of replay, such as `id_`."""

    scope: Scope
    form: str

    def header(self, name: bytes) -> str | None:
        """One field of the request."""
        return next((value.decode("latin-1") for key, value in self.scope["headers"] if key == name), None)

    @property
    def wants_frame(self) -> bool:
        """Browsers say when they show a whole page; programs get the capture itself."""
        return not self.form and self.header(b"sec-fetch-dest") == "document"

    @property
    def is_nested(self) -> bool:
        """Whether a browser shows it inside another page."""
        return self.header(b"sec-fetch-dest") in ("iframe", "frame")

    @property
    def range(self) -> str | None:
        """The range that is wanted. We name no validators, so one on a condition is never met."""
        return None if self.header(b"if-range") else self.header(b"range")


def _capture_response(
    archive: Archive, web: ReplayUrls, found: FoundMemento, wanted: int, asked: ReplayRequest
) -> Response:
    """The capture; a whole page in our frame, which says how far it is from the time that is wanted."""
    near = found.near
    moment, stored, target = shown_capture(archive, found.moment)
    named = [("first", near.first), ("prev", near.before), ("", moment), ("next", near.after), ("last", near.last)]
    fields = {
        "memento-datetime": http_date(moment.time),
        "link": f"{resource_links(web, moment.url)}, {memento_links(web, named)}",
        **SAFE_HEADERS,
        **_readers(archive, asked.scope),
    }
    status = stored.status
    if target is None and is_page(stored) and (asked.wants_frame or asked.is_nested):
        onward = refresh_target(archive, moment, stored)
        if onward is not None and asked.wants_frame:
            fields["refresh"] = f"{onward.delay}; url={web.origin}{web.inside(onward.time, onward.url)}"
        elif onward is not None and onward.delay <= _AT_ONCE:
            target, status = onward, 302
    circle = target is not None and (asked.wants_frame or asked.is_nested) and ends_in_circle(archive, moment)
    if circle and asked.is_nested:
        raise RedirectCircle(f"{moment.url} was captured as a redirect in a circle")
    if target is not None and not circle:
        fields["location"] = web.origin + web.inside(target.time, target.url, asked.form)
    elif asked.wants_frame and (circle or is_page(stored)):
        return _framed_response(archive, web, ShownPage(near, moment, wanted), fields, asked.scope)
    if status != stored.status:
        stored = replace(stored, status=status)
    return _body_response(archive, web, moment, stored, fields, asked)


def _framed_response(
    archive: Archive, web: ReplayUrls, page: ShownPage, fields: dict[str, str], scope: Scope
) -> Response:
    """The page without its scripts in our frame, which leads on to the replay origin where there is one."""
    moment, request = page.moment, Request(scope)
    origin = replay_door(scope).origin_for(request.headers.get("host", ""))
    place = FramePlace(web.origin + web.inside(moment.time, moment.url, "if_"), sandbox_flags(archive))
    if origin is not None and origin.address(moment.url, moment.time) is not None:
        entry = f"{web.origin}/replay/enter?to={quote(page_path(page.asked, moment.url))}"
        place = place._replace(upgrade=entry, probe=f"{origin.base}/.letopis/ping")
    language = language_of(request)
    fields["content-security-policy"] = _frame_policy(web.origin, place.probe)
    fields |= {"vary": "sec-fetch-dest, accept-language, cookie", "content-language": language.code}
    with use_language(language):
        return Response(replay_frame(archive, page, place), headers=fields, media_type=FRAME_TYPE)


def replay_door(scope: Scope) -> ReplayDoor:
    """How the service offers replay with scripts."""
    door: ReplayDoor = scope["app"].state.replay_door
    return door


def _frame_policy(origin: str, probe: str) -> str:
    scripts = f"script-src {origin}/static/; connect-src {probe}; " if probe else ""
    return (
        f"default-src 'none'; {scripts}style-src {origin}/static/; img-src {origin}/static/; frame-src {origin}/web/; "
        f"base-uri 'none'; form-action {origin}/replay/go; frame-ancestors 'none'"
    )


def sendable_status(status: int) -> int:
    """The status; one that HTTP does not have counts as an error of the server, as the standard tells clients."""
    return status if 200 <= status <= 599 else 502


def _body_response(
    archive: Archive, web: ReplayUrls, moment: TimelineCapture, stored: ArchivedResponse, fields: dict[str, str],
    asked: ReplayRequest,
) -> Response:  # fmt: skip
    raw = asked.form == RAW
    fields["content-security-policy"] = RAW_POLICY if raw else replay_policy(web.origin, sandbox_flags(archive))
    body, note = RewrittenBody(stored.body) if raw else rewritten_body(web, stored, moment)
    if note:
        fields["letopis-note"] = note
    response = body_response(stored, body, fields, asked.range)
    if not asked.form:
        response.headers.add_vary_header("sec-fetch-dest")
    for name, value in original_headers(stored.headers):
        response.headers.append(name, value)
    return response


def body_response(stored: ArchivedResponse, body: bytes, fields: dict[str, str], wanted: str | None) -> Response:
    """A stored answer with its body, or the part of it that is wanted; a status that cannot be sent is named."""
    part = body_part(stored.status, body, header(stored.headers, "content-range"), wanted)
    if part.status in (200, 206):
        fields["accept-ranges"] = "bytes"
    if part.content_range:
        fields["content-range"] = part.content_range
    if stored.content_type:
        fields["content-type"] = safe_content_type(stored.content_type)
    if sendable_status(part.status) != part.status:
        fields["x-archive-orig-status"] = str(stored.status)
    return Response(part.body, sendable_status(part.status), headers=fields)


_RANGE = re.compile(r"bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", re.ASCII | re.IGNORECASE)


class BodyPart(NamedTuple):
    """What is sent: `content_range` is empty for a whole body."""

    status: int
    body: bytes
    content_range: str = ""


def body_part(status: int, body: bytes, content_range: str, asked: str | None) -> BodyPart:
    """The part of a captured body that a client asked for.

    `content_range` is what the server said of a captured 206. Of a range that reaches past what is there its beginning
    is sent; several ranges at once are answered with everything, as RFC 9110 allows.
    """
    held = parse_content_range(content_range) if status == 206 else (0, len(body), len(body))
    if status not in (200, 206) or held is None or held[1] - held[0] != len(body):
        return BodyPart(status, body)
    start, end, total = held
    wanted = _wanted(asked, total or end) if asked else None
    if wanted is None:
        whole = start == 0 and end == total
        return BodyPart(200, body) if whole else BodyPart(206, body, _content_range(start, end, total))
    first, last = wanted
    if not start <= first < end or last <= first:
        return BodyPart(416, b"", f"bytes */{end if total is None else total}")
    last = min(last, end)
    return BodyPart(206, body[first - start : last - start], _content_range(first, last, total))


def _wanted(asked: str, total: int) -> tuple[int, int] | None:
    """Start and end of a range over a file of `total` bytes; None where it is no single range."""
    found = _RANGE.fullmatch(asked.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        return max(0, total - int(found[2])), total
    first = int(found[1])
    last = int(found[2]) + 1 if found[2] else total
    return (first, min(last, total)) if not found[2] or last > first else None


def _content_range(start: int, end: int, total: int | None) -> str:
    return f"bytes {start}-{end - 1}/{'*' if total is None else total}"


MOST_TRIED = 10_000
"""Captures below one path among which a likeness is looked for."""
_NAMES = (
    "_", "cb", "cachebust", "cachebuster", "cache_buster", "nocache", "no_cache", "bust", "rand", "random", "rnd",
    "ord", "timestamp", "ts", "time", "tstamp", "uncache", "dc", "_dc", "_ts", "v_ts",
)  # fmt: skip
_BUSTER = re.compile(
    rf"(?:{'|'.join(_NAMES)})=(?:0?\.\d+|\d{{4,}})|[dnrtx]=1\d{{12}}"
    r"|(?:utm_[a-z]+|fbclid|gclid|ancestor_origins)=[^&]*",
    re.ASCII,
)
"""Milliseconds since 1970 are what a clock says, also under a name of one letter, but not under `v`, a version.

A page does not choose in which frames it is shown, which `ancestor_origins` tells.
"""
_CALLBACK = re.compile(r"(callback|jsonp|cb)=([a-z_.$]*?)[_\d]*\d{4,}", re.ASCII)
_BY_SCHEME = {
    "com,google-analytics)/": "com,google-analytics,ssl)/",
    "com,quantserve,edge)/": "com,quantserve,secure)/",
    "com,scorecardresearch,b)/": "com,scorecardresearch,sb)/",
}
"""Hosts of which scripts choose one by the scheme of their page, which at replay may be another: either is meant."""


def fuzzy_key(key: str) -> str:
    """A sorted key without what only gets past caches; itself where there is nothing of the kind."""
    path, mark, query = key.partition("?")
    if not mark:
        return key
    kept = [_CALLBACK.sub(r"\1=\2", part) for part in query.split("&") if not _BUSTER.fullmatch(part)]
    return f"{path}?{'&'.join(kept)}" if kept else path


def similar_keys(captures: CaptureList, key: str) -> KeyRange | None:
    """The captured key that means what this one means; None without one, or where nothing in it looks random."""
    wanted = fuzzy_key(key)
    found = _alike(captures, key, wanted) if wanted != key else None
    return found or next(
        (range_ for other in _other_hosts(key) if (range_ := _alike(captures, other, fuzzy_key(other))) is not None),
        None,
    )


def _other_hosts(key: str) -> Iterator[str]:
    for pair in _BY_SCHEME.items():
        for one, other in (pair, pair[::-1]):
            if key.startswith(one):
                yield other + key.removeprefix(one)


def _alike(captures: CaptureList, key: str, wanted: str) -> KeyRange | None:
    path = key.partition("?")[0]
    tried = 0
    for low in (path, path + "?"):
        keys = KeyRange.exactly(path) if low == path else KeyRange(low, path + "@")
        for batch in captures.batches(keys):
            found = next((row[0] for row in batch if fuzzy_key(row[0]) == wanted), None)
            if found is not None:
                return KeyRange.exactly(found)
            tried += len(batch)
            if tried > MOST_TRIED:
                return None
    return None
