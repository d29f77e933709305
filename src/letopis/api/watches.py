"""REST of monitoring: checks on demand, standing watches, what is new to each client, and daily quotas."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.responses import Response

from letopis.api.access import Principal, PrincipalDep
from letopis.api.models import (
    AckBody,
    AckShape,
    ChangeShape,
    ChangesShape,
    CheckBody,
    CheckShape,
    Name,
    RequestBody,
    Time,
    Url,
)
from letopis.api.requests import ArchiveDep, LimitParam, problem_response, problem_responses
from letopis.archive import Archive, digest_text
from letopis.catalog.accounts import DailyUsage, seconds_to_next_day
from letopis.catalog.version_log import ChangeClients, NewVersion
from letopis.errors import MissingExtra, Refused, UsageError
from letopis.fetch import require_browser
from letopis.model import Outcome, from_millis, parse_duration, to_millis
from letopis.model.rights import OWN
from letopis.monitor import CheckOptions, Monitor
from letopis.monitor.watch import AlertCondition, AlertConditionKind, WatchSpec, parse_alert_rules
from letopis.monitor.watch_list import WatchEntry, WatchList

CHECK_QUOTA = "checks"
WATCH_QUOTA = "watches"


def charge_quota(archive: Archive, principal: Principal, what: str, amount: int = 1) -> None:
    """Counts what a user asks for; 429 when the day's share is used up. Owners have no limit."""
    most = _quota(archive, what)
    if not most or principal.may(OWN):
        return
    now = to_millis(archive.clock())
    if not DailyUsage(archive.catalog.database).take(principal.name, what, most, now, amount):
        sentence = f"'{principal.name}' has used up the {most} {what} of today; go on tomorrow (UTC), or ask an owner"
        raise HTTPException(429, sentence, {"retry-after": str(seconds_to_next_day(now))})


def _quota(archive: Archive, what: str) -> int:
    settings = archive.settings.serve
    return settings.checks_a_day if what == CHECK_QUOTA else settings.watches_a_day


checks_router = APIRouter(tags=["checks"])


def require_rendering(archive: Archive) -> None:
    """UsageError when this service has no browser to render pages with."""
    try:
        require_browser(archive.settings.fetch.chromium)
    except MissingExtra as error:
        raise UsageError(f"this service cannot render pages: {error}") from None


