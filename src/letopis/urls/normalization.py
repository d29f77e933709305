"""One spelling for each address, links joined to their page, and what an address names: host, site, domain, key.

The grammar is the URL standard's (by ada). On top of it come the choices of an archive: no fragment, no empty query,
no name and password, parameters in order, one form of each escape. A pattern that only normal addresses match answers
most calls without a parse.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from xxhash import xxh3_64_intdigest

from letopis.errors import BadUrl
from letopis.lazy import lazy
from letopis.tuples import NamedTuple

if TYPE_CHECKING:
    import ada_url
    import publicsuffixlist
    from publicsuffixlist import PublicSuffixList
else:
    ada_url = lazy("ada_url")
    publicsuffixlist = lazy("publicsuffixlist")


MAX_URL = 8192
"""Addresses longer than this are refused by `normalize` and dropped by `join`."""

_FAST = 2048
_HINT = "write an address such as http://example.org/page"

# Escapes that stay escaped: upper-case hex of anything but letters, digits, "-", ".", "_" and "~".
_KEPT = r"%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
_PATH = rf"/[\w~!$&'()*+,;=:@./\[\]|-]*+(?>{_KEPT}[\w~!$&'()*+,;=:@./\[\]|-]*+)*+"
_QUERY = rf"(?:\?((?:{_KEPT})?[\w~!$&()*+,;=:@./?\[\]|-]*+(?>{_KEPT}[\w~!$&()*+,;=:@./?\[\]|-]*+)*+))?"
# The last label starts with a letter, so the host is no number in disguise; xn-- is left to the full parser.
_NAME = r"(?>(?!xn--)[a-z0-9][a-z0-9-]*+\.)*+(?!xn--)[a-z][a-z0-9-]*+"
_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_HOST = rf"(?:{_NAME}|{_BYTE}(?:\.{_BYTE}){{3}}(?![\w.-]))"
# Ports up to 65535 but those that a scheme means anyway.
_NUMBER = r"(?:[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]|[1-9]\d{1,3})(?!\d)"
_PLAIN = re.compile(rf"(https?://{_HOST}(?::(?!(?:80|443)(?!\d)){_NUMBER})?)({_PATH})?{_QUERY}(?:#.*)?", re.ASCII)
_ROOTED = rf"(?!//)({_PATH}){_QUERY}(?:#.*)?"
_NESTED = rf"(?!\.)([\w~!$&'()*+,;=@.|-]++(?>{_KEPT}[\w~!$&'()*+,;=@.|-]*+)*+(?:{_PATH})?){_QUERY}(?:#.*)?"
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_DOTTED = re.compile(r"\.+(?=(?::\d+)?\Z)", re.ASCII)
_LOGIN = re.compile(r"//[^/?#\s]*@")
_TYPED_LOGIN = re.compile(r"(?:https?:)?/*([^/?#\\]*)@", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.ASCII | re.IGNORECASE)
_PORT = re.compile(r"[^/?#@]*:\d+(?:[/?#]|\Z)", re.ASCII)
# A scheme without its colon, and the path of a file: neither names the host that it would be taken for.
_MISTYPED = re.compile(r"https?/|/(?!/)", re.IGNORECASE)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_BLANK = " \t\n\r\f\v\x00"
_SAME_EVERYWHERE = ("/", "http://", "https://")
_MOST_REMEMBERED = 4096
_OTHER_SCHEMES = ("javascript:", "data:", "mailto:", "tel:", "about:", "blob:")


class _Base(NamedTuple):
    """What joining needs of a page's address, cut once a page.

    The first three are empty where only the full parser can tell. `site` is
    always there for http and https: scheme, name and password, host and port.
    """

    scheme: str
    origin: str
    folder: str
    site: str


class _Relative(NamedTuple):
    """References that begin at the root of a site, and those that begin at the folder of a page."""

    rooted: re.Pattern[str]
    nested: re.Pattern[str]


@cache
def _relative() -> _Relative:
    """Compiled for the first link: checks join none, and all of them start."""
    return _Relative(re.compile(_ROOTED, re.ASCII), re.compile(_NESTED, re.ASCII))


def normalize(url: str) -> str:
    """The one spelling of an http or https address; normalising twice changes nothing.

    Raises BadUrl for anything else and for addresses over `MAX_URL` characters.
    """
    plain = _PLAIN.fullmatch(url) if len(url) <= _FAST and "/." not in url else None
    return _assembled(plain[1], plain[2], plain[3]) if plain else _parsed(url)


def parse_user_url(text: str) -> str:
    """An address as people type it: `example.org/x` and `localhost:8080` get `http://`."""
    if not isinstance(text, str):
        raise BadUrl(f"{_shown(repr(text))} is not an address; {_HINT}")
    text = text.strip(_BLANK)
    if text.startswith(("http://", "https://")):
        return normalize(text)
    if _MISTYPED.match(text):
        raise BadUrl(f"'{_shown(text)}' is not an address; {_HINT}")
    bare = not _SCHEME.match(text) or (_PORT.match(text) is not None and "://" not in text)
    if bare and text:
        text = "http://" + text.lstrip("/")
    return normalize(text)


def parse_seed_url(text: str) -> str:
    """As above, for a crawl: it asks many pages, and signs in at none."""
    if login(text):
        raise BadUrl("a crawl does not sign in; leave the name and password out of the address, or watch the page")
    return parse_user_url(text)


def login(text: str) -> tuple[tuple[str, str], ...]:
    """The header field that signs in with the name and password of an address as people type it; () if it has none.

    An address that is kept never has them: `normalize` leaves them out.
    """
    found = _TYPED_LOGIN.match(text.strip(_BLANK)) if isinstance(text, str) else None
    if found is None or not found[1]:
        return ()
    name, _, password = found[1].partition(":")
    return (
        ("Authorization", f"Basic {b64encode(unquote_to_bytes(name) + b':' + unquote_to_bytes(password)).decode()}"),
    )


def without_logins(text: str) -> str:
    """A text for a log without the names and passwords of the addresses in it."""
    return _LOGIN.sub("//", text)


def join(base: str, ref: str) -> str | None:
    """The normalised target of a link found on `base`, itself an absolute address.

    None for what cannot be fetched: other schemes, addresses over `MAX_URL`, nonsense.
    An empty reference and a bare fragment mean the page itself.
    """
    parts, relative = _base(base), _relative()
    if parts.origin and "/." not in ref and len(ref) <= _FAST:
        plain = _PLAIN.fullmatch(ref) if ref.startswith("http") else None
        if plain:
            return _assembled(plain[1], plain[2], plain[3])
        if ref.startswith("/"):
            rooted = relative.rooted.fullmatch(ref)
            if rooted:
                return _assembled(parts.origin, rooted[1], rooted[2])
        else:
            nested = relative.nested.fullmatch(ref)
            if nested:
                return _assembled(parts.folder, nested[1], nested[2])
    return _trimmed(base, parts, ref)


def joiner(base: str) -> Callable[[str], str | None]:
    """`join` for the many links of one page: the same answers, each different reference worked out once.

    References that mean the same on every page of a site, as those of its menus, are remembered for the pages to come;
    by nothing less than all that such a reference takes over from its base.
    """
    known: dict[str, str | None] = {}
    name = _base(base).site
    site = _site(name) if name else known
    if len(site) > _MOST_REMEMBERED:
        site.clear()

    def target(ref: str) -> str | None:
        found = site.get(ref)  # tried first: it answers nearly all, and holds none that another page reads differently
        if found is None:
            memory = site if ref.startswith(_SAME_EVERYWHERE) else known
            if ref not in memory:
                memory[ref] = join(base, ref)
            found = memory[ref]
        return found

    return target


@lru_cache(maxsize=64)
def _site(name: str) -> dict[str, str | None]:
    """What is remembered of one site; its name is never empty, since all that have none would share it."""
    return {}


def _trimmed(base: str, parts: _Base, ref: str) -> str | None:
    """The less usual references: with blanks around, fragments alone, addresses without a scheme."""
    ref = ref.strip(_BLANK)
    if ref.startswith("//") and parts.scheme and "/." not in ref and len(ref) <= _FAST:
        plain = _PLAIN.fullmatch(parts.scheme + ref)
        if plain:
            return _assembled(plain[1], plain[2], plain[3])
    return _joined(base, "" if ref.startswith("#") else ref)


def _assembled(prefix: str, path: str | None, query: str | None) -> str:
    """An address of parts that need no more than sorting."""
    query = _sorted(query) if query else ""
    return f"{prefix}{path or '/'}?{query}" if query else prefix + (path or "/")


@lru_cache(maxsize=256)
def _base(base: str) -> _Base:
    plain = _PLAIN.fullmatch(base)
    if not plain or "/." in base or len(base) > _FAST:
        return _Base("", "", "", _parsed_site(base))
    path = plain[2] or "/"
    return _Base(base.partition("//")[0], plain[1], plain[1] + path[: path.rindex("/") + 1], plain[1])


def _parsed_site(base: str) -> str:
    """Of bases that the pattern does not know, whose references may take over more: names, drives, opaque paths."""
    try:
        href: str = ada_url.normalize_url(base)
    except ValueError:
        return ""
    return href[: href.index("/", 8)] if href.startswith(("http://", "https://")) else ""


@lru_cache(maxsize=4096)
def _joined(base: str, ref: str) -> str | None:
    if ref.startswith(_OTHER_SCHEMES) or len(ref) > MAX_URL:
        return None
    try:
        return _polished(ada_url.join_url(base, ref))
    except (ValueError, BadUrl):
        return None


def _parsed(url: str) -> str:
    try:
        return _polished(ada_url.normalize_url(_short(url)))
    except ValueError:
        raise BadUrl(f"'{_shown(url)}' is not an address; {_HINT}") from None


def _short(url: str) -> str:
    if len(url) > MAX_URL:
        raise BadUrl(f"the address has {len(url)} characters; at most {MAX_URL} are allowed")
    return url


def _shown(url: str) -> str:
    text = url if len(url) <= 200 else url[:200] + "..."
    return text.encode("utf-8", "replace").decode()


def _polished(href: str) -> str:
    """The archive's choices on top of what the URL standard makes of an address."""
    if not href.startswith(("http://", "https://")):
        raise BadUrl(f"'{_shown(href)}' cannot be fetched; {_HINT}")
    clean = href.partition("#")[0]
    start = clean.index("/", 8)
    origin, rest = without_logins(clean[:start]), clean[start:]
    undotted = _DOTTED.sub("", origin)
    if undotted != origin:
        # `example.org.` is `example.org`; what remains may be a number in disguise, so it is parsed again.
        return _parsed(undotted + rest)
    path, _, query = rest.partition("?")
    if "%" in rest:
        path, query = _ESCAPE.sub(_escape, path), _ESCAPE.sub(_escape, query)
    query = _sorted(query)
    return _short(f"{origin}{path}?{query}" if query else origin + path)


