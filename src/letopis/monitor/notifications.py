"""The text of an alert, its targets (a web address, a file, a service of apprise), and the outbox that sends it.

Each notification is sent at least once, and exactly once unless a crash happens between sending and recording it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from letopis.archive import Archive
from letopis.archive.watches import TEST, AlertRow, DeliveryRow, stored_json, watches_of
from letopis.config import FetchSettings, MonitorSettings, ServeSettings
from letopis.errors import LetopisError, MissingExtra, NotReady, Refused, UsageError
from letopis.fetch import Origin
from letopis.lazy import asyncio, lazy
from letopis.model import from_millis, rfc3339, to_millis
from letopis.monitor.watch_times import LONGEST_SNOOZE
from letopis.tuples import NamedTuple
from letopis.urls import parse_user_url

if TYPE_CHECKING:
    from letopis.fetch import webhooks
else:
    webhooks = lazy("letopis.fetch.webhooks")

_IN_PATH = ":/~@!$'()*,;=&+"
_MOST_SUMMARY = 200_000
"""Characters of a summary; the alerts themselves are whole in the archive."""


class Notification(NamedTuple):
    """One alert, or a summary of several, for one target.

    `key` is the same for every attempt, so that receivers can drop duplicates.
    """

    key: str
    title: str
    body: str
    facts: dict[str, Any]

    def to_json(self) -> str:
        """One object on one line."""
        return json.dumps({"id": self.key, "title": self.title, "message": self.body, **self.facts}, ensure_ascii=False)


def home_of(settings: ServeSettings) -> str:
    """Where people open the web interface: as it was set, else where it listens; empty where any port may be taken."""
    if not settings.port and not settings.address:
        return ""
    host = "localhost" if settings.host in ("", "0.0.0.0", "::") else settings.host  # noqa: S104 - compared with
    return settings.address.rstrip("/") or f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def _links(home: str, alert: AlertRow, stored: dict[str, Any]) -> dict[str, str]:
    """Where the web interface shows what was noticed: the comparison as the watch sees it, and what noticed it."""
    if not home:
        return {"comparison": "", "page": ""}
    when = rfc3339(from_millis(alert.time))
    compared = f"{home}/compare/{quote(alert.url, safe=_IN_PATH)}?to={when}&alert={alert.id}"
    watch, saved = stored.get("watch"), stored.get("saved")
    page = f"{home}/watches/{watch}" if watch else f"{home}/saved/{saved}" if saved else ""
    return {"comparison": compared if alert.kind == "changed" and stored.get("version") else "", "page": page}


def notification_of(alert: AlertRow, settings: MonitorSettings, home: str = "") -> Notification:
    """The templates `monitor.title` and `monitor.message` filled in; unknown names in them stay as they are.

    `home` is where people open the web interface, for links to it.
    """
    stored: dict[str, Any] = stored_json(alert.facts)
    facts = {
        "kind": alert.kind,
        "url": alert.url,
        "time": rfc3339(from_millis(alert.time)),
        "tag": stored.get("tag", ""),
        "watch": stored.get("watch"),
        "name": stored.get("name", ""),
        "version": stored.get("version"),
        "sentence": alert.message,
        "difference": stored.get("difference", ""),
        "score": stored.get("score"),
        "reason": stored.get("reason", ""),
        **_links(home, alert, stored),
    }
    words = {name: "" if value is None else str(value) for name, value in facts.items()}
    title = Template(settings.title).safe_substitute(words).strip()
    body = Template(settings.message).safe_substitute(words).strip()
    return Notification(f"letopis-alert-{alert.id}", title, body, facts)


def summary_of(alerts: Sequence[AlertRow], settings: MonitorSettings, home: str = "") -> Notification:
    """One notification of several alerts: what each of them would say, one below the other."""
    each = [notification_of(alert, settings, home) for alert in alerts]
    body = "\n\n".join(f"{one.title}\n{one.body}".strip() for one in each)
    facts = {"kind": "summary", "alerts": [one.facts for one in each]}
    key = f"letopis-alerts-{alerts[0].id}-{alerts[-1].id}"
    return Notification(key, f"{len(each)} alerts", body[:_MOST_SUMMARY], facts)


def validate_target(target: str, origin: Origin, private: str) -> str:
    """The target itself when it can be used; a sentence that says why not otherwise.

    Watches that came through HTTP may only call web addresses: files and
    the services behind apprise would reach what belongs to the owner alone.
    """
    scheme = _scheme(target)
    if scheme in ("http", "https"):
        parse_user_url(target)
        return target
    if origin == "http" and private != "always":
        raise Refused(f"'{target}' can only be notified by watches of the owner; give an http:// or https:// address")
    if scheme == "file":
        _target_path(target)
    elif not scheme or not _new_apprise().add(target):
        raise UsageError(
            f"'{target}' is not a notification target; write https://..., file:/path or an address of apprise"
        )
    return target


def _scheme(target: str) -> str:
    try:
        return urlsplit(target).scheme.lower()
    except ValueError:
        raise UsageError(
            f"'{target}' is not a notification target; write https://..., file:/path or an address of apprise"
        ) from None


def deliver(target: str, message: Notification, settings: FetchSettings, *, guarded: bool) -> None:
    """Hands a message over; returns when the target has taken it. Blocks."""
    scheme = urlsplit(target).scheme.lower()
    if scheme in ("http", "https"):
        _to_web(target, message, settings, guarded)
    elif scheme == "file":
        _to_file(_target_path(target), message)
    else:
        _to_service(target, message)


def _to_web(target: str, message: Notification, settings: FetchSettings, guarded: bool) -> None:
    headers = (("Content-Type", "application/json"), ("Idempotency-Key", message.key), ("User-Agent", "Letopis"))
    status = webhooks.post_webhook(target, message.to_json().encode(), headers, settings, private_ok=not guarded)
    if not 200 <= status < 300:
        raise NotReady(f"{target} answered with status {status}; it is tried again later")


def _to_file(path: Path, message: Notification) -> None:
    """One line a message, on disk when it returns. Short appends of several processes do not mix."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(message.to_json() + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise NotReady(f"cannot write {path}: {error.strerror}; it is tried again later") from None


