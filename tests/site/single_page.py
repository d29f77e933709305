"""A single-page application on two hosts of loopback: modules, fetch, XHR, routing, lazy parts, ranges and a POST."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from many_ways import picture, sound

_FOLDER = Path(__file__).parent
SEARCH_STEPS = ("type #q = brno", "click #go", "wait #answer:not(:empty)")
"""What a reader does on it, as steps of a look."""


class SinglePage:
    """The application; `asked` lists (method, path) of every request."""

    def __init__(self, port: int) -> None:
        self.cdn = f"localhost:{port}"
        self.url = f"http://127.0.0.1:{port}/"
        self.asked: list[tuple[str, str]] = []
        items = [{"name": f"Volume {n}", "stars": n, "picture": f"http://{self.cdn}/{n}.png"} for n in range(1, 4)]
        code = (_FOLDER / "single_page.js").read_text("utf-8").replace("CDN", self.cdn)
        routes = (
            "export function show() { fetch('/api/route' + location.pathname).then((a) => a.text())"
            ".then((t) => { document.querySelector('#route').textContent = t; }); }"
        )
        style = "body { font: 16px sans-serif; margin: 2em } li { list-style: none } h1 { color: #225 }"
        stars = "export const stars = (n) => '*'.repeat(n);"
        self._answers = {
            "/": ("text/html", (_FOLDER / "single_page.html").read_text("utf-8").replace("CDN", self.cdn)),
            "/app.js": ("text/javascript", code),
            "/routes.js": ("text/javascript", routes),
            "/style.css": ("text/css", style),
            "/stars.js": ("text/javascript", stars),
            "/api/items": ("application/json", json.dumps(items)),
            "/api/note": ("application/json", json.dumps({"note": "Open on Sundays"})),
            "/api/route/": ("text/plain", "All"),
            "/api/search": ("application/json", json.dumps({"answer": "2 volumes on Brno"})),
        }  # fmt: skip

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Type and body of an address."""
        if path.endswith(".png"):
            return "image/png", picture()
        if path == "/film.wav":
            return "audio/wav", sound()
        found = self._answers.get(path)
        return (found[0], found[1].encode()) if found is not None else None


@contextmanager
def single_page() -> Iterator[SinglePage]:
    """Serves it until the block ends."""
    pages: list[SinglePage] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, pages))
    server.daemon_threads = True
    pages.append(SinglePage(server.server_port))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield pages[0]
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, pages: list[SinglePage], *args: object) -> None:
        self._page = pages[0]
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self._page.asked.append((self.command, path))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind, body = self._page.answer(path) or ("", b"")
        status, fields = (200, {"Content-Type": kind}) if kind else (404, {})
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if found is not None and kind:
            first, whole = int(found[1]), len(body)
            body = body[first : int(found[2]) + 1 if found[2] else whole]
            status, fields["Content-Range"] = 206, f"bytes {first}-{first + len(body) - 1}/{whole}"
        self.send_response(status)
        for name, value in {**fields, "Access-Control-Allow-Origin": "*", "Accept-Ranges": "bytes"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""
