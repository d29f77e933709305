"""Affix files of hunspell and ispell-like dictionaries: the rules of an `.aff` file.

Read are SFX and PFX rules with their conditions, cross products and further
classes, FLAG long and num, AF aliases, NEEDAFFIX and the SET charset. What
only spelling needs (suggestions, compounds, replacements) is passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from letopis.errors import SettingError


class Rule(NamedTuple):
    """One way to make a form: take `strip` off an end that fits `condition`, put `add` there.

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
            added, _, further = add.partition("/")
            condition = _condition(rest[0] if rest else ".", end == "SFX")
            if condition is not None:
                sides = (_text(strip), _text(added), condition, end == "SFX", crosses[flag])
                found.rules[flag].append(Rule(flag, *sides, tuple(found.flags(further))))


def _text(part: str) -> str:
    return "" if part == "0" else part


@lru_cache(4096)
def _condition(text: str, suffix: bool) -> re.Pattern[str] | None:
    pattern = text.replace("-", r"\-")
    try:
        return re.compile(f"(?:{pattern})$" if suffix else f"^(?:{pattern})")
    except re.error:
        return None
