"""The rows that a batch of looks adds, gathered and written with a few statements at its end.

A statement a row is cheap inside this process and dear across a network, so
rows wait here. Versions get their numbers at once: what follows in the batch
refers to them.
"""

from __future__ import annotations

from collections.abc import Iterator

from letopis.catalog.database import Cursor
from letopis.catalog.rows import CaptureRow, ResourceRow, VersionRow
from letopis.catalog.versions import CAPTURE_COLUMNS, VERSION_COLUMNS
from letopis.urls import surt


class Additions:
    """Versions, other checks and sorted keys of one batch, inside the caller's transaction.

    At most `most` versions are added. Whoever reads one of these tables in
    the same transaction calls `write` first.
    """

    def __init__(self, cursor: Cursor, most: int) -> None:
        self._cursor = cursor
        self._most = most
        self._numbers: Iterator[int] | None = None
        self._versions: list[VersionRow] = []
        self._captures: list[CaptureRow] = []
        self._listed: list[tuple[str, int]] = []

    def version(self, row: VersionRow) -> int:
        """Appends a version (its id is given out here)."""
        if self._numbers is None:
            self._numbers = iter(self._cursor.numbers("version", self._most))
        number = next(self._numbers)
        self._versions.append(row._replace(id=number))
        return number

    def capture(self, row: CaptureRow) -> None:
        """Appends a check that found nothing new."""
        self._captures.append(row)

    def listed(self, row: ResourceRow) -> None:
        """Makes a URL findable by its sorted key, at its first capture."""
        self._listed.append((surt(row.url), row.id))

    def write(self) -> None:
        """Everything gathered so far."""
        if self._versions:
            self._cursor.bulk("version", VERSION_COLUMNS, self._versions)
        if self._captures:
            self._cursor.bulk("capture", CAPTURE_COLUMNS, self._captures)
        if self._listed:
            self._cursor.run_many(
                "INSERT INTO surt (name, resource) VALUES (?, ?) ON CONFLICT DO NOTHING", self._listed
            )
        self._versions, self._captures, self._listed = [], [], []
