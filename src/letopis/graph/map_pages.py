"""Maps for people: an indented text, a page, a snippet for the 404 page, a picture."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from letopis.graph.hierarchy import Node
from letopis.graph.site_map import MapPage, SiteMap
from letopis.model import rfc3339

_ICONS = (
    ("text/html", "📄"), ("application/xhtml", "📄"), ("application/pdf", "📕"), ("image/", "🖼"), ("text/", "📝"),
    ("audio/", "🔊"), ("video/", "🎬"), ("application/zip", "🗜"), ("application/gzip", "🗜"),
    ("application/rss", "📰"), ("application/atom", "📰"), ("application/xml", "🗂"),
)  # fmt: skip
_STYLE = """
:root { color-scheme: light dark } body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
ul { list-style: none; padding-left: 1.25rem; border-left: 1px solid color-mix(in srgb, currentcolor 25%, transparent) }
main > ul { border: 0; padding: 0 } small { opacity: .7 } .error { text-decoration: line-through }
"""  # noqa: E501
SNIPPET_DEPTH = 2
"""Levels below the home page that the snippet shows."""
_WIDTH, _ROW = 1200, 22


def icon(content_type: str) -> str:
    """A sign for a type of content."""
    return next((sign for start, sign in _ICONS if content_type.startswith(start)), "📦")


def size(count: int) -> str:
    """Bytes as people read them."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def _notes(page: MapPage) -> list[str]:
    """What stands beside a title."""
    if page.time is None:
        return [f"status {page.status}" if page.status else "no answer"]
    pictures = f"{page.images} image{'s' if page.images != 1 else ''}" if page.images else ""
    return [note for note in (page.lang, size(page.bytes), pictures) if note]


def as_text(found: SiteMap) -> Iterator[str]:
    """One line a page, indented by its depth."""
    for node, page in found.pages():
        title = page.title or "(no title)"
        yield f"{'  ' * node.depth}{title}  {page.url}  [{', '.join(_notes(page))}]\n"


def _item(page: MapPage) -> str:
    name = escape(page.title or page.url)
    sign = f'<span aria-hidden="true">{icon(page.type)}</span> ' if page.time else ""
    mark = "" if page.time else ' class="error"'
    lang = f' lang="{escape(page.lang)}"' if page.lang else ""
    link = f'<a href="{escape(page.url)}"{mark}{lang}>{name}</a>'
    return f"<li>{sign}{link} <small>{escape(' · '.join(_notes(page)))}</small>"


def _nested(pages: Iterator[tuple[Node, MapPage]]) -> Iterator[str]:
    """Nested lists; a list opens below a page that has children and closes with its last one."""
    yield "<ul>\n"
    for node, page in pages:
        yield _item(page)
        yield "\n<ul>\n" if node.children else "</li>\n" + "</ul></li>\n" * (node.closes - 1)
    yield "</ul>\n"


def as_html(found: SiteMap) -> Iterator[str]:
    """A page that needs nothing else."""
    title = escape(f"Map of {found.site}")
    yield f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{_STYLE}</style></head>\n<body><main><h1>{title}</h1>\n<p>As of {rfc3339(found.at)}.</p>\n"
    yield from _nested(found.pages())
    yield "</main></body></html>\n"


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
