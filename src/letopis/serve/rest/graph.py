"""Maps, links to a page, broken links and ranks of a site, as of any date."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Annotated, Literal
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from letopis.archive import Archive
from letopis.errors import NotFound
from letopis.graph import (
    MAP_FORMATS,
    Graph,
    LinkIndex,
    broken_links,
    links_in,
    map_difference,
    rank_rows,
    rank_site,
    site_map,
)
from letopis.model import to_millis
from letopis.serve.memento.cage import SAFE
from letopis.serve.problems import answers
from letopis.serve.rest.parameters import At, Limit, Url, moment
from letopis.serve.rest.shapes import LinkShape, Time
from letopis.serve.shared import TheArchive
from letopis.serve.streaming import streamed
from letopis.urls import parse_user
from letopis.urls import site as site_of

router = APIRouter(tags=["graph"])

Site = Annotated[str, Query(description="A host (host[:port]) or an address", min_length=1, max_length=8192)]
SomeSite = Annotated[str | None, Query(description="A site; default: all", min_length=1, max_length=8192)]
MapForm = Literal["json", "xml", "html", "text", "sitemap", "dot", "svg", "snippet"]
_POLICY = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox allow-top-navigation"}
_indexes: WeakKeyDictionary[Archive, LinkIndex] = WeakKeyDictionary()
_opening = threading.Lock()


def graph_of(archive: Archive) -> Graph:
    """The links of the archive up to now; one index is shared by all requests."""
    with _opening:
        index = _indexes.setdefault(archive, LinkIndex(archive))
    return index.graph()


def _at(archive: Archive, text: str | None) -> datetime:
    return moment(archive, text) or archive.clock()


class BrokenShape(BaseModel):
    """One broken link, as `letopis broken --json` prints it."""

    source: str
    target: str
    status: int
    since: Time | None
    text: str
    last_good: Time | None
    type: str
    final: str


class BrokenListShape(BaseModel):
    """The broken links of a site at a time."""

    site: str
    at: Time
    broken: list[BrokenShape]


class RankShape(BaseModel):
    """A page and its rank."""

    url: str
    rank: float


class RanksShape(BaseModel):
    """Pages by rank, highest first."""

    site: str | None
    at: Time
    rank: list[RankShape]


class EventShape(BaseModel):
    """One event, as `letopis map diff --json` prints it."""

    event: Literal["appeared", "vanished", "moved", "renamed", "broken", "mended", "changed"]
    url: str
    title: str
    to: str
    before: str
    status: int | None
    links: int | None


class EventsShape(BaseModel):
    """What happened to a site between two times."""

    site: str
    events: list[EventShape]


class InLinksShape(BaseModel):
    """Links that lead to an address."""

    url: str
    at: Time
    links: list[LinkShape]


@router.get("/map", response_class=Response, responses=answers(404))
def site_tree(
    archive: TheArchive,
    site: Site,
    at: At = None,
    depth: Annotated[int | None, Query(ge=0, le=1_000_000)] = None,
    format: MapForm = "json",
    all: Annotated[bool, Query(description="Show pages with an error too")] = False,
) -> Response:
    """The hierarchical map of a site: a nested object, or one of the other forms."""
    form = MAP_FORMATS[format]
    levels = form.depth if depth is None else depth
    found = site_map(graph_of(archive), site, to_millis(_at(archive, at)), depth=levels, errors=all)
    return streamed(form.write(found), form.media_type, {**_POLICY, **SAFE})


@router.get("/map/diff", responses=answers(404))
def site_events(
    archive: TheArchive,
    site: Site,
    start: Annotated[str, Query(alias="from", max_length=64)],
    to: Annotated[str, Query(max_length=64)],
) -> EventsShape:
    """What appeared, vanished, moved, broke or changed on a site between two times."""
    name, graph = _known(archive, site)
    old, new = sorted(to_millis(_at(archive, text)) for text in (start, to))
    rows = map_difference(graph.as_of(old, name), graph.as_of(new, name), name)
    return EventsShape(site=name, events=[EventShape(**row._asdict()) for row in rows])


@router.get("/links/in", responses=answers(404))
def in_links(archive: TheArchive, url: Url, at: At = None) -> InLinksShape:
    """The links that lead to a page, and the addresses that redirect to it."""
    when = _at(archive, at)
    address = parse_user(url)
    rows = links_in(graph_of(archive).as_of(to_millis(when)), address)
    return InLinksShape(url=address, at=when, links=[LinkShape(**row._asdict()) for row in rows])


@router.get("/broken", responses=answers(404))
def broken(archive: TheArchive, site: Site, at: At = None) -> BrokenListShape:
    """Links of a site that lead to an error: where they stand and since when."""
    name, graph = _known(archive, site)
    when = _at(archive, at)
    rows = broken_links(graph.as_of(to_millis(when), name), name)
    return BrokenListShape(site=name, at=when, broken=[BrokenShape(**row._asdict()) for row in rows])


@router.get("/rank", responses=answers(404))
def rank(
    archive: TheArchive, site: SomeSite = None, at: At = None, top: Limit = 1000, external: bool = False
) -> RanksShape:
    """Pages by the links between them, of a site or of all."""
    name, graph = _known(archive, site) if site else (None, graph_of(archive))
    when = _at(archive, at)
    found = graph.as_of(to_millis(when), name)
    rows = rank_rows(found, rank_site(found, name, external=external), top)
    return RanksShape(site=name, at=when, rank=[RankShape(**row._asdict()) for row in rows])


def _known(archive: Archive, site: str) -> tuple[str, Graph]:
    """The host of a SITE and the graph; NotFound when no page of it is known."""
    name, graph = site_of(site), graph_of(archive)
    if not graph.of_site(name).any():
        raise NotFound(f"no page of {name} is known here")
    return name, graph
