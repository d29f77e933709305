"""The forms in which a site map is written: text, HTML, JSON, XML, sitemap, dot, SVG, snippet.

Written piece by piece, however deep the tree is.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from itertools import islice

from letopis.errors import UsageError
from letopis.index.site_maps import MapPage, MapTotals, PageNode, SiteMap
from letopis.model import rfc3339
from letopis.model.printing import printable_json, printable_line
from letopis.tuples import NamedTuple
from letopis.urls import join

SNIPPET_DEPTH = 2
"""Levels below the home page that the snippet shows."""
_SVG_WIDTH, _SVG_ROW = 1200, 22


def readable_size(count: int) -> str:
    """Bytes as people read them."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def page_notes(page: MapPage, spoken: MapLanguage | None = None) -> list[str]:
    """What is shown next to a title."""
    say = (spoken or MapLanguage()).say
    if page.time is None:
        return [say("status {n}", n=page.status) if page.status else say("no answer")]
    pictures = say("{n} images" if page.images != 1 else "{n} image", n=page.images) if page.images else ""
    return [note for note in (page.lang, readable_size(page.bytes), pictures) if note]


def as_text(found: SiteMap) -> Iterator[str]:
    """One line a page, indented by its depth."""
    for node, page in found.named_pages():
        title = printable_line(page.title or "(no title)")
        yield f"{'  ' * node.depth}{title}  {page.url}  [{', '.join(page_notes(page))}]\n"


def as_snippet(found: SiteMap) -> Iterator[str]:
    """A list of the upper levels, to be put into the page that a server shows for a missing one."""
    name = escape(MapLanguage.of(found.sums()).say("Map of {site}", site=found.site))
    yield f'<nav aria-label="{name}" class="letopis-map">\n<ul>\n'
    for node, page in found.named_pages():
        yield f'<li><a href="{escape(page.url)}">{escape(page.title or page.url)}</a>'
        yield "\n<ul>\n" if node.children else "</li>\n" + "</ul></li>\n" * (node.closes - 1)
    yield "</ul>\n</nav>\n"


def as_svg(found: SiteMap) -> Iterator[str]:
    """An icicle: a row a level, the width of a page by the pages below it; titles show when pointed at."""
    pages = list(found.named_pages())
    leaves = _leaf_counts([node for node, _ in pages])
    levels = 1 + max(node.depth for node, _ in pages)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SVG_WIDTH} {levels * _SVG_ROW}" role="img">'
    yield f"<title>{escape(MapLanguage.of(found.sums()).say('Map of {site}', site=found.site))}</title>\n"
    yield '<g font-family="sans-serif" font-size="11" stroke="#fff" stroke-width=".5">\n'
    unit, places = _SVG_WIDTH / leaves[0], [0.0] * (levels + 1)
    for (node, page), count in zip(pages, leaves, strict=True):
        x, width = places[node.depth], count * unit
        places[node.depth] += width
        places[node.depth + 1] = x
        if width >= 0.05:
            yield _svg_box(node, page, x, width)
    yield "</g></svg>\n"


def _leaf_counts(nodes: list[PageNode]) -> list[int]:
    """How many pages without pages below them are under each page, itself included."""
    counts = [0] * len(nodes)
    trail: list[int] = []
    for at, node in enumerate(nodes):
        trail[node.depth :] = [at]
        if not node.children:
            for above in trail:
                counts[above] += 1
    return counts


def _svg_box(node: PageNode, page: MapPage, x: float, width: float) -> str:
    name = _printable(page.title or page.url)
    shown = name[: int(width / 6.5)] if width > 30 else ""
    label = f'<text x="{x + 3:.1f}" y="{node.depth * _SVG_ROW + 15}" fill="#fff" stroke="none">{escape(shown)}</text>'
    colour = f"hsl({(node.depth * 47 + 205) % 360} 45% 42%)" if page.time else "hsl(0 60% 45%)"
    return (
        f'<a href="{escape(page.url)}"><rect x="{x:.2f}" y="{node.depth * _SVG_ROW}" width="{width:.2f}" '
        f'height="{_SVG_ROW - 1}" fill="{colour}"><title>{escape(f"{name}: {page.url}")}</title></rect>'
        f"{label if shown else ''}</a>\n"
    )


