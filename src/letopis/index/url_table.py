"""URLs by number, tens of millions in about 80 bytes each: how they answered over time, where URL rules send them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from letopis.archive import Archive
from letopis.archive.index_facts import TroubledCheck, VersionLog
from letopis.errors import LetopisError
from letopis.index.link_storage import Bytes, Int32, Ints, LinkSegment, TextColumn
from letopis.lazy import np, npt
from letopis.model import Outcome
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of
from letopis.urls import join, url_key
from letopis.urls.rules import UrlRules, rules_from_xml

_MAX_CACHED = 400_000
_MIN_UNSORTED = 200_000
"""New addresses that are kept apart at least, before everything is sorted again."""


class UrlTable:
    """Numbers addresses in the order in which they are first met; new ones stay apart until they are many."""

    def __init__(self, urls: TextColumn, keys: Ints, hosts: Int32, names: TextColumn) -> None:
        self._urls, self._keys, self._hosts = urls, keys, hosts
        self._sort()
        self._host_numbers = {names[number]: number for number in range(len(names))}
        self._new_urls: list[str] = []
        self._new_hosts: list[int] = []
        self._recent: dict[str, int] = {}
        self._reported_urls, self._reported_hosts = 0, len(names)

    @classmethod
    def of(cls, segment: LinkSegment) -> UrlTable:
        """The addresses that a joined segment names."""
        return cls(segment.urls, segment.keys, segment.hosts, segment.names)

    def __len__(self) -> int:
        return len(self._urls) + len(self._new_urls)

    def __getitem__(self, number: int) -> str:
        known = len(self._urls)
        return self._urls[number] if number < known else self._new_urls[number - known]

    def find(self, url: str) -> int:
        """The number of an address, -1 when it has none."""
        found = self._recent.get(url)
        if found is not None:
            return found
        key = url_key(url)
        at = int(np.searchsorted(self._sorted, key))
        while at < len(self._sorted) and self._sorted[at] == key:
            # Two addresses may share a key; the text decides.
            number = int(self._order[at])
            if self._urls[number] == url:
                self._remember(url, number)
                return number
            at += 1
        return -1

    def number(self, url: str) -> int:
        """The number of an address, which is given one when it has none."""
        found = self.find(url)
        if found < 0:
            found = len(self)
            self._new_urls.append(url)
            self._new_hosts.append(self._host(url))
            # New addresses are found through `_recent` alone, so they are never forgotten from it.
            self._recent[url] = found
        return found

    def _remember(self, url: str, number: int) -> None:
        if len(self._recent) >= _MAX_CACHED + len(self._new_urls):
            known = len(self._urls)
            self._recent = {text: known + place for place, text in enumerate(self._new_urls)}
        self._recent[url] = number

    def _host(self, url: str) -> int:
        try:
            name = host_of(url)
        except LetopisError:
            name = ""
        return self._host_numbers.setdefault(name, len(self._host_numbers))

    def numbers(self, urls: Sequence[str]) -> list[int]:
        """The numbers of many addresses."""
        try:
            return list(map(self._recent.__getitem__, urls))
        except KeyError:
            return [self.number(url) for url in urls]

    def host_number(self, name: str) -> int:
        """The number of a host, -1 when no address is on it."""
        return self._host_numbers.get(name, -1)

    def hosts(self) -> Int32:
        """The host of every address."""
        return np.concatenate([self._hosts, np.array(self._new_hosts, np.int32)])

    def news(self) -> tuple[TextColumn, TextColumn, Ints, Int32]:
        """Hosts, URLs, keys and hosts of URLs that were added since the last call."""
        names = list(self._host_numbers)[self._reported_hosts :]
        urls, hosts = self._new_urls[self._reported_urls :], self._new_hosts[self._reported_urls :]
        self._reported_hosts, self._reported_urls = len(self._host_numbers), len(self._new_urls)
        keys = np.array([url_key(url) for url in urls], np.int64)
        added = TextColumn.of(names), TextColumn.of(urls), keys, np.array(hosts, np.int32)
        if len(self._new_urls) > max(_MIN_UNSORTED, len(self._urls) // 4):
            self._settle()
        return added

    def _settle(self) -> None:
        """Moves what is kept apart to the sorted rest; seldom, since that sorts everything."""
        keys = np.array([url_key(url) for url in self._new_urls], np.int64)
        self._urls = TextColumn.join([self._urls, TextColumn.of(self._new_urls)])
        self._keys = np.concatenate([self._keys, keys])
        self._hosts = self.hosts()
        self._new_urls, self._new_hosts, self._recent, self._reported_urls = [], [], {}, 0
        self._sort()

    def _sort(self) -> None:
        self._order = np.argsort(self._keys, kind="stable").astype(np.int32)
        self._sorted = self._keys[self._order]


GOOD, ERROR, REDIRECT, UNKNOWN = range(4)
"""How a URL answers at a date."""

NEVER = -1


class UrlCheck(NamedTuple):
    """One check of an address: when, how, with which status, and where it sent us (-1: nowhere)."""

    time: int
    kind: int
    status: int
    target: int = -1


class UrlStates(NamedTuple):
    """Stretches in which an address answered the same way, by address and time.

    `since` is when the present run of errors began, `good` the last check
    before it that was no error, NEVER without one.
    """

    urls: Int32
    times: Ints
    kinds: Bytes
    statuses: npt.NDArray[np.int16]
    targets: Int32
    since: Ints
    good: Ints

    def rows_at(self, time: int) -> Ints:
        """Positions of the stretches that hold at a time, one an address at most."""
        known = np.flatnonzero(self.times <= time)
        urls = self.urls[known]
        is_last = np.ones(len(known), bool)
        is_last[:-1] = urls[1:] != urls[:-1]
        return known[is_last]


UrlStateRow = tuple[int, int, int, int, int, int, int]


def url_state_rows(url: int, checks: Iterable[UrlCheck]) -> Iterator[UrlStateRow]:
    """Rows of `UrlStates` for one address; checks come oldest first."""
    before: UrlCheck | None = None
    since = good = last_good = NEVER
    for check in checks:
        if check.kind == ERROR and (before is None or before.kind != ERROR):
            since, good = check.time, last_good
        if check.kind != ERROR:
            last_good = check.time
        if before is None or check[1:] != before[1:]:
            failing = check.kind == ERROR
            yield (url, *check, since if failing else NEVER, good if failing else NEVER)
        before = check


def read_url_states(archive: Archive, addresses: UrlTable, versions_of: Callable[[int], list[UrlCheck]]) -> UrlStates:
    """All stretches of addresses that were ever in trouble; `versions_of` names the checks that brought a version."""
    rows: list[UrlStateRow] = []
    for url, checks in groupby(VersionLog(archive).troubled_checks(), key=lambda row: row.url):
        number = addresses.number(url)
        known = [found for found in (_check_of(addresses, check) for check in checks) if found is not None]
        rows += url_state_rows(number, sorted([*known, *versions_of(number)]))
    return url_states_of(rows)


def url_states_of(rows: list[UrlStateRow]) -> UrlStates:
    """Rows as columns, in order."""
    table = np.array(sorted(rows), np.int64).reshape(-1, 7)
    kinds = (np.int32, np.int64, np.uint8, np.int16, np.int32, np.int64, np.int64)
    return UrlStates(*(table[:, place].astype(kind) for place, kind in enumerate(kinds)))


def _check_of(addresses: UrlTable, row: TroubledCheck) -> UrlCheck | None:
    """What a check says about its URL; None if it sent no request, or was refused for too many requests."""
    if row.outcome is Outcome.REFUSED or row.status == _TOO_MANY_REQUESTS:
        return None
    if row.outcome is Outcome.UNAVAILABLE or row.status >= 400:
        return UrlCheck(row.time, ERROR, row.status)
    if row.status < 300 or row.status == 304:
        return UrlCheck(row.time, GOOD, 200)
    target = join(row.url, row.location)
    if not target:
        return UrlCheck(row.time, ERROR, row.status)
    return UrlCheck(row.time, REDIRECT, row.status, addresses.number(target))


_TOO_MANY_REQUESTS = 429
IGNORED = -1


class UrlRuleTargets(NamedTuple):
    """Addresses that rules change, and where they lead (IGNORED: nowhere)."""

    urls: Int32
    targets: Int32

    def settle(self, kind: Bytes, redirect: Int32) -> None:
        """Lets the rules take precedence over the answers of servers."""
        ignored = self.targets == IGNORED
        kind[self.urls] = np.where(ignored, UNKNOWN, REDIRECT)
        redirect[self.urls] = self.targets


def apply_url_rules(addresses: UrlTable, by_host: tuple[tuple[str, str], ...]) -> UrlRuleTargets:
    """The results of the rules (hosts with XML) for all URLs; only those of hosts with rules are processed."""
    urls: list[int] = []
    targets: list[int] = []
    hosts = addresses.hosts()
    for host, xml in by_host:
        rules = rules_from_xml(xml.encode())
        for number in np.flatnonzero(hosts == addresses.host_number(host)):
            target = _rule_target(addresses, rules, int(number))
            if target != number:
                urls.append(int(number))
                targets.append(target)
    return UrlRuleTargets(np.array(urls, np.int32), np.array(targets, np.int32))


def _rule_target(addresses: UrlTable, rules: UrlRules, number: int) -> int:
    verdict = rules.apply(addresses[number])
    return IGNORED if verdict.ignored else addresses.number(verdict.url)
