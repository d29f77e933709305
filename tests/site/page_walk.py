"""Which files one page passes on its way from `letopis crawl URL` to the disk: run it, and it prints them as JSON.

A file is passed when one of its functions is handed the page: its address, its bytes, or one of the shapes that it
takes; or when it makes one. Two pages of a site of its own are crawled while a tracer looks at every call.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

import letopis
from letopis.archive.records import NewCapture, RecordedCapture
from letopis.cli.main import main
from letopis.frontier.queue import Ticket
from letopis.model import Observation, Page, Request, Response
from letopis.store import VersionItem

SHAPES = (Ticket, Request, Response, Page, Observation, NewCapture, VersionItem, RecordedCapture)
"""In the order in which a page takes them."""
SOURCE = str(Path(letopis.__file__).parent) + "/"
MARK = b"Kq8zJ"
"""So short a page is stored as it is: its bytes can be seen down to the disk."""


class Site(BaseHTTPRequestHandler):
    """Two small pages and no robots.txt."""

    def do_GET(self) -> None:
        body = (
            b""
            if self.path == "/robots.txt"
            else b"<title>%b</title><a href=/two>two</a>%b" % (MARK, self.path.encode())
        )
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


def is_page(value: Any, address: str, depth: int = 0) -> bool:
    if isinstance(value, SHAPES):
        return True
    if isinstance(value, str):
        return value.startswith(address) and not value.endswith("robots.txt")
    if isinstance(value, bytes | bytearray):
        return MARK in value
    return (
        depth < 2 and isinstance(value, list | tuple) and any(is_page(part, address, depth + 1) for part in value[:3])
    )


def walk(address: str, archive: str) -> list[str]:
    """The files that pages of a site pass, in the order in which they do so first."""
    passed: dict[str, None] = {}

    def look(frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(SOURCE):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if event == "call" else ()
        if any(is_page(value, address) for value in [frame.f_locals.get(name) for name in names] + [result]):
            passed.setdefault(code.co_filename.removeprefix(SOURCE))

    sys.setprofile(look)
    try:
        main(["crawl", address, "--limit", "2", "--delay", "0s", "--archive", archive, "--quiet", "--json"])
    finally:
        sys.setprofile(None)
    return list(passed)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        found = walk(f"http://127.0.0.1:{server.server_port}/", folder)
    sys.stderr.write(json.dumps(found))
