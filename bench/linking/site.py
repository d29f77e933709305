"""A site of 5,001 pages with 50 links that lead nowhere, and a server for it."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PAGES, BROKEN = 5_001, 50


def site_files() -> dict[str, bytes]:
    """Pages in a tree of ten, each with links to twenty others, one in a hundred with a link to nothing."""
    names = [_word(number) for number in range(PAGES)]
    files = {}
    for number, name in enumerate(names):
        below = [names[child] for child in range(number * 10 + 1, min(number * 10 + 11, PAGES))]
        others = [names[(number * 7 + step) % PAGES] for step in range(20)]
        links = "".join(f'<li><a href="/{other}.html">{other}</a></li>' for other in [*below, *others])
        lost = f'<a href="/lost-{name}.html">lost</a>' if _has_lost(number) else ""
        text = f"<p>{'The quick brown fox jumps over the lazy dog. ' * 40}</p>"
        body = f"<!DOCTYPE html><html lang=en><title>{name}</title><body><ul>{links}</ul>{lost}{text}</body></html>"
        files[f"/{name}.html"] = body.encode()
    files["/"] = files[f"/{names[0]}.html"]
    return files


def _has_lost(number: int) -> bool:
    return number % 100 == 50


def planted(base: str) -> set[tuple[str, str]]:
    """The broken links as pairs of the page where one stands and the address that is not there."""
    names = [_word(number) for number in range(PAGES) if _has_lost(number)]
    return {(f"{base}{name}.html", f"{base}lost-{name}.html") for name in names}


def _word(number: int) -> str:
    """A name in letters alone: addresses that differ in numbers only would look like a trap."""
    letters = ""
    while True:
        number, rest = divmod(number, 26)
        letters = chr(97 + rest) + letters
        if not number:
            return f"page-{letters}"


class _Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]
    # Head and body leave in one piece: sent apart, the second waits 40 ms for the client's delayed acknowledgement.
    wbufsize = 1 << 16

    def do_GET(self) -> None:
        body = self.files.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body or b"")))
        # By this header a site lets LinkChecker ask more often than ten times a second.
        self.send_header("LinkChecker", "welcome")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body or b"")
        self.wfile.flush()

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


def serve() -> int:
    """Serves the site on a free port, whose number is the first line it prints."""
    _Pages.files = site_files()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    print(server.server_address[1], flush=True)
    server.serve_forever()
    return 0
