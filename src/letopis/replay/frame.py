"""The page around an archived one: what it is, its time, the distance to the requested time, and neighbours."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from letopis.archive import Archive
from letopis.archive.captures import VERSION, CaptureList, CaptureNeighbours, KeyRange, TimelineCapture
from letopis.archive.sets import SetQuality
from letopis.errors import UsageError
from letopis.model import from_millis, rfc3339, to_millis
from letopis.model.times import timestamp
from letopis.replay.addresses import embedded_url
from letopis.schedule.policies import format_span
from letopis.tuples import NamedTuple
from letopis.urls import surt
from letopis.web.languages import language_of, translatable, translate, use_language
from letopis.web.pages import environment, short_time

_MOST_LISTED = 20_000
"""Captures among which versions are looked for, for the timeline."""
TIMELINE_PLACES = 200
_NEAR = 1.0
"""Seconds up to which a capture counts as that of the requested time."""
_DAY_SECONDS = 86_400
FRAME_TYPE = "text/html; charset=utf-8"


class TimelineMark(NamedTuple):
    """A version on the timeline: its place from the left, its address, when it began, and whether it is shown."""

    place: int
    address: str
    at: datetime
    shown: bool


class ShownPage(NamedTuple):
    """What is shown in the frame: the captures around it, the capture, and the requested time."""

    near: CaptureNeighbours
    moment: TimelineCapture
    asked: int


class FramePlace(NamedTuple):
    """Where a frame stands. `home` is the origin of everything that is no archived page; empty: the frame's own.

    `upgrade` is the same page with its scripts, where the reader can have it.
    """

    inner: str
    sandbox: str
    home: str = ""
    upgrade: str = ""
    probe: str = ""


def page_path(time: int, url: str) -> str:
    """The address of a page at a time, as a path of the frame's origin."""
    return f"/web/{timestamp(time)}/{url}"


def bar_values(archive: Archive, page: ShownPage, home: str = "") -> dict[str, Any]:
    """What the bar of the frame says."""
    moment, at = page.moment, from_millis(page.moment.time)
    distance = (page.asked - moment.time) / 1000
    return {
        "url": moment.url,
        "at": at,
        "shown_at": Markup('<time datetime="{}">{} UTC</time>').format(rfc3339(at), short_time(at)),
        "distance": format_span(abs(distance)) if abs(distance) > _NEAR and not _is_that_day(page) else "",
        "is_later": distance < 0,
        "steps": _steps(page.near),
        "marks": _marks(archive, page),
        "compare": f"{home}/compare/{quote(moment.url, safe=':/')}?from={quote(rfc3339(at))}"
        if page.near.last.number not in (None, moment.number)
        else "",
        "home": home,
        "stamp": timestamp(page.asked),
        "quality": _quality(archive, moment),
    }


def _is_that_day(page: ShownPage) -> bool:
    """Whether a day was requested, which means its last second, and this is a capture of it."""
    second = page.asked // 1000
    return (second + 1) % _DAY_SECONDS == 0 and 0 <= second - page.moment.time // 1000 < _DAY_SECONDS


def _quality(archive: Archive, moment: TimelineCapture) -> SetQuality | None:
    """The quality of the replay of exactly this capture, if it was captured whole and measured."""
    found = archive.sets.nearest(moment.url, from_millis(moment.time))
    is_this = found is not None and to_millis(found.time) // 1000 == moment.time // 1000
    return archive.sets.quality(found) if found is not None and is_this else None


def replay_frame(archive: Archive, page: ShownPage, place: FramePlace) -> str:
    """The whole page, in the language being spoken."""
    values = bar_values(archive, page, place.home)
    return environment.get_template("replay.html").render(values, place=place)


def replay_bar(archive: Archive, page: ShownPage, home: str) -> str:
    """The bar alone, for a frame whose page has been left for another."""
    return environment.get_template("replay_bar.html").render(bar_values(archive, page, home))


def _steps(near: CaptureNeighbours) -> list[tuple[str, str, datetime]]:
    """The ways to other captures; the first and the newest only where they are not the next ones anyway."""
    ways = [(translatable("Earlier"), near.before), (translatable("Later"), near.after)]
    if near.before is not None and near.first.time < near.before.time:
        ways.insert(0, (translatable("First"), near.first))
    if near.after is not None and near.last.time > near.after.time:
        ways.append((translatable("Newest"), near.last))
    return [(translate(name), page_path(to.time, to.url), from_millis(to.time)) for name, to in ways if to is not None]


def _marks(archive: Archive, page: ShownPage) -> list[TimelineMark]:
    """The versions of a page by time, at most one a place."""
    first, span = page.near.first.time, max(1, page.near.last.time - page.near.first.time)
    batches = archive.attached(CaptureList).batches(KeyRange.exactly(surt(page.moment.url)))
    rows = islice((row for batch in batches for row in batch if row[8] == VERSION), _MOST_LISTED)
    places: dict[int, tuple[int, str]] = {}
    for row in rows:
        places[min((row[2] - first) * (TIMELINE_PLACES - 1) // span, TIMELINE_PLACES - 1)] = (row[2], row[1])
    times = [time for time, _ in places.values() if time <= page.moment.time]
    current = max(times, default=None)
    return [
        TimelineMark(place, page_path(time, url), from_millis(time), time == current)
        for place, (time, url) in sorted(places.items())
    ]


def go_to_date(request: Request) -> Response:
    """From the date field of the bar to the page at that date."""
    digits = "".join(char for char in request.query_params.get("date", "") if char.isascii() and char.isdigit())[:14]
    if not digits:
        raise UsageError("choose a date such as 2026-03-01")
    return RedirectResponse(f"/web/{digits}/{embedded_url(request.query_params.get('url', ''))}", 303)


def not_captured_page(request: Request, url: str, *, circle: bool = False) -> Response:
    """Inside a frame: this page is not here, or only as a redirect in a circle."""
    with use_language(language_of(request)) as language:
        text = environment.get_template("replay_missing.html").render(url=url, circle=circle)
    return Response(text, 404, headers={"content-language": language.code}, media_type=FRAME_TYPE)
