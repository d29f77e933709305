"""A watch as a value: what is checked, at which times, through which filters, when it alerts and whom it notifies."""

from __future__ import annotations

import json
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from letopis.archive.watches import stored_json
from letopis.config import MonitorSettings
from letopis.errors import UsageError
from letopis.fetch import Origin
from letopis.fetch.headers import is_sendable_header
from letopis.fetch.page_steps import parse_steps
from letopis.lazy import lazy
from letopis.model import LONGEST_DURATION, Headers, from_millis, parse_duration
from letopis.model.page import FilterKind
from letopis.monitor.watch_times import Cron, WeeklyHours, parse_zone
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    from letopis.change import filters, values
else:  # few watches have filters or bounds
    filters, values = lazy("letopis.change.filters"), lazy("letopis.change.values")


class AlertKind(StrEnum):
    """The kinds of alert rules; the words of `when`."""

    CHANGED = "changed"
    STATUS = "status"
    UNAVAILABLE = "unavailable"
    RECOVERED = "recovered"
    REDIRECT = "redirect"
    UNCHANGED = "unchanged"


_AMOUNTS = {AlertKind.UNAVAILABLE: ":3", AlertKind.UNCHANGED: ":7d"}
ALERT_RULES = ", ".join(kind + _AMOUNTS.get(kind, "") for kind in AlertKind)
"""The words of `when`, for people."""
_RULES_HINT = f"choose among {ALERT_RULES}, separated by commas"


class AlertRule(NamedTuple):
    """One rule for alerts. `amount` counts failures in a row (unavailable) or seconds (unchanged)."""

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
        raise UsageError(f"'{text}' names no alert rule; {_RULES_HINT}")
    return tuple(dict.fromkeys(rules))


def _parse_rule(text: str) -> AlertRule:
    name, colon, amount = text.partition(":")
    if name not in list(AlertKind):
        raise UsageError(f"'{text}' is not an alert rule; {_RULES_HINT}")
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
    """The kinds of conditions that a difference must meet to raise an alert."""

    CONTAINS = "contains"
    ADDS = "adds"
    REMOVES = "removes"
    MORE_THAN = "more-than"
    BELOW = "below"
    ABOVE = "above"


class WatchedValue(NamedTuple):
    """What a watch saw from a time on: the text after its filters, and the first number in it, if it has one."""

    time: datetime
    version: int
    text: str
    value: float | None


@dataclass(frozen=True, slots=True)
class AlertCondition:
    """One condition of a difference: a text in it (ignoring case), the minimum share of the page in per cent, or a
    limit for the first added number: `below` and `above`, for prices and counts.
    """

    kind: AlertConditionKind
    value: str

    def __post_init__(self) -> None:
        if self.kind is AlertConditionKind.MORE_THAN:
            self.per_cent()
        elif self.kind in _BOUNDS:
            self._bound()
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

    def _bound(self) -> float:
        bound = values.first_number(self.value)
        if bound is None:
            raise UsageError(f"the condition '{self.kind}' takes a number, not '{self.value}'")
        return bound

    def holds(self, added: Iterable[str], removed: Iterable[str], share: float) -> bool:
        """Whether a difference (`share` 0..1 of the page) is what this asks for."""
        if self.kind is AlertConditionKind.MORE_THAN:
            return share * 100 > self.per_cent()
        if self.kind in _BOUNDS:
            found = next((number for line in added if (number := values.first_number(line)) is not None), None)
            return found is not None and _BOUNDS[self.kind](found, self._bound())
        wanted = self.value.casefold()
        lines = {
            AlertConditionKind.CONTAINS: [*added, *removed],
            AlertConditionKind.ADDS: added,
            AlertConditionKind.REMOVES: removed,
        }[self.kind]
        return any(wanted in line.casefold() for line in lines)


_BOUNDS = {AlertConditionKind.BELOW: operator.lt, AlertConditionKind.ABOVE: operator.gt}

WatchKind = Literal["page", "sitemap"]
FilterText = tuple[str, str]
"""A filter as kind and expression; `parse_filters` makes of it what compares."""
FILTER_KINDS = tuple(map(str, FilterKind))


def parse_filters(texts: Sequence[FilterText]) -> list[filters.ContentFilter]:
    """The filters of a watch; UsageError for a kind that nobody knows and for an expression that is wrong."""
    for kind, _ in texts:
        if kind not in FILTER_KINDS:
            raise UsageError(f"'{kind[:70]}' is not a kind of filter; choose {', '.join(FILTER_KINDS)}")
    return [filters.ContentFilter(FilterKind(kind), expression) for kind, expression in texts]


