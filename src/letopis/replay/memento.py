"""Memento (RFC 7089) under `/web/`: TimeMaps, the calendar, differences, and the routes of all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, groupby, islice
from typing import NamedTuple

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from letopis.api.requests import archive_of, origin_of, streamed_response
from letopis.archive import Archive
from letopis.archive.captures import (
    TOO_LARGE,
    CaptureList,
    KeyRange,
    ListedCapture,
    TimelineCapture,
    TimeRange,
    timeline_of,
)
from letopis.errors import UnknownVersion
from letopis.model import Version, from_millis, rfc3339
from letopis.model.times import timestamp
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
from letopis.replay.captures import memento, not_captured, timegate
from letopis.replay.cdx import cdx_finder_of, cdxj_lines
from letopis.replay.cdx_query import CdxFinder, CdxQuery
from letopis.replay.csp import RAW_POLICY, SAFE_HEADERS
from letopis.urls import surt
from letopis.web.charts import CalendarCapture, CalendarDays, calendar_months
from letopis.web.pages import render_page

TIMEMAP_PAGE = 10_000
"""Captures on one page of a TimeMap."""


class TimeMapEntry(NamedTuple):
    """One capture as a TimeMap lists it."""

    stamp: str
    time: int
    url: str


def timemap(archive: Archive, finder: CdxFinder, web: ReplayUrls, address: ReplayAddress) -> Response:
    """The page of the TimeMap that the address names, in its form."""
    since = earliest_millis(address.stamps[0]) if address.stamps else 0
    if address.form == "cdxj":
        return _cdxj(finder, address, since)
    keys = KeyRange.exactly(surt(address.url))
    found = _entries(archive.attached(CaptureList).batches(keys, TimeRange(since)))
    if not found:
        raise not_captured(address.url)
    entries, more = found[:TIMEMAP_PAGE], found[TIMEMAP_PAGE:]
    following = web.timemap(address.url, address.form, more[0].stamp) if more else ""
    if address.form == "json":
        return _json(web, address, entries, following)
    return Response(_link(web, address, entries, following, since), media_type=LINK_FORMAT)


def _entries(batches: Iterator[list[ListedCapture]]) -> list[TimeMapEntry]:
    """Up to one more than a page; of several captures in one second the last, as replay shows it."""
    by_stamp: dict[str, TimeMapEntry] = {}
    for batch in batches:
        for capture in batch:
            if capture[8] != TOO_LARGE:
                text = timestamp(capture[2])
                by_stamp[text] = TimeMapEntry(text, capture[2], capture[1])
        if len(by_stamp) > TIMEMAP_PAGE + 1:
            break
    return list(by_stamp.values())


def _link(web: ReplayUrls, address: ReplayAddress, entries: list[TimeMapEntry], following: str, since: int) -> str:
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
    if not since:
        lines[0] = lines[0].replace('rel="memento"', 'rel="first memento"')
    if not following:
        word = '"first last memento"' if len(lines) == 1 and not since else '"last memento"'
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


def _cdxj(finder: CdxFinder, address: ReplayAddress, since: int) -> Response:
    query = CdxQuery(KeyRange.exactly(surt(address.url)), TimeRange(since), revisit_status="")
    rows = finder.find(query)
    begun = next(rows, None)
    if begun is None:
        raise not_captured(address.url)
    return streamed_response(cdxj_lines(chain([begun], rows)), "text/x-cdxj; charset=utf-8")


MOST_CALENDAR_CAPTURES = 20_000


def calendar(archive: Archive, web: ReplayUrls, address: ReplayAddress, request: Request) -> Response:
    """A page for people; at most `MOST_CALENDAR_CAPTURES` captures on it."""
    batches = archive.attached(CaptureList).batches(KeyRange.exactly(surt(address.url)))
    rows = list(islice((row for batch in batches for row in batch), MOST_CALENDAR_CAPTURES + 1))
    if not rows:
        raise not_captured(address.url)
    captures = [(timestamp(row[2]), web.memento(row[2], row[1]), row[3]) for row in rows[:MOST_CALENDAR_CAPTURES]]
    return render_page(
        request,
        "calendar.html",
        url=address.url,
        count=len(captures),
        more=len(rows) > MOST_CALENDAR_CAPTURES,
        timemap=web.timemap(address.url),
        years=[(year, calendar_months(days), days) for year, days in _years(captures)],
    )


def _years(captures: list[tuple[str, str, int]]) -> list[tuple[str, CalendarDays]]:
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


def _capture(at: str, address: str, status: int) -> CalendarCapture:
    return CalendarCapture(f"{at[8:10]}:{at[10:12]}:{at[12:]}", address, status)


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


async def replay(request: Request) -> Response:
    """Answers by what the address asks for; see `addresses`. Whatever opens a document or makes a list is done in
    a thread: no document may hold up other requests.
    """
    archive = archive_of(request)
    address = parse_address(path_after(request.scope, "/web/"))
    if address.kind is ReplayKind.TIMEGATE and archive.reads_locally:
        return _answer(request, archive, address)
    return await run_in_threadpool(_answer, request, archive, address)


def _answer(request: Request, archive: Archive, address: ReplayAddress) -> Response:
    ours = ReplayUrls(origin_of(request.scope))
    if address.kind is ReplayKind.MEMENTO:
        return memento(archive, ours, address, request.scope)
    if address.kind is ReplayKind.TIMEMAP:
        return timemap(archive, cdx_finder_of(request), ours, address)
    if address.kind is ReplayKind.CALENDAR:
        return calendar(archive, ours, address, request)
    if address.kind is ReplayKind.DIFF:
        return difference(archive, address)
    return timegate(archive, ours, address, request.scope)


MEMENTO_ROUTES = [Route("/web/{rest:path}", replay, methods=["GET", "HEAD"])]

__all__ = ["MEMENTO_ROUTES"]
