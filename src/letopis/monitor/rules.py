"""When a watch speaks up, and which differences interest it: small values with a text form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from letopis.errors import UsageError
from letopis.model import parse_duration

_HINT = "write changed, status, unavailable:3, recovered, redirect or unchanged:7d, with commas between them"


class RuleKind(StrEnum):
    """What a watch may wait for; the words of `--when`."""

    CHANGED = "changed"
    STATUS = "status"
    UNAVAILABLE = "unavailable"
    RECOVERED = "recovered"
    REDIRECT = "redirect"
    UNCHANGED = "unchanged"


class Rule(NamedTuple):
    """One cause for an alert. `amount` counts failures in a row (unavailable) or seconds (unchanged)."""

    kind: RuleKind
    amount: float = 0.0

    def __str__(self) -> str:
        """As `--when` takes it."""
        if self.kind is RuleKind.UNAVAILABLE:
            return f"{self.kind}:{self.amount:g}"
        return f"{self.kind}:{self.amount:.15g}s" if self.kind is RuleKind.UNCHANGED else str(self.kind)


DEFAULT_RULES = (Rule(RuleKind.CHANGED),)


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules of `--when`; UsageError says what is allowed."""
    rules = [_rule(part.strip()) for part in text.split(",") if part.strip()]
    if not rules:
        raise UsageError(f"'{text}' names no cause for an alert; {_HINT}")
    return tuple(dict.fromkeys(rules))


def _rule(text: str) -> Rule:
    name, colon, amount = text.partition(":")
    if name not in list(RuleKind):
        raise UsageError(f"'{text}' is no cause for an alert; {_HINT}")
    kind = RuleKind(name)
    if kind is RuleKind.UNAVAILABLE:
        return Rule(kind, float(_count(amount) if colon else 1))
    if kind is RuleKind.UNCHANGED:
        if not colon:
            raise UsageError("'unchanged' needs a time, such as unchanged:7d")
        return Rule(kind, parse_duration(amount))
    if colon:
        raise UsageError(f"'{name}' takes no amount; {_HINT}")
    return Rule(kind)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10_000):
        raise UsageError(f"'unavailable:{text}' needs a number of failures in a row, such as unavailable:3")
    return int(text)


class ConditionKind(StrEnum):
    """What a difference must hold to be worth an alert."""

    CONTAINS = "contains"
    ADDS = "adds"
    REMOVES = "removes"
    MORE_THAN = "more-than"


@dataclass(frozen=True, slots=True)
class Condition:
    """One demand on a difference: a text in it (case aside), or the least share of the page in per cent."""

    kind: ConditionKind
    value: str

    def __post_init__(self) -> None:
        if self.kind is ConditionKind.MORE_THAN:
            self.per_cent()
        elif not self.value:
            raise UsageError(f"--{self.kind} needs a text to look for")

    def per_cent(self) -> float:
        """The number of a `more-than`."""
        try:
            share = float(self.value.strip().removesuffix("%"))
        except ValueError:
            share = -1.0
        if not 0 <= share <= 100:
            raise UsageError(f"--more-than takes per cent from 0 to 100, not '{self.value}'")
        return share

    def holds(self, added: Iterable[str], removed: Iterable[str], share: float) -> bool:
        """Whether a difference (`share` 0..1 of the page) is what this asks for."""
        if self.kind is ConditionKind.MORE_THAN:
            return share * 100 > self.per_cent()
        wanted = self.value.casefold()
        lines = {
            ConditionKind.CONTAINS: [*added, *removed],
            ConditionKind.ADDS: added,
            ConditionKind.REMOVES: removed,
        }[self.kind]
        return any(wanted in line.casefold() for line in lines)
