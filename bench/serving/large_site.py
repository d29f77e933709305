"""One large site as a crawl leaves it: sections, pages that link to each other, news, and what webmasters look for.

Recorded through the archive, so that indexes follow it as they follow any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from letopis.archive import Archive
from letopis.model import Failure, FailureKind, Observation, Outcome, Put, Response

HOST = "large.example"
_EACH = 100
"""Pages of a section."""
_NEAR = 6
"""Pages that a page leads to besides its neighbours."""
_GONE = 200
"""Addresses that answer with an error, as many that do not answer, and as many that redirect."""


def fill_site(archive: Archive, pages: int, tell: Callable[[str], None]) -> None:
    """Records the site a month ago, and what is new on it two days ago."""
    now = archive.clock()
    tell(f"recording a site of {pages} pages")
    with archive.hold_writer():
        for _ in archive.put_many(_first(pages, now - timedelta(days=30))):
            pass
        for _ in archive.put_many(_news(pages, now - timedelta(days=2))):
            pass
        archive.record(list(_troubles(pages, now - timedelta(days=29))))


def _first(pages: int, at: datetime) -> Iterator[Put]:
    sections = -(-pages // _EACH)
    top = "".join(f'<li><a href="/s{one}/">Section {one}</a></li>' for one in range(min(sections, 50)))
    yield Put(_url(""), _page("Large", f"<ul>{top}</ul>"), at)
    for section in range(sections):
        yield Put(_url(f"s{section}/"), _page(f"Section {section}", _index(section, sections, pages)), at)
    for number in range(pages - sections - 1):
        yield Put(_url(_path(number)), _article(number, pages, ""), at)


def _news(pages: int, at: datetime) -> Iterator[Put]:
    """A tenth of the pages changed, a hundredth has another title, a hundredth is new and linked by nobody."""
    for number in range(0, pages - -(-pages // _EACH) - 1, 10):
        yield Put(_url(_path(number)), _article(number, pages, "again" if number % 100 else "renamed"), at)
    for number in range(pages // 100):
        yield Put(_url(f"new/{number}.html"), _page(f"New {number}", f"<p>New page {number}.</p>"), at)


def _troubles(pages: int, at: datetime) -> Iterator[Observation]:
    for number in range(min(_GONE, pages // 10)):
        yield _look(f"gone/{number}.html", 404, at, ())
        yield _look(f"mute/{number}.html", 0, at, ())
        yield _look(f"old/{number}.html", 301, at, (("Location", f"/older/{number}.html"),))
        yield _look(f"older/{number}.html", 301, at, (("Location", f"/{_path(number)}"),))


def _look(path: str, status: int, at: datetime, headers: tuple[tuple[str, str], ...]) -> Observation:
    failure = None if status else Failure(FailureKind.TIMEOUT, "no answer in 30 s")
    fields = (("Content-Type", "text/html"), *headers) if status else ()
    response = Response(_url(path), _url(path), status, fields, b"", at, failure=failure)
    redirects = 300 <= status < 400
    return Observation(response, Outcome.UNCHANGED if redirects else Outcome.UNAVAILABLE, dated=True)


def _url(path: str) -> str:
    return f"http://{HOST}/{path}"


def _path(number: int) -> str:
    return f"s{number // _EACH}/{number}.html"


def _index(section: int, sections: int, pages: int) -> str:
    own = range(section * _EACH, min((section + 1) * _EACH, pages - sections - 1))
    links = "".join(f'<li><a href="/{_path(number)}">Article {number}</a></li>' for number in own)
    return f'<p><a href="/s{(section + 50) % sections}/">Further</a></p><ul>{links}</ul>'


def _article(number: int, pages: int, news: str) -> bytes:
    near = (number * 7919 + 104729 * step for step in range(1, _NEAR + 1))
    links = "".join(f'<a href="/{_path(other % (pages * 9 // 10))}">See also {other % 1000}</a> ' for other in near)
    if number % 50 == 0:
        links += f'<a href="/gone/{number // 50 % _GONE}.html">Lost</a> '
    if number % 60 == 0:
        links += f'<a href="/mute/{number // 60 % _GONE}.html">Silent</a> '
    if number % 70 == 0:
        links += f'<a href="/old/{number // 70 % _GONE}.html">Moved</a> '
    title = "Notice" if number % 40 == 7 else f"Article {number}{' now' if news == 'renamed' else ''}"
    said = f"<p>Article {number} tells {number * 31 % 997} and {number * 17 % 1009} {news}.</p>"
    return _page(title, f'<img src="/pictures/{number % 64}.png" alt="">{said}<p>{links}</p>', number // _EACH)


def _page(title: str, inner: str, section: int | None = None) -> bytes:
    up = "" if section is None else f'<a href="/s{section}/">Section</a>'
    body = f'<nav><a href="/">Home</a> {up}</nav><h1>{title}</h1>{inner}'
    return f"<!doctype html><html lang=en><title>{title} | Large</title><body>{body}</body></html>".encode()
