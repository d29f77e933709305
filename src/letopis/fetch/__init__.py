"""One polite, bounded, conditional HTTP exchange; robots.txt; the optional browser."""

from letopis.fetch.addresses import Origin, is_public, private_ok
from letopis.fetch.browser import BrowserFetcher, Rendered
from letopis.fetch.client import BROWSER_HEADERS, Client, limits_of
from letopis.fetch.cookies import CookieJar
from letopis.fetch.curl import CurlTransport
from letopis.fetch.multipart import Part
from letopis.fetch.once import once
from letopis.fetch.ranges import RangeReader, problem_of
from letopis.fetch.retry import retry_after
from letopis.fetch.robots import Robots, Rules, fetch_robots
from letopis.fetch.transport import Transport

__all__ = [
    "BROWSER_HEADERS",
    "BrowserFetcher",
    "Client",
    "CookieJar",
    "CurlTransport",
    "Origin",
    "Part",
    "RangeReader",
    "Rendered",
    "Robots",
    "Rules",
    "Transport",
    "fetch_robots",
    "is_public",
    "limits_of",
    "once",
    "private_ok",
    "problem_of",
    "retry_after",
]
