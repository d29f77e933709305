"""`/`: what the archive holds and what changed lately."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from letopis.serve.pages.rendering import page
from letopis.serve.shared import TheArchive

router = APIRouter()


@router.get("/")
def overview(request: Request, archive: TheArchive) -> HTMLResponse:
    """Totals, hosts, latest changes."""
    return page(
        request,
        "overview.html",
        stats=archive.stats(),
        hosts=archive.catalog.recent.hosts(20),
        changes=archive.catalog.recent.changes(30),
    )
