"""Times as cron writes them: five fields, in UTC. Pure.

    minute hour day-of-month month day-of-week

Each field is `*`, a number, a range `a-b`, either with a step `/n`, or a list
of those; months and days also by their English names, Sunday is 0 or 7. When
both days are restricted, either suffices, as in every cron. `@hourly`,
`@daily`, `@weekly`, `@monthly` and `@yearly` stand for what they say.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from letopis.errors import UsageError

_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:/(\d{1,4}))?", re.ASCII)
_YEARS = 41  # 29 February on one day of the week comes back within forty years, over 2100 too


class _Field(NamedTuple):
    """What a field may hold; `names` stand for numbers from `low` on."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _DAYS),
)


class Cron(NamedTuple):
    """The allowed values of each field. `any_day` says that both days must fit, since one is not restricted."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool

    @classmethod
    def parse(cls, text: str) -> Cron:
        """UsageError names the field that is wrong; an expression that never comes true is refused too."""
        fields = _NAMED.get(text.strip().lower(), text).lower().split()
        if len(fields) != len(_FIELDS):
            raise UsageError(f"'{text}' has {len(fields)} fields, cron has five: minute hour day month weekday")
        minutes, hours, days, months, weekdays = (
            _values(part, kind) for part, kind in zip(fields, _FIELDS, strict=True)
        )
        weekdays = frozenset(day % 7 for day in weekdays)
        cron = cls(minutes, hours, days, months, weekdays, "*" in (fields[2][0], fields[4][0]))
        if cron._find(datetime(2024, 1, 1, tzinfo=UTC)) is None:
            raise UsageError(f"'{text}' names a day that never comes; correct day and month")
        return cron

    def after(self, moment: datetime) -> datetime:
        """The first full minute later than a time that fits."""
        found = self._find(moment.astimezone(UTC))
        assert found is not None, "parse refuses expressions that never come true"
        return found

    def fits(self, moment: datetime) -> bool:
        """Whether the minute of a time is one of those named."""
        utc = moment.astimezone(UTC)
        return utc.minute in self.minutes and utc.hour in self.hours and self._fits_day(utc)

    def _find(self, moment: datetime) -> datetime | None:
        now = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = now + timedelta(days=366 * _YEARS)
        while now <= end:
            if not self._fits_day(now):
                now = _day(now) + timedelta(days=1)
            elif now.hour not in self.hours:
                now = now.replace(minute=0) + timedelta(hours=1)
            elif now.minute not in self.minutes:
                now += timedelta(minutes=1)
            else:
                return now
        return None

    def _fits_day(self, moment: datetime) -> bool:
        if moment.month not in self.months:
            return False
        day, weekday = moment.day in self.days, moment.isoweekday() % 7 in self.weekdays
        return day and weekday if self.any_day else day or weekday


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0)


def _values(text: str, kind: _Field) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        found.update(_part(part, kind))
    return frozenset(found)


def _part(text: str, kind: _Field) -> range:
    match = _PART.fullmatch(text)
    if match is None:
        raise _wrong(text, kind)
    span, step = match[1], int(match[2] or 1)
    if step < 1:
        raise _wrong(text, kind)
    if span == "*":
        return range(kind.low, kind.high + 1, step)
    first, dash, last = span.partition("-")
    low = _number(first, kind)
    high = _number(last, kind) if dash else kind.high if match[2] else low
    if low > high:
        raise _wrong(text, kind)
    return range(low, high + 1, step)


def _number(text: str, kind: _Field) -> int:
    if text in kind.names:
        return kind.low + kind.names.index(text)
    if not text.isdigit() or len(text) > 2 or not kind.low <= int(text) <= kind.high:
        raise _wrong(text, kind)
    return int(text)


def _wrong(text: str, kind: _Field) -> UsageError:
    return UsageError(f"'{text}' is no {kind.name} of a cron time; it goes from {kind.low} to {kind.high}")
