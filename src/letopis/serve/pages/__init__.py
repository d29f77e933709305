"""Pages for people, rendered on the server."""

from fastapi import APIRouter

from letopis.serve.pages.overview import router as overview

router = APIRouter(include_in_schema=False)
router.include_router(overview)

__all__ = ["router"]
