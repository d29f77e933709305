"""Digest fields that a host sent wrongly are not believed again."""

from __future__ import annotations

from letopis.archive import Archive
from letopis.catalog import Cursor
from letopis.model import Response
from letopis.urls import host as host_of
from letopis.visit.known import DIGESTS


class Doubts:
    """Gathers doubts while looking; they are written with the visits that raised them. For one thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._fields: dict[str, set[str]] = {}

    def note(self, response: Response) -> None:
        """Remembers the fields that the warnings of an answer name."""
        wrong = {name.lower() for name, _ in response.headers if name.lower() in DIGESTS}
        named = frozenset(name for name in wrong if any(name in text.lower() for text in response.warnings))
        if named:
            self._fields.setdefault(host_of(response.url), set()).update(named)

    def save(self, cursor: Cursor) -> None:
        """Part of the transaction that records the visits."""
        lessons = self._archive.catalog.lessons
        for host, fields in self._fields.items():
            lessons.distrust(cursor, host, lessons.distrusted(host) | fields)
        self._fields.clear()
