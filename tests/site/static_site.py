"""A plain static server over a folder, with single ranges, and with every fault a test may ask for."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from free_port import free_port

Spoil = Callable[[str, bytes], bytes]


@dataclass
class StaticSite:
    """Where the folder is served, how it misbehaves, and what was asked."""

    folder: Path
    address: str = ""
    ranges: bool = True
    spoil: Spoil = lambda path, body: body
    cut: Callable[[str, int], int | None] = lambda path, size: None
    """How many bytes of a body are sent before the connection is cut; None for all."""
    on_request: Callable[[str], None] = lambda path: None
    asked: list[str] = field(default_factory=list)
    sent: int = 0


def _handler(site: StaticSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.asked.append(self.path)
            site.on_request(self.path)
            file = site.folder / self.path.lstrip("/")
            found = file.is_file()
            data = file.read_bytes() if found else b""
            status, fields, data = self._part(data) if found else (404, {}, data)
            body = site.spoil(self.path, data)
            self.send_response(status)
            for name, value in fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            end = site.cut(self.path, len(body))
            site.sent += len(body)
            self.wfile.write(body if end is None else body[:end])
            if end is not None:
                self.close_connection = True

        def _part(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if not wanted or not site.ranges:
                return 200, {}, data
            start, end = int(wanted[1]), min(int(wanted[2]) + 1, len(data))
            if start >= len(data):
                return 416, {"Content-Range": f"bytes */{len(data)}"}, b""
            return 206, {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}, data[start:end]

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def static_site(folder: Path) -> Iterator[StaticSite]:
    """The folder on a free port until the block ends."""
    site = StaticSite(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.daemon_threads = True
    site.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_NGINX = """
daemon off; master_process off; pid {work}/pid; error_log {work}/errors;
events {{}}
http {{
  access_log off;
  client_body_temp_path {work}/a; proxy_temp_path {work}/b; fastcgi_temp_path {work}/c;
  uwsgi_temp_path {work}/d; scgi_temp_path {work}/e;
  server {{ listen 127.0.0.1:{port}; root {folder}; }}
}}
"""


@contextmanager
def nginx_or_plain(folder: Path, work: Path) -> Iterator[str]:
    """The folder served by nginx where it is installed, else by the plain server."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        with static_site(folder) as site:
            yield site.address
        return
    port = free_port()
    work.mkdir()
    (work / "conf").write_text(_NGINX.format(work=work, port=port, folder=folder))
    server = subprocess.Popen([program, "-c", str(work / "conf"), "-e", str(work / "errors")])
    try:
        _answers(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _answers(port: int) -> None:
    deadline = time.monotonic() + 300
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline
