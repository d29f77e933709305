"""Which part of a published archive a clone wants. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from letopis.exchange.replica.records import CheckRecord
from letopis.urls import host, site

_FOREVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Selection:
    """Empty values select everything.

    `site` says which addresses the clone knows at all. Times (milliseconds)
    and `lazy` say which contents are fetched beforehand: histories are whole
    in any case, and what is not there is fetched when it is read.
    """

    site: str = ""
    since: int | None = None
    until: int | None = None
    lazy: bool = False

    @property
    def has_all_addresses(self) -> bool:
        """Whether the clone counts what the release counts."""
        return not self.site

    def knows(self, url: str) -> bool:
        """Whether the address belongs to the clone."""
        return not self.site or host(url) == site(self.site)

    def wanted(self, checks: Sequence[CheckRecord]) -> Iterator[CheckRecord]:
        """The checks of one address, oldest first, whose contents are fetched beforehand."""
        if self.lazy:
            return
        low, high = self.since or -_FOREVER, self.until if self.until is not None else _FOREVER
        versions = [check for check in checks if check.is_version]
        ends = {one.time: two.time for one, two in pairwise(versions)}
        for check in checks:
            # A version counts for as long as it was what the page said.
            last = ends.get(check.time, _FOREVER) if check.is_version else check.time + 1
            if check.content is not None and check.time <= high and last > low:
                yield check

    def fields(self) -> dict[str, Any]:
        """For the marker of the clone."""
        return asdict(self)
