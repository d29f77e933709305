"""The list of watches as people change and read it, whatever door they come through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from letopis.archive import Archive
from letopis.archive.watches import NEVER, AlertRow, WatchRow, watches_of
from letopis.config import MonitorSettings
from letopis.errors import NotFound, Refused, UnknownUrl, UsageError
from letopis.fetch import is_private_url, private_ok
from letopis.fetch.browser import require_browser
from letopis.model import from_millis, to_millis
from letopis.monitor.alerts import WatchState
from letopis.monitor.notifications import validate_target
from letopis.monitor.watch import Watch, WatchedUrl, WatchKind, WatchSpec, parse_filters, settle_watch
from letopis.urls import parse_user_url

_SPARE = 3_600_000
"""Milliseconds: longer than whoever runs watches keeps them, or puts them off."""


@dataclass(frozen=True, slots=True)
class WatchEntry:
    """One line of the list: the watch, when it is due (None while paused), and what it last saw."""

    watch: Watch
    due: datetime | None
    added: datetime
    last_judged: datetime | None
    failures: int

    @property
    def paused(self) -> bool:
        """Whether it waits to be resumed."""
        return self.due is None


class WatchList:
    """Adds, changes, lists and removes watches of one archive. Each command is carried out whole or not at all."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._watches = watches_of(archive)

    def add(
        self,
        urls: Sequence[str],
        spec: WatchSpec,
        tag: str | None = None,
        sitemaps: Sequence[str] = (),
        *,
        forgotten: Collection[str] = (),
        charge: Callable[[int], None] = lambda made: None,
    ) -> list[WatchEntry]:
        """Watches pages, and every page that sitemaps name.

        New watches are due at once. A URL that is already watched keeps its
        tag and what the specification does not say, but for fields that are
        `forgotten`, and is due at once unless it is paused. With a tag and no
        URL the specification becomes the tag's defaults, in the same way.
        `charge` hears how many watches are new, before anything is written.
        """
        kinds: dict[str, WatchKind] = {parse_user_url(url): "page" for url in urls}
        kinds |= {parse_user_url(url): "sitemap" for url in sitemaps}
        if not kinds and not tag:
            raise UsageError("give a URL or a sitemap to watch, or a tag to set its defaults")
        self._refuse_unusable(kinds, spec)
        charge(sum(self._watches.find(url) is None for url in kinds))
        if kinds:
            self._watches.save(kinds, lambda url, old: self._changed(url, kinds[url], spec, tag, forgotten, old))
        elif tag:
            self._watches.save_tag(tag, lambda old: _changed_spec(spec, old, forgotten).to_json())
        return [entry for entry in map(self.find, kinds) if entry is not None]

    def _refuse_unusable(self, urls: Iterable[str], spec: WatchSpec) -> None:
        """Refuses now what could not be carried out at the next check."""
        spec.refuse_long_times()
        parse_filters(spec.filters)
        fetch = self._archive.settings.fetch
        if not private_ok(fetch.private, spec.origin):
            for url in filter(is_private_url, urls):
                raise Refused(f"{url} is a private address; the owner can allow them with fetch.private")
        for target in spec.notify:
            validate_target(target, spec.origin, fetch.private)
        if spec.browser or spec.steps:
            require_browser(fetch.chromium)

    def _changed(
        self, url: str, kind: WatchKind, spec: WatchSpec, tag: str | None, forgotten: Collection[str],
        old: WatchRow | None,
    ) -> WatchRow:  # fmt: skip
        """The row that a watch gets; one that a sitemap named belongs to nobody but itself from now on."""
        now = to_millis(self._archive.clock())
        if old is None:
            return new_watch_row(WatchedUrl(url, kind, tag or ""), spec, now)
        return old._replace(
            kind="sitemap" if old.kind == "sitemap" and "kind" not in forgotten else kind,
            tag=old.tag if tag is None else tag,
            source="",
            spec=_changed_spec(spec, old.spec, forgotten).to_json(),
            due=old.due if old.due >= NEVER else now,
        )

    def entries(self, tag: str | None = None, limit: int | None = None, offset: int = 0) -> list[WatchEntry]:
        """The watches with a tag, or all for None, oldest first; so many of them, or all."""
        rows, tags = self._watches.part(tag, limit, offset), self.tag_defaults()
        return [self._entry(row, tags) for row in rows]

    def find(self, url: str) -> WatchEntry | None:
        """The watch of a URL, if it has one."""
        row = self._watches.find(parse_user_url(url))
        return self._entry(row, self.tag_defaults()) if row is not None else None

    def _entry(self, row: WatchRow, tags: Mapping[str, WatchSpec]) -> WatchEntry:
        state = WatchState.from_json(row.state)
        return WatchEntry(
            watch_of_row(row, tags, self._archive.settings.monitor),
            None if row.due >= NEVER else from_millis(row.due),
            from_millis(row.added),
            from_millis(state.judged) if state.judged else None,
            state.failures,
        )

    def bring_back(self) -> int:
        """Makes watches due that only a wrong clock can have put so far ahead; how many.

        No watch is due later than its own next time, counted from now.
        """
        now, settings, tags = self._archive.clock(), self._archive.settings.monitor, self.tag_defaults()
        # Only watches with an interval of their own may be due later than that; few have to be read.
        later = self._watches.due_after(to_millis(now) + round(max(settings.every, settings.min_interval) * 1000))
        ahead = [
            row for row in later if row.due > to_millis(watch_of_row(row, tags, settings).next_time(now, 1.0)) + _SPARE
        ]
        if ahead:
            self._watches.bring_back(ahead, to_millis(now))
        return len(ahead)

    def pause(self, urls: Sequence[str]) -> list[WatchEntry]:
        """Stops checks of pages until they are resumed."""
        return self._each(urls, lambda known: self._watches.set_due(known, NEVER))

    def resume(self, urls: Sequence[str]) -> list[WatchEntry]:
        """Makes paused watches due at once; the others keep their times."""
        return self._each(urls, lambda known: self._watches.resume(known, to_millis(self._archive.clock())))

    def check_now(self, urls: Sequence[str]) -> list[WatchEntry]:
        """Makes watches due at once; paused ones go on from there."""
        return self._each(urls, lambda known: self._watches.set_due(known, to_millis(self._archive.clock())))

    def retag(self, urls: Sequence[str], tag: str) -> list[WatchEntry]:
        """Gives watches another tag, or none; the defaults of the new one hold from now on."""
        return self._each(urls, lambda known: self._watches.retag(known, tag))

    def _each(self, urls: Sequence[str], change: Callable[[list[str]], None]) -> list[WatchEntry]:
        known = self._known(urls)
        change(known)
        return [entry for entry in map(self.find, known) if entry is not None]

    def known_entries(self, urls: Sequence[str]) -> list[WatchEntry]:
        """The watches of URLs; UnknownUrl when one of them is not watched."""
        return self._each(urls, lambda known: None)

    def remove(self, urls: Sequence[str]) -> list[tuple[str, int]]:
        """Ends watches with all that a sitemap among them named: the addresses, and how many ended with each."""
        known = self._known(urls)
        return list(zip(known, self._watches.remove(known), strict=True))

    def _known(self, urls: Sequence[str]) -> list[str]:
        addresses = list(dict.fromkeys(parse_user_url(url) for url in urls))
        for address in addresses:
            if self._watches.find(address) is None:
                raise UnknownUrl(f"{address} is not watched; the list of watches shows what is")
        return addresses

    def tag_counts(self) -> dict[str, int]:
        """How many watches have each tag."""
        return self._watches.tag_counts()

    def tag_defaults(self) -> dict[str, WatchSpec]:
        """The defaults of every tag that has some."""
        return {name: _parse_spec(text) for name, text in self._watches.tags().items()}

    def forget_tag(self, tag: str) -> None:
        """Drops the defaults of a tag; NotFound when it has none."""
        if not self._watches.remove_tag(tag):
            raise NotFound(f"the tag '{tag}' has no defaults; the list of tags shows which have some")

    def alerts(self, url: str | None = None, limit: int = 100, before: int | None = None) -> list[AlertRow]:
        """The latest alerts, newest first; of one page, or those before the one with an id."""
        return self._watches.alerts(parse_user_url(url) if url is not None else None, limit, before)


def _changed_spec(spec: WatchSpec, old: str | None, forgotten: Collection[str]) -> WatchSpec:
    if old is None:
        return spec
    return spec.changing(_parse_spec(old), [name for name in forgotten if name != "kind"])


@lru_cache(maxsize=256)
def _parse_spec(text: str) -> WatchSpec:
    """Watches of one sitemap or one habit share their specification."""
    return WatchSpec.from_json(text)


def watch_of_row(row: WatchRow, tags: Mapping[str, WatchSpec], settings: MonitorSettings) -> Watch:
    """The watch that a row means."""
    kind: WatchKind = "sitemap" if row.kind == "sitemap" else "page"
    return settle_watch(
        WatchedUrl(row.url, kind, row.tag, row.source), _parse_spec(row.spec), tags.get(row.tag), settings
    )


def new_watch_row(named: WatchedUrl, spec: WatchSpec, now: int) -> WatchRow:
    """A new watch, due at once; how long it has not changed is counted from now on."""
    state = WatchState(changed=now).to_json()
    return WatchRow(0, named.url, named.kind, named.tag, named.source, spec.to_json(), state, now, now)
