"""The web application: all routes in their order, the middleware around them, and what requests share."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.routing import Route
from starlette.types import ASGIApp

from letopis import __version__
from letopis.api import feeds, middleware, openapi
from letopis.api.access import AccessGate
from letopis.api.door import operations_router
from letopis.api.mcp import McpEndpoint
from letopis.api.requests import install_problems
from letopis.archive import Archive
from letopis.operations.registry import all_operations
from letopis.replay import cdx, memento
from letopis.replay.application import ReplayApp, ReplayHome
from letopis.replay.origin import NO_ORIGIN, ReplayDoor
from letopis.web import login
from letopis.web import router as pages
from letopis.web.pages import STATIC
from letopis.web.problem_pages import ProblemPages

rest = APIRouter(prefix="/api/v1")
for topic in (
    feeds.events_router,
    operations_router(all_operations().values()),
):
    rest.include_router(topic)
everything = APIRouter()
for part in (rest, middleware.health_router, middleware.metrics_router, openapi.router, pages, login.router):
    everything.include_router(part)


def create_app(archive: Archive, door: ReplayDoor | None = None) -> FastAPI:
    """An application over one archive; the caller opens and closes the archive. `door` leads to the replay origin."""
    app = FastAPI(title="Letopis", version=__version__, docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    _share(app, archive)
    app.state.replay_door = door or ReplayDoor(NO_ORIGIN)
    app.openapi = partial(openapi.describe, app)  # type: ignore[method-assign]
    install_problems(app)
    # The most frequent ones come first: routes are tried in order.
    app.router.routes[:0] = [*cdx.CDX_ROUTES, *memento.MEMENTO_ROUTES, *feeds.FEED_ROUTES]
    # Taken as they are, not included once more: what they validate is made ready once in a process.
    app.router.routes += [*everything.routes, Route("/mcp", McpEndpoint())]
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    # The last one added sees a request first.
    app.add_middleware(AccessGate, archive=archive, sessions=app.state.auth.sessions)
    app.add_middleware(ProblemPages)
    app.add_middleware(middleware.MetricsMiddleware, metrics=app.state.metrics)
    if archive.settings.serve.access_log:
        app.state.access_log = middleware.open_access_log(Path(archive.settings.serve.access_log))
        app.add_middleware(middleware.AccessLog, lines=app.state.access_log, clock=archive.clock)
    app.add_middleware(middleware.KnownHosts, hosts=archive.settings.serve.hosts)
    app.add_middleware(middleware.DocumentBudget)
    app.add_middleware(middleware.TrustedProxies, trusted=archive.settings.serve.trusted_proxies)
    return app


def create_replay_app(archive: Archive, door: ReplayDoor, home: str) -> ASGIApp | None:
    """The application of the replay origin over the same archive; `home` is the service's own origin."""
    origin, serve = door.served, archive.settings.serve
    if origin is None:
        return None
    app: ASGIApp = ReplayApp(archive, origin, ReplayHome(home, serve.hosts))
    return middleware.TrustedProxies(middleware.DocumentBudget(app), serve.trusted_proxies)


def _share(app: FastAPI, archive: Archive) -> None:
    """What requests find in `app.state`."""
    app.state.archive = archive
    app.state.auth = login.AuthState.of(archive)
    app.state.metrics = middleware.ServiceMetrics(archive)
    app.state.listeners = 0
    app.state.stopping = False
    app.state.access_log = None
