"""Rows of the catalogue as values, and who can answer a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from letopis.model import Outcome


class Reader(Protocol):
    """A Database, or a Cursor inside a transaction."""

    def one(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row, or None."""

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows."""


class ResourceRow(NamedTuple):
    """A URL we know. `newest` is the id of its newest version, `checked` its last check."""

    id: int
    url: str
    host: int
    versions: int
    newest: int | None
    checked: int | None


class ContentRow(NamedTuple):
    """Bytes by digest, and where they lie."""

    id: int
    identity: int
    sha1: bytes
    raw_bytes: int
    stored_bytes: int
    method: str
    pack: int
    place: int
    slot: int


class VersionRow(NamedTuple):
    """A version, which is also the check that found it."""

    id: int
    resource: int
    number: int
    time: int
    content: int
    head: int
    status: int
    meaningful: int | None
    extra: str | None


class CaptureRow(NamedTuple):
    """A check that found no new version. `number` is the version current after it."""

    resource: int
    time: int
    status: int
    outcome: int
    number: int | None
    head: int | None
    content: int | None
    extra: str | None


OUTCOMES = (
    Outcome.NEW,
    Outcome.CHANGED,
    Outcome.UNCHANGED,
    Outcome.UNAVAILABLE,
    Outcome.TOO_LARGE,
    Outcome.REFUSED,
)
"""Outcomes by the number that is stored; only ever appended to."""

OUTCOME_CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}
