"""What an address names: its host, its site, its registered domain, its key."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

from letopis.errors import BadUrl
from letopis.urls.normal import normalize, parse_user

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

_MORE = re.compile(r"[?#\\@]")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+", re.ASCII)


def host(url: str) -> str:
    """`host[:port]` in lower case, without a name and password. Raises BadUrl where there is none."""
    start = url.find("://")
    if start < 0:
        return host(normalize(url))
    rest = url[start + 3 :].partition("/")[0]
    if _MORE.search(rest):
        for mark in "?#\\":
            rest = rest.partition(mark)[0]
        rest = rest.rpartition("@")[2]
    named = rest.lower()
    if not named:
        raise BadUrl(f"'{url[:200]}' names no host; write an address such as http://example.org/page")
    return named


def site(text: str) -> str:
    """`host[:port]` of a SITE as people write it: a host, a host with a port, or an address."""
    return host(parse_user(text))


def hostname(netloc: str) -> str:
    """The host of `host[:port]`, an IPv6 address in its brackets."""
    head, colon, port = netloc.rpartition(":")
    return head if colon and port.isdigit() else netloc


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415 - checks need no domains, and all of them start

    # The list ships inside the package: nothing is ever downloaded.
    return PublicSuffixList()


@lru_cache(maxsize=65536)
def registered_domain(netloc: str) -> str:
    """The domain somebody registered: `example.co.uk` of `www.example.co.uk:8080`.

    Addresses, single labels and public suffixes stand for themselves.
    """
    name = hostname(netloc.lower()).strip(".")
    if name.startswith("[") or _ADDRESS.fullmatch(name):
        return name
    return _suffixes().privatesuffix(name) or name


def url_key(url: str) -> int:
    """A signed 64-bit key of a normalised address, fit for SQL columns."""
    key = xxh3_64_intdigest(url.encode())
    return key - (1 << 64) if key >> 63 else key
