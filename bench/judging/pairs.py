"""Tables of judged pairs, and the figures over them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    """Two versions by their SHA-256 and what a reader called the step from one to the other."""

    old: str
    new: str
    verdict: str
    reason: str

    @property
    def changed(self) -> bool:
        """Whether the reader saw a change."""
        return self.verdict == "changed"


def pairs_of(table: Path) -> list[Pair]:
    """The rows of a table; lines with `#` are remarks."""
    lines = table.read_text().splitlines()
    return [Pair(*line.split("\t")) for line in lines if line and not line.startswith("#")]


class Told(NamedTuple):
    """How often the detector agreed with the reader."""

    found: int
    missed: int
    alarms: int
    calm: int

    @classmethod
    def of(cls, truth_and_answer: Sequence[tuple[bool, bool]]) -> Told:
        """Counts of (changed, seen) pairs."""
        both = list(truth_and_answer)
        return cls(*(both.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))))

    @property
    def precision(self) -> float:
        """Share of what was called a change that is one."""
        return self.found / max(1, self.found + self.alarms)

    @property
    def recall(self) -> float:
        """Share of the real changes that were seen."""
        return self.found / max(1, self.found + self.missed)

    @property
    def alarm_rate(self) -> float:
        """Share of the pairs with noise alone that were called a change."""
        return self.alarms / max(1, self.alarms + self.calm)
