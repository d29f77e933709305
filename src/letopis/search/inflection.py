"""Base forms by affix rules: a form is taken apart and looked up, as all forms of a language would be millions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from letopis.errors import SettingError
from letopis.search.affixes import Affixes, Rule, parse_affixes
from letopis.search.words import settled

_new = tuple.__new__
"""Makes a named tuple somewhat faster than its constructor; a dictionary has hundreds of thousands."""


class _Entry(NamedTuple):
    """A line of the dictionary; `place` is its order there."""

    place: int
    word: str
    flags: str


class _Step(NamedTuple):
    """A form taken apart: what it was made of, in small letters, and by which rule."""

    stem: str
    rule: Rule


class Inflection:
    """Finds the base form of any form that a dictionary and its affix rules can make.

    A word of the dictionary is its own base. Otherwise the form made by the
    fewest rules wins, then the word that stands first in the dictionary.
    """

    def __init__(self, affixes: Affixes, dictionary: bytes) -> None:
        self._affixes = affixes
        self._entries = _entries(affixes, dictionary)
        rules = [rule for rules in affixes.rules.values() for rule in rules]
        self._suffixes = _by_addition(rule for rule in rules if rule.suffix)
        self._opening = _by_addition(rule for rule in rules if rule.suffix and rule.further)
        self._prefixes = _by_addition(rule for rule in rules if not rule.suffix)

    def __contains__(self, word: str) -> bool:
        """Whether a word in small letters stands in the dictionary."""
        return word in self._entries

    def base(self, form: str) -> str | None:
        """The base of a form in small letters; None where the dictionary does not know it."""
        if any(not self._needs_affix(entry) for entry in self._entries.get(form, ())):
            return form
        for ways in (self._by_one_rule, self._by_two_rules):
            found = min(ways(form), key=lambda entry: entry.place, default=None)
            if found is not None:
                return found.word.lower()
        return None

    def _by_one_rule(self, form: str) -> Iterator[_Entry]:
        for steps in (self._suffixed(form, self._suffixes), self._prefixed(form)):
            for step in steps:
                yield from self._made(form, step)

    def _by_two_rules(self, form: str) -> Iterator[_Entry]:
        """A prefix before a suffixed form, and a suffix after another one."""
        for outer in self._prefixed(form):
            for inner in self._suffixed(outer.stem, self._suffixes):
                if outer.rule.crosses and inner.rule.crosses:
                    yield from self._made(form, inner, outer)
        for outer in self._suffixed(form, self._suffixes):
            for inner in self._suffixed(outer.stem, self._opening):
                if outer.rule.flag in inner.rule.further:
                    yield from self._made(form, inner, outer)

    def _made(self, form: str, inner: _Step, outer: _Step | None = None) -> Iterator[_Entry]:
        """Words of which the rules really make the form: it was taken apart in small letters and without conditions."""
        wanted = {inner.rule.flag} | ({outer.rule.flag} if outer and not outer.rule.suffix else set())
        for entry in self._entries.get(inner.stem, ()):
            if wanted <= set(self._affixes.flags(entry.flags)):
                made = inner.rule.form(entry.word)
                whole = outer.rule.form(made) if outer and made is not None else made
                if whole is not None and whole.lower() == form:
                    yield entry

    def _needs_affix(self, entry: _Entry) -> bool:
        return bool(self._affixes.needs_affix) and self._affixes.needs_affix in self._affixes.flags(entry.flags)

    @staticmethod
    def _suffixed(form: str, rules: dict[str, list[Rule]]) -> Iterator[_Step]:
        for at in range(len(form) + 1):
            for rule in rules.get(form[at:], ()):
                yield _Step(form[:at] + rule.strip.lower(), rule)

    def _prefixed(self, form: str) -> Iterator[_Step]:
        for at in range(len(form) + 1):
            for rule in self._prefixes.get(form[:at], ()):
                yield _Step(rule.strip.lower() + form[at:], rule)


def _by_addition(rules: Iterator[Rule]) -> dict[str, list[Rule]]:
    found: defaultdict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        found[rule.add.lower()].append(rule)
    return dict(found)


def _entries(affixes: Affixes, dictionary: bytes) -> dict[str, list[_Entry]]:
    """The dictionary by its words in small letters."""
    found: dict[str, list[_Entry]] = {}
    lines = settled(dictionary.decode(affixes.charset, "replace").lstrip("\ufeff")).splitlines()
    for place, line in enumerate(lines[1:]):
        head = line if line.isalpha() else _head(line)
        word, _, flags = head.partition("/")
        if word:
            found.setdefault(word.lower(), []).append(_new(_Entry, (place, word, flags)))
    return found


def _head(line: str) -> str:
    """The word with its flags; what stands behind them describes it, a comment says nothing."""
    if line.startswith(("\t", "#")):
        return ""
    parts = line.split(None, 1)
    return parts[0] if parts else ""


def load_inflection(file: Path) -> Inflection:
    """The base forms of an `.aff` file and the `.dic` file beside it."""
    try:
        return Inflection(parse_affixes(file.read_bytes()), file.with_suffix(".dic").read_bytes())
    except OSError as error:
        raise SettingError(
            f"cannot read {error.filename}: {error.strerror}; name an .aff file with its .dic in search.affixes"
        ) from None