_TYPE_WORDS = (
    ("text/html", "page"), ("application/xhtml", "page"), ("application/pdf", "pdf"), ("image/", "image"),
    ("audio/", "sound"), ("video/", "video"), ("application/rss", "feed"), ("application/atom", "feed"),
    ("application/feed", "feed"), ("application/xml", "data"), ("text/xml", "data"), ("application/json", "data"),
    ("text/csv", "data"), ("text/", "text"), ("application/zip", "archive"), ("application/gzip", "archive"),
    ("application/x-tar", "archive"), ("application/msword", "office"), ("application/vnd.", "office"),
    ("application/rtf", "office"),
)  # fmt: skip
_OPEN_LEVELS = 2
"""Levels that are unfolded when the map is opened."""
_SMALL_MAP = 300
"""A map of no more pages is unfolded altogether."""
_TITLE_STROKES = "|·–—"
_ENDING_START = re.compile(rf"[{_TITLE_STROKES}-]\s++(?=\S)")
_MAP_CSS = """
:root { color-scheme: light dark; --ground: #faf8f4; --card: #fff; --ink: #1d1f24; --soft: #5a6070; --line: #dfdbd0;
  --link: #7a2e1d; --bad: #b3261e; --kind: #2f6b4f; --other: #1f5a8f }
@media (prefers-color-scheme: dark) { :root { --ground: #15171b; --card: #1d2026; --ink: #e9e6df; --soft: #a5acba;
  --line: #3a404c; --link: #f2ab95; --bad: #ff9d93; --kind: #7fd3a2; --other: #9cc7f2 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, "DejaVu Sans", sans-serif }
main { max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 3rem }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere }
p, dl { margin: .3rem 0 1rem; color: var(--soft) }
dl { display: flex; flex-wrap: wrap; gap: .5rem 2rem }
dl div { min-width: 4rem } dt { font-size: .8rem } dd { margin: 0; font-size: 1.15rem; color: var(--ink) }
nav { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem 1.2rem }
ul { list-style: none; margin: 0; padding: 0 } li { position: relative; margin: .1rem 0 }
li li { padding-left: 1.5rem }
li li::before, li li::after { content: ""; position: absolute; left: .45rem }
li li::before { top: -.2rem; bottom: -.2rem; border-left: 1px solid var(--line) }
li li:last-child::before { bottom: auto; height: 1.05rem }
li li::after { top: .85rem; width: .8rem; border-top: 1px solid var(--line) }
summary { cursor: pointer; list-style: none } summary::-webkit-details-marker { display: none }
summary::before { content: "▸"; display: inline-block; width: 1em; color: var(--soft) }
[open] > summary::before { content: "▾" }
summary:focus-visible, a:focus-visible { outline: 2px solid var(--other); outline-offset: 2px; border-radius: 2px }
a { color: var(--link); text-decoration: none } a:hover { text-decoration: underline }
.d0, .d1 { font-weight: 600 } .d0 { font-size: 1.1rem }
small { color: var(--soft); font-weight: 400; font-size: .82rem; white-space: nowrap }
b { font-size: .68rem; font-weight: 600; text-transform: uppercase; letter-spacing: .03em; color: var(--other);
  border: 1px solid; border-radius: .25rem; padding: 0 .25rem; vertical-align: .1em }
.gone { color: var(--bad); text-decoration: line-through }
@media print { nav { border: 0; padding: 0 } summary::before { content: "" } }
"""


def type_word(content_type: str) -> str:
    """A short word for a type of content."""
    return next((word for start, word in _TYPE_WORDS if content_type.startswith(start)), "other")


def shared_ending(titles: list[str]) -> str:
    """What most titles of a site end with after a bar or dash, mostly the name of the site; else nothing."""
    endings = Counter(filter(None, map(_ending, titles)))
    ending, count = max(endings.items(), key=lambda pair: pair[1], default=("", 0))
    return ending if 2 * count > len(titles) else ""


def _ending(title: str) -> str:
    """What follows the last bar, or the first dash after it, with the separator; else nothing."""
    start = _ENDING_START.search(title, max(0, *map(title.rfind, _TITLE_STROKES)))
    return title[len(title[: start.start()].rstrip()) :] if start else ""


MAP_TEXTS = {
    "cs": {
        "Map of {site}": "Mapa webu {site}", "As of": "Stav k", "pages": "stránky", "pdf": "pdf", "image": "obrázek",
        "sound": "zvuk", "video": "video", "feed": "kanál", "data": "data", "text": "text", "archive": "archiv",
        "office": "dokument", "other": "jiné", "levels": "úrovně", "together": "celkem", "languages": "jazyky",
        "images shown": "zobrazené obrázky", "with errors": "s chybami", "{n} below": "pod ní {n}",
        "status {n}": "stav {n}", "no answer": "bez odpovědi", "{n} images": "obrázky: {n}",
        "{n} image": "obrázek: {n}",
    }
}  # fmt: skip
"""What a map says to the visitors of a site that is in another language than English."""


