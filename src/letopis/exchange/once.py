"""Captures that the archive already has, found before they are written again.

A capture is known when its URL has a check with the same status, and the
same content where it has one, at the same moment. Others of the same moment
are kept a millisecond apart, so that run of moments is looked through.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from letopis.archive import Arrival, Identity, identify
from letopis.catalog import Database
from letopis.catalog.lookup import checked

_RUN = 1000
"""Checks that may share one moment of their source, in milliseconds: a second, as most sources tell it."""
_SLOTS = (
    "SELECT v.time, v.status, c.sha1 FROM version v JOIN content c ON c.id = v.content "
    "WHERE v.resource = ? AND v.time >= ? AND v.time < ? UNION ALL "
    "SELECT p.time, p.status, coalesce(k.sha1, c.sha1) FROM capture p "
    "LEFT JOIN content k ON k.id = p.content "
    "LEFT JOIN version v ON v.resource = p.resource AND v.number = p.number LEFT JOIN content c ON c.id = v.content "
    "WHERE p.resource = ? AND p.time >= ? AND p.time < ? ORDER BY 1"
)


class _Slot(NamedTuple):
    time: int
    status: int
    sha1: bytes | None


def fresh(database: Database, batch: Sequence[Arrival]) -> list[Arrival]:
    """Those of a batch that the archive has not got, each once, in their order."""
    known = checked(database, list({arrival.url: None for arrival in batch}))
    seen: dict[tuple[str, int], list[Arrival]] = defaultdict(list)
    wanted = []
    for arrival in batch:
        twins = seen[arrival.url, arrival.time]
        before = known.get(arrival.url)
        if any(_equal(arrival, twin) for twin in twins):
            continue
        if before is not None and before.time is not None and arrival.time <= before.time:
            slots = _slots(database, before.resource, arrival.time)
            arrival = _identified(arrival) if slots else arrival
            if any(_fits(arrival, slot) for slot in slots):
                continue
        twins.append(arrival)
        wanted.append(arrival)
    return wanted


def _equal(first: Arrival, second: Arrival) -> bool:
    return first.status == second.status and first.body == second.body


def _slots(database: Database, resource: int, time: int) -> list[_Slot]:
    """What the URL has at this moment and in the milliseconds that follow without a gap."""
    span = (resource, time, time + _RUN)
    found = [_Slot(row[0], row[1], row[2]) for row in database.all(_SLOTS, (*span, *span))]
    return [slot for index, slot in enumerate(found) if slot.time == time + index]


def _identified(arrival: Arrival) -> Arrival:
    if arrival.body is None or arrival.identity is not None:
        return arrival
    identity: Identity = identify(arrival.body)
    return arrival._replace(identity=identity)


def _fits(arrival: Arrival, slot: _Slot) -> bool:
    if arrival.status != slot.status:
        return False
    return arrival.identity is None or arrival.identity.sha1 == bytes(slot.sha1 or b"")
