"""The list of watches as people change and read it, through any door."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from letopis.archive import Archive
from letopis.archive.observers import last_checks_of
from letopis.archive.watches import NEVER, AlertRow, DeliveryRow, WatchRow, watch_key, watches_of
from letopis.config import MonitorSettings
from letopis.errors import NotFound, Refused, UnknownUrl, UsageError
from letopis.fetch import Origin, is_private_url, private_ok
from letopis.lazy import lazy
from letopis.model import from_millis, to_millis
from letopis.monitor.alerts import WatchState
from letopis.monitor.notifications import validate_target
from letopis.monitor.watch import Watch, WatchedUrl, WatchKind, WatchSpec, parse_filters, settle_watch
from letopis.monitor.watch_times import LONGEST_SNOOZE
from letopis.tuples import NamedTuple
from letopis.urls import login, parse_user_url

if TYPE_CHECKING:
    from letopis.fetch import browser
else:
    browser = lazy("letopis.fetch.browser")  # few watches need one

_SPARE = 3_600_000
"""Milliseconds: longer than whoever runs watches keeps them, or puts them off."""
_LONGEST_NAME = 64


class WatchEntry(NamedTuple):
    """One line of the list: the watch with its number, when it is due (None while paused), and what it last saw.

    `spec` are the options of this watch itself; the rest of `watch` comes from its tag and the settings.
    """

    id: int
    spec: WatchSpec
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
    """Adds, changes, lists and removes watches of one archive. Each command is executed completely or not at all."""

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
        name: str = "",
        forgotten: Collection[str] = (),
        keep: bool = False,
        charge: Callable[[int], None] = lambda made: None,
        allow: Callable[[WatchEntry], None] = lambda entry: None,
    ) -> list[WatchEntry]:
        """Watches pages, and every page that sitemaps name; with a name, beside other watches of the page.

        New watches are due at once. A URL that is already watched (under that name) keeps its tag and what the
        specification does not say, but for fields that are `forgotten`, and is due at once unless it is paused; with
        `keep` nothing of it changes, unless only a sitemap had named it. With a tag and no URL the specification
        becomes the tag's defaults, in the same way. `allow` is asked about watches that are there, and `charge` hears
        how many are new, before anything is written.
        """
        spec = _signing_in((*urls, *sitemaps), spec)
        kinds: dict[str, WatchKind] = {watch_key(parse_user_url(url), _parse_name(name)): "page" for url in urls}
        if name and sitemaps:
            raise UsageError("a sitemap has one watch; leave the name out")
        kinds |= {parse_user_url(url): "sitemap" for url in sitemaps}
        if not kinds and not tag:
            raise UsageError("give a URL or a sitemap to watch, or a tag to set its defaults")
        self._refuse_unusable((key.partition("#")[0] for key in kinds), spec)
        if name:
            for key in kinds:
                self._refuse_other_way(self._changed(key, "page", spec, tag, forgotten, self._watches.find(key)))
        known = [row for key in kinds if (row := self._watches.find(key)) is not None]
        kept = {row.key for row in known if keep and not row.source}
        for entry in self._entries([row for row in known if row.key not in kept]):
            allow(entry)
        charge(len(kinds) - len(known))
        if kinds:
            saved = [key for key in kinds if key not in kept]
            self._watches.save(saved, lambda key, old: self._changed(key, kinds[key], spec, tag, forgotten, old))
        elif tag:
            self._watches.save_tag(tag, lambda old: _changed_spec(spec, old, forgotten).to_json())
        return self._entries([row for key in kinds if (row := self._watches.find(key)) is not None])

    def add_another(self, url: str, spec: WatchSpec, tag: str, name: str, charge: Callable[[int], None]) -> WatchEntry:
        """A watch beside those that a page has, under a name or the first free number; the others stay."""
        address, spec = parse_user_url(url), _signing_in([url], spec)
        taken = {row.name for row in self._watches.of_page(address)}
        if name and _parse_name(name) in taken:
            raise _taken(address, name)
        name = name or next(name for name in ("", *map(str, range(2, len(taken) + 3))) if name not in taken)
        return self.add([address], spec, tag, name=name, charge=charge)[0]

    def clone(self, number: int, owner: str, origin: Origin, *, charge: Callable[[int], None]) -> WatchEntry:
        """Another watch of the same page with the same options, of somebody who answers for it from now on."""
        row = self._row(number)
        if row.kind == "sitemap":
            raise UsageError("a sitemap has one watch; change that one")
        spec = replace(_parse_spec(row.spec), owner=owner, origin=origin, snooze=None)
        return self.add_another(row.url, spec, row.tag, "", charge)

    def edit(
        self, number: int, spec: WatchSpec, tag: str | None, name: str | None, forgotten: Collection[str]
    ) -> WatchEntry:
        """Changes one watch: what the specification says, and what it says to be forgotten. Its time stays."""
        row = self._row(number)
        self._refuse_unusable((), spec)
        key = row.key if name is None else watch_key(row.url, _parse_name(name))
        changed = self._changed(key, "page", spec, tag, forgotten, row._replace(key=key))
        self._refuse_other_way(changed)
        if key != row.key and (row.kind == "sitemap" or not self._watches.rename(row, key)):
            raise _taken(row.url, name or "")
        self._watches.save([key], lambda _, old: changed._replace(due=self._time_after(row, changed)))
        self._hold_back([number])
        return self.by_id(number)

    def _time_after(self, old: WatchRow, new: WatchRow) -> int:
        """When a changed watch is due: as before, unless its times are others now."""
        tags, settings, now = self.tag_defaults(), self._archive.settings.monitor, self._archive.clock()
        before, after = (watch_of_row(row, tags, settings) for row in (old, new))
        same = (before.every, before.cron, before.zone, before.hours) == (
            after.every, after.cron, after.zone, after.hours
        )  # fmt: skip
        return old.due if same or old.due >= NEVER else to_millis(after.next_time(now, 0.0))

    def _refuse_unusable(self, urls: Iterable[str], spec: WatchSpec) -> None:
        """Refuses now what could not be carried out at the next check."""
        spec.refuse_unusable()
        parse_filters(spec.filters)
        fetch = self._archive.settings.fetch
        if not private_ok(fetch.private, spec.origin):
            for url in filter(is_private_url, urls):
                raise Refused(f"{url} is a private address; the owner can allow them with fetch.private")
        for target in spec.notify:
            validate_target(target, spec.notify_origin or spec.origin, fetch.private)
        if spec.browser or spec.steps:
            browser.require_browser(fetch.chromium)

    def _refuse_other_way(self, new: WatchRow) -> None:
        """All watches of a page look at it in one way: what one saw is what the others compare with."""
        tags, settings = self.tag_defaults(), self._archive.settings.monitor
        watch = watch_of_row(new, tags, settings)
        for row in self._watches.of_page(new.url):
            other = watch_of_row(row, tags, settings)
            if row.id != new.id and way_of_looking(other) != way_of_looking(watch):
                raise UsageError(
                    f"the watch {row.id} looks at {new.url} differently; "
                    "all watches of a page must use the same browser and headers"
                )

    def _changed(
        self, key: str, kind: WatchKind, spec: WatchSpec, tag: str | None, forgotten: Collection[str],
        old: WatchRow | None,
    ) -> WatchRow:  # fmt: skip
        """The row that a watch gets; one that a sitemap named belongs to nobody but itself from now on."""
        now = to_millis(self._archive.clock())
        if old is None:
            url, _, name = key.partition("#")
            return new_watch_row(WatchedUrl(url, kind, tag or "", name=name), spec, now)
        return old._replace(
            kind="sitemap" if old.kind == "sitemap" and "kind" not in forgotten else kind,
            tag=old.tag if tag is None else tag,
            source="",
            spec=_changed_spec(spec, old.spec, forgotten).to_json(),
            due=old.due if old.due >= NEVER else now,
        )

    def entries(self, tag: str | None = None, limit: int | None = None, offset: int = 0) -> list[WatchEntry]:
        """The watches with a tag, or all for None, oldest first; so many of them, or all."""
        return self._entries(self._watches.part(tag, limit, offset))

    def find(self, url: str) -> WatchEntry | None:
        """The first watch of a URL, if it has one."""
        return next(iter(self.of_page(url)), None)

    def numbers(self, urls: Iterable[str], name: str = "") -> list[int]:
        """The numbers of the watches that pages have under a name, those aside that only a sitemap named."""
        found = (self._watches.find(watch_key(parse_user_url(url), _parse_name(name))) for url in urls)
        return [row.id for row in found if row is not None and not row.source]

    def of_page(self, url: str) -> list[WatchEntry]:
        """All watches of a URL, the oldest first."""
        return self._entries(self._watches.of_page(parse_user_url(url)))

    def by_id(self, number: int) -> WatchEntry:
        """The watch with a number; NotFound when there is none."""
        return self._entries([self._row(number)])[0]

    def _row(self, number: int) -> WatchRow:
        row = self._watches.by_id(number)
        if row is None:
            raise NotFound(f"there is no watch {number}; see the list of watches")
        return row

    def _entries(self, rows: Sequence[WatchRow]) -> list[WatchEntry]:
        tags = self.tag_defaults()
        return [self._entry(row, tags) for row in rows]

    def _entry(self, row: WatchRow, tags: Mapping[str, WatchSpec]) -> WatchEntry:
        state = WatchState.from_json(row.state)
        return WatchEntry(
            row.id,
            _parse_spec(row.spec),
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

    def pause(self, names: Sequence[str]) -> list[WatchEntry]:
        """Stops checks of pages until they are resumed."""
        return self._each(names, lambda known: self._watches.set_due(known, NEVER))

    def resume(self, names: Sequence[str]) -> list[WatchEntry]:
        """Makes paused watches due at once; the others keep their times."""
        return self._each(names, lambda known: self._watches.resume(known, to_millis(self._archive.clock())))

    def check_now(self, names: Sequence[str]) -> list[WatchEntry]:
        """Makes watches due as soon as their pages may be asked again, within seconds; paused ones go on from there."""
        return self._each(names, self._set_soonest)

    def _set_soonest(self, rows: Sequence[WatchRow]) -> None:
        """Inside the minimum interval of a check there is nothing but its record to see: they wait for its end."""
        now, interval = to_millis(self._archive.clock()), round(self._archive.settings.monitor.min_interval * 1000)
        last = ((one.url, one.time) for one in last_checks_of(self._archive, [row.url for row in rows]).values())
        later = {url: time + interval for url, time in last if time is not None and 0 <= now - time < interval}
        for due in {now, *later.values()}:
            self._watches.set_due([row for row in rows if later.get(row.url, now) == due], due)

    def retag(self, names: Sequence[str], tag: str) -> list[WatchEntry]:
        """Gives watches another tag, or none; the defaults of the new one hold from now on."""
        return self._each(names, lambda known: self._watches.retag(known, tag))

    def snooze(self, names: Sequence[str], until: datetime | None) -> list[WatchEntry]:
        """Holds notifications of watches back until a time; None sends them again as they come."""
        if until is not None and until > self._archive.clock() + LONGEST_SNOOZE:
            raise UsageError(f"a snooze lasts {LONGEST_SNOOZE.days} days at most; pause the watch instead")
        end = None if until is None else to_millis(until)
        return self._each(names, lambda known: self._save_snooze(known, end))

    def _save_snooze(self, rows: Sequence[WatchRow], until: int | None) -> None:
        def snoozed(key: str, old: WatchRow | None) -> WatchRow:
            assert old is not None, "these were found"
            return old._replace(spec=replace(_parse_spec(old.spec), snooze=until).to_json())

        self._watches.save([row.key for row in rows], snoozed)
        self._hold_back([row.id for row in rows])

    def _hold_back(self, numbers: Iterable[int]) -> None:
        """Alerts that wait are sent when the watches say so now: a snooze or quiet hours may have begun or ended."""
        now, tags, settings = self._archive.clock(), self.tag_defaults(), self._archive.settings.monitor
        watches = {number: watch_of_row(self._row(number), tags, settings) for number in numbers}
        self._watches.hold_back({number: to_millis(watch.notifies_at(now)) for number, watch in watches.items()})

    def _each(self, names: Sequence[str], change: Callable[[list[WatchRow]], None]) -> list[WatchEntry]:
        known = self._known(names)
        change(known)
        return self._entries([row for number in known if (row := self._watches.by_id(number.id)) is not None])

    def known_entries(self, names: Sequence[str]) -> list[WatchEntry]:
        """The watches that are meant, as for every command: an address means all watches of the page, a number one.

        UnknownUrl when there is none.
        """
        return self._entries(self._known(names))

    def remove(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """Ends watches with all that a sitemap among them named: the addresses, and how many ended with each."""
        known = self._known(names)
        ended: dict[str, int] = {}
        for row, count in zip(known, self._watches.remove(known), strict=True):
            ended[row.url] = ended.get(row.url, 0) + count
        return list(ended.items())

    def _known(self, names: Sequence[str]) -> list[WatchRow]:
        found: dict[int, WatchRow] = {}
        for name in names:
            if name.isascii() and name.isdigit() and len(name) < 18:
                rows = [self._row(int(name))]
            else:
                address = parse_user_url(name)
                rows = self._watches.of_page(address)
                if not rows:
                    raise UnknownUrl(f"{address} is not watched; see the list of watches")
            found |= {row.id: row for row in rows}
        return list(found.values())

    def count_due(self) -> int:
        """How many watches are due now."""
        return self._watches.count_due(to_millis(self._archive.clock()))

    def tag_counts(self) -> dict[str, int]:
        """How many watches have each tag."""
        return self._watches.tag_counts()

    def tag_defaults(self) -> dict[str, WatchSpec]:
        """The defaults of every tag that has some."""
        return {name: _parse_spec(text) for name, text in self._watches.tags().items()}

    def forget_tag(self, tag: str) -> None:
        """Drops the defaults of a tag; NotFound when it has none."""
        if not self._watches.remove_tag(tag):
            raise NotFound(f"the tag '{tag}' has no defaults; see the list of tags")

    def alerts(self, url: str | None = None, limit: int = 100, before: int | None = None) -> list[AlertRow]:
        """The latest alerts, newest first; of one page, or those before the one with an id."""
        return self._watches.alerts(parse_user_url(url) if url is not None else None, limit, before)

    def deliveries(self, url: str | None, limit: int) -> list[tuple[DeliveryRow, AlertRow]]:
        """Where the latest alerts went, newest first; of one page, or of all."""
        return self._watches.deliveries_of(parse_user_url(url) if url is not None else None, limit)


def _parse_name(name: str) -> str:
    text = " ".join(name.split())
    if len(text) > _LONGEST_NAME or not text.isprintable():
        raise UsageError(f"the name of a watch has at most {_LONGEST_NAME} letters")
    return text


def _taken(url: str, name: str) -> UsageError:
    return UsageError(f"{url} has a watch named '{name}' already; choose another name")


def _signing_in(texts: Iterable[str], spec: WatchSpec) -> WatchSpec:
    """The specification with the name and password of the addresses as a header: what is watched is kept without."""
    logins = set(map(login, texts))
    if len(logins) > 1:
        raise UsageError("addresses with other names and passwords are watched one by one; give one of them")
    signs_in = logins.pop() if logins else ()
    return replace(spec, headers=(*spec.headers, *signs_in)) if signs_in else spec


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
        WatchedUrl(row.url, kind, row.tag, row.source, row.name), _parse_spec(row.spec), tags.get(row.tag), settings
    )


def new_watch_row(named: WatchedUrl, spec: WatchSpec, now: int) -> WatchRow:
    """A new watch, due at once; how long it has not changed is counted from now on."""
    state = WatchState(changed=now).to_json()
    key = watch_key(named.url, named.name)
    return WatchRow(0, key, named.kind, named.tag, named.source, spec.to_json(), state, now, now)


def way_of_looking(watch: Watch) -> tuple[object, ...]:
    """What two watches have in common that one check can serve."""
    return watch.browser, watch.requisites, watch.steps, watch.headers
