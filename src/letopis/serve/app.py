"""The web application: which parts it has, and what they share."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from letopis import __version__
from letopis.archive import Archive
from letopis.serve import cdx, described, feeds, health, memento, metrics, signing
from letopis.serve.access import Gate
from letopis.serve.access_log import AccessLog, opened
from letopis.serve.pages import router as pages
from letopis.serve.pages.rendering import STATIC
from letopis.serve.problems import install_problems
from letopis.serve.proxies import Proxies
from letopis.serve.rest import router as rest
from letopis.serve.rest.checks import Lookout


def create_app(archive: Archive) -> FastAPI:
    """An application over one archive; the caller opens and closes the archive."""
    app = FastAPI(title="Letopis", version=__version__, docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    _share(app, archive)
    app.openapi = partial(described.describe, app)  # type: ignore[method-assign]
    install_problems(app)
    # The most frequent ones come first: routes are tried in order.
    app.router.routes[:0] = [*cdx.ROUTES, *memento.ROUTES, *feeds.ROUTES]
    for router in (rest, health.router, metrics.router, described.router, pages, signing.router):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    # The last one added sees a request first.
    app.add_middleware(Gate, archive=archive, sessions=app.state.desk.sessions)
    app.add_middleware(metrics.Meter, metrics=app.state.metrics)
    if archive.settings.serve.access_log:
        app.state.access_log = opened(Path(archive.settings.serve.access_log))
        app.add_middleware(AccessLog, lines=app.state.access_log, clock=archive.clock)
    app.add_middleware(Proxies, trusted=archive.settings.serve.trusted_proxies)
    return app


def _share(app: FastAPI, archive: Archive) -> None:
    """What requests find in `app.state`."""
    app.state.archive = archive
    app.state.finder = cdx.Finder(archive)
    app.state.newsroom = feeds.Newsroom(archive)
    app.state.lookout = Lookout(archive)
    app.state.desk = signing.Desk.of(archive)
    app.state.metrics = metrics.Metrics(archive)
    app.state.listeners = 0
    app.state.stopping = False
    app.state.access_log = None
