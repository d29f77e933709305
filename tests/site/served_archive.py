"""A real server on a free port over an archive with captures of every kind."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from letopis.api.server import Server, listen
from letopis.archive import Archive
from letopis.config import ServeSettings, Settings
from letopis.model import Failure, FailureKind, Hop, Observation, Outcome, Response

START = datetime(2024, 1, 1, 12, 0, 0, tzinfo=UTC)


@dataclass
class Answer:
    """What the server said."""

    status: int
    headers: dict[str, str]
    body: bytes
    all_headers: list[tuple[str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class WebClient:
    """A client that sends addresses exactly as they are given."""

    def __init__(self, address: str, replay_port: int = 0) -> None:
        self.address = address.rstrip("/")
        self.replay = f"http://letopis.localhost:{replay_port}"
        self.netloc = urlsplit(address).netloc

    def ask(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> Answer:
        connection = HTTPConnection(self.netloc, timeout=300)
        try:
            fields = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path.removeprefix(self.address), body, fields)
            answer = connection.getresponse()
            pairs = [(name.lower(), value) for name, value in answer.getheaders()]
            return Answer(answer.status, dict(pairs), answer.read(), pairs)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, value: Any = None, **headers: str) -> Answer:
        return self.ask("POST", path, json.dumps(value), Content_Type="application/json", **headers)


@contextmanager
def running(archive: Archive, *, replay: bool = False) -> Iterator[WebClient]:
    """The archive served until the block ends; with `replay` archived pages run their scripts on an origin beside."""
    listening = listen("127.0.0.1", 0)
    beside = listen("127.0.0.1", 0) if replay else None
    server = Server(archive, listening, replay=beside)
    ready = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(server.run(ready.set)), daemon=True)
    thread.start()
    assert ready.wait(300)
    try:
        yield WebClient(server.address, beside.getsockname()[1] if beside is not None else 0)
    finally:
        server.stop()
        thread.join(300)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def look(url: str, when: datetime, body: bytes = b"", status: int = 200, **more: Any) -> Observation:
    """A finished look, as the fetching parts hand it in."""
    outcome = more.pop("outcome", Outcome.NEW if status < 300 else Outcome.UNAVAILABLE)
    headers = more.pop("headers", (("Content-Type", "text/html; charset=utf-8"),))
    response = Response(
        url=url, final_url=more.pop("final_url", url), status=status, headers=headers, body=body, at=when, **more
    )
    return Observation(response, outcome)


PAGE = "http://example.org/page"
STYLE = "http://example.org/style.css"
HTML = (
    b'<!doctype html><html><head><link rel="stylesheet" href="style.css"><script>var a = "src=/x";</script></head>'
    b'<body><a href="/other?a=1&amp;b=2#top">other</a> <a href="https://elsewhere.example/">there</a>'
    b'<img src=pic.png srcset="a.png 1x, b.png 2x"><p>version %d</p></body></html>'
)


def fill(archive: Archive) -> None:
    """Versions, an unchanged check, a 304, an error with a body, redirects of both kinds, and no answer."""
    url = PAGE
    archive.record([look(url, at(0), HTML % 1)])
    archive.record([look(url, at(10), HTML % 1, outcome=Outcome.UNCHANGED)])
    archive.record([look(url, at(20), b"", 304, outcome=Outcome.UNCHANGED)])
    archive.record([look(url, at(30), HTML % 2, outcome=Outcome.CHANGED)])
    archive.record([look(url, at(40), b"<h1>gone</h1>", 404)])
    failure = Failure(FailureKind.CONNECT, "connection refused")
    archive.record([look(url, at(50), b"", 0, headers=(), failure=failure, outcome=Outcome.UNAVAILABLE)])
    archive.record([look(STYLE, at(1), b"body { background: url(bg.png) }", headers=(("Content-Type", "text/css"),))])
    hop = Hop(
        "http://example.org/moved", 301, "/page", "127.0.0.1", (("Content-Type", "text/html"), ("Location", "/page"))
    )
    archive.record([look("http://example.org/moved", at(31), HTML % 2, hops=(hop,), final_url=PAGE)])
    headers = (("Location", "http://example.org/page"), ("Content-Type", "text/html"))
    archive.record([look("http://example.org/jump", at(32), b"moved", 302, headers=headers, outcome=Outcome.UNCHANGED)])
    lost = Hop("http://example.org/lost", 302, "http://nowhere.example/", "127.0.0.1", ())
    archive.record(
        [look("http://example.org/lost", at(33), b"landed", hops=(lost,), final_url="http://nowhere.example/")]
    )
    archive.put("http://sub.example.org/a", b"one", at(5))
    archive.put("http://www.example.org/page?x=1", b"query", at(6))


@pytest.fixture
def make_archive(tmp_path: Path) -> Iterator[Callable[..., Archive]]:
    """Archives of one's own, with settings of `[serve]`."""
    with ExitStack() as stack:

        def make(**serve: Any) -> Archive:
            settings = Settings(serve=replace(ServeSettings(), **serve))
            archive = Archive(tmp_path / "archive", settings=settings, clock=lambda: at(100))
            return stack.enter_context(archive)

        yield make


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """A filled archive that a module's tests only read."""
    with Archive(tmp_path_factory.mktemp("serve") / "archive", clock=lambda: at(100)) as filled:
        fill(filled)
        yield filled


@pytest.fixture(scope="module")
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client
