"""`/watches`: standing checks through HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from letopis.errors import UsageError
from letopis.model import from_millis, parse_duration
from letopis.monitor.book import Entry, WatchBook
from letopis.monitor.rules import Condition, ConditionKind, parse_rules
from letopis.monitor.watch import WatchSpec
from letopis.serve.access import ThePrincipal
from letopis.serve.problems import answers
from letopis.serve.quotas import WATCHES, charge
from letopis.serve.rest.checks import require_rendering
from letopis.serve.rest.shapes import Body, Time, Url
from letopis.serve.shared import TheArchive

router = APIRouter(tags=["watches"])
Text = Annotated[str, Field(min_length=1, max_length=2000)]


class FilterShape(BaseModel):
    """One filter of what is compared."""

    kind: Annotated[str, Field(pattern="^(css|xpath|remove|jsonpath|include|exclude|ignore)$")]
    expression: Text


class ConditionShape(BaseModel):
    """One demand on a difference."""

    kind: ConditionKind
    value: Text


class WatchBody(Body):
    """What to watch, and how; what is left out is taken from the tag and the settings."""

    url: Url
    sitemap: bool = False
    every: str | None = Field(None, max_length=40, description="10m, 1h, or seconds")
    cron: str = Field("", max_length=200)
    jitter: str | None = Field(None, max_length=40)
    tag: str = Field("", max_length=64)
    filters: list[FilterShape] = Field([], max_length=20)
    notify: list[Url] = Field([], max_length=20)
    when: str = Field("", max_length=200)
    conditions: list[ConditionShape] = Field([], max_length=20)
    browser: bool = Field(False, description="look at the page as a browser shows it, after its scripts have run")

    def spec(self) -> WatchSpec:
        """As the monitor wants it; marked as one that came through HTTP."""
        return WatchSpec(
            every=_seconds(self.every),
            cron=self.cron,
            jitter=_seconds(self.jitter),
            filters=tuple((one.kind, one.expression) for one in self.filters),
            notify=tuple(self.notify),
            when=parse_rules(self.when) if self.when else (),
            conditions=tuple(Condition(one.kind, one.value) for one in self.conditions),
            origin="http",
            browser=self.browser,
        )


class WatchShape(BaseModel):
    """One watch; where it notifies is told to nobody, since targets may hold passwords."""

    url: str
    kind: str
    every: float
    cron: str
    jitter: float
    tag: str
    source: str
    filters: list[FilterShape]
    when: str
    conditions: list[ConditionShape]
    browser: bool
    targets: int
    due: Time
    added: Time
    last_judged: Time | None
    failures: int


class WatchesShape(BaseModel):
    """All watches."""

    watches: list[WatchShape]


class AlertShape(BaseModel):
    """Something a watch has told."""

    id: int
    url: str
    kind: str
    time: Time
    message: str


class AlertsShape(BaseModel):
    """The latest alerts, newest first."""

    alerts: list[AlertShape]


class RemovedShape(BaseModel):
    """How many watches ended."""

    url: str
    removed: int


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    seconds = parse_duration(text)
    if seconds > 10 * 365 * 86400:
        raise UsageError(f"'{text}' is longer than ten years; write 1h or 7d")
    return seconds


def shape_of(entry: Entry) -> WatchShape:
    """A line of the list for programs."""
    watch = entry.watch
    return WatchShape(
        url=watch.url,
        kind=watch.kind,
        every=watch.every,
        cron=watch.cron,
        jitter=watch.jitter,
        tag=watch.tag,
        source=watch.source,
        filters=[FilterShape(kind=kind, expression=text) for kind, text in watch.filters],
        when=",".join(map(str, watch.when)),
        conditions=[ConditionShape(kind=one.kind, value=one.value) for one in watch.conditions],
        browser=watch.browser,
        targets=len(watch.notify),
        due=entry.due,
        added=entry.added,
        last_judged=entry.last_judged,
        failures=entry.failures,
    )


@router.get("/watches", responses=answers())
def list_watches(archive: TheArchive, tag: Annotated[str | None, Query(max_length=64)] = None) -> WatchesShape:
    """What is watched, oldest first."""
    return WatchesShape(watches=[shape_of(entry) for entry in WatchBook(archive).entries(tag)])


@router.post("/watches", status_code=201, responses=answers(429))
def add_watch(archive: TheArchive, principal: ThePrincipal, body: WatchBody) -> WatchShape:
    """Watch a page, or with `sitemap` every page that a sitemap names; a watched one gets the new options."""
    charge(archive, principal, WATCHES)
    if body.browser:
        require_rendering(archive)
    urls, sitemaps = ([], [body.url]) if body.sitemap else ([body.url], [])
    return shape_of(WatchBook(archive).add(urls, body.spec(), body.tag, sitemaps)[0])


@router.delete("/watches", responses=answers(404))
def remove_watch(archive: TheArchive, url: Annotated[str, Query(min_length=1, max_length=8192)]) -> RemovedShape:
    """Watch a page no longer; what was recorded stays."""
    return RemovedShape(url=url, removed=WatchBook(archive).remove(url))


@router.get("/watches/alerts", responses=answers())
def list_alerts(
    archive: TheArchive,
    url: Annotated[str | None, Query(min_length=1, max_length=8192)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AlertsShape:
    """What the watches have told, newest first."""
    rows = WatchBook(archive).alerts(url, limit)
    return AlertsShape(
        alerts=[
            AlertShape(id=row.id, url=row.url, kind=row.kind, time=from_millis(row.time), message=row.message)
            for row in rows
        ]
    )
