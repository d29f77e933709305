"""The time bar: the moment from which pages, sites and searches are seen, chosen once and kept until it is changed.

An address that names a moment itself wins over the one that is kept, so that links show everybody the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from letopis.api.requests import ArchiveDep
from letopis.api.sessions import cookie_of
from letopis.archive.activity import DAY, Activity
from letopis.errors import UsageError
from letopis.model import as_moment, from_millis, rfc3339, to_millis
from letopis.tuples import NamedTuple
from letopis.web.login import local_path
from letopis.web.pages import PageRoute, short_time

router = APIRouter(route_class=PageRoute)

AS_OF_COOKIE = "letopis-as-of"
_LIFETIME = 86_400
_BARS = 120
_WIDTH = 1000.0
_FEW_DAYS = 2
"""Days up to which a site is told by the minute: one that has been known for an hour has a past as well."""
_MINUTE = 60_000
_YEAR = timedelta(days=366)


class DensityBar(NamedTuple):
    """Versions of a stretch of time: where it stands, how high, how many, and the way to its end."""

    x: float
    width: float
    height: float
    versions: int
    label: str
    address: str
    chosen: bool


CountedTime = tuple[datetime, int]
"""A moment and how many versions are of it."""


class TimeBar(NamedTuple):
    """What the bar shows; `at` is None for now. Addresses are empty where there is nothing earlier or later."""

    at: datetime | None
    shown: datetime
    bars: Sequence[DensityBar]
    first: datetime | None
    last: datetime | None
    earlier: str
    later: str
    now: str
    back: str


def chosen_time(request: Request, given: str = "") -> str:
    """The moment that an address names, else the one that is kept; empty for now."""
    return given or request.cookies.get(cookie_of(request.scope, AS_OF_COOKIE), "")


def chosen_moment(request: Request, now: datetime, given: str = "") -> datetime | None:
    """The same as a time; what was kept and cannot be read is forgotten."""
    text = chosen_time(request, given)
    if not text:
        return None
    try:
        return as_moment(text, now, ends_day=True)
    except UsageError:
        if given:
            raise
        return None


def time_bar(
    request: Request, at: datetime | None, times: Iterable[CountedTime], now: datetime, own: tuple[str, ...] = ()
) -> TimeBar:
    """The bar of a page over the times of its versions, or of the days on which a site changed.

    `own` are parameters of the address that give way to the moment that is chosen.
    """
    counted = sorted(times)
    moments = [moment for moment, _ in counted]
    back, shown = _without_time(request, ("at", *own)), at or now
    before = [moment for moment in moments if moment < shown]
    after = [moment for moment in moments if moment > shown]
    # Seen from now, the newest version is what is shown already.
    earlier = before[:-1] if at is None else before
    return TimeBar(
        at, shown, _bars(counted, shown, back), moments[0] if moments else None, moments[-1] if moments else None,
        _way(earlier[-1], back) if earlier else "", _way(after[0], back) if at and after else "",
        f"/as-of?back={quote(back)}", back,
    )  # fmt: skip


def site_times(activity: Activity, site: str, now: datetime) -> list[CountedTime]:
    """The ends of the days of the last year on which pages of a site changed or came; of few days, the minutes."""
    span, since = DAY, to_millis(now - _YEAR)
    found = activity.version_times(site, since, span)
    if len(found) <= _FEW_DAYS:
        span = _MINUTE
        found = activity.version_times(site, since, span)
    return [(min(from_millis((number + 1) * span - 1000), now), count) for number, count in found]


def _bars(counted: Sequence[CountedTime], shown: datetime, back: str) -> list[DensityBar]:
    if len(counted) < 2 or counted[0][0] == counted[-1][0]:
        return []
    first = counted[0][0]
    length = (counted[-1][0] - first) / _BARS
    counts = [0] * _BARS
    for moment, count in counted:
        counts[min(_BARS - 1, int((moment - first) / length))] += count
    most, step = max(counts), _WIDTH / _BARS
    return [
        DensityBar(
            round(number * step, 1), round(step - 1, 1), round(6 + 30 * count / most, 1), count, short_time(end),
            _way(end, back), end - length <= shown < end,
        )
        for number, count in enumerate(counts)
        for end in (first + length * (number + 1),)
        if count
    ]  # fmt: skip


def _way(moment: datetime, back: str) -> str:
    return f"/as-of?{urlencode({'at': rfc3339(moment), 'back': back})}"


def _without_time(request: Request, names: tuple[str, ...]) -> str:
    """The address of this page without the moments that it names."""
    raw = request.scope.get("raw_path")
    path = raw.decode("latin-1").partition("?")[0] if raw else quote(request.url.path)
    kept = [pair for pair in request.url.query.split("&") if pair and pair.partition("=")[0] not in names]
    return f"{path}?{'&'.join(kept)}" if kept else path


@router.get("/as-of")
def choose(request: Request, archive: ArchiveDep, at: str = "", back: str = "/") -> Response:
    """Keeps a moment, or forgets it, and leads back."""
    answer = RedirectResponse(local_path(back), 303)
    if not at:
        answer.delete_cookie(cookie_of(request.scope, AS_OF_COOKIE), path="/")
        return answer
    moment = as_moment(at, archive.clock(), ends_day=True)
    answer.set_cookie(
        cookie_of(request.scope, AS_OF_COOKIE), rfc3339(moment), max_age=_LIFETIME, path="/",
        secure=request.scope["scheme"] == "https", httponly=True, samesite="lax",
    )  # fmt: skip
    return answer
