"""Questions about URLs as one observer asks them: did it change since my last look, what changed, was it up.

Blocking, over an event loop in a thread of its own; what verbs and jobs ask alike stands at the end.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from letopis import fetch
from letopis.archive import Archive
from letopis.errors import DocumentTooLarge, LetopisError, Refused, Unavailable, UnknownVersion
from letopis.fetch import private_ok
from letopis.model import Check, Outcome, Version
from letopis.monitor.checker import Checker, CheckOptions, open_checker
from letopis.urls import parse_user_url

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines for callers in any thread; started at the first use."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result; Ctrl-C in the caller cancels the work and waits for it to end."""
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="letopis-loop", daemon=True)
            self._thread.start()
        return self._loop

    def close(self) -> None:
        """Stops the thread; harmless when nothing ran."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None


class Monitor:
    """Answers "since *my* last look" for one observer over a shared archive.

    Blocking and safe to call from plain scripts, threads and notebooks. An
    archive that was opened here is closed by `close`.
    """

    def __init__(self, archive: Archive | str | Path, uid: str = "default") -> None:
        self._own = not isinstance(archive, Archive)
        self.archive = archive if isinstance(archive, Archive) else Archive(archive)
        self.options = CheckOptions(uid=uid, private_ok=private_ok(self.archive.settings.fetch.private, "cli"))
        self._loop = BackgroundLoop()
        self._stack = AsyncExitStack()
        self._checker: Checker | None = None

    def get(self, url: str) -> MonitoredResource:
        """A URL to ask about; nothing is fetched yet."""
        return MonitoredResource(self, parse_user_url(url))

    def check_multi(
        self, urls: Iterable[str], *, now: bool = False, progress: Callable[[int], None] = lambda done: None
    ) -> list[Check]:
        """Checks many URLs at once; failures are told in the checks, not raised."""
        return self.look(list(urls), replace(self.options, now=now), progress)

    def check_uid(self) -> bool:
        """Whether this uid has been used before."""
        return self.archive.catalog.observers.known(self.options.uid)

    def allow_large_documents(self) -> None:
        """From now on documents over the size limit are stored too."""
        self.options = replace(self.options, force=True)

    def use_browser(self) -> None:
        """From now on pages are looked at as a browser shows them; MissingExtra when there is none here."""
        fetch.require_browser(self.archive.settings.fetch.chromium)
        self.options = replace(self.options, browser=True)

    def look(
        self, urls: list[str], options: CheckOptions, progress: Callable[[int], None] = lambda done: None
    ) -> list[Check]:
        """Checks with options of one's own."""
        return self._loop.run(self._look(urls, options, progress))

    async def _look(self, urls: list[str], options: CheckOptions, progress: Callable[[int], None]) -> list[Check]:
        if self._checker is None:
            self._checker = await self._stack.enter_async_context(open_checker(self.archive))
        return await self._checker.check(urls, options, progress)

    def close(self) -> None:
        """Ends connections; cookies are saved."""
        if self._checker is not None:
            self._loop.run(self._stack.aclose())
            self._checker = None
        self._loop.close()
        if self._own:
            self.archive.close()

    def __enter__(self) -> Monitor:
        """For use in a with statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the monitor."""
        self.close()


def raise_for_check(check: Check) -> Check:
    """The check itself when the document was there, else the error that says why not."""
    error = error_of_check(check)
    if error is not None:
        raise error
    return check


def error_of_check(check: Check) -> LetopisError | None:
    """What a failed check means to whoever asked."""
    if check.outcome is Outcome.REFUSED:
        return Refused(f"{check.url} was not asked: {check.error}")
    if check.outcome is Outcome.TOO_LARGE:
        return DocumentTooLarge(f"{check.url} is larger than the limit; --force stores it all the same")
    if check.outcome is Outcome.UNAVAILABLE:
        why = check.error or f"the server answered with status {check.status}"
        return Unavailable(f"{check.url} is not available: {why}")
    return None


