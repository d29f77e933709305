"""`/jobs`: the queue of questions."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from letopis.serve.pages.answering import PageRoute, page

router = APIRouter(route_class=PageRoute)


@router.get("/jobs")
def jobs(request: Request) -> Response:
    """What waits, runs and is done."""
    return page(request, "jobs.html")
