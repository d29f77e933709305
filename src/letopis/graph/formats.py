"""All forms of a map by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from letopis.graph.map_data import as_dot, as_json, as_sitemap, as_xml
from letopis.graph.map_html import as_html
from letopis.graph.map_pages import SNIPPET_DEPTH, as_snippet, as_svg, as_text
from letopis.graph.site_map import SiteMap


class MapFormat(NamedTuple):
    """How a map is written; `depth` is how deep it goes where nobody says."""

    write: Callable[[SiteMap], Iterator[str]]
    media_type: str
    depth: int | None = None


MAP_FORMATS = {
    "text": MapFormat(as_text, "text/plain"),
    "html": MapFormat(as_html, "text/html"),
    "json": MapFormat(as_json, "application/json"),
    "xml": MapFormat(as_xml, "application/xml"),
    "sitemap": MapFormat(as_sitemap, "application/xml"),
    "dot": MapFormat(as_dot, "text/vnd.graphviz"),
    "svg": MapFormat(as_svg, "image/svg+xml"),
    "snippet": MapFormat(as_snippet, "text/html", SNIPPET_DEPTH),
}
