"""Pages for people, rendered on the server."""

from fastapi import APIRouter

from letopis.serve.pages.choosing import router as choosing
from letopis.serve.pages.comparing import router as comparing
from letopis.serve.pages.crawling import router as crawling
from letopis.serve.pages.duplicates import router as duplicates
from letopis.serve.pages.jobs import router as jobs
from letopis.serve.pages.overview import router as overview
from letopis.serve.pages.people import router as people
from letopis.serve.pages.plots import router as plots
from letopis.serve.pages.resource import router as resource
from letopis.serve.pages.searching import router as searching
from letopis.serve.pages.settings import router as settings
from letopis.serve.pages.site import router as site
from letopis.serve.pages.storage import router as storage
from letopis.serve.pages.watch_actions import router as watch_actions
from letopis.serve.pages.watches import router as watches
from letopis.serve.pages.welcome import router as welcome

router = APIRouter(include_in_schema=False)
for part in (
    overview,
    resource,
    comparing,
    site,
    searching,
    watches,
    watch_actions,
    crawling,
    jobs,
    duplicates,
    storage,
    settings,
    plots,
    people,
    welcome,
    choosing,
):
    router.include_router(part)

__all__ = ["router"]
