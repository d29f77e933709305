"""`/healthz` for whoever keeps the service running."""

from __future__ import annotations

from fastapi import APIRouter

from letopis.serve.shared import TheArchive

router = APIRouter()


@router.get("/healthz", include_in_schema=False)
def healthz(archive: TheArchive) -> dict[str, str]:
    """Fine when the catalogue answers."""
    archive.catalog.database.one("SELECT 1")
    return {"status": "ok"}
