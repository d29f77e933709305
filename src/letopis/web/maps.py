"""The map of a site as a tree, as a treemap, and as a drawing of the links between its pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit

from letopis.index.page_ranks import SiteDiagram
from letopis.index.site_maps import MapOutline, MapPage
from letopis.lazy import np, npt
from letopis.tuples import NamedTuple
from letopis.web.charts import section_of

MOST_MAP_PAGES = 350
"""Pages that the tree of a map shows; more would only be scrolled past."""
MOST_AREAS, MOST_UPRIGHT = 400, 100
"""The same of its picture, where smaller ones could not be seen, and of that for a phone."""
MOST_MAP_DEPTH = 12
_LABEL = 40
_TREEMAP_DEPTH = 3
_STROKES = "|·»–—:-"


@dataclass(slots=True)
class MapBranch:
    """A page with those that hang below it. `below` counts all of them, shown or not."""

    page: MapPage
    name: str
    children: list[MapBranch] = field(default_factory=list)
    below: int = 0


class MapTree(NamedTuple):
    """A tree, how many pages it shows, and what the map has in all; `unreached` are those that it cannot show."""

    root: MapBranch
    shown: int
    total: int
    files: int
    unreached: int


class TreemapArea(NamedTuple):
    """A page as a rectangle: where it lies, in which colour, what it is called; a label without room is empty."""

    url: str
    name: str
    label: str
    x: float
    y: float
    width: float
    height: float
    colour: int


class TitleShortener:
    """Titles without the name of the site, where most titles of the site end with it."""

    def __init__(self, titles: Iterable[str]) -> None:
        known = [title for title in titles if title]
        tails = Counter(tail for title in known if (tail := _split_title(title)[1]))
        common, count = tails.most_common(1)[0] if tails else ("", 0)
        self._common = common if 2 * count > len(known) else ""

    def of(self, title: str) -> str:
        """What to call a page with this title."""
        head, tail = _split_title(title)
        return head if self._common and tail == self._common else title


def _split_title(title: str) -> tuple[str, str]:
    """What stands before the last stroke and behind it, where blanks part it from both; else the title and nothing."""
    at = max(map(title.rfind, _STROKES))
    if at < 1 or not (title[at - 1].isspace() and title[at + 1 : at + 2].isspace()):
        return title, ""
    return title[:at].rstrip(), title[at + 1 :].strip()


def map_tree(found: MapOutline) -> MapTree:
    """The pages of an outline as they hang below each other."""
    names = TitleShortener(row.page.title for row in found.rows)
    trail: list[MapBranch] = []
    for row in found.rows:
        del trail[row.depth :]
        branch = MapBranch(row.page, names.of(row.page.title), [], row.below)
        if trail:
            trail[-1].children.append(branch)
        trail.append(branch)
    return MapTree(trail[0], len(found.rows), found.total, found.files, found.unreached)


def treemap(found: MapOutline, upright: bool = False) -> list[TreemapArea]:
    """The pages of an outline as rectangles within rectangles, each as large as the pages in it.

    A page that holds others comes before them: drawn in this order, none hides another. Upright it is as large as the
    screen of a phone.
    """
    names = TitleShortener(row.page.title for row in found.rows)
    trail: list[_Weighed] = []
    for row in found.rows:
        del trail[row.depth :]
        node = _Weighed(row.page.url, names.of(row.page.title) or urlsplit(row.page.url).path, row.weight)
        if trail:
            trail[-1].children.append(node)
            for above in trail:
                above.total += row.weight
        trail.append(node)
    areas: list[TreemapArea] = []
    _lay_out(trail[0], _Rectangle(0.0, 0.0, *(UPRIGHT if upright else (WIDTH, HEIGHT))), 0, 0, areas)
    return areas


class _Weighed:
    """A page with those below it and the size of all of them."""

    def __init__(self, url: str, name: str, weight: int) -> None:
        self.url, self.name, self.weight, self.total = url, name, weight, weight
        self.children: list[_Weighed] = []


class _Rectangle(NamedTuple):
    """A place on the picture."""

    x: float
    y: float
    width: float
    height: float


def _lay_out(node: _Weighed, place: _Rectangle, depth: int, colour: int, areas: list[TreemapArea]) -> None:
    """One page and, where there is room, those below it, the largest first."""
    letters = int((place.width - 8) / _LETTER)
    label = cut_label(node.name, letters) if letters >= 4 and place.height >= _LINE + 2 else ""
    x, y, width, height = (round(side, 1) for side in place)
    areas.append(TreemapArea(node.url, node.name, label, x, y, width, height, colour))
    inside = _Rectangle(place.x + 4, place.y + 22, place.width - 8, place.height - 26)
    if depth >= _TREEMAP_DEPTH or inside.width < 12 or inside.height < 12 or not node.children:
        return
    children = sorted((child for child in node.children if child.total > 0), key=lambda child: -child.total)
    weights = [float(child.total) for child in children] + ([float(node.weight)] if node.weight else [])
    for place_in_row, (child, room) in enumerate(zip(children, squarified(weights, inside), strict=False)):
        if room.width >= 3 and room.height >= 3:
            _lay_out(child, room, depth + 1, colour if depth else place_in_row % COLOURS + 1, areas)


def squarified(weights: list[float], place: _Rectangle) -> list[_Rectangle]:
    """Rectangles with the weights as areas that fill a place, each as near to a square as the order allows."""
    total = sum(weights)
    if not total or not weights:
        return []
    scale = place.width * place.height / total
    areas = [weight * scale for weight in weights]
    rooms: list[_Rectangle] = []
    while areas:
        count = _row_length(areas, min(place.width, place.height))
        row, place = _row(areas[:count], place)
        rooms += row
        areas = areas[count:]
    return rooms


def _row_length(areas: list[float], side: float) -> int:
    """How many of the next areas share a row along the shorter side: as many as make them squarer."""
    best, count = float("inf"), 0
    total = 0.0
    for number, area in enumerate(areas, 1):
        total += area
        thick = total / side
        worst = max(max(thick * thick / part, part / (thick * thick)) for part in (areas[0], area) if part)
        if worst > best:
            break
        best, count = worst, number
    return max(count, 1)


def _row(areas: list[float], place: _Rectangle) -> tuple[list[_Rectangle], _Rectangle]:
    """Areas side by side along the shorter side of a place, and what is left of it."""
    total = sum(areas)
    rooms = []
    if place.width >= place.height:
        thick, at = total / place.height if place.height else 0.0, place.y
        for area in areas:
            rooms.append(_Rectangle(place.x, at, thick, area / thick if thick else 0.0))
            at += rooms[-1].height
        return rooms, _Rectangle(place.x + thick, place.y, max(place.width - thick, 0.0), place.height)
    thick, at = total / place.width, place.x
    for area in areas:
        rooms.append(_Rectangle(at, place.y, area / thick if thick else 0.0, thick))
        at += rooms[-1].width
    return rooms, _Rectangle(place.x, place.y + thick, place.width, max(place.height - thick, 0.0))


def cut_label(text: str, most: int = _LABEL) -> str:
    """A label of at most so many letters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


