"""Is a host's Last-Modified (or a sitemap's lastmod) to be believed? Learned from what is seen."""

from __future__ import annotations

from typing import NamedTuple

_ENOUGH = 8
_SLACK = 1.0  # HTTP dates have whole seconds
_MOST_LIES = 0.05


class Trust(NamedTuple):
    """How often a source of dates was right about a change, for one host."""

    right: int = 0
    wrong: int = 0

    @property
    def earned(self) -> bool:
        """Enough dates were right, and hardly any wrong."""
        total = self.right + self.wrong
        return total >= _ENOUGH and self.wrong <= _MOST_LIES * total

    def after(self, changed: bool, modified: float | None, last_visit: float, now: float) -> Trust:
        """Take in one visit: the date must lie after the last visit exactly when the page changed."""
        if modified is None:
            return self
        says_changed = last_visit - _SLACK < modified <= now + _SLACK
        if says_changed == changed and modified <= now + _SLACK:
            return self._halved()._replace(right=self._halved().right + 1)
        return self._halved()._replace(wrong=self._halved().wrong + 1)

    def _halved(self) -> Trust:
        """Old experience fades, so that a host can win and lose trust."""
        return self if self.right + self.wrong < 1000 else Trust(self.right // 2, self.wrong // 2)


def age_of_change(trust: Trust, modified: float | None, last_visit: float, now: float) -> float | None:
    """Seconds since the change, where a trusted date tells; None otherwise."""
    if modified is None or not trust.earned or not last_visit < modified <= now:
        return None
    return now - modified
