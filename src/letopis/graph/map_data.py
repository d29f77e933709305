"""Maps for programs: JSON, XML, sitemaps, dot. Written piece by piece, however deep the tree is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import NamedTuple

from letopis.errors import UsageError
from letopis.graph.site_map import MapPage, SiteMap
from letopis.model import rfc3339
from letopis.urls import join

SITEMAP_URLS = 50_000
SITEMAP_BYTES = 50_000_000
"""Most addresses and bytes of one sitemap file by the protocol (52,428,800, with room for the frame)."""
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def as_json(found: SiteMap) -> Iterator[str]:
    """One nested object."""
    before = ""
    for node, page in found.pages():
        own = {"url": page.url, "title": page.title, "status": page.status, "lang": page.lang, "bytes": page.bytes}
        more = {"type": page.type, "images": page.images, "time": rfc3339(page.time) if page.time else None}
        text = json.dumps(own | more, ensure_ascii=False)
        yield f'{before}{text[:-1]}, "children": ['
        yield "]}" * node.closes
        before = ", " if node.closes else ""
    yield "\n"


def as_xml(found: SiteMap) -> Iterator[str]:
    """Nested `page` elements under `map`."""
    yield f"{_DECLARATION}<map site={_attribute(found.site)} at={_attribute(rfc3339(found.at))}>\n"
    for node, page in found.pages():
        fields = ("url", "title", "status", "lang", "bytes", "type", "images")
        attributes = " ".join(f"{name}={_attribute(str(getattr(page, name)))}" for name in fields)
        attributes += f" time={_attribute(rfc3339(page.time))}" if page.time else ""
        yield f"{' ' * min(node.depth + 1, 40)}<page {attributes}>"
        yield "</page>" * node.closes + "\n"
    yield "</map>\n"


def _attribute(text: str) -> str:
    """A quoted attribute value without characters that XML cannot hold."""
    return f'"{escape(_clean(text))}"'.replace("\n", "&#10;").replace("\t", "&#9;")


def _clean(text: str) -> str:
    return "".join(sign if sign.isprintable() or sign in "\t\n\u00a0" else " " for sign in text)


def as_dot(found: SiteMap) -> Iterator[str]:
    """A directed graph for Graphviz, from each page to those below it."""
    yield f"digraph {json.dumps(found.site)} {{\n  rankdir=LR;\n  node [shape=box];\n"
    trail: list[int] = []
    for node, page in found.pages():
        label = _quoted(page.title or page.url)
        yield f"  n{node.page} [label={label}, URL={_quoted(page.url)}];\n"
        if node.depth:
            yield f"  n{trail[node.depth - 1]} -> n{node.page};\n"
        trail[node.depth :] = [node.page]
    yield "}\n"


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(sign if sign.isprintable() else " " for sign in plain) + '"'


class SitemapFile(NamedTuple):
    """One file of a sitemap; the first is the one to announce."""

    name: str
    text: str


def as_sitemap(found: SiteMap) -> Iterator[str]:
    """One urlset; UsageError when the protocol needs several files."""
    files = sitemap_files(found, "sitemap.xml")
    if len(files) > 1:
        raise UsageError(
            f"{found.site} has more than {SITEMAP_URLS} pages, which need several files; give -o sitemap.xml"
        )
    yield files[0].text


def sitemap_files(found: SiteMap, name: str) -> list[SitemapFile]:
    """The sitemap of all pages, or an index and its parts when there are more than one file may hold."""
    entries = iter([_entry(page) for _, page in found.pages() if page.time is not None])
    parts = list(_parts(entries))
    if len(parts) <= 1:
        return [SitemapFile(name, _urlset(parts[0] if parts else []))]
    stem = name.removesuffix(".xml")
    named = [(f"{stem}-{number}.xml", part) for number, part in enumerate(parts, 1)]
    base = found.moment.url(int(found.tree.pages[0]))
    places = (join(base, f"/{part}") or part for part, _ in named)
    index = "".join(f"<sitemap><loc>{escape(place, quote=False)}</loc></sitemap>\n" for place in places)
    head = f'{_DECLARATION}<sitemapindex xmlns="{_NAMESPACE}">\n{index}</sitemapindex>\n'
    return [SitemapFile(name, head), *(SitemapFile(part, _urlset(lines)) for part, lines in named)]


def _entry(page: MapPage) -> str:
    assert page.time is not None
    return f"<url><loc>{escape(page.url, quote=False)}</loc><lastmod>{rfc3339(page.time)}</lastmod></url>\n"


def _parts(entries: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(islice(entries, SITEMAP_URLS)):
        part: list[str] = []
        size = 0
        for entry in batch:
            if size + len(entry.encode()) > SITEMAP_BYTES:
                yield part
                part, size = [], 0
            part.append(entry)
            size += len(entry.encode())
        yield part


def _urlset(lines: list[str]) -> str:
    return f'{_DECLARATION}<urlset xmlns="{_NAMESPACE}">\n{"".join(lines)}</urlset>\n'
