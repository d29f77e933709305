"""What a schedule remembers of one page: 42 bytes, whatever the policy."""

from __future__ import annotations

import struct
from typing import NamedTuple

from letopis.errors import Damaged

_FORMAT = struct.Struct("<BBHHdfffffff")
_VERSION = 2
_FIRST = struct.Struct("<BBHHdfffff")
"""Version 1, which did not keep the sums; it is read still."""
_MOST = 0xFFFF


class VisitState(NamedTuple):
    """The visits of one page, summed up. Times and durations are seconds.

    `last_change` is when a change was last detected (the first visit counts
    as one), `window` the time before it in which the change happened.
    `shape` and `scale` are the Gamma belief about the page's change rate:
    its mean is shape / scale changes a second. `quiet` and `busy` sum up the
    times between visits: of those that found nothing new, and of those that
    found a change.
    """

    visits: int = 0
    changes: int = 0
    failures: int = 0
    last_visit: float = 0.0
    last_change: float = 0.0
    window: float = 0.0
    interval: float = 0.0
    shape: float = 0.0
    scale: float = 0.0
    quiet: float = 0.0
    busy: float = 0.0

    def to_bytes(self) -> bytes:
        """The stored form; durations keep seven digits, counters stop at 65535."""
        return _FORMAT.pack(
            _VERSION,
            min(self.failures, 255),
            min(self.visits, _MOST),
            min(self.changes, _MOST),
            self.last_visit,
            self.last_visit - self.last_change,
            self.window,
            self.interval,
            self.shape,
            self.scale,
            self.quiet,
            self.busy,
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> VisitState:
        """The inverse of `to_bytes`; empty bytes are a page never visited."""
        if not data:
            return cls()
        if len(data) == _FIRST.size and data[0] == 1:
            _, failures, visits, changes, last, since, window, interval, shape, scale = _FIRST.unpack(data)
            quiet, busy = since, changes * window
        elif len(data) == _FORMAT.size and data[0] == _VERSION:
            _, failures, visits, changes, last, since, window, interval, shape, scale, quiet, busy = _FORMAT.unpack(
                data
            )
        else:
            raise Damaged("a page's visit record is not one this release can read; run letopis verify --repair")
        return cls(visits, changes, failures, last, last - since, window, interval, shape, scale, quiet, busy)
