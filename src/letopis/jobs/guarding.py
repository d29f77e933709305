"""Questions of strangers that name addresses nobody may send us to.

A first look at what is written; the address really connected to is judged again when it is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from letopis.errors import Refused, UsageError
from letopis.fetch import is_public
from letopis.jobs.language.parsing import read_query
from letopis.jobs.query import Query
from letopis.urls import parse_user

_UPKEEP = ("cleaner", "compact")


def refuse_private(addresses: Iterable[str]) -> None:
    """Raises Refused for the first address that is private, loopback or link-local by its very text."""
    for address in addresses:
        if _is_private(address):
            raise Refused(f"{address} is a private address; the owner can allow them with fetch.private")


def addresses_of(query: Query) -> Iterator[str]:
    """What a question would fetch, as far as it says so itself."""
    for element in read_query(query).iter("url"):
        yield from (element.text or "").split()


def refuse_upkeep(query: Query) -> None:
    """Raises Refused for a question that looks after the archive itself, which is the owner's business."""
    for element in read_query(query).iter(*_UPKEEP):
        raise Refused(f"<{element.tag}> looks after the whole archive; only an owner may ask for it")


def _is_private(address: str) -> bool:
    try:
        host = urlsplit(parse_user(address)).hostname or ""
    except UsageError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return not is_public(host)
