"""What an import did: what came in, what was there already, what was refused and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MOST_EXAMPLES = 20
MOST_REASONS = 200
_OTHERS = "other reasons"


@dataclass(slots=True)
class ImportReport:
    """`same` counts captures that the archive already had; the first refusals are named."""

    records: int = 0
    versions: int = 0
    checks: int = 0
    same: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def refuse(self, reason: str, where: str) -> None:
        """Counts a record that was left out; a source that finds ever new reasons fills no memory."""
        known = reason in self.refused or len(self.refused) < MOST_REASONS
        self.refused[reason if known else _OTHERS] += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(f"{where[:300]}: {reason}")
