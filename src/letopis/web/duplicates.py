"""`/duplicates`: one document under several addresses, in the whole archive or within a site."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fastapi import APIRouter, Request, Response

from letopis.api.door import context_of
from letopis.archive.activity import busiest_hosts
from letopis.archive.index_facts import count_site_pages, require_site
from letopis.errors import NotFound
from letopis.index.near_duplicates import DuplicatePair
from letopis.operations import Context
from letopis.operations.duplicates import CopiesQuery, DocumentCopies, DuplicatesQuery, copies, duplicates
from letopis.tuples import NamedTuple
from letopis.urls import host
from letopis.web.cache import page_cache_of
from letopis.web.languages import translatable
from letopis.web.pages import PageRoute, render_page
from letopis.web.tables import TableColumn, TableQuestion, make_table, table_download

router = APIRouter(route_class=PageRoute)

_SIZE = 25
COPY_COLUMNS = (
    TableColumn("keep", translatable("Content"), "custom"),
    TableColumn("copies", translatable("Addresses"), "number"),
    TableColumn("bytes", translatable("Size"), "size"),
    TableColumn("others", translatable("Also at"), "custom"),
)
ALIKE_COLUMNS = (
    TableColumn("keep", translatable("Address to keep"), "custom"),
    TableColumn("copies", translatable("Addresses"), "number"),
    TableColumn("likeness", translatable("Likeness"), "decimal", hidden=True),
    TableColumn("others", translatable("Also at"), "custom"),
)
_SMALL = 1000
"""Bytes below which files without a title that several sites share are left out."""
_MOST_PAGES = 2000
"""Pages of a site that are compared while somebody waits; larger ones are for the command line."""


class DuplicateLine(NamedTuple):
    """A document under several addresses: the one to keep and the others, of which each is so like the first."""

    keep: str
    others: tuple[str, ...]
    copies: int
    title: str = ""
    bytes: int = 0
    likeness: float = 1.0


def _line(group: DocumentCopies) -> DuplicateLine:
    keep, *others = sorted(group.urls, key=_plainness)
    title = "" if group.title.strip().isdigit() else group.title  # a number alone names no page
    return DuplicateLine(keep, tuple(others), group.copies, title, group.bytes)


def _plainness(url: str) -> tuple[bool, bool, int, str]:
    """Addresses that people keep come first: without parameters, secure, short."""
    return "?" in url, not url.startswith("https:"), len(url), url


def _groups(pairs: Sequence[DuplicatePair]) -> list[DuplicateLine]:
    """Pairs that share a page are one group; its likeness is that of the two that are least alike."""
    above: dict[str, str] = {}

    def first(url: str) -> str:
        while (higher := above.setdefault(url, url)) != url:
            above[url] = above[higher]
            url = higher
        return url

    for pair in pairs:
        above[first(pair.url)] = first(pair.other)
    likeness: dict[str, float] = defaultdict(lambda: 1.0)
    for pair in pairs:
        likeness[first(pair.url)] = min(likeness[first(pair.url)], pair.likeness)
    groups: dict[str, list[str]] = defaultdict(list)
    for url in sorted(above, key=_plainness):
        groups[first(url)].append(url)
    lines = [
        DuplicateLine(keep, tuple(others), 1 + len(others), likeness=likeness[name])
        for name, (keep, *others) in groups.items()
    ]
    return sorted(lines, key=lambda line: (-line.copies, line.keep))


@router.get("/duplicates")
def duplicates_page(request: Request, site: str = "") -> Response:
    """Exact copies in the whole archive, or exact and near ones within a site."""
    context, known = context_of(request), page_cache_of(request)
    name = require_site(context.archive, site) if site.strip() else ""
    too_large = bool(name) and count_site_pages(context.archive, name, _MOST_PAGES + 1) > _MOST_PAGES
    pairs = known.get(("duplicates", name), 60, lambda: _pairs(context, name)) if name and not too_large else None
    groups = None if name else known.soon("copies", 30, lambda: _copies(context))
    question = TableQuestion("duplicates", {"site": name}) if name else None
    found, columns = (pairs, ALIKE_COLUMNS) if name else (groups, COPY_COLUMNS)
    table = None if found is None else make_table(request, columns, found, size=_SIZE, question=question)
    return table_download(table, f"duplicates-{name}" if name else "duplicates") or render_page(
        request,
        "duplicates.html",
        site=name,
        too_large=too_large,
        table=table,
        hosts=known.soon("hosts", 10, lambda: busiest_hosts(context.archive, 12)) or [],
    )


def _pairs(context: Context, site: str) -> list[DuplicateLine]:
    try:
        return _groups(list(duplicates(context, DuplicatesQuery(site=site))))
    except NotFound:  # Its pages were checked, and none of them ever was there.
        return []


def _copies(context: Context) -> list[DuplicateLine]:
    """Pages, which have titles, before other files; of these, those that are worth a look."""
    found = [row for row in copies(context, CopiesQuery()) if not _is_common(row)]
    return sorted(map(_line, found), key=lambda line: not line.title)


def _is_common(group: DocumentCopies) -> bool:
    """A small file that several sites share, such as a style or an icon: nothing that anybody would mend."""
    return not group.title and group.bytes < _SMALL and len(set(map(host, group.urls))) > 1
