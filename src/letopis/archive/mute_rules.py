"""Rules that people set for changes on a page or a whole host: mute a text, mute what follows it, never mute it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

from letopis.archive.archive import Archive
from letopis.catalog.resources import MuteRuleRow, MuteRuleRows
from letopis.change.fingerprints import digits_folded
from letopis.change.noise import MuteRules
from letopis.errors import UsageError
from letopis.model import from_millis, to_millis
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of

MuteKind = Literal["always", "behind", "never"]
MAX_RULES = 1000
"""Rules of one place."""


class MuteRule(NamedTuple):
    """One rule. `place` is a URL or a host; numbers in `text` match any number."""

    place: str
    kind: MuteKind
    text: str
    added: datetime


class MuteRuleBook:
    """The rules of an archive; they apply to verdicts from then on, recorded ones do not change."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._rows = MuteRuleRows(archive.catalog.database)

    def rules(self, *places: str) -> list[MuteRule]:
        """The rules of some places, or all rules if none is named."""
        return list(map(_rule, self._rows.of(*places)))

    def add(self, place: str, kind: MuteKind, text: str) -> MuteRule:
        """Adds a rule; it replaces one of the same text at the same place."""
        self._archive.require_writable()
        form, known = _form(text), self._rows.of(place)
        if len(known) >= MAX_RULES and form not in {row.form for row in known}:
            raise UsageError(
                f"{place} has {MAX_RULES} rules already; remove some, or choose parts of the page by a filter"
            )
        row = MuteRuleRow(place, form, kind, " ".join(text.split())[:500], to_millis(self._archive.clock()))
        self._rows.add(row)
        return _rule(row)

    def find(self, place: str, text: str) -> MuteRule | None:
        """The rule of a text at a place."""
        form = _form(text)
        return next((_rule(row) for row in self._rows.of(place) if row.form == form), None)

    def remove(self, place: str, text: str) -> bool:
        """Removes the rule of this text at the place; returns whether there was one."""
        self._archive.require_writable()
        return self._rows.remove(place, _form(text))


def mute_rules_of(archive: Archive, url: str) -> MuteRules:
    """What applies to a page: its own rules, and those of its host for texts without an own rule."""
    rows = MuteRuleRows(archive.catalog.database).of(host_of(url), url)
    kinds = {row.form: row.kind for row in sorted(rows, key=lambda row: row.place == url)}
    return MuteRules(*(frozenset(form for form, kind in kinds.items() if kind == one) for one in get_args(MuteKind)))


def _form(text: str) -> str:
    form = digits_folded(text)
    if not form:
        raise UsageError("a rule needs a text with letters or digits")
    return form


def _rule(row: MuteRuleRow) -> MuteRule:
    kind: MuteKind = next(one for one in get_args(MuteKind) if one == row.kind)
    return MuteRule(row.place, kind, row.example, from_millis(row.added))
