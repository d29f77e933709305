"""A page that loads its content in every way that the web has, one line a way, as captures of an archive."""

from __future__ import annotations

import struct
import zlib
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from served_archive import look

from letopis.archive import Archive
from letopis.urls.request_keys import HttpRequest, request_url

WAYS_AT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
WAYS_STAMP = "20240506070809"
SITE = "https://www.ways-of.example"
CDN = "https://cdn.example"


def picture(color: bytes = b"\xff\0\0") -> bytes:
    """A real PNG of 2 x 2 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + color * 2 for _ in range(2))
    head = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def sound() -> bytes:
    """A second of silence."""
    data = b"\x80" * 8000
    return (
        b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
        + b"data" + struct.pack("<I", len(data)) + data
    )  # fmt: skip


def font() -> bytes:
    """A real font: one that comes with Playwright."""
    driver = Path(import_module("playwright").__file__ or "").parent / "driver"
    return next(driver.rglob("*.ttf")).read_bytes()


_FOLDER = Path(__file__).parent


def _text(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8").replace("CDN", CDN).replace("SITE", SITE)


WAYS = dict(line.split(": ", 1) for line in _text("many_ways.txt").splitlines())
"""What each way runs; it throws or never ends where its content is not there."""


def ways_page() -> bytes:
    """The page that tries all of them, in order, and tells of each in a line."""
    runs = ", ".join(f"{name!r}: async () => {{ {run} }}" for name, run in WAYS.items())
    return _text("many_ways.html").replace("WAYS", "{" + runs + "}").encode()


def remember_ways(archive: Archive) -> None:
    """Records everything that the page asked for when it was captured."""
    archive.put(f"{SITE}/", ways_page(), WAYS_AT, content_type="text/html")
    for line in _text("many_ways_answers.txt").splitlines():
        url, kind, text = line.split(" ", 2)
        archive.put(url, text.encode(), WAYS_AT, content_type=kind)
    posts = [("application/json", b'{"q":"bees","page":2}', b"found bees")]
    posts.append(("application/x-www-form-urlencoded", b"q=wasps", b"found wasps"))
    for kind, body, answer in posts:
        asked = request_url(f"{SITE}/search", HttpRequest("POST", kind, body))
        archive.put(asked, answer, WAYS_AT, content_type="text/plain")
    for name in ("a", "b", "c", "d", "e", "f", "g", "h", "i", "p", "bg", "lazy"):
        archive.put(f"{CDN}/{name}.png", picture(), WAYS_AT, content_type="image/png")
    archive.put(f"{CDN}/old.woff2", font(), WAYS_AT, content_type="font/ttf")
    for host in (SITE, CDN):
        archive.put(f"{host}/sound.wav", sound(), WAYS_AT, content_type="audio/wav")
    moved = (("Location", "/api.json"), ("Content-Type", "text/html"))
    archive.record([look(f"{SITE}/moved", WAYS_AT, b"", 302, headers=moved)])
