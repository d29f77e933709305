"""A proxy that answers nothing and remembers who asked for the live web."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Proxy(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, ours: str) -> None:
        super().__init__(("127.0.0.1", 0), _Refusing)
        self.asked: list[str] = []
        self.ours = ours


class _Refusing(socketserver.StreamRequestHandler):
    server: _Proxy

    def handle(self) -> None:
        line = self.rfile.readline(4096).decode("latin-1").strip()
        if line and not (self.server.ours and self.server.ours in line):
            self.server.asked.append(line)
        self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@contextmanager
def refusing_proxy(ours: str = "") -> Iterator[tuple[int, list[str]]]:
    """Its port, and the first line of every request that would have left; none of those that have `ours` in them."""
    with _Proxy(ours) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], server.asked
        server.shutdown()
