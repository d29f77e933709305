"""The map of a site as nested branches for a page, and as the columns that a plot takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from letopis.graph import MapPage, Outline

MOST_PAGES = 1500
"""Pages that one drawing of a map shows; more would only be scrolled past."""
MOST_DEPTH = 12
_LABEL = 40
_TAIL = re.compile(r"\s+[|·»–—:-]\s+(?=[^|·»–—:-]+$)")


@dataclass(slots=True)
class Branch:
    """A page with those that hang below it. `below` counts all of them, shown or not."""

    page: MapPage
    name: str
    children: list[Branch] = field(default_factory=list)
    below: int = 0


class Drawn(NamedTuple):
    """A tree, how many pages it shows, and how many the map has."""

    root: Branch
    shown: int
    total: int


class Picture(NamedTuple):
    """Columns for a plot: one entry a page, the first is the root."""

    ids: list[str]
    labels: list[str]
    parents: list[str]
    values: list[int]
    texts: list[str]


class Names:
    """Titles without the name of the site, where most titles of the site end with it."""

    def __init__(self, titles: Iterable[str]) -> None:
        known = [title for title in titles if title]
        tails = Counter(parts[1] for title in known if len(parts := _TAIL.split(title, maxsplit=1)) == 2)
        common, count = tails.most_common(1)[0] if tails else ("", 0)
        self._common = common if 2 * count > len(known) else ""

    def of(self, title: str) -> str:
        """What to call a page with this title."""
        parts = _TAIL.split(title, maxsplit=1)
        return parts[0] if self._common and parts[-1] == self._common else title


def branches(found: Outline) -> Drawn:
    """The pages of an outline as they hang below each other."""
    names = Names(row.page.title for row in found.rows)
    trail: list[Branch] = []
    for row in found.rows:
        del trail[row.depth :]
        branch = Branch(row.page, names.of(row.page.title), [], row.below)
        if trail:
            trail[-1].children.append(branch)
        trail.append(branch)
    return Drawn(trail[0], len(found.rows), found.total)


def picture(found: Outline) -> Picture:
    """The same pages with their sizes; ids are numbers, since two pages may share a title."""
    names = Names(row.page.title for row in found.rows)
    drawn = Picture([], [], [], [], [])
    trail: list[str] = []
    for row in found.rows:
        del trail[row.depth :]
        drawn.ids.append(str(row.number))
        drawn.labels.append(cut(names.of(row.page.title) or row.page.url))
        drawn.parents.append(trail[-1] if trail else "")
        drawn.values.append(row.weight)
        drawn.texts.append(row.page.url)
        trail.append(str(row.number))
    return drawn


def cut(text: str, most: int = _LABEL) -> str:
    """A label of at most so many letters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
