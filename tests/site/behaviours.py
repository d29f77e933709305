"""What the misbehaving web does, a path each, and what a bounded client has to say of it."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import zlib
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

import brotli
from misbehaving_site import Behaviour, Exchange

from letopis.model import FailureKind, http_date
from letopis.zstandard import zstd

HTML = "Content-Type: text/html; charset=utf-8"
PAGE = b"<!doctype html><title>A page</title><p>Nothing is wrong with this page.</p>"
PAUSE = 0.02
"""Between two drips. Clients give up long before a drip would end."""
BOMB_BYTES = 64 * 1024 * 1024
_seen: Counter[str] = Counter()
_paths: dict[str, Behaviour] = {}


class Item(NamedTuple):
    """A fault, and how it has to be reported with small limits: kind of failure (None: none) and status.

    `or_else` is a second right answer, where the outcome is a race.
    """

    path: str
    failure: FailureKind | None
    status: int
    server: str = "main"
    or_else: FailureKind | None = None


def at(path: str) -> Callable[[Behaviour], Behaviour]:
    def register(behaviour: Behaviour) -> Behaviour:
        _paths[path] = behaviour
        return behaviour

    return register


def route(server: str, path: str) -> Behaviour:
    """The behaviour of a path: its own, or that of its first segment."""
    if path == "/robots.txt":
        return _paths.get(server, _paths["robots"])
    whole = path.lstrip("/")
    return _paths.get(whole) or _paths.get(whole.split("/", 1)[0]) or not_found


async def not_found(x: Exchange) -> None:
    await x.answer("404 Not Found", HTML, body=b"<p>There is no such page.</p>")


@at("ok")
async def ok(x: Exchange) -> None:
    await x.answer("200 OK", HTML, body=PAGE)


@at("")
async def index(x: Exchange) -> None:
    links = "".join(f'<p><a href="/{item.path}">{item.path}</a></p>' for item in ITEMS if item.server == "main")
    await x.answer("200 OK", HTML, body=f"<!doctype html><title>All faults</title>{links}".encode())


# Time: servers that answer slowly or without end.


@at("silent")
async def silent(x: Exchange) -> None:
    await asyncio.Event().wait()


@at("slow-drip")
async def slow_drip(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000\r\n\r\n")
    for _ in range(1_000_000):
        await x.send(b"x")
        await asyncio.sleep(PAUSE)


@at("slow-header")
async def slow_header(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\n")
    for number in range(1_000_000):
        await x.send(f"X-{number}: 1\r\n".encode())
        await asyncio.sleep(PAUSE)


@at("endless")
async def endless(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"y" * 0x10000 + b"\r\n"
    while True:
        await x.send(chunk)


@at("endless-until-close")
async def endless_until_close(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
    while True:
        await x.send(b"y" * 0x10000)


@at("endless-trailer")
async def endless_trailer(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
    while True:
        await x.send(b"X-Trailer: " + b"t" * 1000 + b"\r\n")


# Size: bodies that grow.


@cache
def bomb(coding: str) -> bytes:
    zeros = bytes(BOMB_BYTES)
    makers: dict[str, Callable[[], bytes]] = {
        "gzip": lambda: gzip.compress(zeros, 9, mtime=0),
        "deflate": lambda: zlib.compress(zeros, 9),
        "br": lambda: brotli.compress(zeros, quality=5),
        "zstd": lambda: zstd.compress(zeros, 3),
        "gzip, gzip": lambda: gzip.compress(gzip.compress(zeros, 9, mtime=0), 9, mtime=0),
    }
    return makers[coding]()


@at("bomb")
async def send_bomb(x: Exchange) -> None:
    coding = {"nested": "gzip, gzip"}.get(x.path.rsplit("/", 1)[1], x.path.rsplit("/", 1)[1])
    await x.answer("200 OK", HTML, f"Content-Encoding: {coding}", body=bomb(coding))


@at("many-codings")
async def many_codings(x: Exchange) -> None:
    await x.answer("200 OK", HTML, "Content-Encoding: " + ", ".join(["gzip"] * 50), body=gzip.compress(PAGE))


@cache
def a_million_links() -> bytes:
    return gzip.compress(b"".join(b"<a href=%d>" % number for number in range(1_000_000)), 1)


@at("million-links")
async def million_links(x: Exchange) -> None:
    await x.answer("200 OK", HTML, "Content-Encoding: gzip", body=a_million_links())


@at("large")
async def large(x: Exchange) -> None:
    await x.answer("200 OK", HTML, body=bytes(12 * 1024 * 1024))


# Framing: bodies and headers that are not what they say.


@at("short-length")
async def short_length(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n" + PAGE)
    x.hang_up()


@at("long-length")
async def long_length(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 10\r\n\r\n" + PAGE)
    x.hang_up()


@at("two-lengths")
async def two_lengths(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 20\r\n\r\n" + PAGE)
    x.hang_up()


@at("broken-chunk")
async def broken_chunk(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nnot a size\r\nxx\r\n0\r\n\r\n")
    x.hang_up()


@at("cut-chunks")
async def cut_chunks(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    x.hang_up()


@at("truncated-gzip")
async def truncated_gzip(x: Exchange) -> None:
    await x.answer("200 OK", HTML, "Content-Encoding: gzip", body=gzip.compress(PAGE * 10)[:-20])


@at("damaged-gzip")
async def damaged_gzip(x: Exchange) -> None:
    coded = gzip.compress(bytes(range(256)) * 40)
    await x.answer("200 OK", HTML, "Content-Encoding: gzip", body=coded[:12] + b"\xff" * 40 + coded[52:])


@at("mislabelled-gzip")
async def mislabelled_gzip(x: Exchange) -> None:
    await x.answer("200 OK", HTML, "Content-Encoding: gzip", body=PAGE)


@at("unasked-coding")
async def unasked_coding(x: Exchange) -> None:
    await x.answer("200 OK", HTML, "Content-Encoding: compress", body=PAGE)


@at("garbage")
async def garbage(x: Exchange) -> None:
    await x.send(b"\x00\x01\x02 this was never HTTP\r\n\r\n")
    x.hang_up()


@at("header-flood")
async def header_flood(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await x.send(b"".join(b"X-Flood-%d: %s\r\n" % (number, b"f" * 50) for number in range(100)))


@at("header-line-flood")
async def header_line_flood(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        await x.send(b"f" * 0x10000)


@at("interim-storm")
async def interim_storm(x: Exchange) -> None:
    while True:
        await x.send(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" * 10)


@at("interim-few")
async def interim_few(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-Interim: 1\r\n\r\n")
    await ok(x)


@at("odd-headers")
async def odd_headers(x: Exchange) -> None:
    folded = "X-Folded: one\r\n two"
    await x.answer("200 OK", HTML, "X-Latin: caf\xe9", folded, "x-lower:tight", "X-Twice: 1", "X-Twice: 2", body=PAGE)


@at("bad-charset")
async def bad_charset(x: Exchange) -> None:
    await x.answer("200 OK", "Content-Type: text/html; charset=klingon-8", body="<p>žluťoučký".encode("cp1250"))


# Redirects.


@at("loop")
async def loop(x: Exchange) -> None:
    await x.answer("302 Found", "Location: /loop/" + ("b" if x.path.endswith("a") else "a"))


@at("self")
async def to_itself(x: Exchange) -> None:
    await x.answer("301 Moved Permanently", f"Location: {x.asked.target}")


@at("chain")
async def chain(x: Exchange) -> None:
    left = int(x.path.rsplit("/", 1)[1])
    await (x.answer("302 Found", f"Location: /chain/{left - 1}") if left else ok(x))


@at("endless-chain")
async def endless_chain(x: Exchange) -> None:
    await x.answer("302 Found", f"Location: {x.path}/on"[:4000])


@at("redirect")
async def redirect(x: Exchange) -> None:
    """/redirect/STATUS?to=LOCATION, whatever the location is."""
    status = x.path.rsplit("/", 1)[1]
    await x.answer(f"{status} Moved", "Location: " + x.asked.target.partition("?to=")[2])


@at("redirect-nowhere")
async def redirect_nowhere(x: Exchange) -> None:
    await x.answer("302 Found", HTML, body=PAGE)


@at("redirect-utf8")
async def redirect_utf8(x: Exchange) -> None:
    await x.answer("302 Found", "Location: /target/" + "ž".encode().decode("latin-1"))


@at("redirect-endless-body")
async def redirect_endless_body(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 302 Found\r\nLocation: /ok\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await x.send(b"1000\r\n" + b"z" * 0x1000 + b"\r\n")


@at("short")
async def short_url(x: Exchange) -> None:
    await x.answer("301 Moved Permanently", "Location: /target")


@at("target")
async def target(x: Exchange) -> None:
    if x.asked.headers.get("if-none-match") == '"target-1"':
        return await x.answer("304 Not Modified", 'ETag: "target-1"', length=False)
    return await x.answer("200 OK", HTML, 'ETag: "target-1"', body=PAGE)


@at("mirror")
async def mirror(x: Exchange) -> None:
    """The same content as /target, and the same ETag by chance, at another address."""
    await target(x)


@at("cookie-wall")
async def cookie_wall(x: Exchange) -> None:
    if "pass=1" in x.asked.headers.get("cookie", ""):
        return await ok(x)
    return await x.answer("302 Found", f"Location: {x.asked.target}", "Set-Cookie: pass=1; Path=/cookie-wall")


@at("cookie-flood")
async def cookie_flood(x: Exchange) -> None:
    flood = [f"Set-Cookie: c{number}={'v' * 100}" for number in range(1000)]
    await x.answer("200 OK", HTML, *flood, body=PAGE)


# Connections that end too early.


@at("reset-after-request")
async def reset_after_request(x: Exchange) -> None:
    x.reset()


@at("reset-mid-header")
async def reset_mid_header(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nContent-Type: tex")
    await asyncio.sleep(PAUSE)
    x.reset()


@at("reset-mid-body")
async def reset_mid_body(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n" + PAGE)
    await asyncio.sleep(PAUSE)
    x.reset()


@at("close-after-request")
async def close_after_request(x: Exchange) -> None:
    x.hang_up()


# Trying again.


@at("flaky")
async def flaky(x: Exchange) -> None:
    """503 twice for each query string, then a page."""
    _seen[x.asked.target] += 1
    await (x.answer("503 Service Unavailable") if _seen[x.asked.target] <= 2 else ok(x))


@at("flaky-reset")
async def flaky_reset(x: Exchange) -> None:
    _seen[x.asked.target] += 1
    if _seen[x.asked.target] <= 1:
        return x.reset()
    return await ok(x)


@at("busy")
async def busy(x: Exchange) -> None:
    await x.answer("503 Service Unavailable", "Retry-After: 3600")


@at("busy-until")
async def busy_until(x: Exchange) -> None:
    await x.answer("429 Too Many Requests", "Retry-After: " + http_date(datetime.now(UTC) + timedelta(hours=1)))


# Validators and digests that lie.


@at("lying-last-modified")
async def lying_last_modified(x: Exchange) -> None:
    await x.answer("200 OK", HTML, "Last-Modified: " + http_date(datetime.now(UTC)), body=PAGE)


@at("etag-without-304")
async def etag_without_304(x: Exchange) -> None:
    await x.answer("200 OK", HTML, 'ETag: "always-the-same"', body=PAGE)


@at("bare-304")
async def bare_304(x: Exchange) -> None:
    """A 304 that names no ETag."""
    if "if-none-match" in x.asked.headers or "if-modified-since" in x.asked.headers:
        return await x.answer("304 Not Modified", length=False)
    return await x.answer("200 OK", HTML, 'ETag: "e"', body=PAGE)


@at("wrong-md5")
async def wrong_md5(x: Exchange) -> None:
    await x.answer("200 OK", HTML, "Content-MD5: " + md5(b"something else"), body=PAGE)


@at("right-md5")
async def right_md5(x: Exchange) -> None:
    await x.answer("200 OK", HTML, "Content-MD5: " + md5(PAGE), body=PAGE)


@at("repr-digest")
async def repr_digest(x: Exchange) -> None:
    """The digest of the coded form, as RFC 9530 wants it."""
    coded = gzip.compress(PAGE, mtime=0)
    digest = base64.b64encode(hashlib.sha256(coded).digest()).decode()
    await x.answer("200 OK", HTML, "Content-Encoding: gzip", f"Repr-Digest: sha-256=:{digest}:", body=coded)


def md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


# Ranges.

RECORDS = b"".join(b"%08d\n" % number for number in range(1000))


@at("records")
async def records(x: Exchange) -> None:
    """Honours ranges and If-Range; its ETag changes with the query string."""
    etag = f'"{x.asked.target.partition("?")[2] or "v1"}"'
    first, _, last = x.asked.headers.get("range", "").removeprefix("bytes=").partition("-")
    if not first or x.asked.headers.get("if-range", etag) != etag:
        return await x.answer("200 OK", f"ETag: {etag}", body=RECORDS)
    start, end = int(first), min(int(last or len(RECORDS)) + 1, len(RECORDS))
    if start >= len(RECORDS):
        return await x.answer("416 Range Not Satisfiable", f"Content-Range: bytes */{len(RECORDS)}")
    told = f"Content-Range: bytes {start}-{end - 1}/{len(RECORDS)}"
    return await x.answer("206 Partial Content", told, f"ETag: {etag}", body=RECORDS[start:end])


@at("records-multipart")
async def records_multipart(x: Exchange) -> None:
    spans = [part.split("-") for part in x.asked.headers["range"].removeprefix("bytes=").split(",")]
    body = b""
    for first, last in spans:
        told = f"\r\n--SEP\r\nContent-Range: bytes {first}-{last}/{len(RECORDS)}\r\n\r\n".encode()
        body += told + RECORDS[int(first) : int(last) + 1]
    kind = "Content-Type: multipart/byteranges; boundary=SEP"
    await x.answer("206 Partial Content", kind, body=body + b"\r\n--SEP--\r\n")


@at("records-changing")
async def records_changing(x: Exchange) -> None:
    """Another version at every request."""
    _seen["records-changing"] += 1
    first, _, last = x.asked.headers["range"].removeprefix("bytes=").partition("-")
    told = f"Content-Range: bytes {first}-{last}/{len(RECORDS)}"
    etag = f'ETag: "v{_seen["records-changing"]}"'
    await x.answer("206 Partial Content", told, etag, body=RECORDS[int(first) : int(last) + 1])


@at("records-without-ranges")
async def records_without_ranges(x: Exchange) -> None:
    await x.answer("200 OK", 'ETag: "v1"', body=RECORDS)


@at("records-wrong-range")
async def records_wrong_range(x: Exchange) -> None:
    await x.answer("206 Partial Content", f"Content-Range: bytes 0-9/{len(RECORDS)}", body=RECORDS[:10])


# Scripts, for browsers.


@at("scripted")
async def scripted(x: Exchange) -> None:
    body = b"<!doctype html><title>Before</title><body><script src=/script.js></script>"
    await x.answer("200 OK", HTML, body=body)


@at("script.js")
async def script(x: Exchange) -> None:
    code = b"document.body.append('written ' + 'by a script')"
    await x.answer("200 OK", "Content-Type: text/javascript", body=code)


# Crawls: traps and robots.txt.


@at("trap")
async def trap(x: Exchange) -> None:
    """Every page leads to two deeper ones, for ever."""
    body = f'<p><a href="{x.path}/a">a</a> <a href="{x.path}/b">b</a> {x.path}</p>'
    await x.answer("200 OK", HTML, body=body.encode())


@at("calendar")
async def calendar(x: Exchange) -> None:
    """Every day leads to the next day, for ever."""
    day = int(x.path.rsplit("/", 1)[1]) if x.path.count("/") > 1 else 0
    await x.answer("200 OK", HTML, body=f'<p>Day {day}: <a href="/calendar/{day + 1}">next</a></p>'.encode())


@at("robots")
async def robots(x: Exchange) -> None:
    rules = b"User-agent: *\nDisallow: /private\nCrawl-delay: 2\nSitemap: http://127.0.0.1/sitemap.xml\n"
    await x.answer(
        "200 OK", "Content-Type: text/plain", body=rules + b"\nUser-agent: letopis\nDisallow: /not-letopis\n"
    )


@at("robots-5xx")
async def robots_5xx(x: Exchange) -> None:
    await x.answer("503 Service Unavailable", "Retry-After: 120")


@at("robots-404")
async def robots_404(x: Exchange) -> None:
    await not_found(x)


@at("robots-huge")
async def robots_huge(x: Exchange) -> None:
    filler = b"# nothing to see here\n" * 100_000
    body = b"User-agent: *\nDisallow: /early\n" + filler + b"Disallow: /late\n"
    await x.answer("200 OK", "Content-Type: text/plain", body=body)


@at("robots-html")
async def robots_html(x: Exchange) -> None:
    await x.answer("200 OK", HTML, body=b"<!doctype html><html><body>Disallow: / <p>User-agent: *</p></body></html>")


@at("robots-loop")
async def robots_loop(x: Exchange) -> None:
    await x.answer("302 Found", "Location: /endless-chain")


UNKNOWN_HOST = f"http://{'a' * 64}.test/"
"""A name that no resolver takes, so the failure needs no network."""

K = FailureKind
ITEMS = (
    Item("ok", None, 200),
    Item("silent", K.TIMEOUT, 0),
    Item("slow-drip", K.TIMEOUT, 200),
    Item("slow-header", K.TIMEOUT, 0),
    Item("endless", K.TOO_LARGE, 200),
    Item("endless-until-close", K.TOO_LARGE, 200),
    Item("endless-trailer", K.PROTOCOL, 200),
    Item("bomb/gzip", K.TOO_LARGE, 200),
    Item("bomb/deflate", K.TOO_LARGE, 200),
    Item("bomb/br", K.TOO_LARGE, 200),
    Item("bomb/zstd", K.TOO_LARGE, 200),
    Item("bomb/nested", K.TOO_LARGE, 200),
    Item("many-codings", K.BOMB, 200),
    Item("million-links", K.TOO_LARGE, 200),
    Item("large", K.TOO_LARGE, 200),
    Item("short-length", K.PROTOCOL, 200),
    Item("long-length", None, 200),
    Item("two-lengths", K.PROTOCOL, 0),
    Item("broken-chunk", K.PROTOCOL, 200),
    Item("cut-chunks", K.PROTOCOL, 200),
    Item("truncated-gzip", K.PROTOCOL, 200),
    Item("damaged-gzip", K.PROTOCOL, 200),
    Item("mislabelled-gzip", None, 200),
    Item("unasked-coding", K.PROTOCOL, 200),
    Item("garbage", K.PROTOCOL, 0),
    Item("header-flood", K.PROTOCOL, 0),
    Item("header-line-flood", K.PROTOCOL, 0),
    Item("interim-storm", K.PROTOCOL, 0),
    Item("interim-few", None, 200),
    Item("odd-headers", None, 200),
    Item("bad-charset", None, 200),
    Item("loop/a", K.REDIRECT_LOOP, 302),
    Item("self", K.REDIRECT_LOOP, 301),
    Item("chain/29", None, 200),
    Item("chain/30", None, 200),
    Item("chain/31", K.TOO_MANY_HOPS, 302),
    Item("endless-chain", K.TOO_MANY_HOPS, 302),
    Item("redirect/302?to=javascript:alert(1)", K.BAD_REDIRECT, 302),
    Item("redirect/301?to=file:///etc/passwd", K.BAD_REDIRECT, 301),
    Item("redirect/302?to=http://", K.BAD_REDIRECT, 302),
    Item("redirect-nowhere", K.BAD_REDIRECT, 302),
    Item("redirect-utf8", None, 200),
    Item("redirect-endless-body", None, 200),
    Item("short", None, 200),
    Item("mirror", None, 200),
    Item("cookie-wall", None, 200),
    Item("cookie-flood", None, 200),
    Item("reset-after-request", K.RESET, 0),
    Item("reset-mid-header", K.RESET, 0),
    Item("reset-mid-body", K.RESET, 200),
    Item("close-after-request", K.RESET, 0),
    Item("", K.RESET, 0, "reset-on-accept", K.CONNECT),
    Item("busy", None, 503),
    Item("busy-until", None, 429),
    Item("lying-last-modified", None, 200),
    Item("etag-without-304", None, 200),
    Item("bare-304", None, 200),
    Item("wrong-md5", None, 200),
    Item("repr-digest", None, 200),
    Item("trap/a", None, 200),
    Item("calendar/1", None, 200),
    Item("ok", K.TLS, 0, "tls-untrusted"),
)
