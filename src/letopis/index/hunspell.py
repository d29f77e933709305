"""Base forms by hunspell dictionaries: a form is split by the `.aff` file and looked up in the `.dic`.

Read are SFX and PFX rules with their conditions, cross products and further classes, FLAG long and num, AF aliases,
NEEDAFFIX and the SET charset. What only spelling needs (suggestions, compounds, replacements) is skipped.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from letopis.errors import SettingError
from letopis.index.page_text import nfc
from letopis.tuples import NamedTuple


class AffixRule(NamedTuple):
    """One way to derive a form: remove `strip` from an end that matches `condition`, then add `add`.

    Words with `flag` have the form; the form itself has the flags of `further`.
    """

    flag: str
    strip: str
    add: str
    condition: re.Pattern[str]
    suffix: bool
    crosses: bool
    further: tuple[str, ...] = ()

    def form(self, word: str) -> str | None:
        """The form, or None if the rule does not apply to the word."""
        if not self.condition.search(word):
            return None
        if self.suffix:
            return word.removesuffix(self.strip) + self.add if word.endswith(self.strip) else None
        return self.add + word.removeprefix(self.strip) if word.startswith(self.strip) else None


@dataclass(slots=True)
class AffixFile:
    """The rules of one `.aff` file by their flags."""

    charset: str = "iso-8859-1"
    flag_form: str = "char"
    needs_affix: str = ""
    aliases: list[list[str]] = field(default_factory=list)
    rules: dict[str, list[AffixRule]] = field(default_factory=dict)

    def flags(self, text: str) -> list[str]:
        """The flags after the slash of a dictionary line."""
        if self.aliases and text.isdigit():
            number = int(text)
            return self.aliases[number - 1] if 0 < number <= len(self.aliases) else []
        return self.split_flags(text)

    def split_flags(self, text: str) -> list[str]:
        """Flags as the file writes them: single characters, pairs, or numbers with commas."""
        if self.flag_form == "long":
            return [text[at : at + 2] for at in range(0, len(text) - 1, 2)]
        if self.flag_form == "num":
            return [part for part in text.split(",") if part]
        return list(text)


def parse_affix_file(data: bytes) -> AffixFile:
    """Reads the rules of an `.aff` file; other lines are skipped."""
    found = AffixFile()
    text = data.decode(_charset(data), "replace").lstrip("\ufeff")
    crosses: dict[str, bool] = {}
    for line in text.splitlines():
        parts = line.split()
        if len(parts) >= 2:
            _take_line(found, parts, crosses)
    found.charset = _charset(data)
    return found


def _charset(data: bytes) -> str:
    match = re.search(rb"^\xef?\xbb?\xbf?SET\s+(\S+)", data, re.MULTILINE)
    name = match[1].decode("ascii", "replace") if match else "iso-8859-1"
    name = re.sub(r"^microsoft-", "", name.lower())
    try:
        "".encode(name)
    except LookupError:
        raise SettingError(f"the affix file uses the unknown charset '{name}'; convert it to UTF-8") from None
    return name


def _take_line(found: AffixFile, parts: list[str], crosses: dict[str, bool]) -> None:
    match parts:
        case ["FLAG", form, *_]:
            found.flag_form = {"UTF-8": "char"}.get(form, form)
        case ["NEEDAFFIX" | "PSEUDOROOT", flag, *_]:
            found.needs_affix = flag
        case ["AF", flags, *_] if not (flags.isdigit() and not found.aliases):
            found.aliases.append(found.split_flags(flags))
        case ["SFX" | "PFX", flag, "Y" | "N" as cross, count, *_] if count.isdigit() and flag not in found.rules:
            crosses[flag] = cross == "Y"
            found.rules[flag] = []
        case ["SFX" | "PFX" as end, flag, strip, add, *rest] if flag in found.rules:
            added, _, further = add.partition("/")
            condition = _condition(rest[0] if rest else ".", end == "SFX")
            if condition is not None:
                sides = (_affix_text(strip), _affix_text(added), condition, end == "SFX", crosses[flag])
                found.rules[flag].append(AffixRule(flag, *sides, tuple(found.flags(further))))


def _affix_text(part: str) -> str:
    return "" if part == "0" else part


@lru_cache(4096)
def _condition(text: str, suffix: bool) -> re.Pattern[str] | None:
    pattern = text.replace("-", r"\-")
    try:
        return re.compile(f"(?:{pattern})$" if suffix else f"^(?:{pattern})")
    except re.error:
        return None


_new_tuple = tuple.__new__
"""Makes a named tuple somewhat faster than its constructor; a dictionary has hundreds of thousands."""


class _DictionaryEntry(NamedTuple):
    """A line of the dictionary; `place` is its order there."""

    place: int
    word: str
    flags: str


class _Derivation(NamedTuple):
    """A split form: what it was derived from, in small letters, and by which rule."""

    stem: str
    rule: AffixRule


class HunspellDictionary:
    """Finds the base form of any form that a dictionary and its affix rules can make.

    A word of the dictionary is its own base. Otherwise the form derived by the fewest rules wins, then the first word
    in the dictionary.
    """

    def __init__(self, affixes: AffixFile, dictionary: bytes) -> None:
        self._affixes = affixes
        self._entries = _entries(affixes, dictionary)
        rules = [rule for rules in affixes.rules.values() for rule in rules]
        self._suffixes = _by_addition(rule for rule in rules if rule.suffix)
        self._opening = _by_addition(rule for rule in rules if rule.suffix and rule.further)
        self._prefixes = _by_addition(rule for rule in rules if not rule.suffix)

    def __contains__(self, word: str) -> bool:
        """Whether a word in small letters is in the dictionary."""
        return word in self._entries

    def base(self, form: str) -> str | None:
        """The base of a form in small letters; None if the dictionary does not know it."""
        if any(not self._needs_affix(entry) for entry in self._entries.get(form, ())):
            return form
        for ways in (self._by_one_rule, self._by_two_rules):
            found = min(ways(form), key=lambda entry: entry.place, default=None)
            if found is not None:
                return found.word.lower()
        return None

    def _by_one_rule(self, form: str) -> Iterator[_DictionaryEntry]:
        for steps in (self._suffixed(form, self._suffixes), self._prefixed(form)):
            for step in steps:
                yield from self._made(form, step)

    def _by_two_rules(self, form: str) -> Iterator[_DictionaryEntry]:
        """A prefix before a suffixed form, and a suffix after another one."""
        for outer in self._prefixed(form):
            for inner in self._suffixed(outer.stem, self._suffixes):
                if outer.rule.crosses and inner.rule.crosses:
                    yield from self._made(form, inner, outer)
        for outer in self._suffixed(form, self._suffixes):
            for inner in self._suffixed(outer.stem, self._opening):
                if outer.rule.flag in inner.rule.further:
                    yield from self._made(form, inner, outer)

    def _made(self, form: str, inner: _Derivation, outer: _Derivation | None = None) -> Iterator[_DictionaryEntry]:
        """Words of which the rules really make the form: it was taken apart in small letters and without conditions."""
        wanted = {inner.rule.flag} | ({outer.rule.flag} if outer and not outer.rule.suffix else set())
        for entry in self._entries.get(inner.stem, ()):
            if wanted <= set(self._affixes.flags(entry.flags)):
                made = inner.rule.form(entry.word)
                whole = outer.rule.form(made) if outer and made is not None else made
                if whole is not None and whole.lower() == form:
                    yield entry

    def _needs_affix(self, entry: _DictionaryEntry) -> bool:
        return bool(self._affixes.needs_affix) and self._affixes.needs_affix in self._affixes.flags(entry.flags)

    @staticmethod
    def _suffixed(form: str, rules: dict[str, list[AffixRule]]) -> Iterator[_Derivation]:
        for at in range(len(form) + 1):
            for rule in rules.get(form[at:], ()):
                yield _Derivation(form[:at] + rule.strip.lower(), rule)

    def _prefixed(self, form: str) -> Iterator[_Derivation]:
        for at in range(len(form) + 1):
            for rule in self._prefixes.get(form[:at], ()):
                yield _Derivation(rule.strip.lower() + form[at:], rule)


def _by_addition(rules: Iterator[AffixRule]) -> dict[str, list[AffixRule]]:
    found: defaultdict[str, list[AffixRule]] = defaultdict(list)
    for rule in rules:
        found[rule.add.lower()].append(rule)
    return dict(found)


def _entries(affixes: AffixFile, dictionary: bytes) -> dict[str, list[_DictionaryEntry]]:
    """The dictionary by its words in small letters."""
    found: dict[str, list[_DictionaryEntry]] = {}
    lines = nfc(dictionary.decode(affixes.charset, "replace").lstrip("\ufeff")).splitlines()
    for place, line in enumerate(lines[1:]):
        head = line if line.isalpha() else _word_with_flags(line)
        word, _, flags = head.partition("/")
        if word:
            found.setdefault(word.lower(), []).append(_new_tuple(_DictionaryEntry, (place, word, flags)))
    return found


def _word_with_flags(line: str) -> str:
    """The word with its flags; descriptions after them and comments are ignored."""
    if line.startswith(("\t", "#")):
        return ""
    parts = line.split(None, 1)
    return parts[0] if parts else ""


def load_hunspell(file: Path) -> HunspellDictionary:
    """The base forms of an `.aff` file and the `.dic` file next to it."""
    try:
        return HunspellDictionary(parse_affix_file(file.read_bytes()), file.with_suffix(".dic").read_bytes())
    except OSError as error:
        raise SettingError(
            f"cannot read {error.filename}: {error.strerror}; name an .aff file with its .dic in search.affixes"
        ) from None
