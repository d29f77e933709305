"""REST under `/api/v1`: one module a topic, each with a `router`; a new topic is added to `TOPICS`."""

from fastapi import APIRouter

from letopis.serve.rest import accounts, changes, checks, crawls, graph, jobs, reading, search, watches

TOPICS = (checks, reading, changes, accounts, search, watches, graph, crawls, jobs)

router = APIRouter(prefix="/api/v1")
for topic in TOPICS:
    router.include_router(topic.router)

__all__ = ["TOPICS", "router"]
