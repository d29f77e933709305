"""Times as archives write them, fast enough for lists of a hundred thousand."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache

from letopis.errors import UsageError
from letopis.model import to_millis

_DAY = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = re.compile(r"\d{1,14}", re.ASCII)
_LOWEST = "00010101000000"
_HIGHEST = "99991231235959"
_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HTTP_DATE = re.compile(
    rf"(?:{'|'.join(_NAMES)}), \d\d (?:{'|'.join(_MONTHS)}) \d{{4}} \d\d:\d\d:\d\d (?:GMT|UTC)", re.ASCII
)


class _Days(dict[int, str]):
    """Texts of days by their number since 1970, each worked out once."""

    def __init__(self, template: str) -> None:
        super().__init__()
        self._template = template

    def __missing__(self, day: int) -> str:
        date = _EPOCH + timedelta(days=day)
        text = self._template.format(date, _NAMES[date.weekday()], _MONTHS[date.month - 1])
        if len(self) > 50_000:
            self.clear()
        self[day] = text
        return text


_PLAIN_DAYS = _Days("{0.year:04}{0.month:02}{0.day:02}")
_HTTP_DAYS = _Days("{1}, {0.day:02} {2} {0.year:04} ")


@lru_cache(maxsize=1)
def clock() -> list[str]:
    """`HHMMSS` of every second of a day."""
    return [f"{h:02}{m:02}{s:02}" for h in range(24) for m in range(60) for s in range(60)]


def stamp(millis: int) -> str:
    """`20260301120000`."""
    day, second = divmod(millis // 1000, _DAY)
    return _PLAIN_DAYS[day] + clock()[second]


def http_stamp(millis: int) -> str:
    """`Sun, 01 Mar 2026 12:00:00 GMT`."""
    day, second = divmod(millis // 1000, _DAY)
    time = clock()[second]
    return f"{_HTTP_DAYS[day]}{time[:2]}:{time[2:4]}:{time[4:]} GMT"


def earliest(digits: str) -> int:
    """The first millisecond that 1 to 14 digits can mean."""
    return _millis(digits, _LOWEST)


def latest(digits: str) -> int:
    """The last millisecond that 1 to 14 digits can mean."""
    return _millis(digits, _HIGHEST) + 999


def _millis(digits: str, pad: str) -> int:
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
    if not _HTTP_DATE.fullmatch(text.strip()):
        raise UsageError("Accept-Datetime must look like 'Sun, 01 Mar 2026 12:00:00 GMT'")
    try:
        return to_millis(parsedate_to_datetime(text.strip()).replace(tzinfo=UTC))
    except ValueError:
        raise UsageError("Accept-Datetime names a day that does not exist") from None
