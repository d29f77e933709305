"""The price of a visit: one number that keeps visits at the budget.

A page is due when a visit to it is worth the price, so a higher price means
fewer visits. The price follows two errors: the planned rate (the sum of
1 / interval over all pages) against the budget, which is early and smooth,
and the visits really made against those allowed so far, which leaves no
lasting error. It needs no look at all pages, so each agent can keep its own
for its share of the budget.
"""

from __future__ import annotations

import math
import struct

from letopis.errors import Damaged

_FORMAT = struct.Struct("<ddddQ")
_PLAN_GAIN = 1.0
_DEBT_GAIN = 0.3
_MOST_DEBT = 1.0  # visits a page; beyond this, lost time is not made up for
_LONGEST_STEP = 0.05  # of an even interval; a longer silence means that nobody was visiting,
_LONGEST_GAPS = 5.0  # unless so few pages are known that visits are far apart anyway


class Pace:
    """Price and bookkeeping of one budget. Not shared between threads."""

    def __init__(self, interval: float, budget: float, price: float) -> None:
        """An even `interval` for each page, unless a `budget` in visits a second is given."""
        self._interval = interval
        self._budget = budget
        self._log_price = math.log(price)
        self._planned = 0.0
        self._debt = 0.0
        self._clock = -math.inf
        self.pages = 0

    @property
    def price(self) -> float:
        """What a visit must be worth now."""
        return math.exp(self._log_price)

    @property
    def budget(self) -> float:
        """Visits a second that are allowed to the pages known so far."""
        return self._budget or self.pages / self._interval

    @property
    def even(self) -> float:
        """The interval at which all pages alike would use up the budget."""
        return self.pages / self._budget if self._budget and self.pages else self._interval

    @property
    def load(self) -> float:
        """Planned visits over allowed visits."""
        return self._planned / self.budget if self.pages else 0.0

    def visited(self, before: float, after: float, now: float, floor: float = 0.0) -> None:
        """A visit was made; the page's interval was `before` (0: a new page) and is `after` now.

        The price never falls below `floor`.
        """
        self.pages += before == 0.0
        self._planned += 1.0 / after - (1.0 / before if before else 0.0)
        step = min(max(0.0, now - self._clock), max(_LONGEST_STEP * self.even, _LONGEST_GAPS / self.budget))
        self._clock = max(self._clock, now)
        bound = _MOST_DEBT * self.pages
        self._debt = min(bound, max(-bound, self._debt + 1.0 - self.budget * step))
        error = math.log(max(self.load, 1e-6)) * _PLAN_GAIN + self._debt / self.pages * _DEBT_GAIN
        self._log_price += step / self.even * min(3.0, max(-3.0, error))
        if floor > 0.0:
            self._log_price = max(self._log_price, math.log(floor))

    def dropped(self, interval: float) -> None:
        """A page will not be visited any more."""
        self.pages = max(0, self.pages - 1)
        self._planned = max(0.0, self._planned - 1.0 / interval)

    def to_bytes(self) -> bytes:
        """The price and the books; budget and interval are settings."""
        clock = self._clock if self.pages else 0.0
        return _FORMAT.pack(self._log_price, self._planned, self._debt, clock, self.pages)

    def restore(self, data: bytes) -> None:
        """Take over what `to_bytes` gave."""
        if len(data) != _FORMAT.size:
            raise Damaged("the learned pace of the schedule cannot be read; delete it and it is learned anew")
        self._log_price, self._planned, self._debt, self._clock, self.pages = _FORMAT.unpack(data)
