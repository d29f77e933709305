"""R5 and R6: what a whole page costs, in processor time beside plain Chromium, and in bytes beside WACZ files.

R6: ten captures of one page with its resources over time, a little of which changes each time; the archive beside ten
WACZ files of the same captures. R5: processor time of captures with a browser (requests answered by Letopis, scrolled,
with screenshot and text, recorded) beside Chromium that only loads the same pages and waits until they are quiet, which
the goal speaks of, beside the same without playwright, and beside Chromium that also scrolls through them and makes a
picture of the same size; and captures of the same pages with a picture that Chromium loads late, and with one that a
script loads when readers come by, for which they are scrolled through window by window.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import random
import sys
import tempfile
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# As a script it starts in its own folder.
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.measuring import measured
from letopis import Archive, Monitor
from letopis.config import CaptureSettings, MonitorSettings, Settings
from letopis.exchange.selection import ExportSelection
from letopis.exchange.wacz_export import export_wacz
from letopis.fetch.browser import find_browser
from letopis.fetch.browser_tab import BrowserTab, TabView
from letopis.fetch.chromium import Chromium
from letopis.fetch.devtools import DevtoolsSession
from letopis.fetch.page_rendering import SCROLL

CAPTURES = 10
PLAIN, PIPE, PLAIN_PICTURE = "plain", "plain, by the pipe", "plain, scrolled, with a picture"
LATE, WAITING = "letopis, with a part that loads late", "letopis, with a script that waits for readers"
WAYS = (PLAIN, PIPE, PLAIN_PICTURE, "letopis", "no picture", LATE, WAITING)
PARTS = {
    "/": b"", "/late": b"<img loading=lazy src=/late.jpg>",
    "/waiting": b"<img id=late><script>new IntersectionObserver((all) => { "
    b"if (all[0].isIntersecting) late.src = '/late.jpg'; }).observe(late)</script>",
}  # fmt: skip
"""What stands at the end of the page, by its address."""
PICTURES = 12
_PR_SET_CHILD_SUBREAPER = 36
_WORDS = ("chronicle", "river", "archive", "town", "notice", "price", "winter", "library", "bridge", "council")


class ChangingSite:
    """A page of some hundred lines with styles, scripts and pictures; `day` changes a few of its parts."""

    def __init__(self) -> None:
        self.day = 0
        handler = partial(_Handler, self)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def answer(self, path: str) -> tuple[str, bytes]:
        """Type and body of an address."""
        if path in PARTS:
            return "text/html", self._page() + PARTS[path]
        rand = random.Random(path + (str(self.day) if path == "/picture-0.jpg" else ""))
        if path.endswith(".jpg"):
            return "image/jpeg", rand.randbytes(20_000)
        rows = (f".{rand.choice(_WORDS)}{n} {{ margin: {rand.randrange(99)}px }}" for n in range(400))
        if path.endswith(".css"):
            return "text/css", "\n".join(rows).encode()
        return "text/javascript", f"/* {' '.join(rand.choices(_WORDS, k=4000))} */".encode()

    def _page(self) -> bytes:
        rand = random.Random(1)
        lines = [" ".join(rand.choices(_WORDS, k=20)) for _ in range(300)]
        lines[self.day * 7 % 300] = f"News of day {self.day}: " + " ".join(rand.choices(_WORDS, k=20))
        pictures = "".join(f"<img src=/picture-{n}.jpg width=90 height=60>" for n in range(PICTURES))
        head = "<!doctype html><title>News</title><link rel=stylesheet href=/style.css><script src=/app.js></script>"
        return (head + pictures + "".join(f"<p>{line}</p>\n" for line in lines)).encode()

    def close(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, site: ChangingSite, *args: object) -> None:
        self._site = site
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        kind, body = self._site.answer(self.path.partition("?")[0])
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def bytes_of_ten(browser: bool) -> dict[str, float]:
    """R6: bytes of the archive and of ten WACZ files."""
    site = ChangingSite()
    moment = [datetime(2026, 1, 1, tzinfo=UTC)]
    settings = Settings(monitor=MonitorSettings(min_interval=0))
    with (
        tempfile.TemporaryDirectory() as folder,
        Archive(Path(folder) / "a", settings=settings, clock=lambda: moment[0]) as archive,
        Monitor(archive) as monitor,
    ):
        options = monitor.options._replace(now=True, browser=browser, requisites=not browser)
        for day in range(CAPTURES):
            site.day, moment[0] = day, moment[0] + timedelta(days=1)
            monitor.look([site.url], options)
        sets = archive.sets.of(site.url)
        assert len(sets) == CAPTURES
        archive.compact()
        wacz = sum(_wacz_bytes(archive, found.time, Path(folder) / "one.wacz") for found in sets)
        whole = archive.stats().disk_bytes
    site.close()
    return {"archive_bytes": whole, "wacz_bytes": wacz, "ratio": round(whole / wacz, 3), "members": sets[-1].members}


def _wacz_bytes(archive: Archive, moment: datetime, target: Path) -> int:
    export_wacz(archive, target, ExportSelection(since=moment, until=moment + timedelta(hours=12)))
    return target.stat().st_size


def processor_time(pages: int) -> dict[str, float]:
    """R5: processor seconds a page of all ways, start of the browser included in each."""
    # A browser ends before its processes do: who adopts and awaits them has their time counted.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    site = ChangingSite()
    found = {}
    for way in WAYS:
        done = measured([sys.executable, "-m", *_command(way), "--url", site.url, "--pages", str(pages)])
        assert done.status == 0, done.out
        found[way] = (done.seconds + _orphans_seconds()) / pages
    site.close()
    ratios = {f"{way} / {PLAIN}": found[way] / found[PLAIN] for way in WAYS[3:]}
    ratios |= {f"{way} / {PIPE}": found[way] / found[PIPE] for way in WAYS[3:]}
    ratios[f"letopis / {PLAIN_PICTURE}"] = found["letopis"] / found[PLAIN_PICTURE]
    return {name: round(figure, 3) for name, figure in (found | ratios).items()}


def _command(way: str) -> list[str]:
    """What is measured starts with nothing of the other side."""
    if way == PIPE:
        return ["bench.capture", "--way", way]
    if way not in (PLAIN, PLAIN_PICTURE):
        part, kind = {LATE: "late", WAITING: "waiting"}.get(way, ""), CaptureSettings().screenshot
        return ["bench.whole_pages", "--part", part, "--screenshot", "none" if way == "no picture" else kind]
    asked = CaptureSettings()
    picture = {"scale": asked.screenshot_scale, "scroll": SCROLL, "most": asked.screenshot_height}
    shown = ["--picture", json.dumps(picture)] if way == PLAIN_PICTURE else []
    return ["bench.plain_pages", "--executable", find_browser(), *shown]


def _orphans_seconds() -> float:
    spent = 0.0
    with suppress(ChildProcessError):
        while True:
            used = os.wait3(0)[2]
            spent += used.ru_utime + used.ru_stime
    return spent


async def load_by_pipe(url: str, pages: int) -> None:
    """The same loading by the client of Letopis, which answers nothing itself."""

    def follow(tab: BrowserTab, session: DevtoolsSession) -> None:
        session.on("Network.requestWillBeSent", lambda event: tab.begin(event["requestId"], session))
        session.on("Network.loadingFinished", lambda event: tab.end(event["requestId"]))
        session.on("Network.loadingFailed", lambda event: tab.end(event["requestId"]))
        session.post("Network.enable")

    chromium = await Chromium.start(find_browser(), "127.0.0.1")
    for number in range(pages):
        tab = await BrowserTab.open(chromium, TabView(1280, 720), follow)
        assert await tab.goto(f"{url}?{number}", 60) == ""
        assert await tab.rest(60)
        await tab.close()
    await chromium.close()


def main() -> None:
    """Prints what was asked for as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=(PIPE,), help="only this, once, and nothing is printed")
    parser.add_argument("--only", choices=("R5", "R6"))
    parser.add_argument("--json", action="store_true", help="not needed: it always is")
    parser.add_argument("--url")
    parser.add_argument("--pages", type=int, default=10)
    asked = parser.parse_args()
    if asked.way == PIPE:
        asyncio.run(load_by_pipe(asked.url, asked.pages))
    else:
        begun = time.monotonic()
        rows = {}
        if asked.only != "R5":
            rows = {"R6 requisites": bytes_of_ten(browser=False), "R6 browser": bytes_of_ten(browser=True)}
        if asked.only != "R6":
            rows["R5"] = processor_time(asked.pages)
        print(json.dumps(rows | {"seconds": round(time.monotonic() - begun)}, indent=2))


if __name__ == "__main__":
    main()
