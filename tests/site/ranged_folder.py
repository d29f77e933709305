"""A plain static server over a folder, with single ranges, that remembers what was asked for."""

from __future__ import annotations

import mimetypes
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


class RangedFolder:
    """Where it listens, and the requests it saw: path and Range field."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[tuple[str, str]] = []
        self.address = ""


@contextmanager
def serving(folder: Path) -> Iterator[RangedFolder]:
    """The server at work for the length of a `with` block."""
    told = RangedFolder(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            told.asked.append((path, self.headers.get("Range", "")))
            file = folder / path.lstrip("/")
            file = file / "index.html" if file.is_dir() else file
            data = file.read_bytes() if file.is_file() else b""
            wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
            self.send_response(404 if not file.is_file() else 206 if wanted else 200)
            if wanted and data:
                start = int(wanted[1]) if wanted[1] else len(data) - int(wanted[2])
                end = min(int(wanted[2]) + 1, len(data)) if wanted[1] and wanted[2] else len(data)
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
                data = data[start:end]
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            self.send_header("Content-Type", kind)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if with_body:
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    told.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
