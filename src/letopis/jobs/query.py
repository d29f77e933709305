"""What the queue and the query language tell each other: a question, what may be used to answer it, how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from letopis.archive import Archive
from letopis.config import Settings

USE_DRIVEN = "use"
"""The refresh of a question that is asked again the sooner, the more its answer is looked at."""


@dataclass(frozen=True, slots=True)
class Query:
    """A job file that was read. `refresh` is empty, a duration as `1h`, or `use`; `xml` the whole file."""

    package: str
    name: str
    priority: int
    refresh: str
    permission: int
    xml: bytes


class Progress(Protocol):
    """Handed to the work: it tells how far it is, and asks whether it is still wanted."""

    def step(self, number: int, of: int, what: str) -> None:
        """A step begins, the first one being 1."""

    def share(self, done: float) -> None:
        """How much of the step is done, 0 to 1."""

    def log(self, line: str) -> None:
        """A line for whoever reads the log of the job."""

    def cancelled(self) -> bool:
        """Whether to stop; asked between units of work, and cheap to ask."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the steps of one job may use. `output` is a folder for files, None when none may be written."""

    archive: Archive
    settings: Settings
    progress: Progress
    user: str
    private_allowed: bool
    output: Path | None
    clock: Callable[[], datetime]
