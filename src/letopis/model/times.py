"""Times and durations as people write them, and the few forms that Letopis prints."""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from letopis.errors import UsageError

_UNITS = {
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "w": 604800.0,
    "week": 604800.0,
    "month": 30 * 86400.0,
    "y": 365 * 86400.0,
    "year": 365 * 86400.0,
}
LONGEST_DURATION = 10 * _UNITS["year"]
"""Seconds of the longest duration that anybody may ask for."""
_MOST_SECONDS = 1000 * _UNITS["year"]
"""What no calendar can be counted on for, and no number of milliseconds may be too small to hold."""
AHEAD = timedelta(days=1)
"""A time further ahead of the clock than this was told by a wrong clock, or is meant to lie in the future."""
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)
_STAMP = re.compile(r"\d{4,14}", re.ASCII)
_STAMP_WITHOUT_DAY = re.compile(r"\d{4}(?:00|\d\d00)")
"""What `parse_stamp` corrects for CDX clients, but people mean by it something else: 1700000000 is no day of 1700."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DOTTED = re.compile(r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})(?:[ t](\d{1,2}:\d{2}(?::\d{2})?))?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{8}|\d{1,2}\.\s?\d{1,2}\.\s?\d{4}|today|yesterday", re.ASCII)
_MONTH, _YEAR = re.compile(r"(\d{4})-?(\d{2})", re.ASCII), re.compile(r"\d{4}", re.ASCII)
_HINT = "write 2026-03-01, 1.3.2026, 2026-03-01T12:00:00Z, 20260301120000, '2 days ago' or 'yesterday'"


def _unit(word: str, text: str) -> float:
    factor = _UNITS.get(word) or _UNITS.get(word.removesuffix("s"))
    if factor is None:
        raise UsageError(f"'{text}' is not a duration; write 500ms, 90s, 10m, 1h, 7d or 2 weeks")
    return factor


def parse_duration(text: str) -> float:
    """Seconds of '500ms', '90', '1h30m', '7 days'. A bare number counts seconds."""
    compact = text.strip().lower()
    parts = _AMOUNT.findall(compact)
    if not parts or _AMOUNT.sub("", compact).strip():
        raise UsageError(f"'{text}' is not a duration; write 500ms, 90s, 10m, 1h, 7d or 2 weeks")
    seconds = sum(float(amount) * _unit(unit or "s", text) for amount, unit in parts)
    if seconds > _MOST_SECONDS:
        raise UsageError(f"'{text[:70]}' is too long; write at most a thousand years, such as 1h or 7d")
    return seconds


def written_duration(seconds: float | None) -> str:
    """As people write it, and exact: `90m` and not `1 h`; nothing where there is none."""
    if not seconds:
        return ""
    unit, size = next((pair for pair in (("d", 86400), ("h", 3600), ("m", 60)) if seconds % pair[1] == 0), ("s", 1))
    return f"{seconds / size:.15g}{unit}"


def parse_time(text: str, now: datetime) -> datetime:
    """An aware UTC time of an RFC 3339 text, date, 4-14 digit stamp or relative phrase.

    Fewer digits are no year: whoever writes 2 means a version or a day, and would be shown the year 2000.
    """
    phrase = text.strip().lower()
    relative = _relative(phrase, now)
    if relative is not None:
        return relative
    digits = _MONTH.sub(r"\1\2", phrase) if _MONTH.fullmatch(phrase) else phrase
    if _STAMP.fullmatch(digits) and not _STAMP_WITHOUT_DAY.match(digits):
        return parse_stamp(digits)
    dotted = _DOTTED.fullmatch(phrase)
    if dotted is not None:
        day, month, year, clock = dotted.groups()
        phrase = f"{year}-{month:0>2}-{day:0>2}" + (f"T{clock:0>5}" if clock else "")
    try:
        return utc_time(phrase)
    except (ValueError, OverflowError):
        raise UsageError(f"'{text[:80]}' is not a time; {_HINT}") from None


def utc_time(text: str) -> datetime:
    """An aware UTC time of an RFC 3339 text; without an offset it is UTC. ValueError or OverflowError for others."""
    parsed = datetime.fromisoformat(text.strip().upper())
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def last_moment(text: str, first: datetime) -> datetime:
    """The end of the day, month or year that a text names; `first` again where it names a moment."""
    bare = text.strip().lower()
    if _DAY.fullmatch(bare):
        days = 1
    elif _MONTH.fullmatch(bare):
        days = monthrange(first.year, first.month)[1]
    elif _YEAR.fullmatch(bare):
        days = 365 + isleap(first.year)
    else:
        return first
    return first + (timedelta(days=days) - timedelta(milliseconds=1))


Moment = datetime | date | str
"""A time as people give it in Python: aware, naive (of this machine), a day, or a text as on the command line."""


def as_moment(given: Moment, now: datetime, *, ends_day: bool = False) -> datetime:
    """The aware UTC time that is meant; UsageError for what is no time.

    A day begins at midnight UTC, as everywhere; with `ends_day` a day, month or year stands for its end.
    """
    if isinstance(given, datetime):
        try:
            return given.astimezone(UTC)
        except (ValueError, OverflowError):
            raise UsageError(f"{given!r} has no equivalent in UTC; {_HINT}") from None
    if isinstance(given, date):
        return as_moment(given.isoformat(), now, ends_day=ends_day)
    if isinstance(given, str):
        found = parse_time(given, now)
        return last_moment(given, found) if ends_day else found
    raise UsageError(f"{given!r} is not a time; give a datetime, a date or a text such as '2026-03-01'")


def _relative(phrase: str, now: datetime) -> datetime | None:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    named = {"now": now, "today": today, "yesterday": today - timedelta(days=1)}
    if phrase in named:
        return named[phrase]
    if not phrase.endswith(" ago"):
        return None
    try:
        return now - timedelta(seconds=parse_duration(phrase.removesuffix(" ago")))
    except OverflowError:
        raise UsageError(f"'{phrase}' is too early; {_HINT}") from None


def parse_stamp(digits: str) -> datetime:
    """The earliest moment that a timestamp of 1 to 14 digits can mean (4 digits: a year)."""
    template = "10000101000000"
    padded = digits + template[len(digits) :]
    month, day = padded[4:6], padded[6:8]
    padded = padded[:4] + (month if month != "00" else "01") + (day if day != "00" else "01") + padded[8:]
    try:
        return datetime.strptime(padded, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise UsageError(f"'{digits}' is not a timestamp; {_HINT}") from None


def rfc3339(moment: datetime) -> str:
    """`2026-03-01T12:00:00.250Z`; milliseconds only where there are any."""
    utc = moment.astimezone(UTC)
    spec = "milliseconds" if utc.microsecond >= 1000 else "seconds"
    return utc.isoformat(timespec=spec).replace("+00:00", "Z")


def stamp14(moment: datetime) -> str:
    """`20260301120000`, as in CDX and replay addresses."""
    return timestamp(to_millis(moment))


class DayTexts(dict[int, str]):
    """Texts of days by their number since 1970, each worked out once; lists of captures need thousands.

    The template sees the day, its name and that of its month.
    """

    def __init__(self, template: str) -> None:
        super().__init__()
        self._template = template

    def __missing__(self, day: int) -> str:
        date = _EPOCH + timedelta(days=day)
        text = self._template.format(date, DAY_NAMES[date.weekday()], MONTH_NAMES[date.month - 1])
        if len(self) > 50_000:
            self.clear()
        self[day] = text
        return text


_STAMP_DAYS = DayTexts("{0.year:04}{0.month:02}{0.day:02}")


@lru_cache(maxsize=1)
def times_of_day() -> list[str]:
    """`HHMMSS` of every second of a day."""
    return [f"{h:02}{m:02}{s:02}" for h in range(24) for m in range(60) for s in range(60)]


def timestamp(millis: int) -> str:
    """`stamp14` of a time in milliseconds."""
    day, second = divmod(millis // 1000, 86_400)
    return _STAMP_DAYS[day] + times_of_day()[second]


def timestamps(times: Iterable[int]) -> list[str]:
    """The `timestamp` of each; lists of captures run to millions."""
    days, seconds = _STAMP_DAYS, times_of_day()
    return [days[millis // 86_400_000] + seconds[millis // 1000 % 86_400] for millis in times]


def http_date(moment: datetime) -> str:
    """`Sun, 01 Mar 2026 12:00:00 GMT`."""
    utc = moment.astimezone(UTC)
    return f"{DAY_NAMES[utc.weekday()]}, {utc.day:02} {MONTH_NAMES[utc.month - 1]} {utc.year:04} {utc:%H:%M:%S} GMT"


def to_millis(moment: datetime) -> int:
    """Whole milliseconds since 1970, the form in which times are stored."""
    since = moment - _EPOCH
    return since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000


def from_millis(millis: int) -> datetime:
    """The inverse of `to_millis`."""
    return _EPOCH + timedelta(0, 0, 0, millis)  # An answer has many: by name they take half as long again.