def _target_path(target: str) -> Path:
    parts = urlsplit(target)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise UsageError(f"'{target}' needs a file; write file:/path/alerts.jsonl")
    return Path(unquote(parts.path))


def _to_service(target: str, message: Notification) -> None:
    service = _new_apprise()
    if not service.add(target) or not service.notify(title=message.title, body=message.body):
        raise NotReady(f"{urlsplit(target).scheme} did not accept the message; it is tried again later")


def _new_apprise() -> Any:
    try:
        import apprise  # noqa: PLC0415 - optional dependency
    except ImportError:
        raise MissingExtra("this kind of notification needs 'pip install letopis[notify]'") from None
    return apprise.Apprise()


MAX_ATTEMPTS = 12
_LEASE = timedelta(minutes=5)
_AT_ONCE = 8
_MOST_SUMMED = 100
"""Alerts of one summary."""

_Letter = list[tuple[DeliveryRow, AlertRow]]
"""What goes to a target as one notification."""


def _letters(rows: Sequence[tuple[DeliveryRow, AlertRow]]) -> list[_Letter]:
    """Every delivery by itself, but those of summaries to one target together."""
    found: dict[tuple[object, ...], _Letter] = {}
    for row, alert in rows:
        summed = stored_json(alert.facts).get("summary")
        key = (row.target, row.guarded) if summed else (row.target, row.guarded, alert.id)
        found.setdefault(key, []).append((row, alert))
    return list(found.values())


Deliver = Callable[[str, Notification, bool], None]
"""Target, message, guarded; raises when the target did not take it."""


def retry_pause(attempts: int) -> timedelta:
    """How long a delivery waits after so many failed tries: half a minute, doubled up to six hours."""
    return timedelta(seconds=min(30.0 * 2.0 ** (attempts - 1), 6 * 3600.0))


class FailedDelivery(NamedTuple):
    """A notification that its target did not accept: the reason, and the time of the next attempt, None after the
    last.
    """

    url: str
    target: str
    attempts: int
    error: str
    due: datetime | None

    def __str__(self) -> str:
        """A sentence for people; what a target may keep secret is left out."""
        then = f"the next try is at {rfc3339(self.due)}" if self.due is not None else "given up"
        return f"a notification about {self.url} was not delivered, try {self.attempts}: {self.error}; {then}"


