"""A watch as a value: what is checked, at which times, through which filters, when it alerts and whom it notifies."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from letopis.config import MonitorSettings
from letopis.errors import UsageError
from letopis.fetch import Origin
from letopis.fetch.page_steps import parse_steps
from letopis.lazy import lazy
from letopis.model import LONGEST_DURATION, parse_duration

if TYPE_CHECKING:
    from letopis.change import filters
else:
    filters = lazy("letopis.change.filters")  # few watches have any


class AlertKind(StrEnum):
    """What a watch may wait for; the words of `when`."""

    CHANGED = "changed"
    STATUS = "status"
    UNAVAILABLE = "unavailable"
    RECOVERED = "recovered"
    REDIRECT = "redirect"
    UNCHANGED = "unchanged"


_AMOUNTS = {AlertKind.UNAVAILABLE: ":3", AlertKind.UNCHANGED: ":7d"}
ALERT_RULES = ", ".join(kind + _AMOUNTS.get(kind, "") for kind in AlertKind)
"""The words of `when`, for people."""
_RULES_HINT = f"choose among {ALERT_RULES}, with commas between them"


class AlertRule(NamedTuple):
    """One cause for an alert. `amount` counts failures in a row (unavailable) or seconds (unchanged)."""

    kind: AlertKind
    amount: float = 0.0

    def __str__(self) -> str:
        """As `when` takes it."""
        if self.kind is AlertKind.UNAVAILABLE:
            return f"{self.kind}:{self.amount:g}"
        return f"{self.kind}:{self.amount:.15g}s" if self.kind is AlertKind.UNCHANGED else str(self.kind)


DEFAULT_ALERT_RULES = (AlertRule(AlertKind.CHANGED),)


def parse_alert_rules(text: str) -> tuple[AlertRule, ...]:
    """The rules that `when` names; UsageError says what is allowed."""
    rules = [_parse_rule(part.strip()) for part in text.split(",") if part.strip()]
    if not rules:
        raise UsageError(f"'{text}' names no cause for an alert; {_RULES_HINT}")
    return tuple(dict.fromkeys(rules))


def _parse_rule(text: str) -> AlertRule:
    name, colon, amount = text.partition(":")
    if name not in list(AlertKind):
        raise UsageError(f"'{text}' is no cause for an alert; {_RULES_HINT}")
    kind = AlertKind(name)
    if kind is AlertKind.UNAVAILABLE:
        return AlertRule(kind, float(_parse_count(amount) if colon else 1))
    if kind is AlertKind.UNCHANGED:
        if not colon:
            raise UsageError("'unchanged' needs a time, such as unchanged:7d")
        return AlertRule(kind, parse_duration(amount))
    if colon:
        raise UsageError(f"'{name}' takes no amount; {_RULES_HINT}")
    return AlertRule(kind)


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10_000):
        raise UsageError(f"'unavailable:{text}' needs a number of failures in a row, such as unavailable:3")
    return int(text)


class AlertConditionKind(StrEnum):
    """What a difference must hold to be worth an alert."""

    CONTAINS = "contains"
    ADDS = "adds"
    REMOVES = "removes"
    MORE_THAN = "more-than"


@dataclass(frozen=True, slots=True)
class AlertCondition:
    """One demand on a difference: a text in it (case aside), or the least share of the page in per cent."""

    kind: AlertConditionKind
    value: str

    def __post_init__(self) -> None:
        if self.kind is AlertConditionKind.MORE_THAN:
            self.per_cent()
        elif not self.value:
            raise UsageError(f"the condition '{self.kind}' needs a text to look for")

    def per_cent(self) -> float:
        """The number of a `more-than`."""
        try:
            share = float(self.value.strip().removesuffix("%"))
        except ValueError:
            share = -1.0
        if not 0 <= share <= 100:
            raise UsageError(f"the condition 'more-than' takes per cent from 0 to 100, not '{self.value}'")
        return share

    def holds(self, added: Iterable[str], removed: Iterable[str], share: float) -> bool:
        """Whether a difference (`share` 0..1 of the page) is what this asks for."""
        if self.kind is AlertConditionKind.MORE_THAN:
            return share * 100 > self.per_cent()
        wanted = self.value.casefold()
        lines = {
            AlertConditionKind.CONTAINS: [*added, *removed],
            AlertConditionKind.ADDS: added,
            AlertConditionKind.REMOVES: removed,
        }[self.kind]
        return any(wanted in line.casefold() for line in lines)


WatchKind = Literal["page", "sitemap"]
FilterText = tuple[str, str]
"""A filter as kind and expression; `parse_filters` makes of it what compares."""
FILTER_KINDS = ("css", "xpath", "remove", "jsonpath", "include", "exclude", "ignore")
"""The kinds of `letopis.change.filters.FilterKind`, known without loading what compares."""


def parse_filters(texts: Sequence[FilterText]) -> list[filters.ContentFilter]:
    """The filters of a watch; UsageError for a kind that nobody knows and for an expression that is wrong."""
    for kind, _ in texts:
        if kind not in FILTER_KINDS:
            raise UsageError(f"'{kind[:70]}' is no kind of filter; choose {', '.join(FILTER_KINDS)}")
    return [filters.ContentFilter(filters.FilterKind(kind), expression) for kind, expression in texts]


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """What was asked for; whatever is None or empty is taken from the tag, then from the settings.

    `origin` is who asked for the watch, `notify_origin` who gave its targets,
    where that was somebody else.
    """

    every: float | None = None
    cron: str = ""
    jitter: float | None = None
    filters: tuple[FilterText, ...] = ()
    notify: tuple[str, ...] = ()
    when: tuple[AlertRule, ...] = ()
    conditions: tuple[AlertCondition, ...] = ()
    origin: Origin = "cli"
    browser: bool | None = None
    notify_origin: Origin | None = None
    requisites: bool | None = None
    steps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.every is not None and self.every <= 0:
            raise UsageError("the interval of a watch must be longer than nothing; write 1h or 10m")
        if self.jitter is not None and self.jitter < 0:
            raise UsageError("the jitter of a watch cannot be negative")
        if self.cron:
            Cron.parse(self.cron)
        parse_steps(self.steps)

    def refuse_long_times(self) -> None:
        """UsageError for a time above ten years; not asked of watches that are already stored."""
        times = [self.every, self.jitter, *(rule.amount for rule in self.when if rule.kind is AlertKind.UNCHANGED)]
        if max(time or 0.0 for time in times) > LONGEST_DURATION:
            raise UsageError("a time of the watch is longer than ten years; write 1h or 7d")

    def to_json(self) -> str:
        """Compact; what is empty is left out."""
        fields: dict[str, Any] = {
            "every": self.every,
            "cron": self.cron,
            "jitter": self.jitter,
            "filters": self.filters,
            "notify": self.notify,
            "when": ",".join(map(str, self.when)),
            "conditions": [(str(one.kind), one.value) for one in self.conditions],
            "origin": self.origin,
            "browser": self.browser,
            "notify_origin": self.notify_origin,
            "requisites": self.requisites,
            "steps": self.steps,
        }
        kept = {name: value for name, value in fields.items() if value not in (None, "", (), [])}
        return json.dumps(kept, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> WatchSpec:
        """The inverse; fields of later releases are ignored."""
        fields: Mapping[str, Any] = json.loads(text)
        return cls(
            every=fields.get("every"),
            cron=fields.get("cron", ""),
            jitter=fields.get("jitter"),
            filters=tuple((kind, expression) for kind, expression in fields.get("filters", ())),
            notify=tuple(fields.get("notify", ())),
            when=parse_alert_rules(fields["when"]) if fields.get("when") else (),
            conditions=tuple(
                AlertCondition(AlertConditionKind(kind), value) for kind, value in fields.get("conditions", ())
            ),
            origin="http" if fields.get("origin") == "http" else "cli",
            browser=fields.get("browser"),
            notify_origin=fields.get("notify_origin"),
            requisites=fields.get("requisites"),
            steps=tuple(fields.get("steps", ())),
        )

    def over(self, defaults: WatchSpec) -> WatchSpec:
        """With defaults where nothing is said here; a time of its own hides theirs.

        What defaults that came through HTTP bring is held to what HTTP may: their targets, and a browser,
        whose pages ask for more than their own address.
        """
        timed = self.every is not None or bool(self.cron)
        rendered = (self.browser is None and bool(defaults.browser)) or (
            self.requisites is None and bool(defaults.requisites)
        )
        return replace(
            self,
            every=self.every if timed else defaults.every,
            cron=self.cron if timed else defaults.cron,
            jitter=self.jitter if self.jitter is not None else defaults.jitter,
            filters=self.filters or defaults.filters,
            notify=self.notify or defaults.notify,
            when=self.when or defaults.when,
            conditions=self.conditions or defaults.conditions,
            origin="http" if rendered and defaults.origin == "http" else self.origin,
            browser=defaults.browser if self.browser is None else self.browser,
            notify_origin=self._targets_from if self.notify else defaults._targets_from,
            requisites=defaults.requisites if self.requisites is None else self.requisites,
            steps=self.steps or defaults.steps,
        )

    @property
    def _targets_from(self) -> Origin:
        return self.notify_origin or self.origin

    def changing(self, earlier: WatchSpec, forgotten: Collection[str] = ()) -> WatchSpec:
        """An earlier specification with what is said here; fields that are `forgotten` begin anew.

        Whoever changes a watch answers for it from then on, but not for targets that they did not give.
        """
        fresh = WatchSpec()
        kept = replace(earlier, **{name: getattr(fresh, name) for name in forgotten})
        return replace(self.over(kept), origin=self.origin)


SPEC_FIELDS = (
    "every", "cron", "jitter", "filters", "notify", "when", "conditions", "browser", "requisites", "steps",
)  # fmt: skip
"""What may be said of a watch, and forgotten."""


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
    """What a field may hold; `names` stand for numbers from `low` on."""

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
    """Times as cron writes them, five fields in UTC: minute hour day-of-month month day-of-week.

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

    def after(self, moment: datetime) -> datetime:
        """The first full minute later than a time that fits."""
        found = self._find(moment.astimezone(UTC))
        assert found is not None, "parse refuses expressions that never match"
        return found

    def fits(self, moment: datetime) -> bool:
        """Whether the minute of a time is one of those named."""
        utc = moment.astimezone(UTC)
        return utc.minute in self.minutes and utc.hour in self.hours and self._fits_day(utc)

    def _find(self, moment: datetime) -> datetime | None:
        now = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = now + timedelta(days=366 * _CRON_YEARS)
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
    return UsageError(f"'{text}' is no {kind.name} of a cron time; it goes from {kind.low} to {kind.high}")


