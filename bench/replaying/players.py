"""Those who show captures: the captured web itself, Letopis, pywb and ReplayWeb.page."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from playwright.sync_api import BrowserContext, Route

from bench.replaying.visits import Original, Visit, Visitor, frame_at
from bench.replaying.warc_files import KeptWeb
from bench.serving.servers import peer
from letopis.api.server import Server, listen
from letopis.archive import Archive
from letopis.replay.origin import LOCAL_HOST, ReplayOrigin

HOME = Path(__file__).parents[2] / ".bench" / "replay"
REPLAYWEB = "replaywebpage@2.4.6"
_HOP = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})
_SHIFT = """(() => {
  const Real = Date, shift = %d - Real.now();
  Date = new Proxy(Real, {
    construct: (made, given, target) => Reflect.construct(made, given.length ? given : [Real.now() + shift], target),
    get: (made, name) => (name === "now" ? () => Real.now() + shift : Reflect.get(made, name)),
  });
})()"""


class Capture(NamedTuple):
    """A page of a file, at a time."""

    url: str
    time: datetime

    @property
    def stamp(self) -> str:
        """14 digits."""
        return self.time.strftime("%Y%m%d%H%M%S")


def as_captured(context: BrowserContext, web: KeptWeb, page: Capture) -> Visit:
    """The page at its own address, its requests answered with what the file has, and nothing else in reach."""

    def answer(route: Route) -> None:
        asked = route.request
        sent, kind = asked.post_data_buffer or b"", asked.headers.get("content-type", "")
        found = web.nearest(asked.url, page.time, asked.method, sent, kind)
        if found is None:
            route.abort()
            return
        fields = {name: value for name, value in found.headers if name.lower() not in _HOP}
        route.fulfill(status=found.status, headers=fields, body=found.body)

    context.add_init_script(_SHIFT % int(page.time.timestamp() * 1000))
    context.route("**/*", answer)
    return Visitor(context, lambda url: url).visit(page.url, lambda tab: tab.main_frame)


@dataclass(frozen=True)
class Player:
    """Shows captures of one file: where each is shown, by itself or in a frame, and what its addresses were then."""

    name: str
    address: Callable[[Capture], str]
    original: Original
    framed: bool = True

    def visit(self, context: BrowserContext, page: Capture) -> Visit:
        """Opens one."""
        inside = frame_at(lambda url: self.original(url) is not None)
        return Visitor(context, self.original).visit(
            self.address(page), inside if self.framed else lambda tab: tab.main_frame
        )


def letopis_player(port: int) -> Player:
    """Our frame on the replay origin."""
    origin = ReplayOrigin("http", f"{LOCAL_HOST}:{port}")

    def original(address: str) -> str | None:
        found = origin.original(address)
        return origin.restored(found) if found is not None else None

    return Player("letopis", lambda page: f"{origin.base}/web/{page.stamp}/{page.url}", original)


def pywb_player(port: int, collection: str) -> Player:
    """Pages as pywb rewrites them, without its frame."""
    home = f"http://127.0.0.1:{port}/{collection}"
    original = _inside(rf"{home}/\d+(?:\w+_)?/(.+)")
    return Player("pywb", lambda page: f"{home}/{page.stamp}mp_/{page.url}", original, framed=False)


def replayweb_player(port: int, file: str) -> Player:
    """ReplayWeb.page over a file, embedded without its own bars."""
    home = f"http://127.0.0.1:{port}"

    def address(page: Capture) -> str:
        return f"{home}/embed?file={quote(file)}&url={quote(page.url, safe='')}&ts={page.stamp}"

    return Player("replayweb.page", address, _inside(r"https?://[^/]+/replay/w/[^/]+/(?::\w+/)?\d*(?:\w+_)?/(.+)"))


def _inside(pattern: str) -> Original:
    whole = re.compile(pattern, re.DOTALL)

    def original(address: str) -> str | None:
        found = whole.fullmatch(address)
        return found[1] if found is not None else None

    return original


@contextmanager
def letopis(folder: Path) -> Iterator[Player]:
    """Letopis over an archive, with the replay origin beside."""
    with Archive(folder) as archive:
        beside = listen("127.0.0.1", 0)
        server, ready = Server(archive, listen("127.0.0.1", 0), replay=beside), threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(server.run(ready.set)), daemon=True)
        thread.start()
        assert ready.wait(300)
        try:
            yield letopis_player(beside.getsockname()[1])
        finally:
            server.stop()
            thread.join(300)


@contextmanager
def pywb(folder: Path, files: Sequence[Path]) -> Iterator[list[Player]]:
    """One pywb with a collection a file."""
    folder.mkdir()
    (folder / "config.yaml").write_text("framed_replay: false\n")
    told: list[list[str]] = []
    for number, file in enumerate(files):
        parts = [str(file)] if file.suffix != ".wacz" else _unpacked(file, folder / f"wacz{number}")
        told += [["init", f"c{number}"], ["add", f"c{number}", *parts]]
    manager = "import json, sys; from pywb.manager.manager import main; list(map(main, json.load(sys.stdin)))"
    words = [str(peer("python")), "-c", manager]
    subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True, input=json.dumps(told))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(
        [peer("wayback"), "-p", str(port), "-b", "127.0.0.1"], cwd=folder, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ},
    )  # fmt: skip
    try:
        _wait(port)
        yield [pywb_player(port, f"c{number}") for number in range(len(files))]
    finally:
        process.terminate()
        process.wait(20)


def _unpacked(file: Path, folder: Path) -> list[str]:
    """The WARC files in a WACZ file."""
    with zipfile.ZipFile(file) as packed:
        return [packed.extract(name, folder) for name in packed.namelist() if name.startswith("archive/")]


def _wait(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)


_EMBED = """<!doctype html><style>html,body,replay-web-page{margin:0;width:100%;height:100%;display:block}
html{overflow:hidden}iframe{border:0}</style><script src="/ui.js"></script><script>
const asked = new URLSearchParams(location.search), shown = document.createElement("replay-web-page");
for (const [name, value] of Object.entries({source: "/files/" + asked.get("file"), url: asked.get("url"),
  ts: asked.get("ts"), embed: "replayonly", replayBase: "/replay/", noSandbox: ""})) shown.setAttribute(name, value);
