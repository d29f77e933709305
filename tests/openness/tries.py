"""What is tried, who judges it, and how often Letopis and the judge agree.

A try answers two lists of equal length: what Letopis says to each question, and what the judge says. In its quick form
the judge is a table in this folder: published cases, or what a peer answered when `make openness` asked it last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Score:
    """How many questions were asked, and the ones on which the two differ."""

    questions: int
    differing: tuple[str, ...] = ()

    @property
    def agreed(self) -> int:
        return self.questions - len(self.differing)


@dataclass(frozen=True, slots=True)
class Try:
    """One line of the table. `full` asks the peer itself; None where a table is all there is."""

    name: str
    judge: str
    quick: Callable[[Path], Score]
    full: Callable[[Path, Path], Score] | None = None
    """With a folder to work in, and the folder of the environment in which the peers are installed."""
    peers: tuple[str, ...] = field(default=())


def compared(ours: dict[str, object], theirs: dict[str, object]) -> Score:
    """The score of answers by question."""
    return Score(len(theirs), tuple(name for name, answer in theirs.items() if ours.get(name) != answer))
