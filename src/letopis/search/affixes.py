"""Affix files of hunspell and ispell-like dictionaries: from `.aff` and `.dic` to base forms.

Read are SFX and PFX rules with their conditions, cross products, FLAG long
and num, AF aliases, NEEDAFFIX and the SET charset. What only spelling needs
(suggestions, compounds, replacements) is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from letopis.errors import SettingError
from letopis.search.words import settled

_MOST_FORMS = 2000
"""Forms of one word; a broken file must not make more."""


class Rule(NamedTuple):
    """One way to make a form: take `strip` off an end that fits `condition`, put `add` there."""

    strip: str
    add: str
    condition: re.Pattern[str]
    suffix: bool
    crosses: bool

    def form(self, word: str) -> str | None:
        """The form, or None where the rule does not fit the word."""
        if not self.condition.search(word):
            return None
        if self.suffix:
            return word.removesuffix(self.strip) + self.add if word.endswith(self.strip) else None
        return self.add + word.removeprefix(self.strip) if word.startswith(self.strip) else None


@dataclass(slots=True)
class Affixes:
    """The rules of one `.aff` file by their flags."""

    charset: str = "iso-8859-1"
    flag_form: str = "char"
    needs_affix: str = ""
    aliases: list[list[str]] = field(default_factory=list)
    rules: dict[str, list[Rule]] = field(default_factory=dict)

    def flags(self, text: str) -> list[str]:
        """The flags behind the stroke of a dictionary line."""
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

    def forms(self, word: str, flags: Iterable[str]) -> Iterator[str]:
        """The word and all forms that its flags make of it; prefixes also before suffixed forms."""
        rules = [rule for flag in flags for rule in self.rules.get(flag, ())]
        ends = [(rule, form) for rule in rules if rule.suffix and (form := rule.form(word)) is not None]
        starts = [rule for rule in rules if not rule.suffix]
        yield word
        yield from (form for _, form in ends)
        for start in starts:
            stems = [word, *(form for rule, form in ends if rule.crosses and start.crosses)]
            yield from (form for stem in stems if (form := start.form(stem)) is not None)


def parse_affixes(data: bytes) -> Affixes:
    """Reads the rules of an `.aff` file; lines that say something else are passed over."""
    found = Affixes()
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
        raise SettingError(f"the affix file names an unknown charset '{name}'; convert it to UTF-8") from None
    return name


def _take_line(found: Affixes, parts: list[str], crosses: dict[str, bool]) -> None:
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
            rule = _rule(strip, add, rest[0] if rest else ".", end == "SFX", crosses[flag])
            if rule is not None:
                found.rules[flag].append(rule)


def _rule(strip: str, add: str, condition: str, suffix: bool, crosses: bool) -> Rule | None:
    added = add.partition("/")[0]
    pattern = condition.replace("-", r"\-")
    try:
        compiled = re.compile(f"(?:{pattern})$" if suffix else f"^(?:{pattern})")
    except re.error:
        return None
    return Rule("" if strip == "0" else strip, "" if added == "0" else added, compiled, suffix, crosses)


def base_forms(affixes: Affixes, dictionary: bytes) -> dict[str, str]:
    """Lower-case forms with their base words. A word that stands in the dictionary itself is its own base."""
    found: dict[str, str] = {}
    entries = list(_entries(affixes, dictionary))
    for word, flags in entries:
        if affixes.needs_affix not in flags or not affixes.needs_affix:
            found[word.lower()] = word.lower()
    for word, flags in entries:
        for count, form in enumerate(affixes.forms(word, flags)):
            if count >= _MOST_FORMS:
                break
            found.setdefault(form.lower(), word.lower())
    return found


def _entries(affixes: Affixes, dictionary: bytes) -> Iterator[tuple[str, list[str]]]:
    text = settled(dictionary.decode(affixes.charset, "replace").lstrip("\ufeff"))
    for line in text.splitlines()[1:]:
        head = re.split(r"\s", line, maxsplit=1)[0] if not line.startswith("\t") else ""
        word, _, flags = head.partition("/")
        if word and not word.startswith("#"):
            yield word, affixes.flags(flags)


def load_base_forms(file: Path) -> dict[str, str]:
    """Base forms of an `.aff` file and the `.dic` file beside it."""
    try:
        return base_forms(parse_affixes(file.read_bytes()), file.with_suffix(".dic").read_bytes())
    except OSError as error:
        raise SettingError(
            f"cannot read {error.filename}: {error.strerror}; name an .aff file with its .dic in search.affixes"
        ) from None
