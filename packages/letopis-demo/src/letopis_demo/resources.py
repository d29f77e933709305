"""Responses as values with the conditional requests that they answer, and what a host serves besides its pages:
robots.txt, sitemaps, a feed, style, pictures, redirects, a busy page.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from struct import pack

from letopis.extract.metadata import read_date
from letopis.model import Headers, from_millis, header, http_date, rfc3339
from letopis.tuples import NamedTuple
from letopis_demo.pages import title_of
from letopis_demo.plans import WorldShape, articles_from, last_modified, plan_of
from letopis_demo.sites import NEWS, SHOP, kind_of, mirrored_host, page_path
from letopis_demo.streams import NEVER, draw_bits


class DemoResponse(NamedTuple):
    """One HTTP answer. Date, Content-Length and Connection are the server's business."""

    status: int
    headers: Headers
    body: bytes


class TimedResponse(NamedTuple):
    """An answer to an unconditional GET with the time from which it may differ, and whether dates may be compared."""

    answer: DemoResponse
    until: int = NEVER
    dated: bool = False


def html_response(status: int, body: bytes, charset: str, headers: Headers = ()) -> DemoResponse:
    """A page."""
    return DemoResponse(status, (("Content-Type", f"text/html; charset={charset}"), *headers), body)


def sentence_response(status: int, text: str, headers: Headers = ()) -> DemoResponse:
    """A short page that says one thing."""
    body = f'<!DOCTYPE html>\n<html lang="en"><head><title>{status}</title></head><body><p>{text}</p></body></html>\n'
    return html_response(status, body.encode(), "utf-8", headers)


def redirect_response(status: int, location: str) -> DemoResponse:
    """An answer that sends the client elsewhere."""
    return sentence_response(status, "This page is elsewhere.", (("Location", location),))


def http_time(millis: int) -> str:
    """A time as HTTP writes it."""
    return http_date(from_millis(millis))


def _unchanged(answer: DemoResponse, dated: bool, asked: Mapping[str, str]) -> bool:
    etag, wanted = header(answer.headers, "ETag"), asked.get("if-none-match", "")
    if wanted:
        return bool(etag) and (wanted.strip() == "*" or etag in [item.strip() for item in wanted.split(",")])
    since, modified = asked.get("if-modified-since", ""), header(answer.headers, "Last-Modified")
    return bool(dated and since and modified) and _date(modified) <= _date(since)


def _date(text: str) -> datetime:
    """A time out of a header; a text that is none lies before everything, so that it never proves a page unchanged."""
    return read_date(text) or datetime.min.replace(tzinfo=UTC)


def conditional_response(held: TimedResponse, asked: Mapping[str, str]) -> DemoResponse:
    """The held answer, or a 304 when the request's validators fit. Names in `asked` are lower case."""
    answer = held.answer
    if answer.status != 200 or not _unchanged(answer, held.dated, asked):
        return answer
    kept = tuple(pair for pair in answer.headers if pair[0] in ("ETag", "Last-Modified"))
    return DemoResponse(304, kept, b"")


SITEMAP_PAGES = 1000
"""Addresses in one sitemap; larger hosts have an index of sitemaps."""
BUSY_FOR = 60_000
"""The busy page refuses for this long and then answers for as long, in milliseconds."""

_STYLE = b"""body { font-family: sans-serif; margin: 2em auto; max-width: 60em; line-height: 1.5 }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 1em; padding: 0 }
.here { font-weight: bold }
.ad { background: url("/static/picture-0.png") #fffbe6; padding: .5em }
"""


class HostMoment(NamedTuple):
    """Which host is asked and when. `host` may be a mirror; `base` is its address without a final slash."""

    shape: WorldShape
    host: int
    base: str
    at: int


