"""The addresses under `/web/`: what each one asks for, and how ours are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from starlette.types import Scope

from letopis.errors import UsageError
from letopis.serve.stamps import stamp
from letopis.urls import parse_user

_MEMENTO = re.compile(r"(\d{1,14})([a-z]{2}_)?/(.+)", re.ASCII | re.DOTALL)
_TIMEMAP = re.compile(r"timemap/(link|json|cdxj)/(?:(\d{14})/)?(.+)", re.ASCII | re.DOTALL)
_DIFF = re.compile(r"diff/(\d{1,14})/(\d{1,14})/(.+)", re.ASCII | re.DOTALL)
_CALENDAR = re.compile(r"(?:\*|%2[aA])/(.+)", re.ASCII | re.DOTALL)
_WITHOUT_TICKET = re.compile(r"\A~[\w.-]+/", re.ASCII)
# Some proxies and clients fold the two slashes after the scheme.
_FOLDED = re.compile(r"(https?):/+(?=[^/])", re.IGNORECASE)
_ESCAPED = re.compile(r"https?%3A", re.IGNORECASE)


class Kind(Enum):
    """What is asked for."""

    TIMEGATE = "timegate"
    MEMENTO = "memento"
    TIMEMAP = "timemap"
    CALENDAR = "calendar"
    DIFF = "diff"


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address. `stamps` has the timestamps in it, `form` the kind of TimeMap or replay."""

    kind: Kind
    url: str
    stamps: tuple[str, ...] = ()
    form: str = ""


def parse(rest: str) -> Address:
    """What follows `/web/`, as it came, with its query; a ticket aside."""
    rest = _WITHOUT_TICKET.sub("", rest, count=1)
    if found := _MEMENTO.fullmatch(rest):
        return Address(Kind.MEMENTO, target(found[3]), (found[1],), found[2] or "")
    if found := _TIMEMAP.fullmatch(rest):
        return Address(Kind.TIMEMAP, target(found[3]), (found[2],) if found[2] else (), found[1])
    if found := _CALENDAR.fullmatch(rest):
        return Address(Kind.CALENDAR, target(found[1]))
    if found := _DIFF.fullmatch(rest):
        return Address(Kind.DIFF, target(found[3]), (found[1], found[2]))
    return Address(Kind.TIMEGATE, target(rest))


def target(text: str) -> str:
    """The address of a page inside one of ours."""
    if not text:
        raise UsageError("the address of a page is missing; write /web/http://example.org/")
    if _ESCAPED.match(text):
        raise UsageError("write the address of the page as it is, without escaping it")
    return parse_user(_FOLDED.sub(r"\1://", text, count=1) if _FOLDED.match(text) else text)


def asked(scope: Scope, prefix: str) -> str:
    """The path behind a prefix, byte for byte as it came, with its query."""
    raw = scope.get("raw_path") or scope["path"].encode()
    path = raw.decode("latin-1").partition("?")[0]
    query = scope["query_string"].decode("latin-1")
    rest = path[path.index(prefix) + len(prefix) :]
    return f"{rest}?{query}" if query else rest


@dataclass(frozen=True, slots=True)
class Web:
    """Writes our addresses for one client.

    `ticket` is what archived pages need to load each other where reading
    takes an account; it never stands in addresses that are told to others.
    """

    origin: str
    ticket: str = ""

    def memento(self, time: int, url: str, form: str = "") -> str:
        """The capture of a URL at a time."""
        return f"{self.origin}/web/{stamp(time)}{form}/{url}"

    def inside(self, time: int, url: str, form: str = "") -> str:
        """The same for the inside of an archived page, as a path."""
        return f"{self.folder(time, form)}{url}"

    def folder(self, time: int, form: str = "") -> str:
        """The path under which all captures of a time lie, for the inside of an archived page."""
        return f"/web/{f'~{self.ticket}/' if self.ticket else ''}{stamp(time)}{form}/"

    def timegate(self, url: str) -> str:
        """Where dates are negotiated."""
        return f"{self.origin}/web/{url}"

    def timemap(self, url: str, form: str = "link", since: str = "") -> str:
        """The list of all captures; a part of it from a timestamp on."""
        return f"{self.origin}/web/timemap/{form}/{since + '/' if since else ''}{url}"
