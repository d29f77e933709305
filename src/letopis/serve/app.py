"""The web application: which parts it has, and what they share."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from letopis import __version__
from letopis.archive import Archive
from letopis.serve.health import router as health
from letopis.serve.pages import router as pages
from letopis.serve.pages.rendering import STATIC
from letopis.serve.problems import install_problems


def create_app(archive: Archive) -> FastAPI:
    """An application over one archive; the caller opens and closes the archive."""
    app = FastAPI(title="Letopis", version=__version__, docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    app.state.archive = archive
    install_problems(app)
    app.include_router(health)
    app.include_router(pages)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app
