"""One polite, bounded, conditional HTTP exchange; robots.txt; the optional browser."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from letopis.fetch.addresses import Origin, is_public, private_ok
from letopis.fetch.client import BROWSER_HEADERS, Client, limits_of
from letopis.fetch.cookies import CookieJar
from letopis.fetch.curl import CurlTransport
from letopis.fetch.once import once
from letopis.fetch.retry import retry_after
from letopis.fetch.transport import Transport

if TYPE_CHECKING:
    from letopis.fetch.browser import BrowserFetcher, require_browser
    from letopis.fetch.multipart import Part
    from letopis.fetch.ranges import RangeReader, problem_of
    from letopis.fetch.robots import Robots, Rules, fetch_robots

_HOMES = {
    **dict.fromkeys(("BrowserFetcher", "require_browser"), "browser"),
    "Part": "multipart",
    **dict.fromkeys(("RangeReader", "problem_of"), "ranges"),
    **dict.fromkeys(("Robots", "Rules", "fetch_robots"), "robots"),
}

__all__ = [
    "BROWSER_HEADERS",
    "BrowserFetcher",
    "Client",
    "CookieJar",
    "CurlTransport",
    "Origin",
    "Part",
    "RangeReader",
    "Robots",
    "Rules",
    "Transport",
    "fetch_robots",
    "is_public",
    "limits_of",
    "once",
    "private_ok",
    "problem_of",
    "require_browser",
    "retry_after",
]


def __getattr__(name: str) -> Any:
    """What a check does not need is imported at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'letopis.fetch' has no attribute {name!r}")
    return getattr(import_module(f"letopis.fetch.{_HOMES[name]}"), name)
