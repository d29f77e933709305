"""Alerts on their real way: hooks that fail, services behind apprise, a killed process, the daemon."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from scripted_site import ScriptedSite

from letopis import Archive
from letopis.archive.watches import watches_of
from letopis.config import Settings, StoreSettings
from letopis.model import Outcome
from letopis.monitor.notifications import Outbox, retry_pause
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.monitor.watcher import open_watcher
from letopis_demo import DemoServer, running
from letopis_demo import World as DemoWorld

OLD = b"<h1>Hours</h1><main><p>Open from nine to five on every working day.</p></main>"
NEW = b"<h1>Hours</h1><main><p>Closed for the whole of August, see you later.</p></main>"
QUICK = "[monitor]\nmin_interval = 0.05\nevery = 0.05\n"


class Sink:
    """A local service that takes messages; `answers` are the statuses of the next ones, 200 afterwards."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], dict[str, Any]]] = []
        self._came = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def wait_for(self, count: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.got) >= count, timeout=300), "no message came"

    def take(self, headers: dict[str, str], message: dict[str, Any]) -> int:
        with self._came:
            self.got.append((headers, message))
            self._came.notify_all()
            return self.answers.pop(0) if self.answers else 200

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = sink.take({name.lower(): value for name, value in self.headers.items()}, json.loads(body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words: object) -> None:
                """Silent."""

        return Handler


@pytest.fixture
def sink() -> Iterator[Sink]:
    made = Sink()
    yield made
    made.close()


class Later:
    """A clock that runs ahead of the machine's by as much as it is told."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def run_due(archive: Archive) -> None:
    async def once() -> None:
        async with open_watcher(archive) as work:
            await work.run_due()

    asyncio.run(once())


def changed_once(archive: Archive, clock: Later, site: ScriptedSite, target: str) -> int:
    """Watches a page until it has changed; the number of the alert."""
    url = site.set("/page", OLD)
    book = WatchList(archive)
    book.add([url], WatchSpec(every=600, notify=(target,)))
    run_due(archive)
    site.set("/page", NEW)
    clock.ahead += timedelta(hours=1)
    run_due(archive)
    return book.alerts()[0].id


def letopis(folder: Path, *words: str) -> list[str]:
    (folder / "quick.toml").write_text(QUICK)
    shared = ["--archive", str(folder / "a"), "--config", str(folder / "quick.toml")]
    return [sys.executable, "-m", "letopis.cli", *shared, *words]


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_services_behind_apprise_take_the_message(tmp_path: Path, scripted_site: ScriptedSite, sink: Sink) -> None:
    clock = Later()
    with Archive(tmp_path / "a", clock=clock) as archive:
        number = changed_once(archive, clock, scripted_site, f"json://{sink.address}/")
        rows = watches_of(archive).deliveries(number)
    assert [(row.state, row.error) for row in rows] == [("sent", "")]
    assert len(sink.got) == 1
    told = sink.got[0][1]
    assert scripted_site.url("/page") in told["title"] + told["message"]
    assert "Closed for the whole of August" in told["message"]


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_service_that_refuses_is_tried_again(tmp_path: Path, scripted_site: ScriptedSite, sink: Sink) -> None:
    clock = Later()
    sink.answers = [500]
    with Archive(tmp_path / "a", clock=clock) as archive:
        number = changed_once(archive, clock, scripted_site, f"json://{sink.address}/")
        watches = watches_of(archive)
        assert [row.state for row in watches.deliveries(number)] == ["pending"]
        clock.ahead += retry_pause(1)
        assert asyncio.run(Outbox(archive).send_due()) == 1
        assert [(row.state, row.attempts) for row in watches.deliveries(number)] == [("sent", 2)]


def test_hook_that_fails_with_503_is_tried_again_and_told_once(
    tmp_path: Path, scripted_site: ScriptedSite, sink: Sink
) -> None:
    clock = Later()
    sink.answers = [503, 502]
    with Archive(tmp_path / "a", clock=clock) as archive:
        number = changed_once(archive, clock, scripted_site, f"http://{sink.address}/hook")
        for attempt in (1, 2, 3):
            clock.ahead += retry_pause(attempt)
            run_due(archive)
        rows = watches_of(archive).deliveries(number)
    assert [(row.state, row.attempts) for row in rows] == [("sent", 3)]
    assert [headers["idempotency-key"] for headers, _ in sink.got] == [f"letopis-alert-{number}"] * 3


def test_alert_of_a_killed_process_is_delivered_once_by_the_next(
    tmp_path: Path, scripted_site: ScriptedSite, sink: Sink
) -> None:
    url = scripted_site.set("/page", OLD)
    subprocess.run(letopis(tmp_path, "watch", "add", url, "--notify", f"http://{sink.address}/"), check=True)
    subprocess.run(letopis(tmp_path, "watch", "run", "--once"), check=True)
    sink.answers = [503]
    scripted_site.set("/page", NEW)
    process = subprocess.Popen(letopis(tmp_path, "watch", "run"))
    try:
        sink.wait_for(1)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    clock = Later()
    clock.ahead = timedelta(hours=1)
    with Archive(tmp_path / "a", clock=clock) as archive:
        for _ in range(3):
            run_due(archive)
            clock.ahead += timedelta(hours=1)
        assert [row.kind for row in WatchList(archive).alerts()] == ["changed"]
    assert [message["kind"] for _, message in sink.got] == ["changed"] * 2, "refused, then taken, then never again"


def test_daemon_tells_of_a_change_of_the_demo_web(tmp_path: Path, sink: Sink) -> None:
    world = DemoWorld(seed=1, hosts=1, noisy=0.0)
    moments = [world.start]
    with running(DemoServer(world, lambda: moments[-1])) as server:
        url, change = first_change(server.world)
        words = ("watch", "add", url, "--when", "changed", "--notify", f"http://{sink.address}/")
        subprocess.run(letopis(tmp_path, *words), check=True)
        subprocess.run(letopis(tmp_path, "watch", "run", "--once"), check=True)
        process = subprocess.Popen(letopis(tmp_path, "run", "--port", "0"), stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("listening on http://127.0.0.1:")
            moments.append(change)
            sink.wait_for(1)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()
    assert process.returncode == 0
    assert [(message["kind"], message["url"]) for _, message in sink.got] == [("changed", url)]
    for form in ("unified", "words", "html"):
        shown = subprocess.run(letopis(tmp_path, "diff", url, "--format", form), check=True, capture_output=True)
        assert len(shown.stdout) > 100, form


def first_change(world: DemoWorld) -> tuple[str, datetime]:
    """A page of the demo web and a moment at which a person would say that it has changed."""
    event = world.events(world.start, world.start + timedelta(days=2), ("changed",))[0]
    return event.url, event.at


def test_same_content_that_is_recorded_again_is_unchanged_in_history(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", OLD)
    settings = Settings(store=StoreSettings(same="record"))
    clock = Later()
    with Archive(tmp_path / "a", settings=settings, clock=clock) as archive:
        WatchList(archive).add([url], replace(WatchSpec(), every=600))
        for body in (OLD, OLD, NEW):
            scripted_site.set("/page", body)
            run_due(archive)
            clock.ahead += timedelta(hours=1)
        outcomes = [check.outcome for check in archive.history(url)]
        assert len(archive.versions(url)) == 3
    assert outcomes == [Outcome.NEW, Outcome.UNCHANGED, Outcome.CHANGED]
