"""How long server processes of PostgreSQL waited for locks of others, as its log tells.

A round trip of a client that asks for a lock also takes as long as server and
client wait for a core, with nobody else at the lock. The server alone knows
how long it waited for the lock itself: it tells when it gets one for which it
waited longer than `deadlock_timeout`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

SETTINGS = {"log_lock_waits": "on", "deadlock_timeout": "1ms", "log_line_prefix": "%n [%p] "}
"""With these the server tells of each wait above a millisecond, in a form that `lock_waits` reads."""
_ACQUIRED = re.compile(r"^(\d+\.\d+) \[(\d+)\] LOG:  process \d+ acquired \w+ on .* after (\d+\.\d+) ms$", re.MULTILINE)


class LockWait(NamedTuple):
    """One wait: of which server process, and from when until when, in Unix time."""

    process: int
    began: float
    ended: float

    def within(self, began: float, ended: float) -> float:
        """Seconds of it between two moments."""
        return max(0.0, min(self.ended, ended) - max(self.began, began))


def lock_waits(log: str) -> list[LockWait]:
    """All waits that ended with the lock."""
    found = ((float(ended), int(process), float(millis) / 1000) for ended, process, millis in _ACQUIRED.findall(log))
    return [LockWait(process, ended - seconds, ended) for ended, process, seconds in found]


def waited(waits: Iterable[LockWait], processes: Collection[int], began: float, ended: float) -> float:
    """Seconds that any of these processes waited between two moments."""
    return sum(wait.within(began, ended) for wait in waits if wait.process in processes)
