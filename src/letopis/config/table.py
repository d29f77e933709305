"""The settings as one table of name, type, default and help."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from letopis.config.section import Section
from letopis.config.sections import Settings


class Setting(NamedTuple):
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


_SECTIONS: dict[str, type[Section]] = {name: type(part) for name, part in vars(Settings()).items()}


def setting(name: str) -> Setting | None:
    """One setting by its full name; None when there is none. Finds out the types of its section alone."""
    section = name.partition(".")[0]
    return _rows(section).get(name) if section in _SECTIONS else None


@cache
def _rows(section: str) -> dict[str, Setting]:
    cls = _SECTIONS[section]
    hints = get_type_hints(cls)
    rows = (
        Setting(f"{section}.{row.name}", hints[row.name], row.default, row.metadata["unit"], row.metadata["help"])
        for row in fields(cls)
    )
    return {row.name: row for row in rows}


@cache
def table() -> dict[str, Setting]:
    """Every setting by its full name, in the order of the sections."""
    return {name: row for section in _SECTIONS for name, row in _rows(section).items()}
