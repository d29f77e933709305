"""Checks of one or many URLs: from the record where that is fresh enough, else from the web."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from letopis.archive import Archive, Recorded
from letopis.catalog import Cursor, Look
from letopis.fetch import Client, CookieJar, CurlTransport, limits_of
from letopis.model import Check, Observation, to_millis
from letopis.monitor.gates import HostGates
from letopis.urls import host as host_of
from letopis.urls import parse_user
from letopis.visit import Manner, Visitor

BATCH = 256
"""Looks that share one durable commit."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How a check is made. `private_ok` is False for requests that came through HTTP."""

    uid: str = "default"
    now: bool = False
    force: bool = False
    head: bool = False
    private_ok: bool = True


class Checker:
    """Checks URLs; every look is recorded before it is answered."""

    def __init__(self, archive: Archive, client: Client) -> None:
        self._archive = archive
        self._visitor = Visitor(archive, client)
        self._gates = HostGates(archive.settings.monitor.delay)

    async def check(
        self, urls: Sequence[str], options: CheckOptions, progress: Callable[[int], None] = lambda done: None
    ) -> list[Check]:
        """One answer a URL, in the order of asking; hosts side by side, one connection each."""
        addresses = [parse_user(url) for url in urls]
        answers: dict[str, Check] = {}
        due = [url for url in dict.fromkeys(addresses) if not self._from_record(url, options, answers)]
        before = {url: self._look_of(url, options.uid) for url in due}
        for start in range(0, len(due), BATCH):
            batch = due[start : start + BATCH]
            looks = await self._look_all(batch, options)
            self._record(looks, options.uid)
            answers |= {url: self._answer(url, before[url]) for url in batch}
            progress(len(batch))
        return [answers[url] for url in addresses]

    def _from_record(self, url: str, options: CheckOptions, answers: dict[str, Check]) -> bool:
        """Inside the minimum interval the last check is the answer."""
        last = None if options.now else self._archive.answers.last_check(url)
        if last is None:
            return False
        age = self._archive.clock() - last.checked_at
        if not timedelta(0) <= age < timedelta(seconds=self._archive.settings.monitor.min_interval):
            return False
        answers[url] = self._for_observer(replace(last, cached=True), self._look_of(url, options.uid))
        if last.available:
            self._move_cursors([url], options.uid)
        return True

    async def _look_all(self, urls: Sequence[str], options: CheckOptions) -> list[Observation]:
        limit = asyncio.Semaphore(self._archive.settings.monitor.concurrency)
        limits = limits_of(self._archive.settings.fetch)
        manner = Manner(limits, options.private_ok, head=options.head, force=options.force)

        async def one(url: str) -> Observation:
            async with self._gates.turn(host_of(url)), limit:
                return await self._visitor.look(url, manner)

        return list(await asyncio.gather(*map(one, urls)))

    def _record(self, looks: Sequence[Observation], uid: str) -> None:
        def move(cursor: Cursor, done: list[Recorded]) -> None:
            for look, row in zip(looks, done, strict=True):
                if look.response.available:
                    self._archive.catalog.observers.set(cursor, uid, row.resource, Look(row.version, row.time))

        self._visitor.record(looks, move)

    def _move_cursors(self, urls: Sequence[str], uid: str) -> None:
        now = to_millis(self._archive.clock())
        with self._archive.catalog.transaction() as cursor:
            for url in urls:
                row = self._archive.catalog.resources.find(url, cursor)
                if row is not None:
                    self._archive.catalog.observers.set(cursor, uid, row.id, Look(row.newest, now))

    def _look_of(self, url: str, uid: str) -> Look | None:
        row = self._archive.catalog.resources.find(url)
        return self._archive.catalog.observers.look(uid, row.id) if row else None

    def _answer(self, url: str, before: Look | None) -> Check:
        last = self._archive.answers.last_check(url)
        assert last is not None, "a recorded look has a check"
        return self._for_observer(last, before)

    def _for_observer(self, check: Check, before: Look | None) -> Check:
        """Compares contents, not numbers: A, B, A since the last look is no change."""
        if before is None or not check.available:
            return check
        row = self._archive.catalog.resources.find(check.url)
        seen = self._content(before.version)
        current = self._content(row.newest) if row else None
        return replace(check, changed_for_you=seen != current)

    def _content(self, version: int | None) -> int | None:
        row = self._archive.catalog.versions.by_id(version) if version is not None else None
        return row.content if row else None


@asynccontextmanager
async def checker(archive: Archive) -> AsyncIterator[Checker]:
    """A checker with its own connections and the archive's cookies."""
    settings = archive.settings
    jar = CookieJar(archive.folder / "cookies.txt") if settings.fetch.cookies else None
    transport = CurlTransport(settings.fetch, clock=archive.clock, jar=jar)
    try:
        yield Checker(archive, Client(transport, settings.fetch, user_agent=user_agent(archive), clock=archive.clock))
    finally:
        await transport.close()


def user_agent(archive: Archive) -> str:
    """Name and contact, as servers see them."""
    crawl = archive.settings.crawl
    return f"{crawl.user_agent} (+{crawl.contact})" if crawl.contact else crawl.user_agent
