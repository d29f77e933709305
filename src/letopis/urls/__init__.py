"""Addresses as plain values: spelling, parts, sort keys, scopes, transformation rules. No I/O."""

from letopis.urls.normalization import (
    MAX_URL,
    host,
    hostname,
    join,
    joiner,
    login,
    normalize,
    parse_seed_url,
    parse_user_url,
    registered_domain,
    site,
    url_key,
    without_logins,
)
from letopis.urls.surt import surt

__all__ = [
    "MAX_URL", "host", "hostname", "join", "joiner", "login", "normalize", "parse_seed_url", "parse_user_url",
    "registered_domain", "site", "surt", "url_key", "without_logins",
]  # fmt: skip
