"""Addresses as plain values: spelling, parts, sort keys, scopes, transformation rules. No I/O."""

from letopis.urls.normalization import (
    MAX_URL,
    host,
    hostname,
    join,
    joiner,
    normalize,
    parse_user_url,
    registered_domain,
    site,
    url_key,
)
from letopis.urls.surt import surt

__all__ = [
    "MAX_URL", "host", "hostname", "join", "joiner", "normalize", "parse_user_url", "registered_domain", "site", "surt",
    "url_key",
]  # fmt: skip