class MonitoredResource:
    """One URL and the questions of the use cases."""

    def __init__(self, monitor: Monitor, url: str) -> None:
        self._monitor = monitor
        self._archive = monitor.archive
        self.url = url

    def check(self, *, now: bool = True, force: bool = False, head: bool = False) -> Check:
        """UC6: looks, records, and raises when the document was not available."""
        return raise_for_check(self._check(now=now, force=force, head=head))

    def _check(self, *, now: bool = False, force: bool = False, head: bool = False) -> Check:
        options = self._monitor.options
        options = replace(options, now=now, force=force or options.force, head=head)
        return self._monitor.look([self.url], options)[0]

    def get_last_version(self) -> Version:
        """UC2: the current version, after a check that must succeed."""
        raise_for_check(self._check())
        return self._archive.get(self.url)

    def get_version(self, which: datetime | int) -> Version:
        """UC1: the version at a time (after a check when the time is later than the last one), or by number."""
        if isinstance(which, int):
            return self._archive.get(self.url, version=which)
        if which > self.last_checked():
            raise_for_check(self._check())
        return self._archive.get(self.url, at=which)

    def changed(self) -> bool | None:
        """UC3: whether it changed since this observer's last look; None at the first one."""
        return raise_for_check(self._check()).changed_for_you

    def changes(self, format: str = "unified") -> str | bytes:
        """UC4: what changed since this observer's last look, empty when nothing did."""
        seen = self._seen()
        raise_for_check(self._check())
        new = self._archive.get(self.url)
        old = self._archive.answers.by_id(seen) if seen is not None else new
        return self._archive.difference(old, new, format)

    def _seen(self) -> int | None:
        row = self._archive.catalog.resources.find(self.url)
        look = self._archive.catalog.observers.look(self._monitor.options.uid, row.id) if row else None
        return look.version if look else None

    def get_diff(self, start: datetime | int, end: datetime | int, format: str = "unified") -> str | bytes:
        """UC5: what changed between two times or versions."""
        return self._archive.difference(self.get_version(start), self.get_version(end), format)

    def available(self, at: datetime | None = None) -> bool:
        """UC7: whether it is available now, or was at the last check before a time."""
        if at is None:
            return self._check().available
        known = [check for check in self._archive.history(self.url) if check.checked_at <= at]
        if not known:
            raise UnknownVersion(f"{self.url} was not checked before that time")
        return known[-1].available

    def availability(self) -> list[tuple[datetime, bool]]:
        """UC8: all checks as pairs of time and available."""
        return [(check.checked_at, check.available) for check in self._archive.history(self.url)]

    def last_checked(self) -> datetime:
        """When it was last looked at; UnknownUrl when never."""
        return self._archive.history(self.url)[-1].checked_at

    def last_available(self) -> Version:
        """UC9: the newest version there ever was; a failing check is tolerated."""
        self._check()
        return self._archive.get(self.url)


_CHECK_FIELDS = (
    "url", "final_url", "checked_at", "available", "status", "outcome", "version", "digest", "length",
    "content_type", "redirects", "error", "warnings", "meaningful", "score", "blocks", "cached", "changed_for_you",
)  # fmt: skip


def check_row(check: Check) -> dict[str, Any]:
    """A check with the names that people's scripts rely on."""
    row = {name: getattr(check, name) for name in _CHECK_FIELDS}
    row["redirects"] = [{"url": hop.url, "status": hop.status, "location": hop.location} for hop in check.redirects]
    return row


def requested_version(
    archive: Archive, url: str, at: datetime | None, *, offline: bool = False, private_ok: bool | None = None,
    browser: bool = False,
) -> Version:  # fmt: skip
    """The version valid at a time, now where none is given.

    A time later than the last check brings a check first, unless `offline`.
    `private_ok` None goes by the settings of the command line. With
    `browser` that check sees the page as a browser shows it.
    """
    if offline:
        return archive.get(url, at=at)
    with Monitor(archive) as monitor:
        if private_ok is not None:
            monitor.options = replace(monitor.options, private_ok=private_ok)
        if browser:
            monitor.use_browser()
        resource = monitor.get(url)
        return resource.get_last_version() if at is None else resource.get_version(at)


def requested_versions(
    archive: Archive, url: str, start: datetime | None, end: datetime | None, *, offline: bool = False,
    private_ok: bool | None = None,
) -> tuple[Version, Version]:  # fmt: skip
    """The two versions of a difference; by default the newest and the one before it, without a check."""
    newest = archive.get(url)
    new = requested_version(archive, url, end, offline=offline, private_ok=private_ok) if end else newest
    if start:
        return requested_version(archive, url, start, offline=offline, private_ok=private_ok), new
    return archive.get(url, version=max(0, newest.number - 1)), new
