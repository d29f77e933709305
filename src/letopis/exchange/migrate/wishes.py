"""Standing checks of other tools, as far as they have a counterpart here."""

from __future__ import annotations

from dataclasses import dataclass

MOST_WISHES = 100_000


@dataclass(frozen=True, slots=True)
class Wish:
    """A page to watch: seconds between looks (None: as the settings say), and filters (kind, expression).

    `left_out` names what has no counterpart.
    """

    url: str
    every: float | None = None
    filters: tuple[tuple[str, str], ...] = ()
    tag: str = ""
    paused: bool = False
    left_out: tuple[str, ...] = ()