def _robots(place: HostMoment, found: re.Match[str]) -> TimedResponse:
    lines = ["User-agent: *", "Disallow: /private/", "Disallow: /ad/"]
    if kind_of(place.host) is SHOP and place.shape.crawl_delay:
        lines.append(f"Crawl-delay: {place.shape.crawl_delay:g}")
    lines += ["", f"Sitemap: {place.base}/sitemap.xml", ""]
    return TimedResponse(DemoResponse(200, (("Content-Type", "text/plain; charset=utf-8"),), "\n".join(lines).encode()))


def _xml(place: HostMoment, content_type: str, lines: Iterator[str]) -> TimedResponse:
    """A document that is made anew each minute of the world's time."""
    body = '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(lines) + "\n"
    return TimedResponse(
        DemoResponse(200, (("Content-Type", content_type),), body.encode()), (place.at // 60_000 + 1) * 60_000
    )


def _listed(place: HostMoment, pages: range) -> Iterator[tuple[str, int, int]]:
    """Address, page and last change of those pages that exist now."""
    host = mirrored_host(place.host)
    for page in pages:
        plan = plan_of(place.shape, host, page)
        if plan.born <= place.at < plan.dies:
            moved = plan.moves <= place.at
            yield f"{place.base}{page_path(kind_of(host), page, moved)}", page, last_modified(plan, place.at)


def _sitemap_lines(place: HostMoment, number: int) -> Iterator[str]:
    yield '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    pages = range(number * SITEMAP_PAGES, min((number + 1) * SITEMAP_PAGES, place.shape.pages))
    for url, _, changed in _listed(place, pages):
        yield f"<url><loc>{url}</loc><lastmod>{rfc3339(from_millis(changed))}</lastmod></url>"
    yield "</urlset>"


def _index_lines(place: HostMoment, count: int) -> Iterator[str]:
    yield '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    for number in range(count):
        yield f"<sitemap><loc>{place.base}/sitemap-{number}.xml</loc></sitemap>"
    yield "</sitemapindex>"


def _sitemap(place: HostMoment, found: re.Match[str]) -> TimedResponse:
    count = -(-place.shape.pages // SITEMAP_PAGES)
    if found[1] is None and count > 1:
        return _xml(place, "application/xml", _index_lines(place, count))
    number = int(found[1] or 0)
    if number >= count:
        return TimedResponse(sentence_response(404, "There is no such sitemap."))
    return _xml(place, "application/xml", _sitemap_lines(place, number))


def _feed_pages(place: HostMoment) -> range:
    shape, host = place.shape, mirrored_host(place.host)
    newest = plan_of(shape, host, 0).front
    if kind_of(host) is NEWS and newest and newest.count(place.at):
        last = articles_from(shape) + newest.count(place.at)
        return range(max(articles_from(shape), last - 20), last)
    return range(min(shape.pages, 20))


def _feed_lines(place: HostMoment) -> Iterator[str]:
    entries = sorted(_listed(place, _feed_pages(place)), key=lambda entry: -entry[2])
    kind, host = kind_of(place.host), mirrored_host(place.host)
    yield f'<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="{kind.language.code}">'
    yield f"<title>{kind.brand}</title><id>{place.base}/feed.atom</id>"
    yield f'<link rel="self" href="{place.base}/feed.atom"/><author><name>{kind.brand}</name></author>'
    yield f"<updated>{rfc3339(from_millis(entries[0][2]))}</updated>"
    for url, page, changed in entries:
        yield f'<entry><title>{title_of(place.shape, host, page)}</title><id>{url}</id><link href="{url}"/>'
        yield f"<updated>{rfc3339(from_millis(changed))}</updated></entry>"
    yield "</feed>"


def _feed(place: HostMoment, found: re.Match[str]) -> TimedResponse:
    return _xml(place, "application/atom+xml", _feed_lines(place))


def _style(place: HostMoment, found: re.Match[str]) -> TimedResponse:
    headers = (("Content-Type", "text/css"), ("ETag", '"style-1"'), ("Last-Modified", http_time(place.shape.start)))
    return TimedResponse(DemoResponse(200, headers, _STYLE), dated=True)


def _chunk(name: bytes, data: bytes) -> bytes:
    return pack(">I", len(data)) + name + data + pack(">I", zlib.crc32(name + data))


def _picture(place: HostMoment, found: re.Match[str]) -> TimedResponse:
    """A PNG of 64 by 48 points in one colour of the seed."""
    colour = pack(">I", draw_bits(place.shape.seed, int(found[1]), "colour") & 0xFFFFFF)[1:]
    rows = zlib.compress((b"\0" + colour * 64) * 48)
    start = _chunk(b"IHDR", pack(">IIBBBBB", 64, 48, 8, 2, 0, 0, 0))
    body = b"\x89PNG\r\n\x1a\n" + start + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")
    return TimedResponse(DemoResponse(200, (("Content-Type", "image/png"), ("Cache-Control", "max-age=86400")), body))


def _loop(place: HostMoment, found: re.Match[str]) -> TimedResponse:
    return TimedResponse(redirect_response(302, "/r/loop/b" if found[1] == "a" else "/r/loop/a"))


def _chain(place: HostMoment, found: re.Match[str]) -> TimedResponse:
    """`/r/PAGE/n` leads over n further redirects to the page, in every kind of redirect there is."""
    page, left = int(found[1]), int(found[2])
    if page >= place.shape.pages:
        return TimedResponse(sentence_response(404, "There is no such page."))
    if left:
        return TimedResponse(redirect_response((302, 303, 307, 308)[left % 4], f"/r/{page}/{left - 1}"))
    return TimedResponse(redirect_response(301, page_path(kind_of(place.host), page)))


def _busy(place: HostMoment, found: re.Match[str]) -> TimedResponse:
    """Refuses with 429 or 503 and a Retry-After that tells the truth, then answers, by turns."""
    turn = place.at // BUSY_FOR
    until = (turn + 1) * BUSY_FOR
    if turn % 2:
        return TimedResponse(sentence_response(200, "There is time for you now."), until)
    seconds = str(-(-(until - place.at) // 1000))
    answer = sentence_response(503 if turn % 4 else 429, "Too many visitors.", (("Retry-After", seconds),))
    return TimedResponse(answer, min(until, (place.at // 1000 + 1) * 1000))


def _private(place: HostMoment, found: re.Match[str]) -> TimedResponse:
    return TimedResponse(
        html_response(200, b"<!DOCTYPE html><title>private</title><p>robots.txt forbids this page.</p>", "utf-8")
    )


def _advertisement(place: HostMoment, found: re.Match[str]) -> TimedResponse:
    return TimedResponse(sentence_response(200, f"An offer with the number {found[1]}."))


_RESOURCES: tuple[tuple[re.Pattern[str], Callable[[HostMoment, re.Match[str]], TimedResponse]], ...] = (
    (re.compile(r"/robots\.txt"), _robots),
    (re.compile(r"/sitemap(?:-(\d{1,9}))?\.xml", re.ASCII), _sitemap),
    (re.compile(r"/feed\.atom"), _feed),
    (re.compile(r"/static/style\.css"), _style),
    (re.compile(r"/static/picture-([0-6])\.png"), _picture),
    (re.compile(r"/r/loop/([ab])"), _loop),
    (re.compile(r"/r/(\d{1,9})/(\d{1,2})", re.ASCII), _chain),
    (re.compile(r"/busy\.html"), _busy),
    (re.compile(r"/private/[a-z]+\.html"), _private),
    (re.compile(r"/ad/(\d{1,6})", re.ASCII), _advertisement),
)


def resource_at(place: HostMoment, address: str) -> TimedResponse | None:
    """The answer for a path that is no page; None when nothing is there either."""
    for pattern, answer in _RESOURCES:
        found = pattern.fullmatch(address)
        if found:
            return answer(place, found)
    return None