class MapLanguage(NamedTuple):
    """The language in which a map speaks: that of most pages of its site where there are texts for it."""

    code: str = "en"

    @classmethod
    def of(cls, sums: MapTotals) -> MapLanguage:
        """That of a map."""
        named = next((name for name, _ in sums.languages.most_common() if name), "")
        code = named.partition("-")[0].lower()
        return cls(code if code in MAP_TEXTS else "en")

    def say(self, text: str, **values: object) -> str:
        """A text in that language."""
        return MAP_TEXTS.get(self.code, {}).get(text, text).format(**values)


def as_html(found: SiteMap) -> Iterator[str]:
    """A page that needs nothing else: what the site is in numbers, then its pages as a tree that folds."""
    sums = found.sums()
    spoken = MapLanguage.of(sums)
    title = escape(spoken.say("Map of {site}", site=found.site))
    yield f'<!DOCTYPE html>\n<html lang="{spoken.code}"><head><meta charset="utf-8"><title>{title}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{_MAP_CSS}</style></head>\n<body><main><h1>{title}</h1>\n"
    yield f'<p>{spoken.say("As of")} <time datetime="{rfc3339(found.at)}">{found.at:%Y-%m-%d %H:%M} UTC</time></p>\n'
    yield from _totals_html(sums, spoken)
    yield f'<nav aria-label="{title}">\n'
    yield from _nested_lists(found.named_pages(), _shared_parts(sums))
    yield "</nav></main></body></html>\n"


def _totals_html(sums: MapTotals, spoken: MapLanguage) -> Iterator[str]:
    """The legend: how many of each kind, in how many levels and languages, how large together."""
    kinds: Counter[str] = Counter()
    for content_type, count in sums.types.items():
        kinds[type_word(content_type)] += count
    named = [(name if name != "page" else "pages", f"{count:,}") for name, count in kinds.most_common()]
    languages = ", ".join(f"{name} {count:,}" for name, count in sums.languages.most_common(5) if name)
    named += [("levels", str(sums.levels + 1)), ("together", readable_size(sums.bytes))]
    named += [("languages", languages)] if languages else []
    named += [("images shown", f"{sums.images:,}")] if sums.images else []
    named += [("with errors", f"{sums.errors:,}")] if sums.errors else []
    said = [(spoken.say(name), value) for name, value in named]
    yield "<dl>" + "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in said)
    yield "</dl>\n"


class _SharedParts(NamedTuple):
    """What is not said again at every page, and how many levels are unfolded."""

    ending: str
    language: str
    unfolded: int
    spoken: MapLanguage


def _shared_parts(sums: MapTotals) -> _SharedParts:
    language = sums.languages.most_common(1)
    unfolded = _OPEN_LEVELS if sums.pages > _SMALL_MAP else sums.levels
    return _SharedParts(shared_ending(sums.titles), language[0][0] if language else "", unfolded, MapLanguage.of(sums))


def _nested_lists(pages: Iterator[tuple[PageNode, MapPage]], common: _SharedParts) -> Iterator[str]:
    """Nested lists; a list opens below a page that has children and closes with its last one."""
    yield "<ul>\n"
    for node, page in pages:
        shown = _page_html(node, page, common)
        if node.children:
            yield f"<li><details{' open' if node.depth < common.unfolded else ''}><summary>{shown}</summary>\n<ul>\n"
        else:
            yield f"<li>{shown}</li>\n" + "</ul></details></li>\n" * (node.closes - 1)
    yield "</ul>\n"


def _page_html(node: PageNode, page: MapPage, common: _SharedParts) -> str:
    name = (page.title.removesuffix(common.ending) if node.depth else page.title) or page.title or page.url
    mark = " gone" if page.time is None else ""
    lang = f' lang="{escape(page.lang)}"' if page.lang else ""
    whole = f' title="{escape(page.title)}"' if name != page.title and page.title else ""
    word = type_word(page.type) if page.time else ""
    badge = f"<b>{common.spoken.say(word)}</b> " if word not in ("", "page") else ""
    link = f'<a class="d{min(node.depth, 2)}{mark}" href="{escape(page.url)}"{lang}{whole}>{escape(name)}</a>'
    return f"{badge}{link} <small>{escape(' · '.join(_notes_beside(node, page, common)))}</small>"


