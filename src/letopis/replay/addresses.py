"""URLs under `/web/`: timestamps, what each one requests, how Letopis writes them, and the `Link` header."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from urllib.parse import unquote

from starlette.types import Scope

from letopis.archive.captures import TimelineCapture
from letopis.errors import UsageError
from letopis.model import to_millis
from letopis.model.times import DAY_NAMES, MONTH_NAMES, DayTexts, times_of_day, timestamp
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url

_DAY = 86_400
_DIGITS = re.compile(r"\d{1,14}", re.ASCII)
_LOWEST = "00010101000000"
_HIGHEST = "99991231235959"
_HTTP_DATE = re.compile(
    rf"(?:{'|'.join(DAY_NAMES)}), (\d\d) ({'|'.join(MONTH_NAMES)}) (\d{{4}}) (\d\d):(\d\d):(\d\d) (?:GMT|UTC)", re.ASCII
)


_HTTP_DAYS = DayTexts("{1}, {0.day:02} {2} {0.year:04} ")


def http_date(millis: int) -> str:
    """`Sun, 01 Mar 2026 12:00:00 GMT`."""
    day, second = divmod(millis // 1000, _DAY)
    time = times_of_day()[second]
    return f"{_HTTP_DAYS[day]}{time[:2]}:{time[2:4]}:{time[4:]} GMT"


def earliest_millis(digits: str) -> int:
    """The first millisecond that 1 to 14 digits can mean."""
    return _millis(digits, _LOWEST)


def latest_millis(digits: str) -> int:
    """The last millisecond that 1 to 14 digits can mean."""
    return _millis(digits, _HIGHEST) + 999


@lru_cache(maxsize=1024)
def _millis(digits: str, pad: str) -> int:
    """Remembered: a request asks for the same twice, and readers of a page ask for its time again."""
    if not _DIGITS.fullmatch(digits):
        raise UsageError(f"'{digits[:40]}' is not a timestamp; write 1 to 14 digits such as 20260301")
    padded = digits + pad[len(digits) :]
    year, month, day = int(padded[:4]) or 1, int(padded[4:6]), int(padded[6:8])
    month = min(max(month, 1), 12)
    hour, minute, second = (min(int(padded[i : i + 2]), most) for i, most in ((8, 23), (10, 59), (12, 59)))
    day = min(max(day, 1), _days_in(year, month))
    return to_millis(datetime(year, month, day, hour, minute, second, tzinfo=UTC))


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def parse_http_date(text: str) -> int:
    """Milliseconds of an RFC 1123 date, which is the only form that Memento allows."""
    found = _HTTP_DATE.fullmatch(text.strip())
    if found is None:
        raise UsageError("Accept-Datetime must look like 'Sun, 01 Mar 2026 12:00:00 GMT'")
    day, month, year, hour, minute, second = found.groups()
    try:
        date = datetime(int(year), MONTH_NAMES.index(month) + 1, int(day), int(hour), int(minute), int(second))
        return to_millis(date.replace(tzinfo=UTC))
    except ValueError:
        raise UsageError("Accept-Datetime names a day that does not exist") from None


_MEMENTO = re.compile(r"(\d{1,14})([a-z]{2}_)?/(.+)", re.ASCII | re.DOTALL)
_TIMEMAP = re.compile(r"timemap/(link|json|cdxj)/(?:(\d{14})/)?(.+)", re.ASCII | re.DOTALL)
_DIFF = re.compile(r"diff/(\d{1,14})/(\d{1,14})/(.+)", re.ASCII | re.DOTALL)
_CALENDAR = re.compile(r"(\d{0,14})(?:\*|%2[aA])/(.+)", re.ASCII | re.DOTALL)
# Some proxies and clients fold the two slashes after the scheme.
_FOLDED = re.compile(r"(https?):/+(?=[^/])", re.IGNORECASE)
_ESCAPED = re.compile(r"https?%3A(?:/|%2F)", re.IGNORECASE)


class ReplayKind(Enum):
    """What is requested."""

    TIMEGATE = "timegate"
    MEMENTO = "memento"
    TIMEMAP = "timemap"
    CALENDAR = "calendar"
    DIFF = "diff"


class ReplayAddress(NamedTuple):
    """A parsed address. `stamps` has the timestamps in it, `form` the kind of TimeMap or replay."""

    kind: ReplayKind
    url: str
    stamps: tuple[str, ...] = ()
    form: str = ""


def parse_address(rest: str) -> ReplayAddress:
    """What follows `/web/`, as it came, with its query."""
    if found := _MEMENTO.fullmatch(rest):
        return ReplayAddress(ReplayKind.MEMENTO, embedded_url(found[3]), (found[1],), found[2] or "")
    if found := _TIMEMAP.fullmatch(rest):
        return ReplayAddress(ReplayKind.TIMEMAP, embedded_url(found[3]), (found[2],) if found[2] else (), found[1])
    if found := _CALENDAR.fullmatch(rest):
        return ReplayAddress(ReplayKind.CALENDAR, embedded_url(found[2]), (found[1],) if found[1] else ())
    if found := _DIFF.fullmatch(rest):
        return ReplayAddress(ReplayKind.DIFF, embedded_url(found[3]), (found[1], found[2]))
    return ReplayAddress(ReplayKind.TIMEGATE, embedded_url(rest))


def embedded_url(text: str) -> str:
    """The URL of a page inside a replay URL."""
    if not text:
        raise UsageError("the address of a page is missing; write /web/http://example.org/")
    if _ESCAPED.match(text):
        # Clients that escape a whole URL change all of it; what follows a bare `?` is their own.
        path, mark, query = text.partition("?")
        text = unquote(path) + mark + query
    folded = _FOLDED.match(text)
    return parse_user_url(f"{folded[1]}://{text[folded.end() :]}" if folded else text)


def path_after(scope: Scope, prefix: str) -> str:
    """The path after a prefix, byte for byte as it was sent, with its query."""
    raw = scope.get("raw_path") or scope["path"].encode()
    path = raw.decode("latin-1").partition("?")[0]
    query = scope["query_string"].decode("latin-1")
    rest = path[path.index(prefix) + len(prefix) :]
    return f"{rest}?{query}" if query else rest


class ReplayUrls(NamedTuple):
    """Writes replay URLs for one client. None of them is a right: it gives no access to its holder."""

    origin: str

    def memento(self, time: int, url: str) -> str:
        """The capture of a URL at a time."""
        return f"{self.origin}/web/{timestamp(time)}/{url}"

    def inside(self, time: int, url: str, form: str = "") -> str:
        """The same for the inside of an archived page, as a path."""
        return f"{self.folder(time, form)}{url}"

    def folder(self, time: int, form: str = "") -> str:
        """The path of all captures of a time, for the inside of an archived page."""
        return f"/web/{timestamp(time)}{form}/"

    def timegate(self, url: str) -> str:
        """Where dates are negotiated."""
        return f"{self.origin}/web/{url}"

    def timemap(self, url: str, form: str = "link", since: str = "") -> str:
        """The list of all captures; a part of it from a timestamp on."""
        return f"{self.origin}/web/timemap/{form}/{since + '/' if since else ''}{url}"


LINK_FORMAT = "application/link-format"


def resource_links(web: ReplayUrls, url: str) -> str:
    """Original, TimeGate and TimeMap: what every answer about a URL names."""
    return (
        f'<{url}>; rel="original", <{web.timegate(url)}>; rel="timegate", '
        f'<{web.timemap(url)}>; rel="timemap"; type="{LINK_FORMAT}"'
    )


def memento_links(web: ReplayUrls, named: list[tuple[str, TimelineCapture | None]]) -> str:
    """Mementos by their relation; one that has several relations is named once with all of them."""
    relations: dict[TimelineCapture, list[str]] = {}
    for relation, moment in named:
        if moment is not None:
            relations.setdefault(moment, []).append(relation)
    return ", ".join(
        f'<{web.memento(moment.time, moment.url)}>; rel="{" ".join([*filter(None, words), "memento"])}"; '
        f'datetime="{http_date(moment.time)}"'
        for moment, words in relations.items()
    )
