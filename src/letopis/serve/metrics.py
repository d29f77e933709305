"""`/metrics`: what the service does, for Prometheus."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from letopis.archive import Archive

router = APIRouter(include_in_schema=False)

FAMILIES = frozenset({"web", "cdx", "api", "feed", "static", "healthz", "metrics", "login"})
_TOTALS_AGE = 60.0


class Metrics:
    """The figures of one application."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._counted_at = -_TOTALS_AGE
        self._kept: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self.registry = CollectorRegistry()
        self.requests = Counter("letopis_requests", "Requests answered", ["family", "status"], registry=self.registry)
        self.seconds = Histogram(
            "letopis_request_seconds", "Time until the answer was sent", ["family"], registry=self.registry,
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10),
        )  # fmt: skip
        self.totals = Gauge("letopis_archive", "Totals of the archive", ["what"], registry=self.registry)

    def answered(self, family: str, status: int, seconds: float) -> None:
        """One more request; looking labels up costs more than counting, so they are kept."""
        kept = self._kept.get((family, status))
        if kept is None:
            kept = self._kept[family, status] = (
                self.requests.labels(family, str(status)),
                self.seconds.labels(family),
            )
        kept[0].inc()
        kept[1].observe(seconds)

    def text(self) -> bytes:
        """The exposition; totals are counted at most once a minute."""
        if time.monotonic() - self._counted_at >= _TOTALS_AGE:
            stats = self._archive.stats()
            for what in ("documents", "versions", "checks", "raw_bytes", "pack_bytes", "catalog_bytes", "hosts"):
                self.totals.labels(what).set(getattr(stats, what))
            self._counted_at = time.monotonic()
        return generate_latest(self.registry)


class Meter:
    """Counts requests by the first part of their path."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        first = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
        family = first if first in FAMILIES else "pages"
        status, started = 500, time.perf_counter()

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            self._metrics.answered(family, status, time.perf_counter() - started)


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Counters, durations and totals."""
    found: Metrics = request.app.state.metrics
    return Response(found.text(), media_type=CONTENT_TYPE_LATEST)
