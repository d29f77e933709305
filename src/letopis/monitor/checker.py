"""Checks of one or many URLs: from the record where that is fresh enough, else from the web."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from letopis import fetch
from letopis.archive import Archive, RecordedCapture
from letopis.catalog import Cursor, ObserverState
from letopis.catalog.versions import last_checks
from letopis.fetch import Client, CookieJar, CurlTransport, limits_of
from letopis.look import KnownVersion, LookOptions, Visitor, check_of_look, known_versions
from letopis.look.politeness import HostGates
from letopis.model import Check, Observation, Request, Response, to_millis
from letopis.urls import host as host_of
from letopis.urls import parse_user_url

BATCH = 256
"""Looks that share one durable commit."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How a check is made.

    An empty `uid` looks for nobody: no place of an observer is asked for or
    moved. `private_ok` follows from `fetch.private` (`letopis.fetch.private_ok`).
    `browser` has pages rendered, which needs the extra of that name; `head`
    means nothing then.
    """

    uid: str = "default"
    now: bool = False
    force: bool = False
    head: bool = False
    private_ok: bool = True
    browser: bool = False


class LazyBrowser:
    """The browser of a checker, loaded at the first page that is to be rendered: most checks need none."""

    def __init__(self, client: Client, executable: str) -> None:
        self._client = client
        self._executable = executable
        self._fetcher: fetch.BrowserFetcher | None = None

    async def fetch(self, request: Request) -> Response:
        """The rendered page, or what went wrong."""
        if self._fetcher is None:
            self._fetcher = fetch.BrowserFetcher(self._client, executable=self._executable)
        return await self._fetcher.fetch(request)

    async def close(self) -> None:
        """Ends it, if there is one."""
        if self._fetcher is not None:
            await self._fetcher.close()


class Checker:
    """Checks URLs; every look is recorded before it is answered."""

    def __init__(self, archive: Archive, client: Client, browser: LazyBrowser | None = None) -> None:
        self._archive = archive
        self._visitor = Visitor(archive, client, browser)
        self._gates = HostGates(archive.settings.monitor.delay)

    async def check(
        self, urls: Sequence[str], options: CheckOptions, progress: Callable[[int], None] = lambda done: None
    ) -> list[Check]:
        """One answer a URL, in the order of asking; hosts side by side, one connection each."""
        addresses = [parse_user_url(url) for url in urls]
        distinct = list(dict.fromkeys(addresses))
        answers = {} if options.now else self._from_record(distinct, options.uid)
        due = [url for url in distinct if url not in answers]
        for start in range(0, len(due), BATCH):
            batch = due[start : start + BATCH]
            answers |= await self._check_batch(batch, options)
            progress(len(batch))
        return [answers[url] for url in addresses]

    async def _check_batch(self, urls: Sequence[str], options: CheckOptions) -> dict[str, Check]:
        """Looks that share one commit. What is known is asked for all of them at once."""
        known = known_versions(self._archive, urls)
        looks = await self._look_all(urls, known, options)
        seen = self._seen(options.uid, known)
        done = self._record(looks, options.uid)
        answers = {}
        for url, look, row in zip(urls, looks, done, strict=True):
            news = self._news(seen.get(row.resource), row.version) if row.available else None
            check = check_of_look(look, row, known.get(url), news)
            answers[url] = check or replace(self._recorded(url), changed_for_you=news)
        return answers

    def _seen(self, uid: str, known: Mapping[str, KnownVersion]) -> dict[int, ObserverState]:
        resources = [one.resource for one in known.values()] if uid else []
        return self._archive.catalog.observers.looks(uid, resources)

    def _from_record(self, urls: Sequence[str], uid: str) -> dict[str, Check]:
        """Inside the minimum interval the last check is the answer."""
        archive = self._archive
        now, interval = to_millis(archive.clock()), archive.settings.monitor.min_interval * 1000
        rows = last_checks(archive.catalog.database, urls).values()
        fresh = [row for row in rows if row.time is not None and 0 <= now - row.time < interval]
        answers: dict[str, Check] = {}
        for row in fresh:
            seen = archive.catalog.observers.look(uid, row.resource)
            check = self._recorded(row.url)
            news = self._news(seen, row.newest) if check.available else None
            answers[row.url] = replace(check, cached=True, changed_for_you=news)
        self._move_cursors([url for url, check in answers.items() if check.available], uid)
        return answers

    async def _look_all(
        self, urls: Sequence[str], known: Mapping[str, KnownVersion], options: CheckOptions
    ) -> list[Observation]:
        """Some hosts at a time, each by one worker that asks for one page after the other."""
        settings = self._archive.settings
        limits = limits_of(settings.fetch)
        manner = LookOptions(
            limits, options.private_ok, head=options.head, force=options.force, browser=options.browser
        )
        hosts: dict[str, list[str]] = {}
        for url in urls:
            hosts.setdefault(host_of(url), []).append(url)
        waiting, found = iter(hosts.items()), dict[str, Observation]()

        async def work() -> None:
            for host, part in waiting:
                for url in part:
                    found[url] = await self._look(host, url, known.get(url), manner)

        await asyncio.gather(*(work() for _ in range(min(len(hosts), settings.monitor.concurrency))))
        return [found[url] for url in urls]

    async def _look(self, host: str, url: str, known: KnownVersion | None, manner: LookOptions) -> Observation:
        """One look, when nobody else asks the host and it has rested."""
        async with self._gates.lock(host):
            if pause := self._gates.pause(host):
                await asyncio.sleep(pause)
            look = await self._visitor.look_again(url, known, manner)
            self._gates.asked(host)
            return look

    def _record(self, looks: Sequence[Observation], uid: str) -> list[RecordedCapture]:
        def move(cursor: Cursor, done: list[RecordedCapture]) -> None:
            there = [row for look, row in zip(looks, done, strict=True) if look.response.available]
            moved = ((row.resource, ObserverState(row.version, row.time)) for row in there)
            if uid:
                self._archive.catalog.observers.set_many(cursor, uid, moved)

        return self._visitor.record(looks, move)

    def _move_cursors(self, urls: Sequence[str], uid: str) -> None:
        if not urls or not uid:
            return
        now = to_millis(self._archive.clock())
        with self._archive.catalog.transaction() as cursor:
            for url in urls:
                row = self._archive.catalog.resources.find(url, cursor)
                if row is not None:
                    self._archive.catalog.observers.set(cursor, uid, row.id, ObserverState(row.newest, now))

    def _recorded(self, url: str) -> Check:
        last = self._archive.answers.last_check(url)
        assert last is not None, "a recorded look has a check"
        return last

    def _news(self, before: ObserverState | None, current: int | None) -> bool | None:
        """Whether it changed for an observer, None at the first look. A, B, A since the last one is no change."""
        if before is None:
            return None
        return before.version != current and self._content(before.version) != self._content(current)

    def _content(self, version: int | None) -> int | None:
        row = self._archive.catalog.versions.by_id(version) if version is not None else None
        return row.content if row else None


@asynccontextmanager
async def open_checker(archive: Archive) -> AsyncIterator[Checker]:
    """A checker with its own connections and the archive's cookies."""
    archive.require_writable()
    settings = archive.settings
    jar = CookieJar(archive.folder / "cookies.txt") if settings.fetch.cookies else None
    transport = CurlTransport(settings.fetch, clock=archive.clock, jar=jar)
    client = Client(transport, settings.fetch, user_agent=user_agent(archive), clock=archive.clock)
    browser = LazyBrowser(client, settings.fetch.chromium)
    try:
        yield Checker(archive, client, browser)
    finally:
        await browser.close()
        await transport.close()


def user_agent(archive: Archive) -> str:
    """Name and contact, as servers see them."""
    crawl = archive.settings.crawl
    return f"{crawl.user_agent} (+{crawl.contact})" if crawl.contact else crawl.user_agent
