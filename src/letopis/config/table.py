"""The settings as one table of name, type, default and help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, get_type_hints

from letopis.config.sections import Settings


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: `store.pack_bytes`, its variable, type, default, unit and help."""

    name: str
    type: Any
    default: Any
    unit: str
    help: str

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "LETOPIS_" + self.name.replace(".", "_").upper()


def _rows() -> Iterator[Setting]:
    for section, cls in get_type_hints(Settings).items():
        hints = get_type_hints(cls)
        for row in fields(cls):
            name = f"{section}.{row.name}"
            yield Setting(name, hints[row.name], row.default, row.metadata["unit"], row.metadata["help"])


@cache
def table() -> dict[str, Setting]:
    """Every setting by its full name, in the order of the sections."""
    return {row.name: row for row in _rows()}
