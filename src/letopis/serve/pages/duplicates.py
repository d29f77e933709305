"""`/duplicates`: one document under several addresses."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from letopis.archive import Archive
from letopis.catalog.activity import Activity, CopyRow
from letopis.errors import NotFound
from letopis.search import Duplicate, duplicates_in
from letopis.serve.pages.answering import PageRoute, page
from letopis.serve.pages.paging import Part, part
from letopis.serve.pages.remembered import Remembered, remembered_of
from letopis.serve.shared import TheArchive
from letopis.urls import site as site_of

router = APIRouter(route_class=PageRoute)

_MOST_GROUPS = 200
_SIZE = 25
_SHOWN = 12
_MOST_PAGES = 2000
"""Pages of a site that are compared while somebody waits; larger ones are for the command line."""


class Group(NamedTuple):
    """Addresses with the same bytes."""

    row: CopyRow
    urls: list[str]


@router.get("/duplicates")
def duplicates(request: Request, archive: TheArchive, site: str = "", page: str = "") -> Response:
    """Exact copies in the whole archive, or exact and near ones within a site."""
    name = site_of(site) if site.strip() else ""
    return _shown(request, archive, name, page)


def _shown(request: Request, archive: Archive, site: str, number: str) -> Response:
    known = remembered_of(request)
    too_large = bool(site) and Activity(archive.catalog.database).count_pages(site, _MOST_PAGES + 1) > _MOST_PAGES
    return page(
        request,
        "duplicates.html",
        site=site,
        too_large=too_large,
        groups=None if site else _groups(archive, known, number),
        pairs=part(_pairs(archive, known, site), number, _SIZE) if site and not too_large else None,
        hosts=known.soon("hosts", 10, lambda: archive.catalog.recent.hosts(12)) or [],
        shown=_SHOWN,
    )


def _groups(archive: Archive, known: Remembered, number: str) -> Part[Group] | None:
    """None while they are being looked for."""
    found = known.soon("copies", 30, lambda: _copies(archive))
    return None if found is None else part(found, number, _SIZE)


def _copies(archive: Archive) -> list[Group]:
    activity = Activity(archive.catalog.database)
    rows = activity.copies(_MOST_GROUPS)
    holders = activity.holders([row.content for row in rows], _SHOWN)
    return [Group(row, holders[row.content]) for row in rows]


def _pairs(archive: Archive, known: Remembered, site: str) -> list[Duplicate]:
    def found() -> list[Duplicate]:
        try:
            return list(duplicates_in(archive, site))
        except NotFound:
            return []

    return known.get(("duplicates", site), 60, found)