def _escape(match: re.Match[str]) -> str:
    """Letters, digits and a few marks plain, everything else in upper-case hex; a lone % escaped."""
    digits = match[1]
    if digits is None:
        return "%25"
    char = chr(int(digits, 16))
    return char if char in _UNRESERVED else "%" + digits.upper()


def _parameter_name(parameter: str) -> str:
    return parameter.partition("=")[0]


def _sorted(query: str) -> str:
    """Parameters by name; those of one name keep their order, empty ones fall out."""
    if "&" not in query:
        return query
    return "&".join(sorted(filter(None, query.split("&")), key=_parameter_name))


_NOT_PLAIN = re.compile(r"[?#\\@]")
_IPV4 = re.compile(r"\d+\.\d+\.\d+\.\d+", re.ASCII)


@lru_cache(maxsize=4096)
def host(url: str) -> str:
    """`host[:port]` in lower case, without a name and password. Raises BadUrl where there is none.

    Remembered: a page's is asked for wherever the page passes.
    """
    start = url.find("://")
    if start < 0:
        return host(normalize(url))
    rest = url[start + 3 :].partition("/")[0]
    if _NOT_PLAIN.search(rest):
        for mark in "?#\\":
            rest = rest.partition(mark)[0]
        rest = rest.rpartition("@")[2]
    named = rest.lower()
    if not named:
        raise BadUrl(f"'{url[:200]}' has no host; write an address such as http://example.org/page")
    return named


def site(text: str) -> str:
    """`host[:port]` of a SITE as people write it: a host, a host with a port, or an address."""
    return host(parse_user_url(text))


def hostname(netloc: str) -> str:
    """The host of `host[:port]`, an IPv6 address in its brackets."""
    head, colon, port = netloc.rpartition(":")
    return head if colon and port.isdigit() else netloc


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    # The list ships inside the package: nothing is ever downloaded.
    return publicsuffixlist.PublicSuffixList()


@lru_cache(maxsize=65536)
def registered_domain(netloc: str) -> str:
    """The domain somebody registered: `example.co.uk` of `www.example.co.uk:8080`.

    Addresses, single labels and public suffixes stand for themselves.
    """
    name = hostname(netloc.lower()).strip(".")
    if name.startswith("[") or _IPV4.fullmatch(name):
        return name
    return _suffixes().privatesuffix(name) or name


def url_key(url: str) -> int:
    """A signed 64-bit key of a normalised address, fit for SQL columns."""
    key = xxh3_64_intdigest(url.encode())
    return key - (1 << 64) if key >> 63 else key
