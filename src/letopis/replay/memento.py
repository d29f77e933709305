"""Memento (RFC 7089) under `/web/`: TimeMaps, the calendar, differences, and the routes of all of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import chain, groupby, islice
from urllib.parse import urlencode

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse
from starlette.routing import Route

from letopis.api.access import principal_of
from letopis.api.requests import archive_of, origin_of, streamed_response
from letopis.archive import Archive
from letopis.archive.accounts import session_rows_of
from letopis.archive.captures import (
    ALL_TIMES,
    TOO_LARGE,
    VERSION,
    CaptureList,
    KeyRange,
    ListedCapture,
    TimelineCapture,
    TimeRange,
    timeline_of,
)
from letopis.errors import UnknownUrl, UnknownVersion, UsageError
from letopis.model import Version, from_millis, rfc3339
from letopis.model.times import timestamp, timestamps
from letopis.replay.addresses import (
    LINK_FORMAT,
    ReplayAddress,
    ReplayKind,
    ReplayUrls,
    earliest_millis,
    http_date,
    latest_millis,
    parse_address,
    path_after,
)
from letopis.replay.captures import (
    ReplayRequest,
    find_memento,
    is_short_work,
    memento,
    not_captured,
    replay_door,
    timegate,
)
from letopis.replay.cdx import cdx_finder_of, cdxj_lines
from letopis.replay.cdx_query import CdxFinder, CdxQuery
from letopis.replay.csp import RAW_POLICY, SAFE_HEADERS
from letopis.replay.frame import go_to_date, not_captured_page
from letopis.replay.redirects import RedirectCircle
from letopis.tuples import NamedTuple
from letopis.urls import surt
from letopis.web.charts import CalendarCapture, CalendarDays, calendar_months
from letopis.web.languages import language_of
from letopis.web.pages import render_page
from letopis.web.timebar import chosen_moment, time_bar

ENTRY_LIFETIME = 60
"""Seconds in which a code for the replay origin must be used."""
TIMEMAP_PAGE = 10_000
"""Captures on one page of a TimeMap."""


class TimeMapEntry(NamedTuple):
    """One capture as a TimeMap lists it."""

    stamp: str
    time: int
    url: str


def timemap(archive: Archive, finder: CdxFinder, web: ReplayUrls, address: ReplayAddress) -> Response:
    """The page of the TimeMap that the address names, in its form."""
    span = TimeRange(earliest_millis(address.stamps[0])) if address.stamps else ALL_TIMES
    if address.form == "cdxj":
        return _cdxj(finder, address, span)
    keys = KeyRange.exactly(surt(address.url))
    found = _entries(archive.attached(CaptureList).batches(keys, span))
    if not found:
        raise not_captured(address.url)
    entries, more = found[:TIMEMAP_PAGE], found[TIMEMAP_PAGE:]
    following = web.timemap(address.url, address.form, more[0].stamp) if more else ""
    if address.form == "json":
        return _json(web, address, entries, following)
    return Response(_link(web, address, entries, following), media_type=LINK_FORMAT)


def _entries(batches: Iterator[list[ListedCapture]]) -> list[TimeMapEntry]:
    """Up to one more than a page; of several captures in one second the last, as replay shows it."""
    by_stamp: dict[str, TimeMapEntry] = {}
    for batch in batches:
        shown = [capture for capture in batch if capture[8] != TOO_LARGE]
        for text, capture in zip(timestamps(capture[2] for capture in shown), shown, strict=True):
            by_stamp[text] = TimeMapEntry(text, capture[2], capture[1])
        if len(by_stamp) > TIMEMAP_PAGE + 1:
            break
    return list(by_stamp.values())


def _link(web: ReplayUrls, address: ReplayAddress, entries: list[TimeMapEntry], following: str) -> str:
    span = f'from="{http_date(entries[0].time)}"; until="{http_date(entries[-1].time)}"'
    own = web.timemap(address.url, "link", address.stamps[0] if address.stamps else "")
    head = [
        f'<{address.url}>; rel="original"',
        f'<{own}>; rel="self"; type="{LINK_FORMAT}"; {span}',
        f'<{web.timegate(address.url)}>; rel="timegate"',
    ]
    if following:
        head.append(f'<{following}>; rel="timemap next"; type="{LINK_FORMAT}"')
    base = f"<{web.origin}/web/"
    lines = [f'{base}{at}/{url}>; rel="memento"; datetime="{http_date(time)}"' for at, time, url in entries]
    if not address.stamps:
        lines[0] = lines[0].replace('rel="memento"', 'rel="first memento"')
    if not following:
        word = '"first last memento"' if len(lines) == 1 and not address.stamps else '"last memento"'
        lines[-1] = lines[-1].replace('"first memento"', '"memento"').replace('rel="memento"', f"rel={word}")
    return ",\n".join(chain(head, lines)) + "\n"


def _json(web: ReplayUrls, address: ReplayAddress, entries: list[TimeMapEntry], following: str) -> Response:
    listed = [{"datetime": rfc3339(from_millis(time // 1000 * 1000)), "uri": f"{web.origin}/web/{at}/{url}"}
              for at, time, url in entries]  # fmt: skip
    document: dict[str, object] = {
        "original_uri": address.url,
        "self": web.timemap(address.url, "json", address.stamps[0] if address.stamps else ""),
        "timegate_uri": web.timegate(address.url),
        "timemap_uri": {f"{form}_format": web.timemap(address.url, form) for form in ("link", "json", "cdxj")},
        "mementos": {"first": listed[0], "last": listed[-1], "list": listed},
    }
    if following:
        document["next"] = following
    return Response(json.dumps(document), media_type="application/json")


def _cdxj(finder: CdxFinder, address: ReplayAddress, span: TimeRange) -> Response:
    query = CdxQuery(KeyRange.exactly(surt(address.url)), span, revisit_status="")
    rows = finder.find(query)
    begun = next(rows, None)
    if begun is None:
        raise not_captured(address.url)
    return streamed_response(cdxj_lines(chain([begun], rows)), "text/x-cdxj; charset=utf-8")


MOST_CALENDAR_CAPTURES = 20_000
_MOST_LISTED = 500
"""Captures of a year that are listed below its sheet."""


def calendar(archive: Archive, web: ReplayUrls, address: ReplayAddress, request: Request) -> Response:
    """A page for people, of all captures or of those whose time begins with some digits.

    Digits with which none begins stand for the day, the month or the year around them, or for all times.
    At most `MOST_CALENDAR_CAPTURES` are on it. Years with many are not listed: their days lead to pages of their own.
    """
    asked = address.stamps[0] if address.stamps else ""
    key = KeyRange.exactly(surt(address.url))
    for digits in (asked, *(asked[:most] for most in (8, 6, 4, 0) if most < len(asked))):
        span = TimeRange(earliest_millis(digits), latest_millis(digits)) if digits else ALL_TIMES
        found = (row for batch in archive.attached(CaptureList).batches(key, span) for row in batch)
        rows = list(islice(found, MOST_CALENDAR_CAPTURES + 1))
        if rows:
            break
    else:
        raise not_captured(address.url)
    captures = [
        (timestamp(row[2]), web.memento(row[2], row[1]), row[3], row[8] == VERSION)
        for row in rows[:MOST_CALENDAR_CAPTURES]
    ]
    now, times = archive.clock(), ((from_millis(row[2]), 1) for row in rows if row[8] == VERSION)
    line = timeline_of(archive, address.url)
    beside = (line.upto(span.since - 1), line.after(latest_millis(digits))) if digits else (None, None)
    return render_page(
        request, "calendar.html", url=address.url, count=len(captures), more=len(rows) > MOST_CALENDAR_CAPTURES,
        timemap=web.timemap(address.url), part=digits, most=_MOST_LISTED,
        beside=[near and timestamp(near.time)[: len(digits)] for near in beside], named=_named_time,
        years=[(year, calendar_months(days), days) for year, days in _years(captures)],
        bar=time_bar(request, chosen_moment(request, now), times, now),
    )  # fmt: skip


def _years(captures: list[tuple[str, str, int, bool]]) -> list[tuple[str, CalendarDays]]:
    return [
        (
            year,
            [
                (_iso_day(day), [_capture(*one) for one in of_day])
                for day, of_day in groupby(of_year, lambda c: c[0][:8])
            ],
        )
        for year, of_year in groupby(captures, lambda c: c[0][:4])
    ]


def _iso_day(digits: str) -> str:
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"


def _named_time(digits: str) -> str:
    """`2026-03-01 12:30`, or as much of it as the digits mean."""
    day = "-".join(filter(None, (digits[:4], digits[4:6], digits[6:8])))
    return f"{day} {':'.join(filter(None, (digits[8:10], digits[10:12], digits[12:])))}".strip()


def _capture(at: str, address: str, status: int, is_version: bool) -> CalendarCapture:
    return CalendarCapture(f"{at[8:10]}:{at[10:12]}:{at[12:]}", address, status, is_version)


def difference(archive: Archive, address: ReplayAddress) -> Response:
    """Both sides in one page, in the same sandbox as archived pages: it quotes them."""
    line = timeline_of(archive, address.url)
    sides = [line.closest(latest_millis(digits) - 999) for digits in address.stamps]
    if sides[0] is None or sides[1] is None:
        raise not_captured(address.url)
    old, new = (_version(archive, side) for side in sides if side is not None)
    page = archive.difference(old, new, "html")
    headers = {"content-security-policy": RAW_POLICY, **SAFE_HEADERS}
    return Response(page, headers=headers, media_type="text/html; charset=utf-8")


def _version(archive: Archive, moment: TimelineCapture) -> Version:
    if moment.number is None:
        raise UnknownVersion(f"{moment.url} had no version yet at that time")
    return archive.answers.numbered(moment.url, moment.number)


def enter(request: Request) -> Response:
    """To the replay origin, in the language spoken here: cookies of this host are not sent there.

    Whoever needs an account to read brings a code that is good for once, within a minute.
    """
    archive, to = archive_of(request), request.query_params.get("to", "")
    origin = replay_door(request.scope).origin_for(request.headers.get("host", ""))
    if origin is None or not to.startswith("/web/"):
        raise UsageError("there is no replay origin here; see serve.replay_origin")
    session = principal_of(request).session
    code = ""
    if session is not None and not archive.settings.serve.public:
        code = session_rows_of(archive).begin(session.user.id, "entry", int(time.time()), ENTRY_LIFETIME)
    spoken = language_of(request).code
    query = urlencode({"code": code, "home": origin_of(request.scope), "language": spoken, "to": to})
    return RedirectResponse(f"{origin.base}/.letopis/enter?{query}", 303, headers={"referrer-policy": "no-referrer"})


async def replay(request: Request) -> Response:
    """Answers by what the address asks for; see `addresses`. Whatever opens a document of some size or makes a list
    is done in a thread: no document may hold up other requests.
    """
    archive = archive_of(request)
    address = parse_address(path_after(request.scope, "/web/"))
    try:
        return await _answered(request, archive, address)
    except UnknownUrl as error:
        destination = request.headers.get("sec-fetch-dest")
        if destination == "document":
            return render_page(request, "not_captured.html", 404, url=address.url)
        if destination in ("iframe", "frame"):
            answer = not_captured_page(request, address.url, circle=isinstance(error, RedirectCircle))
            answer.headers["content-security-policy"] = RAW_POLICY
            return answer
        raise


async def _answered(request: Request, archive: Archive, address: ReplayAddress) -> Response:
    if archive.reads_locally and address.kind is ReplayKind.TIMEGATE:
        return _answer(request, archive, address)
    if archive.reads_locally and address.kind is ReplayKind.MEMENTO:
        found, asked = find_memento(archive, address), ReplayRequest(request.scope, address.form)
        shown = archive, ReplayUrls(origin_of(request.scope)), found, address.stamps[0], asked
        if is_short_work(archive, found.moment, asked):
            return memento(*shown)
        return await run_in_threadpool(memento, *shown)
    return await run_in_threadpool(_answer, request, archive, address)


def _answer(request: Request, archive: Archive, address: ReplayAddress) -> Response:
    ours = ReplayUrls(origin_of(request.scope))
    if address.kind is ReplayKind.MEMENTO:
        asked = ReplayRequest(request.scope, address.form)
        return memento(archive, ours, find_memento(archive, address), address.stamps[0], asked)
    if address.kind is ReplayKind.TIMEMAP:
        return timemap(archive, cdx_finder_of(request), ours, address)
    if address.kind is ReplayKind.CALENDAR:
        return calendar(archive, ours, address, request)
    if address.kind is ReplayKind.DIFF:
        return difference(archive, address)
    return timegate(archive, ours, address, request.scope)


MEMENTO_ROUTES = [
    Route("/replay/enter", enter),
    Route("/replay/go", go_to_date),
    Route("/web/{rest:path}", replay, methods=["GET", "HEAD"]),
]

__all__ = ["MEMENTO_ROUTES"]
