"""The monitor of page 20: questions about URLs as one observer asks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType

from letopis import fetch
from letopis.archive import Archive
from letopis.errors import DocumentTooLarge, LetopisError, Refused, Unavailable, UnknownVersion
from letopis.fetch import private_ok
from letopis.model import Check, Outcome, Version
from letopis.monitor.background import BackgroundLoop
from letopis.monitor.checker import Checker, CheckOptions, checker
from letopis.urls import parse_user


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
        return MonitoredResource(self, parse_user(url))

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
            self._checker = await self._stack.enter_async_context(checker(self.archive))
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


def raise_for(check: Check) -> Check:
    """The check itself when the document was there, else the error that says why not."""
    error = error_of(check)
    if error is not None:
        raise error
    return check


def error_of(check: Check) -> LetopisError | None:
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
        return raise_for(self._check(now=now, force=force, head=head))

    def _check(self, *, now: bool = False, force: bool = False, head: bool = False) -> Check:
        options = self._monitor.options
        options = replace(options, now=now, force=force or options.force, head=head)
        return self._monitor.look([self.url], options)[0]

    def get_last_version(self) -> Version:
        """UC2: the current version, after a check that must succeed."""
        raise_for(self._check())
        return self._archive.get(self.url)

    def get_version(self, which: datetime | int) -> Version:
        """UC1: the version at a time (after a check when the time is later than the last one), or by number."""
        if isinstance(which, int):
            return self._archive.get(self.url, version=which)
        if which > self.last_checked():
            raise_for(self._check())
        return self._archive.get(self.url, at=which)

    def changed(self) -> bool | None:
        """UC3: whether it changed since this observer's last look; None at the first one."""
        return raise_for(self._check()).changed_for_you

    def changes(self, format: str = "unified") -> str | bytes:
        """UC4: what changed since this observer's last look, empty when nothing did."""
        seen = self._seen()
        raise_for(self._check())
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
