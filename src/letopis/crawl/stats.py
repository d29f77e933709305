"""How a crawl is going, for people who watch it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from letopis.model import Observation, Outcome


@dataclass(slots=True)
class CrawlStats:
    """Counts since the crawl began; `seconds` is how long that is."""

    fetched: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    bytes: int = 0
    links: int = 0
    first_visits: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def count(self, look: Observation, first: bool, links: int) -> None:
        """Takes one finished look in."""
        self.fetched += 1
        self.first_visits += first
        self.links += links
        self.bytes += look.response.wire_bytes
        match look.outcome:
            case Outcome.NEW:
                self.new += 1
            case Outcome.CHANGED:
                self.changed += 1
            case Outcome.UNCHANGED:
                self.unchanged += 1
            case _:
                self.errors[_error_kind(look)] += 1

    @property
    def rate(self) -> float:
        """Pages a second."""
        return self.fetched / self.seconds if self.seconds else 0.0

    @property
    def new_share(self) -> float:
        """Share of fetches that were first visits."""
        return self.first_visits / self.fetched if self.fetched else 0.0

    def row(self) -> dict[str, object]:
        """For --json and the web interface."""
        return {
            "fetched": self.fetched,
            "new": self.new,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "errors": dict(self.errors),
            "bytes": self.bytes,
            "links": self.links,
            "new_share": round(self.new_share, 3),
            "pages_per_second": round(self.rate, 1),
            "seconds": round(self.seconds, 1),
        }

    def add(self, other: CrawlStats) -> None:
        """Takes in what another agent did at the same time."""
        for name in ("fetched", "new", "changed", "unchanged", "bytes", "links", "first_visits"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.errors.update(other.errors)
        self.seconds = max(self.seconds, other.seconds)

    def plus(self, other: CrawlStats) -> CrawlStats:
        """Both together."""
        total = replace(self, errors=Counter(self.errors))
        total.add(other)
        return total

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> CrawlStats:
        """The inverse of `row`, as far as it goes."""
        first = round(row["new_share"] * row["fetched"])
        return cls(
            row["fetched"], row["new"], row["changed"], row["unchanged"], row["bytes"], row["links"], first,
            Counter(row["errors"]), row["seconds"],
        )  # fmt: skip


def _error_kind(look: Observation) -> str:
    failure = look.response.failure
    return failure.kind.value if failure else str(look.response.status)
