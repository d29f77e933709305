"""One polite, bounded, conditional HTTP exchange; the optional browser."""

from typing import TYPE_CHECKING

from letopis.fetch.addresses import Origin, is_private_url, is_public, private_ok
from letopis.lazy import homes, public_names

if TYPE_CHECKING:
    from letopis.fetch.browser import BrowserFetcher, require_browser
    from letopis.fetch.client import BROWSER_HEADERS, Client, Transport, fetch_once, limits_of, retry_after
    from letopis.fetch.curl import CookieJar, CurlTransport
    from letopis.fetch.ranges import CutShort, RangePart, RangeReader, RangesIgnored, error_of_response

_HOMES = homes({
    "browser": ("BrowserFetcher", "require_browser"),
    "client": ("BROWSER_HEADERS", "Client", "Transport", "fetch_once", "limits_of", "retry_after"),
    "curl": ("CookieJar", "CurlTransport"),
    "ranges": ("CutShort", "RangePart", "RangeReader", "RangesIgnored", "error_of_response"),
})  # fmt: skip

__all__ = [
    "BROWSER_HEADERS", "BrowserFetcher", "Client", "CookieJar", "CurlTransport", "CutShort", "Origin", "RangePart",
    "RangeReader", "RangesIgnored", "Transport", "error_of_response", "fetch_once", "is_private_url", "is_public",
    "limits_of", "private_ok", "require_browser", "retry_after",
]  # fmt: skip

# What fetches is imported at its first use: most commands only ask whether an address may be fetched.
__getattr__ = public_names(__name__, _HOMES)
