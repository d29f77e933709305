"""Addresses by number and numbers by address, for tens of millions of them in about 80 bytes each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from letopis.errors import LetopisError
from letopis.graph.columns import Ints, Texts
from letopis.graph.segment import Int32, Segment
from letopis.urls import host as host_of
from letopis.urls import url_key

_REMEMBERED = 400_000
_APART = 200_000
"""New addresses that are kept apart at least, before everything is sorted again."""


class Addresses:
    """Numbers addresses in the order in which they are first met; new ones stay apart until they are many."""

    def __init__(self, urls: Texts, keys: Ints, hosts: Int32, names: Texts) -> None:
        self._urls, self._keys, self._hosts = urls, keys, hosts
        self._sort()
        self._host_numbers = {names[number]: number for number in range(len(names))}
        self._new_urls: list[str] = []
        self._new_hosts: list[int] = []
        self._recent: dict[str, int] = {}
        self._told_urls, self._told_hosts = 0, len(names)

    @classmethod
    def of(cls, segment: Segment) -> Addresses:
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
        if len(self._recent) >= _REMEMBERED + len(self._new_urls):
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

    def news(self) -> tuple[Texts, Texts, Ints, Int32]:
        """Hosts, addresses, keys and hosts of addresses that were added since this was last asked."""
        names = list(self._host_numbers)[self._told_hosts :]
        urls, hosts = self._new_urls[self._told_urls :], self._new_hosts[self._told_urls :]
        self._told_hosts, self._told_urls = len(self._host_numbers), len(self._new_urls)
        keys = np.array([url_key(url) for url in urls], np.int64)
        added = Texts.of(names), Texts.of(urls), keys, np.array(hosts, np.int32)
        if len(self._new_urls) > max(_APART, len(self._urls) // 4):
            self._settle()
        return added

    def _settle(self) -> None:
        """Moves what is kept apart to the sorted rest; seldom, since that sorts everything."""
        keys = np.array([url_key(url) for url in self._new_urls], np.int64)
        self._urls = Texts.join([self._urls, Texts.of(self._new_urls)])
        self._keys = np.concatenate([self._keys, keys])
        self._hosts = self.hosts()
        self._new_urls, self._new_hosts, self._recent, self._told_urls = [], [], {}, 0
        self._sort()

    def _sort(self) -> None:
        self._order = np.argsort(self._keys, kind="stable").astype(np.int32)
        self._sorted = self._keys[self._order]