def shown_target(target: str) -> str:
    """A target without what only its owner should see: the kind of service, and the host of a web address."""
    parts = urlsplit(target)
    return f"{parts.scheme}://{parts.hostname}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


class TestSource(NamedTuple):
    """The source of alerts, where it is shown, and the number and name of the watch or the saved search."""

    subject: str
    url: str
    facts: dict[str, Any]


def send_test(archive: Archive, source: TestSource, target: str, *, guarded: bool) -> str:
    """Sends a test notification now: empty when the target took it, else why not. The list of deliveries has it."""
    moment = archive.clock()
    now, title = rfc3339(moment), f"Test of the {source.subject}"
    body = f"This is a test, sent at {now}. Alerts of the {source.subject} arrive here."
    row = AlertRow(0, source.url, TEST, to_millis(moment), title, json.dumps(source.facts))
    links = _links(home_of(archive.settings.serve), row, source.facts)
    facts = {"kind": TEST, "url": source.url, "time": now, **source.facts, **links}
    message, error = Notification(f"letopis-test-{now}", title, body, facts), ""
    try:
        deliver(target, message, archive.settings.fetch, guarded=guarded)
    except LetopisError as failed:
        error = _reason(failed, target)
    watches_of(archive).record_test(row, target, error)
    return error


def _reason(error: LetopisError, target: str) -> str:
    """Why a target did not take a message, for everybody to read."""
    return str(error).removesuffix("; it is tried again later").replace(target, shown_target(target))


class Outbox:
    """The pending deliveries of an archive; several processes may send in parallel."""

    def __init__(
        self,
        archive: Archive,
        send: Deliver | None = None,
        report: Callable[[FailedDelivery], None] = lambda failed: None,
    ) -> None:
        """`report` hears of every try that failed."""
        self._archive = archive
        self._report = report
        self._watches = watches_of(archive)
        self._send = send or self._deliver

    def bring_back(self) -> None:
        """Makes deliveries due that only a wrong clock can have put off for so long."""
        now = self._archive.clock()
        latest, held = now + max(_LEASE, retry_pause(MAX_ATTEMPTS)), now + LONGEST_SNOOZE + timedelta(days=7)
        self._watches.bring_back_deliveries(to_millis(now), to_millis(latest), to_millis(held))

    async def send_due(self) -> int:
        """Tries everything whose time has come; answers how many were taken."""
        sent = 0
        while rows := self._watches.waiting(to_millis(self._archive.clock()), _MOST_SUMMED):
            letters = _letters(rows)
            for start in range(0, len(letters), _AT_ONCE):
                sent += sum(await asyncio.gather(*map(self._one, letters[start : start + _AT_ONCE])))
        return sent

    async def _one(self, letter: _Letter) -> int:
        """Sends one notification; answers how many deliveries that settles."""
        now = self._archive.clock()
        taken = [one for one in letter if self._watches.claim(one[0], to_millis(now + _LEASE))]
        if not taken:
            return 0
        settings, (first, alert) = self._archive.settings.monitor, taken[0]
        home, alerts = home_of(self._archive.settings.serve), [one for _, one in taken]
        message = notification_of(alert, settings, home) if len(taken) == 1 else summary_of(alerts, settings, home)
        try:
            await asyncio.to_thread(self._send, first.target, message, bool(first.guarded))
        except LetopisError as error:
            for row, about in taken:
                self._failed(row, about.url, error, now)
            return 0
        for row, _ in taken:
            self._watches.settle(row, "sent", to_millis(now), "")
        return len(taken)

    def _failed(self, row: DeliveryRow, url: str, error: LetopisError, now: datetime) -> None:
        attempts = row.attempts + 1
        hopeless = attempts >= MAX_ATTEMPTS or isinstance(error, Refused | UsageError)
        due, why = now + retry_pause(attempts), _reason(error, row.target)
        self._watches.settle(row, "failed" if hopeless else "pending", to_millis(due), why)
        self._report(FailedDelivery(url, row.target, attempts, why, None if hopeless else due))

    def _deliver(self, target: str, message: Notification, guarded: bool) -> None:
        deliver(target, message, self._archive.settings.fetch, guarded=guarded)
