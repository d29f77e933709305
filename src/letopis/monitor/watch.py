"""A standing check as a value: what is looked at, how often, through which filters, and who is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from letopis.config import MonitorSettings
from letopis.errors import UsageError
from letopis.fetch import Origin
from letopis.monitor.cron import Cron
from letopis.monitor.rules import DEFAULT_RULES, Condition, ConditionKind, Rule, parse_rules

Kind = Literal["page", "sitemap"]
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
    when: tuple[Rule, ...] = ()
    conditions: tuple[Condition, ...] = ()
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
            when=parse_rules(fields["when"]) if fields.get("when") else (),
            conditions=tuple(Condition(ConditionKind(kind), value) for kind, value in fields.get("conditions", ())),
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
    kind: Kind
    tag: str
    source: str
    every: float
    cron: str
    jitter: float
    filters: tuple[FilterText, ...]
    notify: tuple[str, ...]
    when: tuple[Rule, ...]
    conditions: tuple[Condition, ...]
    origin: Origin
    browser: bool = False

    def next_time(self, now: datetime, chance: float) -> datetime:
        """When it is looked at again; `chance` (0..1) picks a point within the jitter."""
        base = Cron.parse(self.cron).after(now) if self.cron else now + timedelta(seconds=self.every)
        return base + timedelta(seconds=self.jitter * chance)


class Named(NamedTuple):
    """Which URL a specification is for."""

    url: str
    kind: Kind = "page"
    tag: str = ""
    source: str = ""


def settled(named: Named, spec: WatchSpec, tag: WatchSpec | None, settings: MonitorSettings) -> Watch:
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
        when=whole.when or DEFAULT_RULES,
        conditions=whole.conditions,
        origin=whole.origin,
        browser=whole.browser and named.kind == "page",
    )
