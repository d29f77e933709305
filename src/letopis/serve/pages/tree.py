"""The map of a site as nested branches for a page, and as the columns that a plot takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from letopis.graph import MapPage, SiteMap

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


def branches(found: SiteMap) -> Drawn:
    """The first pages of the map, breadth before depth where it is too large."""
    kept = set(found.tree.pages[:MOST_PAGES].tolist())
    rows = list(found.pages())
    names = Names(page.title for _, page in rows)
    trail: list[Branch] = []
    for node, page in rows:
        del trail[node.depth :]
        for above in trail:
            above.below += 1
        branch = Branch(page, names.of(page.title))
        if trail and node.page in kept:
            trail[-1].children.append(branch)
        trail.append(branch)
    return Drawn(trail[0], min(len(rows), MOST_PAGES), len(rows))


def picture(found: SiteMap) -> Picture:
    """The same pages with their sizes; ids are numbers, since two pages may share a title."""
    kept = set(found.tree.pages[:MOST_PAGES].tolist())
    rows = list(found.pages())
    names = Names(page.title for _, page in rows)
    drawn = Picture([], [], [], [], [])
    trail: list[str] = []
    for node, page in rows:
        del trail[node.depth :]
        if node.page in kept:
            drawn.ids.append(str(node.page))
            drawn.labels.append(cut(names.of(page.title) or page.url))
            drawn.parents.append(trail[-1] if trail else "")
            drawn.values.append(0 if node.children else max(page.bytes, 1))
            drawn.texts.append(page.url)
        trail.append(str(node.page))
    return drawn


def cut(text: str, most: int = _LABEL) -> str:
    """A label of at most so many letters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