addEventListener("DOMContentLoaded", () => document.body.append(shown));
</script><body>"""


class _Files(SimpleHTTPRequestHandler):
    def __init__(self, files: dict[str, Path], *args: object) -> None:
        self._files = files
        super().__init__(*args, directory=str(HOME / "site"))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        text = {"/embed": _EMBED, "/replay/sw.js": 'importScripts("/sw.js");'}.get(path)
        if path.startswith("/files/"):
            self._send(self._files[path.removeprefix("/files/")].read_bytes(), "application/octet-stream")
        elif text is not None:
            self._send(text.encode(), "text/html" if path == "/embed" else "text/javascript")
        else:
            super().do_GET()

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, body: bytes, kind: str) -> None:
        start, status = 0, 200
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        whole, end = len(body), len(body)
        if found is not None:
            status = 206
            start = int(found[1]) if found[1] else max(0, whole - int(found[2]))
            end = min(whole, int(found[2]) + 1) if found[1] and found[2] else whole
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Accept-Ranges", "bytes")
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{whole}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[start:end])

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def replayweb(files: Sequence[Path]) -> Iterator[list[Player]]:
    """ReplayWeb.page as its package has it, fetched once for the benchmark alone."""
    if not (HOME / "site" / "ui.js").exists():
        (HOME / "site").mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", REPLAYWEB], cwd=HOME, check=True, capture_output=True)
        with tarfile.open(next(HOME.glob("*.tgz"))) as packed:
            packed.extractall(HOME, filter="data")
        (HOME / "package").rename(HOME / "site")
    names = {f"{number}-{file.name}": file for number, file in enumerate(files)}
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, names))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield [replayweb_player(server.server_port, name) for name in names]
    finally:
        server.shutdown()
        server.server_close()
