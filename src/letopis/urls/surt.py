"""Sort-friendly keys of addresses, as CDX indexes use them.

The keys equal those of the `surt` library, which other archives use (tests compare the two where that library is
installed). It is no dependency of Letopis: its licence is the AGPL, and it looks up odd hosts in the DNS.
"""

from __future__ import annotations

import re
import struct
from functools import cache, lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes

from letopis.lazy import socket
from letopis.tuples import NamedTuple

_SIMPLE = re.compile(r"https?://(?:www\d*\.)?([a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)+)((?:/[a-z0-9_~-][a-z0-9_.~-]*)*)/?")
_PLAIN = re.compile(r"(https?)://([a-z0-9.:-]+)((?:/[a-z0-9_~-][a-z0-9_.~-]*)*)/?")
_SPLIT = re.compile(rb"(https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.IGNORECASE | re.DOTALL)
_HAS_SCHEME = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]*:")
_REPEATED = re.compile(rb"(?:https?://)+(?=https?://)")
_WWW = re.compile(rb"www\d*\.")
_NUMBERS = re.compile(rb"(?:[1-9][0-9]*(?:\.[0-9]+){0,3}|0[0-7]*(?:\.[0-7]+){0,3})")
_SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_DEFAULT_PORT = {b"http": b"80", b"https": b"443"}
_PATH_SESSIONS = (rb"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)", rb"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)")
_QUERY_SESSIONS = (
    rb"jsessionid=[0-9a-z]{32}",
    rb"phpsessid=[0-9a-z]{32}",
    rb"sid=[0-9a-z]{32}",
    rb"aspsessionid[a-z]{8}=[a-z]{24}",
    rb"cfid=[^&]+&cftoken=[^&]+",
)


class _Sessions(NamedTuple):
    """Where sites keep the numbers of their visitors."""

    in_path: tuple[re.Pattern[bytes], ...]
    in_query: tuple[re.Pattern[bytes], ...]


@cache
def _sessions() -> _Sessions:
    """Compiled for the first address that is not simple: every command starts."""
    return _Sessions(
        tuple(re.compile(pattern, re.DOTALL) for pattern in _PATH_SESSIONS),
        tuple(re.compile(rb"(.*)(?:" + name + rb")(?:&(.*))?", re.IGNORECASE | re.DOTALL) for name in _QUERY_SESSIONS),
    )


def surt(url: str) -> str:
    """The sort key of an address: `org,example)/page?a=1`.

    Defined for http and https; other texts (`dns:`, `urn:`) are their own key.
    """
    simple = _SIMPLE.fullmatch(url)
    if simple:
        return ",".join(reversed(simple[1].split("."))) + ")" + (simple[2] or "/")
    plain = _PLAIN.fullmatch(url)
    if plain:  # a host that is no plain name before a path that is its own key
        host = _host_key(plain[1].encode(), plain[2].encode()).decode("ascii", "replace")
        return f"{host}){plain[3] or '/'}"
    raw = url.encode("utf-8", "surrogatepass").strip()
    raw = raw.translate(None, b"\n\r\t")
    if not _HAS_SCHEME.match(raw):
        raw = b"http://" + raw
    found = _SPLIT.match(_REPEATED.sub(b"", raw))
    if not found:
        return url
    scheme, netloc, path, query = found[1].lower(), found[2], found[3], found[4]
    if not netloc:
        netloc, _, path = path.lstrip(b"/").partition(b"/")
        path = b"/" + path
    return (_host_key(scheme, netloc) + b")" + _path_key(path) + _query_key(query)).decode("ascii", "replace")


def _unescaped(text: bytes) -> bytes:
    """Unescaped until nothing is left to unescape. Each round shortens, so this ends."""
    while b"%" in text:
        plain = unquote_to_bytes(text)
        if plain == text:
            break
        text = plain
    return text


def _escaped(text: bytes) -> bytes:
    return quote_from_bytes(text, safe=_SAFE).encode("ascii")


@lru_cache(maxsize=1024)
def _host_key(scheme: bytes, netloc: bytes) -> bytes:
    """Remembered: addresses come by the host."""
    host, port = _host_and_port(netloc.rpartition(b"@")[2])
    name = _number(_ascii(_unescaped(host)).replace(b"..", b".").strip(b"."))
    www = _WWW.match(name)
    name = name[www.end() :] if www else name
    key = b",".join(reversed(name.split(b".")))
    return key if port in (b"", b"0", _DEFAULT_PORT[scheme]) else key + b":" + port


def _host_and_port(netloc: bytes) -> tuple[bytes, bytes]:
    """The lower-case host without brackets, the port without leading zeros."""
    netloc = netloc.lower().rstrip(b":")
    if netloc.startswith(b"["):
        host, _, port = netloc[1:].partition(b"]")
        return host, port.removeprefix(b":").lstrip(b"0")
    host, _, port = netloc.partition(b":")
    return host, port.lstrip(b"0")


def _ascii(host: bytes) -> bytes:
    if host.isascii():
        return host
    try:
        return host.decode("utf-8", "ignore").encode("idna")
    except ValueError:
        return host


def _number(host: bytes) -> bytes:
    """The dotted form of a host that is a number in disguise; others escaped."""
    if host.isdigit():
        return socket.inet_ntoa(struct.pack(">L", int(host) & 0xFFFFFFFF)).encode("ascii")
    if _NUMBERS.fullmatch(host):
        try:
            return socket.inet_ntoa(socket.inet_aton(host.decode("ascii"))).encode("ascii")
        except OSError:
            return host
    return _escaped(host.lower())


def _path_key(path: bytes) -> bytes:
    path = _escaped(_resolved(_unescaped(path))).lower()
    if path.endswith(b".aspx") or b".aspx" in path:
        for pattern in _sessions().in_path:
            found = pattern.fullmatch(path)
            path = found[1] + found[2] if found else path
    return path[:-1] if path.endswith(b"/") and len(path) > 1 else path


def _resolved(path: bytes) -> bytes:
    """Dot segments resolved, `..` kept where nothing is above it, repeated slashes joined."""
    kept: list[bytes] = []
    for segment in path.split(b"/")[1:]:
        if segment == b".." and kept:
            kept.pop()
        elif segment != b".":
            kept.append(segment)
    if not kept:
        return b"/"
    return b"/" + b"".join(part + b"/" for part in kept[:-1] if part) + kept[-1]


def _query_key(query: bytes | None) -> bytes:
    if not query:
        return b""
    query = _escaped(_unescaped(query))
    for pattern in _sessions().in_query:
        found = pattern.fullmatch(query)
        query = found[1] + (found[2] or b"") if found else query
    query = query.lower()
    if len(query) > 1:
        query = b"&".join(b"=".join(pair) for pair in sorted(tuple(part.split(b"=", 1)) for part in query.split(b"&")))
    return b"?" + query if query else b""
