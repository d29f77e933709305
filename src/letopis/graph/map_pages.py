"""Maps for people: an indented text, a snippet for the 404 page, a picture."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from letopis.graph.hierarchy import Node
from letopis.graph.site_map import MapPage, SiteMap

SNIPPET_DEPTH = 2
"""Levels below the home page that the snippet shows."""
_WIDTH, _ROW = 1200, 22


def size(count: int) -> str:
    """Bytes as people read them."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def notes(page: MapPage) -> list[str]:
    """What stands beside a title."""
    if page.time is None:
        return [f"status {page.status}" if page.status else "no answer"]
    pictures = f"{page.images} image{'s' if page.images != 1 else ''}" if page.images else ""
    return [note for note in (page.lang, size(page.bytes), pictures) if note]


def as_text(found: SiteMap) -> Iterator[str]:
    """One line a page, indented by its depth."""
    for node, page in found.pages():
        title = page.title or "(no title)"
        yield f"{'  ' * node.depth}{title}  {page.url}  [{', '.join(notes(page))}]\n"


def as_snippet(found: SiteMap) -> Iterator[str]:
    """A list of the upper levels, to be put into the page that a server shows for a missing one."""
    yield f'<nav aria-label="Map of {escape(found.site)}" class="letopis-map">\n<ul>\n'
    for node, page in found.pages():
        yield f'<li><a href="{escape(page.url)}">{escape(page.title or page.url)}</a>'
        yield "\n<ul>\n" if node.children else "</li>\n" + "</ul></li>\n" * (node.closes - 1)
    yield "</ul>\n</nav>\n"


def as_svg(found: SiteMap) -> Iterator[str]:
    """An icicle: a row a level, the width of a page by the pages below it; titles show when pointed at."""
    pages = list(found.pages())
    leaves = _leaves([node for node, _ in pages])
    levels = 1 + max(node.depth for node, _ in pages)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {levels * _ROW}" role="img">'
    yield f"<title>{escape(f'Map of {found.site}')}</title>\n"
    yield '<g font-family="sans-serif" font-size="11" stroke="#fff" stroke-width=".5">\n'
    unit, places = _WIDTH / leaves[0], [0.0] * (levels + 1)
    for (node, page), count in zip(pages, leaves, strict=True):
        x, width = places[node.depth], count * unit
        places[node.depth] += width
        places[node.depth + 1] = x
        if width >= 0.05:
            yield _box(node, page, x, width)
    yield "</g></svg>\n"


def _leaves(nodes: list[Node]) -> list[int]:
    """How many pages without pages below them each page holds, itself included."""
    counts = [0] * len(nodes)
    trail: list[int] = []
    for at, node in enumerate(nodes):
        trail[node.depth :] = [at]
        if not node.children:
            for above in trail:
                counts[above] += 1
    return counts


def _box(node: Node, page: MapPage, x: float, width: float) -> str:
    name = page.title or page.url
    shown = name[: int(width / 6.5)] if width > 30 else ""
    label = f'<text x="{x + 3:.1f}" y="{node.depth * _ROW + 15}" fill="#fff" stroke="none">{escape(shown)}</text>'
    colour = f"hsl({(node.depth * 47 + 205) % 360} 45% 42%)" if page.time else "hsl(0 60% 45%)"
    return (
        f'<a href="{escape(page.url)}"><rect x="{x:.2f}" y="{node.depth * _ROW}" width="{width:.2f}" '
        f'height="{_ROW - 1}" fill="{colour}"><title>{escape(f"{name}: {page.url}")}</title></rect>'
        f"{label if shown else ''}</a>\n"
    )
