"""A real local server whose pages the test writes while it runs: the fixture `scripted_site`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Script:
    """What a path answers."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/html"})
    validates: bool = False


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """Whoever finds no room in the queue comes again after a second, and after three."""


class ScriptedSite:
    """`site.set("/a", b"text")` changes what `/a` says; `site.log` lists (method, path, headers), `site.times` when.

    `site.posts` lists (path, body) of what was sent to it, and `site.before` is called before anything is answered.
    """

    def __init__(self) -> None:
        self.pages: dict[str, Script] = {}
        self.log: list[tuple[str, str, dict[str, str]]] = []
        self.times: list[float] = []
        self.posts: list[tuple[str, bytes]] = []
        self.before: Callable[[], object] = lambda: None
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def set(self, path: str, body: bytes, status: int = 200, validates: bool = False, **headers: str) -> str:
        fields = {"Content-Type": "text/html"} | {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = Script(body, status, fields, validates)
        return self.url(path)

    def redirect(self, path: str, target: str, status: int = 302) -> str:
        self.pages[path] = Script(b"", status, {"Location": target})
        return self.url(path)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.times.append(time.monotonic())
                site.log.append(
                    (self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
                )
                if self.command == "POST":
                    site.posts.append((self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0))))
                site.before()
                script = site.pages.get(self.path, Script(b"no such page", 404))
                if script.validates and self.headers.get("If-None-Match") == script.headers.get("ETag"):
                    self.send_response(304)
                    self.end_headers()
                    return
                self.send_response(script.status)
                for name, value in script.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(script.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(script.body)

            do_HEAD = do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


@pytest.fixture
def scripted_site() -> Iterator[ScriptedSite]:
    site = ScriptedSite()
    yield site
    site.close()
