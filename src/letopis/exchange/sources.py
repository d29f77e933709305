"""What an import is given and gives back: kinds of sources, hints about them, captures, watches, and the report.

Readers of other tools, which may be packages of their own, need these values and nothing else of an import.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from letopis.errors import UsageError
from letopis.model import Headers


class SourceKind(StrEnum):
    """The words of `--kind`."""

    WARC = "warc"
    WACZ = "wacz"
    CDXJ = "cdxj"
    DATED = "dated"
    GIT = "git"
    URLWATCH = "urlwatch"
    CHANGEDETECTION = "changedetection"
    WGET = "wget"
    HTTRACK = "httrack"


@dataclass(frozen=True, slots=True)
class SourceHints:
    """`url` is the page, or with a slash at its end the folder, that files belong to.

    `urls` is a list of addresses (`urls.tsv`, `urls.yaml`), `paths` the part of
    a git repository that counts.
    """

    url: str = ""
    urls: Path | None = None
    paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.url and not self.url.startswith(("http://", "https://")):
            raise UsageError(f"--url {self.url} is no web address; begin it with https:// or http://")


MOST_WATCHES = 100_000


@dataclass(frozen=True, slots=True)
class ImportedWatch:
    """A page to watch: seconds between looks (None: as the settings say), and filters (kind, expression).

    `left_out` names what has no counterpart.
    """

    url: str
    every: float | None = None
    filters: tuple[tuple[str, str], ...] = ()
    tag: str = ""
    paused: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedCapture:
    """`date` is ISO 8601; `decoded` bodies stand without the codings that their headers name.

    `facts` are those of a check of ours that has no record of its own, or
    that belong to the capture before.
    """

    url: str
    date: str
    status: int
    headers: Headers
    body: bytes
    is_revisit: bool = False
    facts: dict[str, Any] | None = None
    decoded: bool = False


def failed_capture(url: str, date: str, why: str) -> ImportedCapture:
    """A look that got no answer."""
    facts = {"redirects": [], "final_url": url, "error": why, "warnings": [], "outcome": "unavailable", "status": 0}
    return ImportedCapture(url, date, 0, (), b"", facts=facts)


MOST_EXAMPLES = 20
MOST_REASONS = 200
_OTHERS = "other reasons"


@dataclass(slots=True)
class ImportReport:
    """`same` counts captures that the archive already had; the first refusals are named."""

    records: int = 0
    versions: int = 0
    checks: int = 0
    same: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def refuse(self, reason: str, where: str) -> None:
        """Counts a record that was left out; a source that finds ever new reasons fills no memory."""
        known = reason in self.refused or len(self.refused) < MOST_REASONS
        self.refused[reason if known else _OTHERS] += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(f"{where[:300]}: {reason}")
