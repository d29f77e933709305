"""The map as a page for visitors and webmasters: needs nothing else, folds, prints, dark and light."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from letopis.graph.hierarchy import Node
from letopis.graph.map_pages import notes, size
from letopis.graph.site_map import MapPage, SiteMap, Sums
from letopis.model import rfc3339

_KINDS = (
    ("text/html", "page"), ("application/xhtml", "page"), ("application/pdf", "pdf"), ("image/", "image"),
    ("audio/", "sound"), ("video/", "video"), ("application/rss", "feed"), ("application/atom", "feed"),
    ("application/feed", "feed"), ("application/xml", "data"), ("text/xml", "data"), ("application/json", "data"),
    ("text/csv", "data"), ("text/", "text"), ("application/zip", "archive"), ("application/gzip", "archive"),
    ("application/x-tar", "archive"), ("application/msword", "office"), ("application/vnd.", "office"),
    ("application/rtf", "office"),
)  # fmt: skip
_OPEN = 2
"""Levels that are unfolded when the map is opened."""
_SMALL = 300
"""A map of no more pages is unfolded altogether."""
_ENDING = re.compile(r"\s*[|·–—-]\s+[^|·–—]+$")
_STYLE = """
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


def kind(content_type: str) -> str:
    """A short word for a type of content."""
    return next((word for start, word in _KINDS if content_type.startswith(start)), "other")


def shared_ending(titles: list[str]) -> str:
    """What most titles of a site end with behind a stroke or dash, mostly the name of the site; else nothing."""
    endings = Counter(match[0] for title in titles if (match := _ENDING.search(title)))
    ending, count = max(endings.items(), key=lambda pair: pair[1], default=("", 0))
    return ending if 2 * count > len(titles) else ""


def as_html(found: SiteMap) -> Iterator[str]:
    """A page that needs nothing else: what the site is in numbers, then its pages as a tree that folds."""
    sums = found.sums()
    title = escape(f"Map of {found.site}")
    yield f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{_STYLE}</style></head>\n<body><main><h1>{title}</h1>\n"
    yield f'<p>As of <time datetime="{rfc3339(found.at)}">{found.at:%Y-%m-%d %H:%M} UTC</time></p>\n'
    yield from _numbers(sums)
    yield f'<nav aria-label="{title}">\n'
    yield from _nested(found.pages(), _common(sums))
    yield "</nav></main></body></html>\n"


def _numbers(sums: Sums) -> Iterator[str]:
    """The legend: how many of each kind, in how many levels and languages, how large together."""
    kinds: Counter[str] = Counter()
    for content_type, count in sums.types.items():
        kinds[kind(content_type)] += count
    named = [(name if name != "page" else "pages", f"{count:,}") for name, count in kinds.most_common()]
    languages = ", ".join(f"{name} {count:,}" for name, count in sums.languages.most_common(5) if name)
    named += [("levels", str(sums.levels + 1)), ("together", size(sums.bytes))]
    named += [("languages", languages)] if languages else []
    named += [("images shown", f"{sums.images:,}")] if sums.images else []
    named += [("with errors", f"{sums.errors:,}")] if sums.errors else []
    yield "<dl>" + "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(told)}</dd></div>" for name, told in named)
    yield "</dl>\n"


class _Common(NamedTuple):
    """What is not said again at every page, and how many levels are unfolded."""

    ending: str
    language: str
    unfolded: int


def _common(sums: Sums) -> _Common:
    language = sums.languages.most_common(1)
    unfolded = _OPEN if sums.pages > _SMALL else sums.levels
    return _Common(shared_ending(sums.titles), language[0][0] if language else "", unfolded)


def _nested(pages: Iterator[tuple[Node, MapPage]], common: _Common) -> Iterator[str]:
    """Nested lists; a list opens below a page that has children and closes with its last one."""
    yield "<ul>\n"
    for node, page in pages:
        shown = _shown(node, page, common)
        if node.children:
            yield f"<li><details{' open' if node.depth < common.unfolded else ''}><summary>{shown}</summary>\n<ul>\n"
        else:
            yield f"<li>{shown}</li>\n" + "</ul></details></li>\n" * (node.closes - 1)
    yield "</ul>\n"


def _shown(node: Node, page: MapPage, common: _Common) -> str:
    name = (page.title.removesuffix(common.ending) if node.depth else page.title) or page.title or page.url
    mark = " gone" if page.time is None else ""
    lang = f' lang="{escape(page.lang)}"' if page.lang else ""
    whole = f' title="{escape(page.title)}"' if name != page.title and page.title else ""
    word = kind(page.type) if page.time else ""
    badge = f"<b>{word}</b> " if word not in ("", "page") else ""
    link = f'<a class="d{min(node.depth, 2)}{mark}" href="{escape(page.url)}"{lang}{whole}>{escape(name)}</a>'
    return f"{badge}{link} <small>{escape(' · '.join(_told(node, page, common)))}</small>"


def _told(node: Node, page: MapPage, common: _Common) -> list[str]:
    """What stands beside a name; a language only where it is not that of most pages."""
    told = [note for note in notes(page) if page.time is None or note != common.language]
    return [*told, f"{node.children:,} below"] if node.children else told
