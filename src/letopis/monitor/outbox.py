"""Sends pending alerts: each at least once, and once unless we crash between sending and noting it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from letopis.archive import Archive
from letopis.catalog.watches import AlertRow, DeliveryRow, Watches
from letopis.errors import LetopisError, Refused, UsageError
from letopis.model import to_millis
from letopis.monitor.messages import Message, message_of
from letopis.monitor.sinks import deliver

MOST_ATTEMPTS = 12
_LEASE = timedelta(minutes=5)
_AT_ONCE = 8

Deliver = Callable[[str, Message, bool], None]
"""Target, message, guarded; raises when the target did not take it."""


def pause_after(attempts: int) -> timedelta:
    """How long a delivery rests after so many failed tries: half a minute, doubled up to six hours."""
    return timedelta(seconds=min(30.0 * 2.0 ** (attempts - 1), 6 * 3600.0))


class Outbox:
    """The pending deliveries of an archive; several processes may send side by side."""

    def __init__(self, archive: Archive, send: Deliver | None = None) -> None:
        self._archive = archive
        self._watches = Watches(archive.catalog.database)
        self._send = send or self._deliver

    async def send_due(self) -> int:
        """Tries everything whose time has come; answers how many were taken."""
        sent = 0
        while rows := self._watches.waiting(to_millis(self._archive.clock()), _AT_ONCE):
            results = await asyncio.gather(*(self._one(delivery, alert) for delivery, alert in rows))
            sent += sum(results)
        return sent

    async def _one(self, row: DeliveryRow, alert: AlertRow) -> bool:
        now = self._archive.clock()
        if not self._watches.claim(row, to_millis(now + _LEASE)):
            return False
        message = message_of(alert, self._archive.settings.monitor)
        try:
            await asyncio.to_thread(self._send, row.target, message, bool(row.guarded))
        except LetopisError as error:
            self._failed(row, error, now)
            return False
        self._watches.settle(row, "sent", to_millis(now), "")
        return True

    def _failed(self, row: DeliveryRow, error: LetopisError, now: datetime) -> None:
        attempts = row.attempts + 1
        hopeless = attempts >= MOST_ATTEMPTS or isinstance(error, Refused | UsageError)
        due = to_millis(now + pause_after(attempts))
        self._watches.settle(row, "failed" if hopeless else "pending", due, str(error))

    def _deliver(self, target: str, message: Message, guarded: bool) -> None:
        deliver(target, message, self._archive.settings.fetch, guarded=guarded)
