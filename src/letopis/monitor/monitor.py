"""Questions about URLs for one observer: did it change since the last check, what changed, was it available.

Blocking, with an event loop in a separate thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from letopis.archive import Archive
from letopis.archive.observers import ObserverMarks
from letopis.errors import BadUrl, DocumentTooLarge, LetopisError, Refused, Unavailable, UnknownVersion, UsageError
from letopis.fetch import private_ok
from letopis.lazy import lazy
from letopis.model import Check, FailureKind, Headers, Moment, Outcome, Version, as_moment
from letopis.monitor.checker import Checker, CheckOptions, open_checker
from letopis.urls import login, parse_user_url

if TYPE_CHECKING:
    from letopis.fetch import browser
else:
    browser = lazy("letopis.fetch.browser")  # few pages need one

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
    """Answers "what is new since *my* last check" for one observer of a shared archive.

    Blocking and safe to call from plain scripts, threads and notebooks. An archive that was opened here is closed by
    `close`.
    """

    def __init__(self, archive: Archive | str | Path, uid: str = "default") -> None:
        self._own = not isinstance(archive, Archive)
        self.archive = archive if isinstance(archive, Archive) else Archive(archive)
        self.options = CheckOptions(uid=uid, private_ok=private_ok(self.archive.settings.fetch.private, "cli"))
        self._loop = BackgroundLoop()
        self._stack = AsyncExitStack()
        self._checker: Checker | None = None

    def get(self, url: str) -> MonitoredResource:
        """A URL to ask questions about; nothing is fetched yet."""
        return MonitoredResource(self, parse_user_url(url), login(url))

    def check_multi(
        self, urls: Iterable[str], *, now: bool = False, progress: Callable[[int], None] = lambda done: None
    ) -> list[Check]:
        """Checks many URLs at once; failures, including invalid URLs, are in the checks and are not raised."""
        if isinstance(urls, str):
            raise UsageError(f"'{urls[:80]}' is one address; give a list of them, or ask get('...').check()")
        texts = list(urls)
        addresses, found = usable_addresses(texts, self.archive.clock())
        checks = self.look(
            list(addresses.values()), self.options._replace(now=now, logins=logins_of(addresses)), progress
        )
        found |= zip(addresses, checks, strict=True)
        return [found[text] for text in texts]

    def check_uid(self) -> bool:
        """Whether this uid has been used before."""
        return ObserverMarks(self.archive, self.options.uid).known()

    def allow_large_documents(self) -> None:
        """From now on, documents over the size limit are stored too."""
        self.options = self.options._replace(large=True)

    def use_browser(self) -> None:
        """From now on, pages are rendered in a browser; MissingExtra if there is none on this machine."""
        browser.require_browser(self.archive.settings.fetch.chromium)
        self.options = self.options._replace(browser=True)

    def look(
        self, urls: list[str], options: CheckOptions, progress: Callable[[int], None] = lambda done: None
    ) -> list[Check]:
        """Checks with the given options."""
        return self._loop.run(self._look(urls, options, progress))

    async def _look(self, urls: list[str], options: CheckOptions, progress: Callable[[int], None]) -> list[Check]:
        if self._checker is None:
            self._checker = await self._stack.enter_async_context(open_checker(self.archive))
        return await self._checker.check(urls, options, progress)

    def close(self) -> None:
        """Closes connections; cookies are saved."""
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


NO_ADDRESS = "address"
"""The kind of failure of a text that cannot be fetched at all."""


def usable_addresses(texts: Sequence[str], now: datetime) -> tuple[dict[str, str], dict[str, Check]]:
    """The address that each text means; and the checks of those that mean none, which keep nobody from the others."""
    addresses, unusable = dict[str, str](), dict[str, Check]()
    for text in texts:
        try:
            addresses[text] = parse_user_url(text)
        except BadUrl as error:
            unusable[text] = Check(text, text, now, None, 0, Outcome.REFUSED, error=str(error), failure=NO_ADDRESS)
    return addresses, unusable


def logins_of(addresses: Mapping[str, str]) -> dict[str, Headers]:
    """The header field that signs in at each address, for those whose texts have a name and password."""
    return {address: fields for text, address in addresses.items() if (fields := login(text))}


def error_of_check(check: Check) -> LetopisError | None:
    """What a failed check means to whoever asked."""
    if check.failure == NO_ADDRESS:
        return BadUrl(check.error)
    if check.outcome is Outcome.REFUSED:
        return Refused(f"{check.url} was not asked: {check.error}")
    if check.outcome is Outcome.TOO_LARGE:
        if check.failure == FailureKind.BOMB:
            return DocumentTooLarge(f"{check.url} is too large: {check.error}")
        return DocumentTooLarge(f"{check.url} is larger than the limit; force the check to store it anyway")
    if check.outcome is Outcome.UNAVAILABLE:
        why = check.error or f"the server answered with status {check.status}"
        return Unavailable(f"{check.url} is not available: {why}")
    return None


class MonitoredResource:
    """One URL and the questions about it."""

    def __init__(self, monitor: Monitor, url: str, signs_in: Headers = ()) -> None:
        self._monitor = monitor
        self._login = signs_in
        self._archive = monitor.archive
        self.url = url

    def check(self, *, now: bool = False, force: bool = False, head: bool = False) -> Check:
        """Checks, records, and raises an error if the document was not available.

        Within `monitor.min_interval` of the last check, the answer comes from the record unless `now` is set. `force`
        stores a document of any size and sends no conditions, so that no 304 stands for the document.
        """
        return raise_for_check(self._check(now=now, force=force, head=head))

    def _check(self, *, now: bool = False, force: bool = False, head: bool = False) -> Check:
        options, logins = self._monitor.options, {self.url: self._login} if self._login else {}
        options = options._replace(now=now, force=force or options.force, head=head, logins=logins)
        return self._monitor.look([self.url], options)[0]

    def get_last_version(self, *, now: bool = False) -> Version:
        """The current version, after a check that must succeed; with `now`, even within the minimum interval."""
        raise_for_check(self._check(now=now))
        return self._archive.get(self.url)

    def get_version(self, which: Moment | int, *, now: bool = False) -> Version:
        """The version at a time (after a check if the time is later than the last one), or by number."""
        if isinstance(which, int):
            return self._archive.get(self.url, version=which)
        moment = as_moment(which, self._archive.clock(), ends_day=True)
        if moment > self.last_checked():
            raise_for_check(self._check(now=now))
        return self._archive.get(self.url, at=moment)

    def changed(self, *, now: bool = False) -> bool | None:
        """Whether it changed since the last check of this observer; None at the first one."""
        return raise_for_check(self._check(now=now)).changed_for_you

    def changes(self, format: str = "unified", *, now: bool = False) -> str | bytes:
        """What changed since the last check of this observer; empty if nothing did."""
        seen = ObserverMarks(self._archive, self._monitor.options.uid).last_seen(self.url)
        raise_for_check(self._check(now=now))
        new = self._archive.get(self.url)
        old = new if seen is None or seen.version is None else self._archive.answers.by_id(seen.version)
        return self._archive.difference(old, new, format)

    def get_diff(
        self, start: Moment | int, end: Moment | int, format: str = "unified", *, now: bool = False
    ) -> str | bytes:
        """What changed between two times or versions; a day alone begins as the start, and ends as the end."""
        start = start if isinstance(start, int) else as_moment(start, self._archive.clock())
        return self._archive.difference(self.get_version(start, now=now), self.get_version(end, now=now), format)

    def available(self, at: Moment | None = None, *, now: bool = False) -> bool:
        """Whether it is available now, or was at the last check before a time; Refused if it may not be requested."""
        if at is None:
            return self._available_now(now=now)
        moment = as_moment(at, self._archive.clock(), ends_day=True)
        known = [available for time, available in self.availability() if time <= moment]
        if not known:
            raise UnknownVersion(f"{self.url} was not checked before that time")
        return known[-1]

    def _available_now(self, *, now: bool) -> bool:
        check = self._check(now=now)
        if check.available is None:
            raise_for_check(check)
        return bool(check.available)

    def availability(self) -> list[tuple[datetime, bool]]:
        """All checks that requested it, as pairs of time and available."""
        checks = self._archive.answers.history(self.url)
        return [(check.checked_at, check.available) for check in checks if check.available is not None]

    def last_checked(self) -> datetime:
        """When it was last checked; UnknownUrl if never."""
        return self._archive.answers.newest_checks(self.url, 1)[-1].checked_at

    def last_available(self, *, now: bool = False) -> Version:
        """The newest available version; a failing check is tolerated."""
        self._check(now=now)
        return self._archive.get(self.url)