class CheckService:
    """One monitor for all requests, made when the first one comes."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._monitor: Monitor | None = None

    def check(self, body: CheckBody) -> CheckShape:
        """Looks, or answers from the record inside the minimum interval."""
        with self._lock:
            self._monitor = self._monitor or Monitor(self._archive)
        if body.browser:
            require_rendering(self._archive)
        private = self._archive.settings.fetch.private == "always"
        options = replace(CheckOptions(uid=body.uid), now=body.now, force=body.force, private_ok=private)
        options = replace(options, browser=body.browser)
        check = self._monitor.look([body.url], options)[0]
        if check.outcome is Outcome.REFUSED:
            raise Refused(f"{check.url} was not asked: {check.error}")
        return CheckShape.of(check)

    def close(self) -> None:
        """Ends its connections."""
        with self._lock:
            if self._monitor is not None:
                self._monitor.close()
                self._monitor = None


@checks_router.post("/check", responses=problem_responses(429, 502))
def check(request: Request, archive: ArchiveDep, principal: PrincipalDep, body: CheckBody) -> CheckShape:
    """Look at a page now. Private and loopback addresses are refused unless the owner allowed them."""
    charge_quota(archive, principal, CHECK_QUOTA)
    lookout: CheckService = request.app.state.check_service
    return lookout.check(body)


watches_router = APIRouter(tags=["watches"])
Text = Annotated[str, Field(min_length=1, max_length=2000)]


class FilterShape(BaseModel):
    """One filter of what is compared."""

    kind: Annotated[str, Field(pattern="^(css|xpath|remove|jsonpath|include|exclude|ignore)$")]
    expression: Text


class ConditionShape(BaseModel):
    """One demand on a difference."""

    kind: AlertConditionKind
    value: Text


class WatchBody(RequestBody):
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
            when=parse_alert_rules(self.when) if self.when else (),
            conditions=tuple(AlertCondition(one.kind, one.value) for one in self.conditions),
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


def watch_shape(entry: WatchEntry) -> WatchShape:
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


@watches_router.get("/watches", responses=problem_responses())
def list_watches(archive: ArchiveDep, tag: Annotated[str | None, Query(max_length=64)] = None) -> WatchesShape:
    """What is watched, oldest first."""
    return WatchesShape(watches=[watch_shape(entry) for entry in WatchList(archive).entries(tag)])


@watches_router.post("/watches", status_code=201, responses=problem_responses(429))
def add_watch(archive: ArchiveDep, principal: PrincipalDep, body: WatchBody) -> WatchShape:
    """Watch a page, or with `sitemap` every page that a sitemap names; a watched one gets the new options."""
    charge_quota(archive, principal, WATCH_QUOTA)
    if body.browser:
        require_rendering(archive)
    urls, sitemaps = ([], [body.url]) if body.sitemap else ([body.url], [])
    return watch_shape(WatchList(archive).add(urls, body.spec(), body.tag, sitemaps)[0])


@watches_router.delete("/watches", responses=problem_responses(404))
def remove_watch(archive: ArchiveDep, url: Annotated[str, Query(min_length=1, max_length=8192)]) -> RemovedShape:
    """Watch a page no longer; what was recorded stays."""
    return RemovedShape(url=url, removed=WatchList(archive).remove(url))


@watches_router.get("/watches/alerts", responses=problem_responses())
def list_alerts(
    archive: ArchiveDep,
    url: Annotated[str | None, Query(min_length=1, max_length=8192)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AlertsShape:
    """What the watches have told, newest first."""
    rows = WatchList(archive).alerts(url, limit)
    return AlertsShape(
        alerts=[
            AlertShape(id=row.id, url=row.url, kind=row.kind, time=from_millis(row.time), message=row.message)
            for row in rows
        ]
    )


changes_router = APIRouter(tags=["changes"])

MAX_LISTENERS = 500
POLL_SECONDS = 1.0
QUIET_POLLS = 15
"""After this many polls without news a comment keeps the connection alive."""


def _change_shape(row: NewVersion) -> ChangeShape:
    return ChangeShape(
        url=row.url,
        title=row.title or "",
        version=row.number,
        time=from_millis(row.time),
        outcome="changed" if row.number else "new",
        meaningful=None if row.meaningful is None else bool(row.meaningful),
        digest=digest_text(row.sha1),
    )


@changes_router.get("/changes", responses=problem_responses())
def changes(archive: ArchiveDep, client: Annotated[Name, Query()], limit: LimitParam = 1000) -> ChangesShape:
    """Versions that this client has not acknowledged yet, in the order of recording."""
    clients = ChangeClients(archive.catalog.database)
    after = clients.cursor(client)
    rows = clients.since(after, limit)
    return ChangesShape(changes=[_change_shape(row) for row in rows], cursor=f"v{rows[-1].id if rows else after}")


@changes_router.post("/changes/ack", responses=problem_responses())
def acknowledge(archive: ArchiveDep, body: AckBody) -> AckShape:
    """The client has taken everything up to a cursor; it is not told of that again."""
    clients = ChangeClients(archive.catalog.database)
    version = min(int(body.cursor[1:]), clients.newest())
    return AckShape(
        client=body.client, cursor=f"v{clients.acknowledge(body.client, version, to_millis(archive.clock()))}"
    )


@changes_router.get("/events", include_in_schema=False)
async def events(request: Request, archive: ArchiveDep) -> Response:
    """New versions as server-sent events; `Last-Event-ID` goes on where a connection broke."""
    state = request.app.state
    if state.listeners >= MAX_LISTENERS:
        return problem_response(503, "Too many listeners", "try again later, or ask /api/v1/changes now and then")
    clients = ChangeClients(archive.catalog.database)
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else None
    if after is None:
        after = await run_in_threadpool(clients.newest)
    return StreamingResponse(
        _events(request, clients, after), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _events(request: Request, clients: ChangeClients, after: int) -> AsyncIterator[str]:
    state = request.app.state
    state.listeners += 1
    quiet = 0
    try:
        yield ": listening\n\n"
        while not await request.is_disconnected() and not state.stopping:
            rows = await run_in_threadpool(clients.since, after, 100)
            for row in rows:
                after = row.id
                data = json.dumps(_change_shape(row).model_dump(mode="json"))
                yield f"id: {row.id}\nevent: version\ndata: {data}\n\n"
            quiet = 0 if rows else quiet + 1
            if quiet and quiet % QUIET_POLLS == 0:
                yield ": still here\n\n"
            await asyncio.sleep(0 if rows else POLL_SECONDS)
    finally:
        state.listeners -= 1
