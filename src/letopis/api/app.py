"""The web application: all routes in their order, the middleware around them, and what requests share."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from letopis import __version__
from letopis.api import feeds, middleware
from letopis.api.access import AccessGate
from letopis.api.door import described_operations, openapi_document, operation_routes
from letopis.api.mcp import McpEndpoint
from letopis.api.requests import install_problems
from letopis.archive import Archive
from letopis.archive.audit import UseCounter
from letopis.operations.operation import all_operations
from letopis.replay import cdx, memento
from letopis.replay.application import ReplayApp, ReplayHome
from letopis.replay.origin import NO_ORIGIN, ReplayDoor
from letopis.web import PAGE_ROUTES, login
from letopis.web.pages import STATIC, ProblemPages

_REST = "/api/v1"
_events = APIRouter()
_events.include_router(feeds.events_router, prefix=_REST)
_SERVICE = (*middleware.health_router.routes, *middleware.metrics_router.routes)


def create_app(archive: Archive, door: ReplayDoor | None = None) -> FastAPI:
    """An application over one archive; the caller opens and closes the archive. `door` leads to the replay origin."""
    app = FastAPI(
        title="Letopis", version=__version__, docs_url=None, redoc_url=None, openapi_url="/openapi.json",
        # Nothing is handed to OpenTelemetry; to ask for each request whether it is set up takes a tenth of a light one.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )  # fmt: skip
    _share(app, archive)
    app.state.replay_door = door or ReplayDoor(NO_ORIGIN)
    app.openapi = partial(openapi_document, app, _described_routes)  # type: ignore[method-assign]
    install_problems(app)
    # The most frequent ones come first: routes are tried in order.
    frequent: list[Route] = [*cdx.CDX_ROUTES, *memento.MEMENTO_ROUTES, *feeds.FEED_ROUTES]
    frequent.sort(key=lambda route: not route.path.startswith("/web/"))
    app.router.routes[:0] = frequent
    # Taken as they are, not included once more: what they validate is made ready once in a process.
    app.router.routes += [*_events.routes, *_operations(), *_SERVICE, *PAGE_ROUTES, *login.router.routes]
    app.router.routes.append(Route("/mcp", McpEndpoint(), methods=["POST"]))
    # Styles and scripts hold nothing secret. Pages hold the tokens of their forms beside what their address brought in,
    # and the length of both compressed together would give the tokens away.
    app.mount("/static", GZipMiddleware(StaticFiles(directory=STATIC), compresslevel=6), name="static")
    # The last one added sees a request first.
    app.add_middleware(AccessGate, archive=archive, sessions=app.state.auth.sessions)
    app.add_middleware(ProblemPages)
    app.add_middleware(middleware.MetricsMiddleware, metrics=app.state.metrics, use=archive.attached(UseCounter))
    if archive.settings.serve.access_log:
        app.state.access_log = middleware.open_access_log(Path(archive.settings.serve.access_log))
        app.add_middleware(middleware.AccessLog, lines=app.state.access_log, clock=archive.clock)
    app.add_middleware(middleware.FairShare)
    app.add_middleware(middleware.KnownHosts, hosts=archive.settings.serve.hosts)
    app.add_middleware(middleware.DocumentBudget)
    app.add_middleware(middleware.TrustedProxies, trusted=archive.settings.serve.trusted_proxies)
    return app


@cache
def _operations() -> tuple[Route, ...]:
    return tuple(operation_routes(_REST, all_operations().values()))


def _described_routes() -> list[BaseRoute]:
    return [*described_operations(_REST, all_operations().values()).routes, *_SERVICE]


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
