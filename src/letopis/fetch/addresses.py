"""Which network addresses a request may be connected to: private networks are refused to strangers."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal
from urllib.parse import urlsplit

from letopis.model.web import Failure, FailureKind

Origin = Literal["cli", "http"]
"""The origin of a request: the owner at the machine (command line, Python, daemon), or a caller through HTTP."""

_METADATA = frozenset(IPv4Address(each) for each in ("168.63.129.16", "192.0.0.192"))
"""Cloud metadata services on addresses that otherwise count as public."""
_IPV4_IN_THE_LOW_BITS = tuple(IPv6Network(net) for net in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
_SIX_TO_FOUR = IPv6Network("2002::/16")
_LOCAL = tuple(IPv6Network(net) for net in ("64:ff9b:1::/48", "2001::/32", "fec0::/10", "3fff::/20", "5f00::/16"))
_FORMER_RELAYS = IPv4Network("192.88.99.0/24")


def private_ok(rule: Literal["cli", "always", "never"], origin: Origin) -> bool:
    """Whether a request may go to private and loopback addresses: the one decision behind `fetch.private`."""
    return rule == "always" or (rule == "cli" and origin == "cli")


@lru_cache(maxsize=4096)
def is_public(address: str) -> bool:
    """True for a plain address of the public internet.

    False for loopback, private, link-local, shared (CGNAT), multicast, unspecified, reserved and metadata addresses,
    for IPv6 forms that carry such an IPv4 address (mapped, NAT64, 6to4), and for what is no address.
    """
    try:
        parsed = ip_address(address.split("%", 1)[0])
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        return _is_public_ipv6(parsed)
    return _is_public_ipv4(parsed)


def is_private_url(url: str) -> bool:
    """Whether an address names this machine or a private network by its very text.

    What a name resolves to is seen when it is asked.
    """
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return not is_public(host)


def _is_public_ipv4(address: IPv4Address) -> bool:
    if address in _METADATA or address in _FORMER_RELAYS:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _is_public_ipv6(address: IPv6Address) -> bool:
    inner = _carried_ipv4(address)
    if inner is not None:
        return _is_public_ipv4(inner)
    if address.is_multicast or address.is_reserved or any(address in net for net in _LOCAL):
        return False
    return address.is_global


def _carried_ipv4(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address to which a translator or the kernel would really go."""
    number = int(address)
    if any(address in net for net in _IPV4_IN_THE_LOW_BITS):
        return IPv4Address(number & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address((number >> 80) & 0xFFFFFFFF)
    return None


FORBIDDEN_ADDRESS = Failure(
    FailureKind.FORBIDDEN_ADDRESS,
    "the address belongs to a private network, which this request may not reach; fetch.private can allow it",
)
