"""Rules of addresses in the index: an address that rules send elsewhere leads there, one that they ignore is none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from letopis.graph.addresses import Addresses
from letopis.graph.segment import Bytes, Int32
from letopis.graph.states import REDIRECT, UNKNOWN
from letopis.urls import Rules, rules_from_xml

IGNORED = -1


class Ruled(NamedTuple):
    """Addresses that rules change, and where they lead (IGNORED: nowhere)."""

    urls: Int32
    targets: Int32

    def settle(self, kind: Bytes, redirect: Int32) -> None:
        """Lets the rules stand above what servers said."""
        ignored = self.targets == IGNORED
        kind[self.urls] = np.where(ignored, UNKNOWN, REDIRECT)
        redirect[self.urls] = self.targets


def judge(addresses: Addresses, told: tuple[tuple[str, str], ...]) -> Ruled:
    """What the rules (hosts with XML) make of all addresses; only those of hosts with rules are looked at."""
    urls: list[int] = []
    targets: list[int] = []
    hosts = addresses.hosts()
    for host, xml in told:
        rules = rules_from_xml(xml.encode())
        for number in np.flatnonzero(hosts == addresses.host_number(host)):
            target = _target(addresses, rules, int(number))
            if target != number:
                urls.append(int(number))
                targets.append(target)
    return Ruled(np.array(urls, np.int32), np.array(targets, np.int32))


def _target(addresses: Addresses, rules: Rules, number: int) -> int:
    verdict = rules.apply(addresses[number])
    return IGNORED if verdict.ignored else addresses.number(verdict.url)