WIDTH, HEIGHT = 1000.0, 620.0
UPRIGHT = 358.0, 560.0
MOST_DOTS = 60
COLOURS = 6
_STEPS = 150
_APART = 46.0
"""Centres of circles are at least about so far from each other: a finger finds one of them."""
_SMALL, _LARGE = 9.0, 24.0
_MARGIN = 40.0
_LETTER, _LINE = 7.4, 17.0
"""What a letter and a line of a label take."""
_DOT_LABEL = 26

Points: TypeAlias = "npt.NDArray[np.float64]"


class PageDot(NamedTuple):
    """A page: where it lies, how large and in which colour; labels that found no room are empty."""

    url: str
    name: str
    label: str
    x: float
    y: float
    radius: float
    colour: int
    rank: float
    links_in: int
    links_out: int

    @property
    def below(self) -> float:
        """Where the label stands."""
        return round(self.y + self.radius + 14, 1)


class LinkLine(NamedTuple):
    """A link between two circles; `both` when it leads there and back."""

    x1: float
    y1: float
    x2: float
    y2: float
    both: bool


class LinkDrawing(NamedTuple):
    """The picture; `keys` names the section of each colour; one without a name stands for all others."""

    dots: list[PageDot]
    lines: list[LinkLine]
    keys: list[tuple[int, str]]
    total: int
    links: int


def draw_links(found: SiteDiagram, named: Callable[[str], str]) -> LinkDrawing:
    """The same picture for the same sketch, always."""
    pairs = sorted({(min(link), max(link)) for link in found.links})
    places = _spread(len(found.urls), np.array(pairs, np.int64).reshape(-1, 2))
    colours = _colours(found.urls)
    dots = _labelled(_dots(found, places, colours, named))
    both = set(found.links)
    lines = [LinkLine(dots[a].x, dots[a].y, dots[b].x, dots[b].y, {(a, b), (b, a)} <= both) for a, b in pairs]
    return LinkDrawing(dots, lines, _keys(colours), found.total, len(found.links))


