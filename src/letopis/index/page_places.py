"""Where links are in the source of pages, which are broken, and which lead to missing places."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from html import unescape
from urllib.parse import unquote

from letopis.archive import Archive
from letopis.errors import NotFound
from letopis.extract.charsets import DecodedText, decode, in_page_charset
from letopis.extract.extraction import bare_type
from letopis.extract.html_links import srcset_urls
from letopis.extract.pages import charset_of
from letopis.extract.rewriter import ATTRIBUTE_VALUE
from letopis.extract.simple_formats import css_refs
from letopis.index.link_graph import LinkSnapshot
from letopis.index.link_reports import BrokenRow
from letopis.lazy import np
from letopis.tuples import NamedTuple
from letopis.urls import joiner

MOST_HELD = 256
"""Pages whose links and places are held at once."""
_LONGEST_LINE = 160
_PAGE_TYPES = ("text/html", "application/xhtml+xml")


class PageSources:
    """Links and places of pages as they were at a time; the last pages are cached."""

    def __init__(self, archive: Archive, when: datetime) -> None:
        self._archive = archive
        self._when = when
        self.links = lru_cache(MOST_HELD)(self._links)
        self.names = lru_cache(MOST_HELD)(self._names)

    def _links(self, url: str) -> tuple[LinkPlace, ...]:
        text, charset = self._source(url)
        return tuple(link_places(text, url, charset))

    def _names(self, url: str) -> frozenset[str] | None:
        """None for what is no page."""
        text = self._source(url).text
        return place_names(text) if text else None

    def line(self, url: str, number: int, column: int = 1) -> str:
        """One line of the source, from 1 on, as an author of the page sees it; a long one around a column."""
        lines = self._source(url).text.splitlines()
        if not 0 < number <= len(lines):
            return ""
        text = lines[number - 1]
        if len(text) <= _LONGEST_LINE:
            return text.strip()
        start = max(0, column - 1 - _LONGEST_LINE // 8)
        shown = text[start : start + _LONGEST_LINE]
        return f"{'…' if start else ''}{shown.strip()}{'…' if len(text) > start + _LONGEST_LINE else ''}"

    def _source(self, url: str) -> DecodedText:
        try:
            version = self._archive.answers.at(url, self._when)
        except NotFound:
            return DecodedText("", "")
        if bare_type(version.content_type) not in _PAGE_TYPES:
            return DecodedText("", "")
        return decode(version.body, charset_of(version.content_type))


def with_places(rows: Iterable[BrokenRow], sources: PageSources) -> Iterator[BrokenRow]:
    """Each row with the line and column of the first place of its link; 0 if a script or a style made it."""
    for row in rows:
        place = next((one for one in sources.links(row.source) if one.target == row.target), None)
        yield row if place is None else row._replace(line=place.line, column=place.column)


def missing_places(moment: LinkSnapshot, site: str, sources: PageSources) -> Iterator[BrokenRow]:
    """Links on the live pages of a site to a place that the page they lead to does not have."""
    graph = moment.graph
    for number in np.flatnonzero(moment.live & graph.of_site(site)).tolist():
        source = moment.url(number)
        for place in sources.links(source):
            if not place.fragment:
                continue
            known = graph.addresses.find(place.target)
            end = int(moment.ends[known]) if known >= 0 else -1
            names = sources.names(moment.url(end)) if end >= 0 and moment.live[end] else None
            if names is not None and not leads_somewhere(place.fragment, names):
                yield BrokenRow(
                    source, f"{place.target}#{place.fragment}", int(moment.status[end]), None, "", None, "fragment",
                    moment.url(end) if end != known else "", place.line, place.column,
                )  # fmt: skip


_ENDS = r"(?>[^>\"']++|\"[^\"]*\"|'[^']*')*+>?"
_TAG = re.compile(
    rf"<(?:!--.*?(?:-->|\Z)|(?P<raw>script|style|textarea|title|xmp)\b(?P<head>{_ENDS}).*?(?=</(?P=raw)|\Z)"
    rf"|(?P<name>[a-z][a-z0-9]*)(?=[\s/])(?P<rest>{_ENDS}))",
    re.IGNORECASE | re.DOTALL,
)
_REFERENCE = re.compile(
    r"(?<=[\s\"'/])(href|src|srcset|imagesrcset|action|formaction|poster|background|cite|longdesc|data|style)"
    + ATTRIBUTE_VALUE,
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\s\"'/])(id|name)" + ATTRIBUTE_VALUE, re.IGNORECASE)


class LinkPlace(NamedTuple):
    """A link in the source: line and column of its attribute from 1 on, its address, and the place it names there."""

    line: int
    column: int
    target: str
    fragment: str


def link_places(text: str, url: str, charset: str = "utf-8") -> Iterator[LinkPlace]:
    """The links of a page in the order of its source."""
    join = joiner(url)
    breaks = [found.start() for found in re.finditer("\n", text)]
    for tag in _TAG.finditer(text):
        for at, written in _references(tag):
            reference, _, fragment = written.strip().partition("#")
            target = join(in_page_charset(reference, charset)) if reference else url
            if target is None:
                continue
            if (tag["name"] or "").lower() == "base":
                join, url = joiner(target), target
                continue
            line = bisect_right(breaks, at)
            yield LinkPlace(line + 1, at - (breaks[line - 1] if line else -1), target, fragment)


def _references(tag: re.Match[str]) -> Iterator[tuple[int, str]]:
    """What a tag refers to, with the places of its attributes; a style sheet in a page is at the place of its tag."""
    part = "head" if tag["raw"] else "rest"
    for found in _REFERENCE.finditer(tag[part] or ""):
        name, value = found[1].lower(), unescape(_value(found))
        if name == "data" and (tag["name"] or "").lower() != "object":
            continue
        several = srcset_urls if name.endswith("srcset") else css_refs if name == "style" else None
        for written in several(value) if several is not None else (value,):
            yield tag.start(part) + found.start(), written
    if (tag["raw"] or "").lower() == "style":
        yield from ((tag.start(), written) for written in css_refs(tag[0][tag.end("head") - tag.start() :]))


def place_names(text: str) -> frozenset[str]:
    """The ids of elements, and the names of anchors."""
    found = set()
    for tag in _TAG.finditer(text):
        for name in _NAME.finditer(tag["head"] or tag["rest"] or ""):
            if name[1].lower() == "id" or (tag["name"] or "").lower() in ("a", "map"):
                found.add(unescape(_value(name)))
    return frozenset(found)


def leads_somewhere(fragment: str, names: frozenset[str]) -> bool:
    """Whether a page has the place: browsers know the top themselves, and scripts what begins with `!` or `/`."""
    if not fragment or fragment.lower() == "top" or fragment.startswith(("!", "/", ":~:")):
        return True
    plain = fragment.partition(":~:")[0]
    return plain in names or unquote(plain) in names


def _value(found: re.Match[str]) -> str:
    return found[3] if found[3] is not None else found[4] if found[4] is not None else found[5]