class Watch(NamedTuple):
    """One standing check with everything settled. `source` is the sitemap that named it, else empty."""

    url: str
    kind: WatchKind
    tag: str
    source: str
    every: float
    cron: str
    jitter: float
    filters: tuple[FilterText, ...]
    notify: tuple[str, ...]
    when: tuple[AlertRule, ...]
    conditions: tuple[AlertCondition, ...]
    origin: Origin
    browser: bool
    notify_origin: Origin
    requisites: bool = False
    steps: tuple[str, ...] = ()

    def next_time(self, now: datetime, chance: float) -> datetime:
        """When it is checked again; `chance` (0..1) picks a point within the jitter."""
        base = Cron.parse(self.cron).after(now) if self.cron else now + timedelta(seconds=self.every)
        return base + timedelta(seconds=self.jitter * chance)


class WatchedUrl(NamedTuple):
    """Which URL a specification is for."""

    url: str
    kind: WatchKind = "page"
    tag: str = ""
    source: str = ""


def settle_watch(named: WatchedUrl, spec: WatchSpec, tag: WatchSpec | None, settings: MonitorSettings) -> Watch:
    """The watch that a specification means; intervals below the minimum are raised to it."""
    whole = spec.over(tag) if tag is not None else spec
    every = settings.every if whole.every is None else whole.every
    return Watch(
        url=named.url,
        kind=named.kind,
        tag=named.tag,
        source=named.source,
        every=max(every, settings.min_interval),
        cron=whole.cron,
        jitter=whole.jitter or 0.0,
        filters=whole.filters,
        notify=whole.notify,
        when=whole.when or DEFAULT_ALERT_RULES,
        conditions=whole.conditions,
        origin=whole.origin,
        browser=bool(whole.browser) and named.kind == "page",
        notify_origin=whole.notify_origin or whole.origin,
        requisites=bool(whole.requisites) and named.kind == "page",
        steps=whole.steps if named.kind == "page" else (),
    )
