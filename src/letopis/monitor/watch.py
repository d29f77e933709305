"""A watch as a value: what is looked at, how often, through which filters, when it alerts and whom it notifies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from letopis.config import MonitorSettings
from letopis.errors import UsageError
from letopis.fetch import Origin
from letopis.model import parse_duration
from letopis.monitor.cron import Cron

_RULES_HINT = "write changed, status, unavailable:3, recovered, redirect or unchanged:7d, with commas between them"


class AlertKind(StrEnum):
    """What a watch may wait for; the words of `--when`."""

    CHANGED = "changed"
    STATUS = "status"
    UNAVAILABLE = "unavailable"
    RECOVERED = "recovered"
    REDIRECT = "redirect"
    UNCHANGED = "unchanged"


class AlertRule(NamedTuple):
    """One cause for an alert. `amount` counts failures in a row (unavailable) or seconds (unchanged)."""

    kind: AlertKind
    amount: float = 0.0

    def __str__(self) -> str:
        """As `--when` takes it."""
        if self.kind is AlertKind.UNAVAILABLE:
            return f"{self.kind}:{self.amount:g}"
        return f"{self.kind}:{self.amount:.15g}s" if self.kind is AlertKind.UNCHANGED else str(self.kind)


DEFAULT_ALERT_RULES = (AlertRule(AlertKind.CHANGED),)


def parse_alert_rules(text: str) -> tuple[AlertRule, ...]:
    """The rules of `--when`; UsageError says what is allowed."""
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
            raise UsageError(f"--{self.kind} needs a text to look for")

    def per_cent(self) -> float:
        """The number of a `more-than`."""
        try:
            share = float(self.value.strip().removesuffix("%"))
        except ValueError:
            share = -1.0
        if not 0 <= share <= 100:
            raise UsageError(f"--more-than takes per cent from 0 to 100, not '{self.value}'")
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
"""A filter as kind and expression: `letopis.change.Filter` is made of it when something is compared."""


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """What was asked for; whatever is None or empty is taken from the tag, then from the settings."""

    every: float | None = None
    cron: str = ""
    jitter: float | None = None
    filters: tuple[FilterText, ...] = ()
    notify: tuple[str, ...] = ()
    when: tuple[AlertRule, ...] = ()
    conditions: tuple[AlertCondition, ...] = ()
    origin: Origin = "cli"
    browser: bool = False

    def __post_init__(self) -> None:
        if self.every is not None and self.every <= 0:
            raise UsageError("the interval of a watch must be longer than nothing; write 1h or 10m")
        if self.jitter is not None and self.jitter < 0:
            raise UsageError("the jitter of a watch cannot be negative")
        if self.cron:
            Cron.parse(self.cron)

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
            "browser": self.browser or None,
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
            browser=bool(fields.get("browser")),
        )

    def over(self, tag: WatchSpec) -> WatchSpec:
        """With the tag's defaults where nothing is said here; a time of its own hides the tag's."""
        timed = self.every is not None or bool(self.cron)
        return replace(
            self,
            every=self.every if timed else tag.every,
            cron=self.cron if timed else tag.cron,
            jitter=self.jitter if self.jitter is not None else tag.jitter,
            filters=self.filters or tag.filters,
            notify=self.notify or tag.notify,
            when=self.when or tag.when,
            conditions=self.conditions or tag.conditions,
            browser=self.browser or tag.browser,
        )


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
    browser: bool = False

    def next_time(self, now: datetime, chance: float) -> datetime:
        """When it is looked at again; `chance` (0..1) picks a point within the jitter."""
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
        browser=whole.browser and named.kind == "page",
    )
