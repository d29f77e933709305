"""REST for crawls: what is planned, and what is dropped."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from letopis.api.models import RequestBody, Time, Url
from letopis.api.requests import (
    ArchiveDep,
    problem_responses,
)
from letopis.archive import Archive
from letopis.catalog.activity import Activity
from letopis.crawl import CrawlOptions, enqueue_seeds
from letopis.crawl.selection import forget_site_plans
from letopis.fetch import private_ok
from letopis.jobs.language.job_file import refuse_private_urls
from letopis.model import to_millis
from letopis.urls import parse_user_url, site

crawls_router = APIRouter(tags=["crawls"])

_MOST_HOSTS = 100


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


class CrawlBody(RequestBody):
    """Where to start from, and whether all known pages of these hosts are visited again now."""

    seeds: list[Url] = Field(min_length=1, max_length=1000)
    revisit_now: bool = False


class CrawlQueued(BaseModel):
    """How many addresses wait for the crawl."""

    planted: int


class DroppedShape(BaseModel):
    """How many addresses are no longer planned."""

    site: str
    dropped: int


@crawls_router.get("/crawls", responses=problem_responses())
def show_crawls(archive: ArchiveDep) -> CrawlsShape:
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
            for row in activity.busy_hosts(_MOST_HOSTS)
        ],
    )


@crawls_router.post("/crawls", status_code=201, responses=problem_responses())
def plan_crawl(archive: ArchiveDep, body: CrawlBody) -> CrawlQueued:
    """Addresses for the crawl of the daemon, which takes them within seconds; for owners."""
    seeds = tuple(parse_user_url(seed) for seed in body.seeds)
    if not private_ok(archive.settings.fetch.private, "http"):
        refuse_private_urls(seeds)
    enqueue_seeds(archive, CrawlOptions(seeds, revisit_now=body.revisit_now))
    return CrawlQueued(planted=len(seeds))


@crawls_router.delete("/crawls", responses=problem_responses())
def drop_crawl(
    archive: ArchiveDep,
    where: Annotated[str, Query(alias="site", min_length=1, max_length=8192, description="A host, or a URL")],
) -> DroppedShape:
    """Plan no visit of a site any more; what was recorded stays. For owners."""
    return _drop_site(archive, site(where))


def _drop_site(archive: Archive, host: str) -> DroppedShape:
    with archive.catalog.transaction() as cursor:
        forget_site_plans(archive, cursor, host)
        return DroppedShape(site=host, dropped=archive.catalog.queues.drop(cursor, host))