def _colours(urls: list[str]) -> dict[str, int]:
    """Colours from 1; the sections with the most pages have their own, the others share the last."""
    common = [name for name, _ in Counter(section_of(url) for url in urls).most_common()]
    return {name: min(number, COLOURS) for number, name in enumerate(common, 1)}


def _keys(colours: dict[str, int]) -> list[tuple[int, str]]:
    shared = len(colours) > COLOURS
    return [(at, "" if shared and at == COLOURS else name) for name, at in list(colours.items())[:COLOURS]]


def _dots(found: SiteDiagram, places: Points, colours: dict[str, int], named: Callable[[str], str]) -> list[PageDot]:
    best = max(found.ranks, default=1.0)
    leads, led = Counter(a for a, _ in found.links), Counter(b for _, b in found.links)
    return [
        PageDot(
            url, named(url), "", float(x), float(y), round(_SMALL + (_LARGE - _SMALL) * (rank / best) ** 0.5, 1),
            colours[section_of(url)], rank, led[at], leads[at],
        )
        for at, (url, rank, (x, y)) in enumerate(zip(found.urls, found.ranks, places, strict=True))
    ]  # fmt: skip


def _spread(count: int, pairs: npt.NDArray[np.int64]) -> Points:
    """Places on the sheet: links draw pages together, all pages push each other away."""
    turn = np.arange(count) * 2.399963
    points = np.stack([np.cos(turn), np.sin(turn)], axis=1) * np.sqrt((np.arange(count) + 0.5) / max(count, 1))[:, None]
    rest = 1.6 / max(count, 1) ** 0.5
    degree = np.bincount(pairs.ravel(), minlength=count).clip(1)[:, None]
    for step in range(_STEPS):
        push = _pushes(points, rest) + _pulls(points, pairs, rest) / degree - 0.15 * points
        length = np.linalg.norm(push, axis=1, keepdims=True).clip(1e-9)
        points = points + push / length * np.minimum(length, 0.12 * (1 - step / _STEPS))
    return _apart(_fitted(points))


def _pushes(points: Points, rest: float) -> Points:
    gaps = points[:, None] - points[None, :]
    squares = (gaps**2).sum(axis=2).clip(1e-4)
    np.fill_diagonal(squares, np.inf)
    found: Points = (gaps * (rest**2 / squares)[:, :, None]).sum(axis=1)
    return found


def _pulls(points: Points, pairs: npt.NDArray[np.int64], rest: float) -> Points:
    gaps = points[pairs[:, 1]] - points[pairs[:, 0]]
    force = gaps * (np.sqrt((gaps**2).sum(axis=1)) / rest)[:, None]
    sums = [
        np.bincount(pairs[:, 0], force[:, axis], len(points)) - np.bincount(pairs[:, 1], force[:, axis], len(points))
        for axis in (0, 1)
    ]
    return np.stack(sums, axis=1)


def _fitted(points: Points) -> Points:
    """Stretched over the sheet."""
    if not len(points):
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    share = np.where(high - low > 1e-9, (points - low) / np.maximum(high - low, 1e-9), 0.5)
    found: Points = _MARGIN + share * (np.array([WIDTH, HEIGHT]) - 2 * _MARGIN)
    return found


def _apart(points: Points) -> Points:
    """Neighbours that lie on each other move aside, within the sheet."""
    edge = np.array([WIDTH, HEIGHT]) - _MARGIN
    for _ in range(80):
        gaps = points[:, None] - points[None, :]
        far = np.sqrt((gaps**2).sum(axis=2))
        np.fill_diagonal(far, np.inf)
        short = np.maximum(_APART - far, 0) / 2
        if not short.any():
            break
        points = np.clip(points + (gaps / far.clip(1e-6)[:, :, None] * short[:, :, None]).sum(axis=1), _MARGIN, edge)
    return points.round(1)


def _labelled(dots: list[PageDot]) -> list[PageDot]:
    """The same with names where they cover neither a circle nor another name; higher ranks choose first."""
    taken = [(dot.x - dot.radius, dot.y - dot.radius, dot.x + dot.radius, dot.y + dot.radius) for dot in dots]
    found = []
    for dot in dots:
        label = cut_label(dot.name, _DOT_LABEL)
        half, top = len(label) * _LETTER / 2, dot.y + dot.radius + 1
        box = (dot.x - half, top, dot.x + half, top + _LINE)
        inside = box[0] >= 0 and box[2] <= WIDTH and box[3] <= HEIGHT
        if inside and not any(_meet(box, other) for other in taken):
            taken.append(box)
            found.append(dot._replace(label=label))
        else:
            found.append(dot)
    return found


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
