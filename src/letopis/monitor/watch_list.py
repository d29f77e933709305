"""The list of watches as people change and read it, from the command line and through HTTP alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from letopis.archive import Archive
from letopis.catalog.watches import NEVER, AlertRow, Watches, WatchRow
from letopis.errors import UnknownUrl, UsageError
from letopis.fetch import require_browser
from letopis.model import from_millis, to_millis
from letopis.monitor.alerts import WatchState
from letopis.monitor.notifications import validate_target
from letopis.monitor.views import parse_watch_filters
from letopis.monitor.watch import Watch, WatchedUrl, WatchSpec
from letopis.monitor.watcher import new_watch_row, tag_defaults, watch_of_row
from letopis.urls import parse_user_url


@dataclass(frozen=True, slots=True)
class WatchEntry:
    """One line of the list: the watch, when it is due, and what it last saw."""

    watch: Watch
    due: datetime
    added: datetime
    last_judged: datetime | None
    failures: int
    paused: bool = False


class WatchList:
    """Adds, lists and removes watches of one archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._watches = Watches(archive.catalog.database)

    def add(
        self, urls: Sequence[str], spec: WatchSpec, tag: str = "", sitemaps: Sequence[str] = ()
    ) -> list[WatchEntry]:
        """Makes watches, due at once; a URL that is already watched gets the new specification.

        With a tag and no URL the specification becomes the tag's defaults.
        """
        names = [WatchedUrl(parse_user_url(url), "page", tag) for url in urls]
        names += [WatchedUrl(parse_user_url(url), "sitemap", tag) for url in sitemaps]
        if not names and not tag:
            raise UsageError("give a URL to watch, --sitemap URL, or --tag NAME to set defaults of a tag")
        self._accept(spec)
        self._watches.ensure()
        now = to_millis(self._archive.clock())
        with self._archive.catalog.transaction() as cursor:
            if not names:
                self._watches.set_tag(cursor, tag, replace(spec, origin="cli").to_json())
            for named in dict.fromkeys(names):
                self._watches.add(cursor, new_watch_row(named, spec, now))
        return [self.entry(row) for row in map(self._watches.find, [named.url for named in names]) if row]

    def entries(self, tag: str | None = None) -> list[WatchEntry]:
        """All watches, oldest first."""
        return [self.entry(row) for row in self._watches.all() if tag is None or row.tag == tag]

    def part(self, tag: str, limit: int, offset: int) -> list[WatchEntry]:
        """Some of the watches with a tag, or of all for an empty one, oldest first."""
        return [self.entry(row) for row in self._watches.part(tag, limit, offset)]

    def tag_counts(self) -> dict[str, int]:
        """How many watches have each tag."""
        return self._watches.tag_counts()

    def pause(self, urls: Sequence[str]) -> None:
        """Lets watches rest until they are resumed."""
        with self._archive.catalog.transaction() as cursor:
            self._watches.set_due(cursor, self._known(urls), NEVER)

    def resume(self, urls: Sequence[str]) -> None:
        """Makes watches due at once, also those that rest."""
        now = to_millis(self._archive.clock())
        with self._archive.catalog.transaction() as cursor:
            self._watches.set_due(cursor, self._known(urls), now)

    def retag(self, urls: Sequence[str], tag: str) -> None:
        """Gives watches another tag, or none; the defaults of the new one hold from now on."""
        with self._archive.catalog.transaction() as cursor:
            self._watches.retag(cursor, self._known(urls), tag)

    def _known(self, urls: Sequence[str]) -> list[str]:
        addresses = [parse_user_url(url) for url in urls]
        for address in addresses:
            if self._watches.find(address) is None:
                raise UnknownUrl(f"{address} is not watched; 'letopis watch list' shows what is")
        return addresses

    def remove(self, url: str) -> int:
        """Ends a watch with all that a sitemap of this address named; UnknownUrl when there is none."""
        address = parse_user_url(url)
        if self._watches.find(address) is None:
            raise UnknownUrl(f"{address} is not watched; 'letopis watch list' shows what is")
        with self._archive.catalog.transaction() as cursor:
            return self._watches.remove(cursor, address)

    def alerts(self, url: str | None = None, limit: int = 100) -> list[AlertRow]:
        """The latest alerts, newest first."""
        return self._watches.alerts(parse_user_url(url) if url is not None else None, limit)

    def _accept(self, spec: WatchSpec) -> None:
        """Refuses now what could not be carried out at the next check."""
        parse_watch_filters(spec.filters)
        if spec.browser:
            require_browser(self._archive.settings.fetch.chromium)
        for target in spec.notify:
            validate_target(target, spec.origin, self._archive.settings.fetch.private)

    def entry(self, row: WatchRow) -> WatchEntry:
        """A row of the catalogue as a line of the list."""
        watch = watch_of_row(row, tag_defaults(self._watches), self._archive.settings.monitor)
        state = WatchState.from_json(row.state)
        judged = from_millis(state.judged) if state.judged else None
        due, added = from_millis(row.due), from_millis(row.added)
        return WatchEntry(watch, due, added, judged, state.failures, paused=row.due >= NEVER)
