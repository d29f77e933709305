"""`/crawls`: what the crawl has planned, through HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from letopis.archive import Archive
from letopis.catalog.activity import Activity
from letopis.crawl import CrawlOptions, plant
from letopis.crawl.plans import forget_site
from letopis.fetch import private_ok
from letopis.jobs.guarding import refuse_private
from letopis.model import to_millis
from letopis.serve.problems import answers
from letopis.serve.rest.shapes import Body, Time, Url
from letopis.serve.shared import TheArchive
from letopis.urls import parse_user, site

router = APIRouter(tags=["crawls"])

_HOSTS = 100


class HostShape(BaseModel):
    """A host that was crawled."""

    name: str
    fetched: int
    failures: int
    crawl_delay: float


class CrawlsShape(BaseModel):
    """How crawling goes: `new` URLs wait for a first visit, `again` are visited again and again, `due` of them now."""

    time: Time
    fetched: int
    new: int
    again: int
    due: int
    hosts: list[HostShape]


class CrawlBody(Body):
    """Where to start from, and whether all known pages of these hosts are visited again now."""

    seeds: list[Url] = Field(min_length=1, max_length=1000)
    revisit_now: bool = False


class PlantedShape(BaseModel):
    """How many addresses wait for the crawl."""

    planted: int


class DroppedShape(BaseModel):
    """How many addresses are no longer planned."""

    site: str
    dropped: int


@router.get("/crawls", responses=answers())
def show_crawls(archive: TheArchive) -> CrawlsShape:
    """How crawling goes, whichever process crawls."""
    activity, queues = Activity(archive.catalog.database), archive.catalog.queues
    waiting = queues.waiting()
    return CrawlsShape(
        time=archive.clock(),
        fetched=activity.fetched(),
        new=waiting.new,
        again=waiting.again,
        due=queues.due_again(to_millis(archive.clock())),
        hosts=[
            HostShape(name=row.name, fetched=row.fetched, failures=row.failures, crawl_delay=row.crawl_delay)
            for row in activity.busy_hosts(_HOSTS)
        ],
    )


@router.post("/crawls", status_code=201, responses=answers())
def plan_crawl(archive: TheArchive, body: CrawlBody) -> PlantedShape:
    """Addresses for the crawl of the daemon, which takes them within seconds; for owners."""
    seeds = tuple(parse_user(seed) for seed in body.seeds)
    if not private_ok(archive.settings.fetch.private, "http"):
        refuse_private(seeds)
    plant(archive, CrawlOptions(seeds, revisit_now=body.revisit_now))
    return PlantedShape(planted=len(seeds))


@router.delete("/crawls", responses=answers())
def drop_crawl(
    archive: TheArchive,
    where: Annotated[str, Query(alias="site", min_length=1, max_length=8192, description="A host, or a URL")],
) -> DroppedShape:
    """Plan no visit of a site any more; what was recorded stays. For owners."""
    return _dropped(archive, site(where))


def _dropped(archive: Archive, host: str) -> DroppedShape:
    with archive.catalog.transaction() as cursor:
        forget_site(archive, cursor, host)
        return DroppedShape(site=host, dropped=archive.catalog.queues.drop(cursor, host))
