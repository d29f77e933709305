"""Why a page is visited when it is, as a sentence with numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

_STEPS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


class Why(NamedTuple):
    """The reason for one interval. `rule` names the step of the policy that decided."""

    policy: str
    rule: str
    interval: float
    visits: int
    changes: int
    gap: float = 0.0
    price: float = 0.0
    unbounded: float = 0.0

    @property
    def sentence(self) -> str:
        """For people: `letopis why URL`."""
        seen = f"{self.changes} of {max(self.visits - 1, 0)} later visits found a change"
        return f"{seen}; {_RULES[self.rule].format(**self._words())}; next after {span(self.interval)} ({self.policy})"

    def _words(self) -> dict[str, str]:
        unbounded = "never" if self.unbounded == float("inf") else f"after {span(self.unbounded)}"
        return {"gap": span(self.gap), "price": f"{self.price:.4g}", "unbounded": unbounded}


_RULES = {
    "first": "this was the first visit",
    "even": "all pages have the same interval",
    "shorter": "it changed, so the interval shrinks",
    "longer": "it did not change, so the interval grows",
    "quiet": "it has been quiet for longer than the interval, so that time is taken",
    "failed": "the last visit failed, so it is tried again with growing pauses",
    "pays": "about one change in {gap}, at the present price ({price}) a visit pays {unbounded}",
    "rhythm": "about one change in {gap} and pages here keep a rhythm, a visit pays {unbounded} (price {price})",
    "explored": "about one change in {gap}, a visit pays {unbounded} (price {price}), but none waits longer than this",
    "bounded": "about one change in {gap}, a visit pays {unbounded} (price {price}), brought within the set bounds",
}


def span(seconds: float) -> str:
    """A duration in its two largest units: `1 h 40 min`."""
    rest = round(seconds, 3) if seconds < 10.0 else float(round(seconds))
    for (size, name), (smaller, minor) in pairwise(_STEPS):
        if rest >= size:
            whole, left = divmod(rest, size)
            part = int(left // smaller)
            return f"{whole:.0f} {name}" + (f" {part} {minor}" if part else "")
    return f"{rest:g} s"
