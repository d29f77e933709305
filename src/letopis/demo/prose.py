"""Sentences and paragraphs out of a vocabulary and a generator of chance."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

from letopis.demo.chance import pick
from letopis.demo.languages import CASES, Language


@cache
def _steps(pattern: str) -> tuple[tuple[str, str], ...]:
    """A pattern as pairs of literal text and the slot that follows it."""
    parts = pattern.replace("{", "}").split("}")
    if len(parts) % 2:
        parts.append("")
    return tuple(zip(parts[::2], parts[1::2], strict=True))


def _phrase(language: Language, slot: str, chance: Random) -> str:
    case = CASES.index(slot)
    noun = pick(chance, language.nouns)
    return f"{pick(chance, language.stems)}{language.endings[noun[0]][case]} {noun[case + 1]}"


def _filled(language: Language, slot: str, chance: Random) -> str:
    if slot in CASES:
        return _phrase(language, slot, chance)
    if slot == "y":
        return str(1960 + int(chance.random() * 66))
    return pick(chance, {"v": language.verbs, "d": language.adverbs, "p": language.people}[slot])


def _words(language: Language, pattern: str, chance: Random) -> Iterator[str]:
    for literal, slot in _steps(pattern):
        yield literal
        if slot:
            yield _filled(language, slot, chance)


def filled(language: Language, pattern: str, chance: Random) -> str:
    """The pattern with every slot filled and the first letter raised."""
    text = "".join(_words(language, pattern, chance))
    return text[:1].upper() + text[1:]


def paragraph(language: Language, chance: Random) -> str:
    """Three to seven sentences."""
    count = 3 + int(chance.random() * 5)
    return " ".join(filled(language, pick(chance, language.patterns), chance) for _ in range(count))


def title(language: Language, chance: Random) -> str:
    """A heading without a full stop."""
    return filled(language, pick(chance, language.titles), chance)
