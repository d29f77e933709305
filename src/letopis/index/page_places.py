"""Where broken links stand in the source of archived pages, and links to places that are not on their page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache

from letopis.archive import Archive
from letopis.errors import NotFound
from letopis.extract.charsets import DecodedText, decode
from letopis.extract.extraction import bare_type
from letopis.extract.link_places import LinkPlace, leads_somewhere, link_places, place_names
from letopis.extract.pages import charset_of
from letopis.index.link_graph import LinkSnapshot
from letopis.index.link_reports import BrokenRow
from letopis.lazy import np

MOST_HELD = 256
"""Pages whose links and places are held at once."""
_LONGEST_LINE = 160
_PAGE_TYPES = ("text/html", "application/xhtml+xml")


class PageSources:
    """Links and places of pages as they were at a time; the last pages asked for are held."""

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
        """One line of the source, from 1 on, as somebody sees it who changes the page; a long one around a column."""
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
    """Each row with the line and column at which its link first stands; 0 where a script or a style made it."""
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