def _frozen(value: Any) -> Any:
    """A value out of JSON with its lists as tuples."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """The options of a watch; whatever is None or empty is taken from the tag, then from the settings.

    `origin` is who created the watch, `notify_origin` who set its targets, if somebody else. It checks only within
    its `hours`. Its notifications wait during the `quiet` hours and until the end of its `snooze` (milliseconds), or
    for the times of a `summary`, at which all of them go to a target as one; hours and cron times are in its `zone`.
    `headers` are sent with every request for the page. The `owner` and the owners of the archive may change it.
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
    zone: str = ""
    hours: str = ""
    quiet: str = ""
    headers: Headers = ()
    snooze: int | None = None
    owner: str = ""
    summary: str = ""

    def __post_init__(self) -> None:
        if self.every is not None and self.every <= 0:
            raise UsageError("the interval of a watch must be positive; write 1h or 10m")
        if self.jitter is not None and self.jitter < 0:
            raise UsageError("the jitter of a watch cannot be negative")
        for times in filter(None, (self.cron, self.summary)):
            Cron.parse(times)
        parse_steps(self.steps)
        parse_zone(self.zone)
        for hours in filter(None, (self.hours, self.quiet)):
            WeeklyHours.parse(hours)
        for name, value in self.headers:
            if not is_sendable_header(name, value):
                raise UsageError(f"'{name[:70]}' is not a header; write 'Name: value'")
        if self.headers and (self.browser or self.steps):
            raise UsageError("a browser sends its own headers; leave out the headers, or the browser")

    def refuse_unusable(self) -> None:
        """UsageError for what can never be: a time above ten years, quiet hours without an end, bounds of no number.

        Not asked of watches that are already stored.
        """
        if self.quiet and WeeklyHours.parse(self.quiet).endless:
            raise UsageError(f"the quiet hours '{self.quiet}' never end; leave the targets out, or snooze the watch")
        times = [self.every, self.jitter, *(rule.amount for rule in self.when if rule.kind is AlertKind.UNCHANGED)]
        if max(time or 0.0 for time in times) > LONGEST_DURATION:
            raise UsageError("a time of the watch is longer than ten years; write 1h or 7d")
        low, high = (
            [values.first_number(one.value) or 0.0 for one in self.conditions if one.kind is kind]
            for kind in (AlertConditionKind.ABOVE, AlertConditionKind.BELOW)
        )
        if low and high and max(low) >= min(high):
            raise UsageError(
                f"no number is above {max(low):g} and below {min(high):g} at once, and all conditions must hold; "
                "make a watch for each bound"
            )

    def to_json(self) -> str:
        """Compact; what is empty is left out."""
        said = {one.name: getattr(self, one.name) for one in fields(self)}
        said["when"] = ",".join(map(str, self.when))
        said["conditions"] = [(str(one.kind), one.value) for one in self.conditions]
        kept = {name: value for name, value in said.items() if value not in (None, "", (), [])}
        return json.dumps(kept, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> WatchSpec:
        """The inverse; fields of later releases are ignored."""
        stored: Mapping[str, Any] = stored_json(text)
        said = {one.name: _frozen(stored[one.name]) for one in fields(cls) if one.name in stored}
        if "when" in said:
            said["when"] = parse_alert_rules(said["when"]) if said["when"] else ()
        if "conditions" in said:
            said["conditions"] = tuple(AlertCondition(AlertConditionKind(kind), of) for kind, of in said["conditions"])
        return cls(**said | {"origin": "http" if said.get("origin") == "http" else "cli"})

    def over(self, defaults: WatchSpec) -> WatchSpec:
        """With defaults where nothing is said here; a time of its own hides theirs.

        What defaults that came through HTTP bring is held to what HTTP may: their targets, and a browser with its
        steps, whose pages ask for more than their own address.
        """
        timed = self.every is not None or bool(self.cron)
        browser = defaults.browser if self.browser is None else self.browser
        rendered = (
            (self.browser is None and bool(defaults.browser))
            or (self.requisites is None and bool(defaults.requisites))
            or (not self.steps and bool(defaults.steps))
        )
        return replace(
            self, every=self.every if timed else defaults.every, cron=self.cron if timed else defaults.cron,
            jitter=self.jitter if self.jitter is not None else defaults.jitter,
            filters=self.filters or defaults.filters, notify=self.notify or defaults.notify,
            when=self.when or defaults.when, conditions=self.conditions or defaults.conditions,
            origin="http" if rendered and defaults.origin == "http" else self.origin, browser=browser,
            notify_origin=self._targets_from if self.notify else defaults._targets_from,
            requisites=defaults.requisites if self.requisites is None else self.requisites,
            steps=self.steps or defaults.steps, zone=self.zone or defaults.zone, hours=self.hours or defaults.hours,
            quiet=self.quiet or defaults.quiet, summary=self.summary or defaults.summary,
            headers=() if browser or self.steps or defaults.steps else self.headers or defaults.headers,
        )  # fmt: skip

    @property
    def _targets_from(self) -> Origin:
        return self.notify_origin or self.origin

    def changing(self, earlier: WatchSpec, forgotten: Collection[str] = ()) -> WatchSpec:
        """An earlier specification with what is said here; fields that are `forgotten` begin anew.

        Whoever changes a watch answers for it from then on, but not for targets that they did not give, and its owner
        stays who it was.
        """
        fresh = WatchSpec()
        kept = replace(earlier, **{name: getattr(fresh, name) for name in forgotten})
        snooze = kept.snooze if self.snooze is None else self.snooze
        return replace(self.over(kept), origin=self.origin, snooze=snooze, owner=kept.owner)


SPEC_FIELDS = tuple(one.name for one in fields(WatchSpec) if one.name not in ("origin", "notify_origin", "owner"))
"""What may be said of a watch, and forgotten."""


class Watch(NamedTuple):
    """One watch with all options resolved. `source` is the sitemap that listed it, else empty.

    `tag_owner` is the user who set the defaults of its tag.
    """

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
    name: str = ""
    zone: str = ""
    hours: str = ""
    quiet: str = ""
    headers: Headers = ()
    snooze: int | None = None
    owner: str = ""
    summary: str = ""
    tag_owner: str = ""

    def next_time(self, now: datetime, chance: float) -> datetime:
        """When it is checked again, within its hours; `chance` (0..1) picks a point within the jitter."""
        zone = parse_zone(self.zone)
        base = Cron.parse(self.cron).after(now, zone) if self.cron else now + timedelta(seconds=self.every)
        later = base + timedelta(seconds=self.jitter * chance)
        return WeeklyHours.parse(self.hours).next_within(later, zone) if self.hours else later

    def notifies_at(self, now: datetime) -> datetime:
        """When notifications of something that is noticed now are sent.

        Behind its snooze and its quiet hours, at the next time of its summary.
        """
        start, zone = max(now, from_millis(self.snooze)) if self.snooze else now, parse_zone(self.zone)
        if self.summary:
            start = Cron.parse(self.summary).after(start, zone)
        return WeeklyHours.parse(self.quiet).ends(start, zone) if self.quiet else start


class WatchedUrl(NamedTuple):
    """Which URL a specification is for."""

    url: str
    kind: WatchKind = "page"
    tag: str = ""
    source: str = ""
    name: str = ""


def settle_watch(named: WatchedUrl, spec: WatchSpec, tag: WatchSpec | None, settings: MonitorSettings) -> Watch:
    """The watch that a specification means; intervals below the minimum are raised to it.

    Headers and steps of a tag may hold passwords: only watches of whoever gave them send them, since other people
    choose where their watches look.
    """
    if tag is not None and tag.owner != spec.owner:
        whole = spec.over(replace(tag, headers=(), steps=()))
    else:
        whole = spec if tag is None else spec.over(tag)
    every = settings.every if whole.every is None else whole.every
    return Watch(
        url=named.url, kind=named.kind, tag=named.tag, source=named.source, every=max(every, settings.min_interval),
        cron=whole.cron, jitter=whole.jitter or 0.0, filters=whole.filters, notify=whole.notify,
        when=whole.when or DEFAULT_ALERT_RULES, conditions=whole.conditions, origin=whole.origin,
        browser=bool(whole.browser) and named.kind == "page", notify_origin=whole.notify_origin or whole.origin,
        requisites=bool(whole.requisites) and named.kind == "page", steps=whole.steps if named.kind == "page" else (),
        name=named.name, zone=whole.zone, hours=whole.hours, quiet=whole.quiet, headers=whole.headers,
        snooze=whole.snooze, owner=whole.owner, summary=whole.summary, tag_owner="" if tag is None else tag.owner,
    )  # fmt: skip
