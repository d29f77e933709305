"""Which sorted keys a question covers: one page, a prefix, a host, a domain."""

from __future__ import annotations

from letopis.catalog.captures import KeyRange
from letopis.errors import UsageError
from letopis.urls import surt

MATCH_TYPES = ("exact", "prefix", "host", "domain")


def key_range(url: str, match: str | None) -> KeyRange:
    """The keys that `url` and `matchType` mean; `*.host` and `prefix*` are understood too."""
    if not match:
        url, match = _wildcard(url)
    if match not in MATCH_TYPES:
        raise UsageError(f"matchType must be one of {', '.join(MATCH_TYPES)}")
    key = surt(url)
    if match == "exact":
        return KeyRange.exactly(key)
    if match == "prefix":
        return _below(key + "/" if url.endswith("/") and not key.endswith("/") else key)
    host = key.partition(")")[0]
    if match == "host":
        return KeyRange(host + ")/", host + "*")
    return KeyRange(host + (")/" if "," in host else ","), host + "-")


def _wildcard(url: str) -> tuple[str, str]:
    if url.startswith("*."):
        return url[2:].removesuffix("*").removesuffix("/"), "domain"
    return (url[:-1], "prefix") if url.endswith("*") else (url, "exact")


def _below(prefix: str) -> KeyRange:
    return KeyRange(prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1))
