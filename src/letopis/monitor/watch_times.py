"""When a watch checks and when it notifies nobody: cron expressions, hours of the week, time zones."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from letopis.errors import UsageError
from letopis.lazy import lazy
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    import zoneinfo
else:
    zoneinfo = lazy("zoneinfo")  # reads how Python was built; few watches name a zone

LONGEST_SNOOZE = timedelta(days=30)
"""How long notifications of a watch may be held back."""

_CRON_NAMES = {
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
_CRON_PART = re.compile(r"(\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:/(\d{1,4}))?", re.ASCII)
_CRON_YEARS = 41  # 29 February on one day of the week comes back within forty years, over 2100 too


class _CronField(NamedTuple):
    """The allowed values of a field; `names` stand for numbers from `low` on."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_CRON_FIELDS = (
    _CronField("minute", 0, 59),
    _CronField("hour", 0, 23),
    _CronField("day of month", 1, 31),
    _CronField("month", 1, 12, _MONTHS),
    _CronField("day of week", 0, 7, _DAYS),
)


class Cron(NamedTuple):
    """Times as cron writes them, five fields: minute hour day-of-month month day-of-week, in UTC or a time zone.

    Each field is `*`, a number, a range `a-b`, either with a step `/n`, or a
    list of those; months and days also by their English names, Sunday is 0 or
    7. When both days are restricted, either suffices, as in every cron;
    `any_day` says that both must fit, since one is not restricted. `@hourly`,
    `@daily`, `@weekly`, `@monthly` and `@yearly` stand for what they say.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool

    @classmethod
    def parse(cls, text: str) -> Cron:
        """UsageError names the field that is wrong; an expression that never matches is refused too."""
        fields = _CRON_NAMES.get(text.strip().lower(), text).lower().split()
        if len(fields) != len(_CRON_FIELDS):
            raise UsageError(f"'{text}' has {len(fields)} fields, cron has five: minute hour day month weekday")
        minutes, hours, days, months, weekdays = (
            _values(part, kind) for part, kind in zip(fields, _CRON_FIELDS, strict=True)
        )
        weekdays = frozenset(day % 7 for day in weekdays)
        cron = cls(minutes, hours, days, months, weekdays, "*" in (fields[2][0], fields[4][0]))
        if cron._find(datetime(2024, 1, 1, tzinfo=UTC)) is None:
            raise UsageError(f"'{text}' never matches; correct its day and month")
        return cron

    def after(self, moment: datetime, zone: tzinfo = UTC) -> datetime:
        """The first full minute later than a time that fits the clocks of a zone.

        A time that the clocks leave out is the one that they show instead; one that they show twice comes once.
        """
        wall = moment.astimezone(zone).replace(tzinfo=UTC)
        while True:
            found = self._find(wall)
            assert found is not None, "parse refuses expressions that never match"
            instant = found.replace(tzinfo=zone).astimezone(UTC)
            if instant > moment:
                return instant
            wall = found

    def fits(self, moment: datetime) -> bool:
        """Whether the minute of a time is one of those named."""
        utc = moment.astimezone(UTC)
        return utc.minute in self.minutes and utc.hour in self.hours and self._fits_day(utc)

    def _find(self, moment: datetime) -> datetime | None:
        now = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = now + timedelta(days=366 * _CRON_YEARS)
        while now <= end:
            if not self._fits_day(now):
                now = now.replace(hour=0, minute=0) + timedelta(days=1)
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


def _values(text: str, kind: _CronField) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        found.update(_part(part, kind))
    return frozenset(found)


def _part(text: str, kind: _CronField) -> range:
    match = _CRON_PART.fullmatch(text)
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


def _number(text: str, kind: _CronField) -> int:
    if text in kind.names:
        return kind.low + kind.names.index(text)
    if not text.isdigit() or len(text) > 2 or not kind.low <= int(text) <= kind.high:
        raise _wrong(text, kind)
    return int(text)


def _wrong(text: str, kind: _CronField) -> UsageError:
    return UsageError(f"'{text}' is not a {kind.name} of a cron expression; use {kind.low} to {kind.high}")


def parse_zone(name: str) -> tzinfo:
    """A time zone by its name, such as Europe/Prague; UTC for none."""
    if not name or name.upper() == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise UsageError(f"'{name[:70]}' is not a time zone; write UTC or a name such as Europe/Prague") from None


_HOURS_PART = re.compile(
    r"(?:(?P<days>[a-z]{3}(?:-[a-z]{3})?(?:,[a-z]{3}(?:-[a-z]{3})?)*)\s+)?"
    r"(?P<from>\d{1,2}:\d{2})\s*[-\u2013]\s*(?P<to>\d{1,2}:\d{2})",
    re.ASCII,
)
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES


class WeeklyHours(NamedTuple):
    """Hours of the week such as `mon-fri 08:00-18:00; sat 9:00-12:00`, as spans of minutes from Sunday midnight.

    A span that ends before it begins extends over midnight.
    """

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> WeeklyHours:
        """UsageError shows the form."""
        parts = [part.strip() for part in text.lower().split(";") if part.strip()]
        spans = [span for part in parts for span in _spans(part)]
        if not spans:
            raise _wrong_hours(text)
        return cls(tuple(sorted(spans)))

    def holds(self, moment: datetime, zone: tzinfo = UTC) -> bool:
        """Whether a time is within them."""
        return self._left(moment, zone) > 0

    def ends(self, moment: datetime, zone: tzinfo = UTC) -> datetime:
        """When the hours around a time are over; the time itself outside of them, and where they never end."""
        end = moment
        for _ in range(8):
            left = self._left(end, zone)
            if left <= 0:
                return end
            end = _later(end, left, zone)
        return moment

    @property
    def endless(self) -> bool:
        """Whether no minute of the week is outside of them."""
        held = {(first + n) % _WEEK_MINUTES for first, length in self.spans for n in range(length)}
        return len(held) == _WEEK_MINUTES

    def next_within(self, moment: datetime, zone: tzinfo = UTC) -> datetime:
        """The time itself where it is within them, else when they begin next."""
        if self.holds(moment, zone):
            return moment
        at = _minute_of_week(moment.astimezone(zone))
        waits = [(first - at) % _WEEK_MINUTES for first, _ in self.spans]
        return _later(moment, min(waits), zone)

    def _left(self, moment: datetime, zone: tzinfo) -> int:
        """Minutes until the longest span around a time ends; 0 outside."""
        at = _minute_of_week(moment.astimezone(zone))
        lefts = [length - (at - first) % _WEEK_MINUTES for first, length in self.spans]
        return max(0, *lefts)


def _later(moment: datetime, minutes: int, zone: tzinfo) -> datetime:
    """When the clock on the wall is so many minutes on, whatever it is set forward or back in between."""
    wall = moment.astimezone(zone).replace(tzinfo=None, second=0, microsecond=0) + timedelta(minutes=minutes)
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(moment.tzinfo) for fold in (0, 1))
    return first if first > moment else second


def _minute_of_week(wall: datetime) -> int:
    return wall.isoweekday() % 7 * _DAY_MINUTES + wall.hour * 60 + wall.minute


def _spans(part: str) -> list[tuple[int, int]]:
    """First minute and length of each day's span."""
    match = _HOURS_PART.fullmatch(part)
    if match is None:
        raise _wrong_hours(part)
    first, last = _clock_minutes(match["from"], part), _clock_minutes(match["to"], part)
    length = (last - first) % _DAY_MINUTES or _DAY_MINUTES
    return [(day * _DAY_MINUTES + first % _DAY_MINUTES, length) for day in _week_days(match["days"], part)]


def _clock_minutes(text: str, part: str) -> int:
    hours, minutes = map(int, text.split(":"))
    if minutes > 59 or hours * 60 + minutes > _DAY_MINUTES:
        raise _wrong_hours(part)
    return hours * 60 + minutes


def _week_days(text: str | None, part: str) -> list[int]:
    if text is None:
        return list(range(7))
    found: list[int] = []
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if first not in _DAYS or (last and last not in _DAYS):
            raise _wrong_hours(part)
        start, end = _DAYS.index(first), _DAYS.index(last or first)
        found += [day % 7 for day in range(start, end + 1 if end >= start else end + 8)]
    return found


def _wrong_hours(text: str) -> UsageError:
    return UsageError(f"'{text[:70]}' names no hours; write 08:00-18:00 or mon-fri 08:00-18:00; sat 9:00-12:00")
