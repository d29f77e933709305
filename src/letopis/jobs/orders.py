"""What a worker is told when it is started: one line of JSON on its standard input.

Settings may hold passwords, which command lines and environments show to others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from letopis.config import Settings, load, table


@dataclass(frozen=True, slots=True)
class Order:
    """Work for a package for about `seconds`, under the name `holder`, with these settings."""

    package: str
    holder: str
    seconds: float
    settings: Settings

    def to_json(self) -> str:
        """One line."""
        return json.dumps([self.package, self.holder, self.seconds, _changed(self.settings)])

    @classmethod
    def from_json(cls, line: str) -> Order:
        """The inverse of `to_json`."""
        package, holder, seconds, changed = json.loads(line)
        return cls(package, holder, seconds, load(None, {}, changed))


def _changed(settings: Settings) -> dict[str, object]:
    """Settings that differ from their defaults."""
    values = {name: getattr(getattr(settings, name.split(".")[0]), name.split(".", 1)[1]) for name in table()}
    return {name: value for name, value in values.items() if value != table()[name].default}
