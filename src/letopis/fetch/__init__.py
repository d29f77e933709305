"""One polite, bounded, conditional HTTP exchange; the optional browser."""

from typing import TYPE_CHECKING

from letopis.fetch.addresses import Origin, is_private_url, is_public, private_ok
from letopis.lazy import public_names

if TYPE_CHECKING:
    from letopis.fetch.browser import BrowserFetcher, require_browser
    from letopis.fetch.client import BROWSER_HEADERS, Client, Transport, fetch_once, limits_of, retry_after
    from letopis.fetch.curl import CookieJar, CurlTransport
    from letopis.fetch.ranges import CutShort, RangePart, RangeReader, RangesIgnored, error_of_response

_HOMES = {
    "BROWSER_HEADERS": "client",
    "BrowserFetcher": "browser",
    "Client": "client",
    "CookieJar": "curl",
    "CurlTransport": "curl",
    "CutShort": "ranges",
    "RangePart": "ranges",
    "RangeReader": "ranges",
    "RangesIgnored": "ranges",
    "Transport": "client",
    "error_of_response": "ranges",
    "fetch_once": "client",
    "limits_of": "client",
    "require_browser": "browser",
    "retry_after": "client",
}

__all__ = [
    "BROWSER_HEADERS", "BrowserFetcher", "Client", "CookieJar", "CurlTransport", "CutShort", "Origin", "RangePart",
    "RangeReader", "RangesIgnored", "Transport", "error_of_response", "fetch_once", "is_private_url", "is_public",
    "limits_of", "private_ok", "require_browser", "retry_after",
]  # fmt: skip

# What fetches is imported at its first use: most commands only ask whether an address may be fetched.
__getattr__ = public_names(__name__, _HOMES)