def _notes_beside(node: PageNode, page: MapPage, common: _SharedParts) -> list[str]:
    """What is shown next to a name; a language only if it is not that of most pages."""
    spoken = common.spoken
    notes = [note for note in page_notes(page, spoken) if page.time is None or note != common.language]
    return [*notes, spoken.say("{n} below", n=f"{node.children:,}")] if node.children else notes


SITEMAP_URLS = 50_000
SITEMAP_BYTES = 50_000_000
"""Most addresses and bytes of one sitemap file by the protocol (52,428,800, with room for the frame)."""
_SITEMAP_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def as_json(found: SiteMap) -> Iterator[str]:
    """One nested object."""
    before = ""
    for node, page in found.pages():
        own = {"url": page.url, "title": page.title, "status": page.status, "lang": page.lang, "bytes": page.bytes}
        more = {"type": page.type, "images": page.images, "time": rfc3339(page.time) if page.time else None}
        text = printable_json(json.dumps(own | more, ensure_ascii=False))
        yield f'{before}{text[:-1]}, "children": ['
        yield "]}" * node.closes
        before = ", " if node.closes else ""
    yield "\n"


def as_xml(found: SiteMap) -> Iterator[str]:
    """Nested `page` elements under `map`."""
    yield f"{_XML_DECLARATION}<map site={_xml_attribute(found.site)} at={_xml_attribute(rfc3339(found.at))}>\n"
    for node, page in found.pages():
        fields = ("url", "title", "status", "lang", "bytes", "type", "images")
        attributes = " ".join(f"{name}={_xml_attribute(str(getattr(page, name)))}" for name in fields)
        attributes += f" time={_xml_attribute(rfc3339(page.time))}" if page.time else ""
        yield f"{' ' * min(node.depth + 1, 40)}<page {attributes}>"
        yield "</page>" * node.closes + "\n"
    yield "</map>\n"


def _xml_attribute(text: str) -> str:
    """A quoted attribute value without characters that XML cannot hold."""
    return f'"{escape(_printable(text))}"'.replace("\n", "&#10;").replace("\t", "&#9;")


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() or sign in "\t\n\u00a0" else " " for sign in text)


def as_dot(found: SiteMap) -> Iterator[str]:
    """A directed graph for Graphviz, from each page to those below it."""
    yield f"digraph {json.dumps(found.site)} {{\n  rankdir=LR;\n  node [shape=box];\n"
    trail: list[int] = []
    for node, page in found.named_pages():
        label = _dot_quoted(page.title or page.url)
        yield f"  n{node.page} [label={label}, URL={_dot_quoted(page.url)}];\n"
        if node.depth:
            yield f"  n{trail[node.depth - 1]} -> n{node.page};\n"
        trail[node.depth :] = [node.page]
    yield "}\n"


def _dot_quoted(text: str) -> str:
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
    entries = iter([_sitemap_entry(page) for _, page in found.pages() if page.time is not None])
    parts = list(_sitemap_parts(entries))
    if len(parts) <= 1:
        return [SitemapFile(name, _urlset(parts[0] if parts else []))]
    stem = name.removesuffix(".xml")
    named = [(f"{stem}-{number}.xml", part) for number, part in enumerate(parts, 1)]
    base = found.moment.url(int(found.tree.pages[0]))
    places = (join(base, f"/{part}") or part for part, _ in named)
    index = "".join(f"<sitemap><loc>{escape(place, quote=False)}</loc></sitemap>\n" for place in places)
    head = f'{_XML_DECLARATION}<sitemapindex xmlns="{_SITEMAP_NAMESPACE}">\n{index}</sitemapindex>\n'
    return [SitemapFile(name, head), *(SitemapFile(part, _urlset(lines)) for part, lines in named)]


def _sitemap_entry(page: MapPage) -> str:
    assert page.time is not None
    return f"<url><loc>{escape(page.url, quote=False)}</loc><lastmod>{rfc3339(page.time)}</lastmod></url>\n"


def _sitemap_parts(entries: Iterator[str]) -> Iterator[list[str]]:
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
    return f'{_XML_DECLARATION}<urlset xmlns="{_SITEMAP_NAMESPACE}">\n{"".join(lines)}</urlset>\n'


class MapFormat(NamedTuple):
    """How a map is written; `depth` is its default depth."""

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
