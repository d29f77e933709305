"""robots.txt by RFC 9309: what may be fetched, how often, where the sitemaps are; cached for a day.

A malformed file is read as its author most likely meant it: missing colons, common misspellings, any line ending. If
that leaves two readings, the stricter one is used.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from letopis.archive import Archive
from letopis.fetch.client import Client, retry_after
from letopis.model import rfc3339
from letopis.model.web import NOT_ASKED, Failure, FailureKind, Limits, Request, Response
from letopis.tuples import NamedTuple

# The file

MAX_LINE = 2083 * 8
"""Characters of a line that count; longer ones are cut."""
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_NAME = re.compile(r"[A-Za-z_-]*")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|[^\x00-\x7f]")
_AGENT, _ALLOW, _DISALLOW, _SITEMAP, _DELAY = "user-agent", "allow", "disallow", "sitemap", "crawl-delay"
_KEYS = {
    **dict.fromkeys(("user-agent", "useragent", "user agent", "user_agent"), _AGENT),
    **dict.fromkeys(("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), _DISALLOW),
    **dict.fromkeys(("sitemap", "site-map"), _SITEMAP),
    **dict.fromkeys(("crawl-delay", "crawldelay", "crawl delay"), _DELAY),
    "allow": _ALLOW,
}


class PathRule(NamedTuple):
    """One allow or disallow line: its weight is the length of its pattern."""

    weight: int
    allows: bool
    pieces: tuple[str, ...]
    ends: bool

    def matches(self, path: str) -> bool:
        """Whether the pattern covers a path: its pieces in their order, the first at the beginning."""
        first, *others = self.pieces
        if not path.startswith(first):
            return False
        at = len(first)
        if not others:
            return not self.ends or at == len(path)
        for piece in others[:-1] if self.ends else others:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return not self.ends or (path.endswith(others[-1]) and len(path) - len(others[-1]) >= at)


class _Group:
    """The rules for one agent, collected from all of its groups."""

    def __init__(self) -> None:
        self.named = False
        self.rules: list[PathRule] = []
        self.delay: float | None = None


class RobotsFile:
    """A robots.txt as it applies to one agent: groups, the most specific rule, wildcards.

    `agent` is a product name such as `Letopis`; if there are groups for it, only their rules apply, otherwise those for
    all agents.
    """

    def __init__(self, text: str, agent: str) -> None:
        self._own, self._everybody = _Group(), _Group()
        self.sitemaps: list[str] = []
        self._agent = agent.lower()
        self._read(text)
        group = self._own if self._own.named else self._everybody
        # The most specific rule first; of two that are as specific the one that allows.
        self._rules = sorted(group.rules, key=lambda rule: (-rule.weight, not rule.allows))
        self.crawl_delay = group.delay

    def allowed(self, url: str) -> bool:
        """Whether the agent may fetch an address."""
        path = path_and_query(url)
        for rule in self._rules:
            if path.startswith(rule.pieces[0]) and rule.matches(path):
                return rule.allows
        return True

    def _read(self, text: str) -> None:
        meant: list[_Group] = []
        naming = False
        for key, value in _lines(text):
            if key == _AGENT:
                meant = meant if naming else []
                naming = True
                meant += self._groups_named(value)
            elif key == _SITEMAP:
                self.sitemaps.append(value)
            elif key == _DELAY:
                for group in meant:
                    group.delay = _seconds(value)
            else:
                naming = False
                for group in meant:
                    group.rules += _rules(value, allows=key == _ALLOW)

    def _groups_named(self, value: str) -> list[_Group]:
        """The groups that a user-agent line begins, if they apply to this agent."""
        if value == "*" or value.startswith(("* ", "*\t")):
            return [self._everybody]
        name = (_NAME.match(value) or [""])[0].lower()
        if name and name == self._agent:
            self._own.named = True
            return [self._own]
        return []


def path_and_query(url: str) -> str:
    """What rules are compared with: everything after the host, without the fragment."""
    at = url.find("/", url.find("://") + 3) if "://" in url else -1
    if at > 0 and "?" not in (before := url[:at]) and ";" not in before:  # as in all normalized URLs
        return url[at:].partition("#")[0]
    rest = url.partition("://")[2] if "://" in url.partition("?")[0] else url.removeprefix("//")
    found = re.search(r"[/?;]", rest)
    path = rest[found.start() :].partition("#")[0] if found else "/"
    return path if path.startswith("/") else "/" + path


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """The meaningful lines, as a known key and its value; half a byte order mark is skipped too."""
    for line in _LINE_ENDS.split(text.lstrip("\ufeff\ufffd")):
        said = line[:MAX_LINE].partition("#")[0].strip()
        key, colon, value = said.partition(":")
        if not colon:
            words = said.split()
            if len(words) != 2:
                continue
            key, value = words
        known = _KEYS.get(key.strip().lower())
        if known is not None:
            yield known, value.strip()


def _rules(value: str, *, allows: bool) -> list[PathRule]:
    """The rules of one line. Allowing the index page of a directory allows the directory."""
    if not value:
        return []
    pattern = _ESCAPE.sub(_encoded, value)
    rules = [_rule(pattern, len(pattern), allows)]
    folder, slash, name = pattern.rpartition("/")
    if allows and slash and name in ("index.htm", "index.html"):
        rules.append(_rule(folder + "/$", len(folder) + 2, allows))
    return rules


def _rule(pattern: str, weight: int, allows: bool) -> PathRule:
    ends = pattern.endswith("$")
    return PathRule(weight, allows, tuple(pattern.removesuffix("$").split("*")), ends)


def _encoded(found: re.Match[str]) -> str:
    text = found[0]
    return text.upper() if text[0] == "%" else "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))


def _seconds(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


# What it means for a host

MAX_ROBOTS_BYTES = 500 * 1024
"""How much of a robots.txt is read; the standard demands at least this much."""
MAX_ROBOTS_REDIRECTS = 5
ROBOTS_LIFETIME = timedelta(hours=24)
_RETRY_SOON = timedelta(minutes=10)
_RETRY_LATE = timedelta(hours=24)
_MAX_DELAY = 86400.0
_MAX_SITEMAPS = 1000
_NOT_REACHED = frozenset({FailureKind.REDIRECT_LOOP, FailureKind.TOO_MANY_HOPS, FailureKind.BAD_REDIRECT})


class RobotsRules:
    """The part of a robots.txt that applies to one agent."""

    __slots__ = ("_file", "crawl_delay", "sitemaps")

    def __init__(self, text: str, agent: str) -> None:
        self._file = RobotsFile(text, agent_token(agent))
        self.crawl_delay = _bounded(self._file.crawl_delay)
        self.sitemaps: tuple[str, ...] = tuple(dict.fromkeys(self._file.sitemaps))[:_MAX_SITEMAPS]

    def allowed(self, url: str) -> bool:
        """Whether the agent may fetch the address."""
        return self._file.allowed(url)


@dataclass(frozen=True, slots=True)
class Robots:
    """A decision about one origin, good until `expires_at`.

    Without rules everything is allowed, unless there is a `failure`: a server whose robots.txt cannot be fetched gets
    no requests for a while, as RFC 9309 (2.3.1.4) demands. The failure is recorded for its pages: one of the network if
    there is no answer, otherwise that no request was sent. `ip` is the address that answered; pauses for hosts that
    share one use it.
    """

    rules: RobotsRules | None
    expires_at: datetime
    failure: Failure | None = None
    ip: str = ""

    @property
    def reachable(self) -> bool:
        """Whether the server answered what it allows, possibly by having no rules."""
        return self.failure is None

    def allowed(self, url: str) -> bool:
        """Whether the URL may be fetched now. robots.txt itself always may."""
        if self.rules is not None:
            return self.rules.allowed(url)
        return self.reachable or url.partition("://")[2].partition("/")[2] == "robots.txt"

    def expired(self, now: datetime) -> bool:
        """Whether it has to be fetched again."""
        return now >= self.expires_at

    @property
    def crawl_delay(self) -> float | None:
        """Seconds that the site demands between two fetches."""
        return self.rules.crawl_delay if self.rules is not None else None

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """URLs of sitemaps that the file names, as written there."""
        return self.rules.sitemaps if self.rules is not None else ()


async def fetch_robots(
    client: Client, origin: str, agent: str, now: datetime, *, limits: Limits | None = None, private_ok: bool = True
) -> Robots:
    """The rules of an origin (`https://host[:port]`) for an agent. Never raises for failures of the network."""
    bounds = limits or Limits(total_seconds=60.0)
    small = Limits(
        max_bytes=MAX_ROBOTS_BYTES,
        max_hops=MAX_ROBOTS_REDIRECTS,
        max_header_bytes=bounds.max_header_bytes,
        connect_seconds=bounds.connect_seconds,
        first_byte_seconds=bounds.first_byte_seconds,
        total_seconds=bounds.total_seconds,
        min_bytes_per_second=bounds.min_bytes_per_second,
        slow_seconds=bounds.slow_seconds,
    )
    url = origin.rstrip("/") + "/robots.txt"
    response = await client.fetch(Request(url, limits=small, keep_partial=True, private_ok=private_ok))
    return robots_of_response(response, agent, now)


def robots_of_response(response: Response, agent: str, now: datetime) -> Robots:
    """What an answer to a request for robots.txt means.

    A file: its rules; of a huge file those at its beginning. 4xx and redirects that lead nowhere: no rules. 5xx, 429
    and a server that cannot be reached: nothing is allowed until the next request.
    """
    failure = response.failure.kind if response.failure is not None else None
    if failure in _NOT_REACHED:
        return Robots(None, now + ROBOTS_LIFETIME, ip=response.ip)
    readable = failure is None or failure is FailureKind.TOO_LARGE
    if not readable or response.status == 429 or response.status >= 500:
        until = now + _pause(response, now)
        return Robots(None, until, _unreachable(response, until), ip=response.ip)
    if 200 <= response.status < 300:
        return Robots(RobotsRules(_text(response.body), agent), now + ROBOTS_LIFETIME, ip=response.ip)
    return Robots(None, now + ROBOTS_LIFETIME, ip=response.ip)


def agent_token(user_agent: str) -> str:
    """The product name that is matched with robots.txt groups: `Letopis` of `Letopis/0.1 (+...)`."""
    return user_agent.strip().split("/", 1)[0].split(" ", 1)[0] or "*"


def _text(body: bytes) -> str:
    cut = body[:MAX_ROBOTS_BYTES]
    if len(body) >= MAX_ROBOTS_BYTES:
        cut = cut[: max(cut.rfind(b"\n"), 0)]  # half a line could forbid or allow too much
    if cut.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return ""  # an error page instead of the file
    return cut.decode("utf-8-sig", "replace")


def _pause(response: Response, now: datetime) -> timedelta:
    asked = timedelta(seconds=retry_after(response, now) or 0.0)
    return min(max(asked, _RETRY_SOON), _RETRY_LATE)


def _unreachable(response: Response, until: datetime) -> Failure:
    """What is recorded for the pages of a server whose robots.txt could not be fetched."""
    failure, then = response.failure, f"its pages are not requested until {rfc3339(until)} (RFC 9309)"
    if failure is not None and failure.kind in NOT_ASKED:
        return failure
    if failure is None or response.status:
        why = failure.message if failure is not None else f"its status is {response.status}"
        return Failure(FailureKind.ROBOTS, f"robots.txt of this host could not be read ({why}); {then}")
    return Failure(failure.kind, f"{failure.message}; robots.txt of this host could not be read, so {then}")


def _bounded(delay: float | None) -> float | None:
    if delay is None or not math.isfinite(delay) or delay < 0:
        return None
    return min(float(delay), _MAX_DELAY)


_IN_MEMORY = 10_000


class RobotsCache:
    """One decision per host and right to private addresses; fetching it counts neither for limits nor for the delay.

    Callers that may not reach private addresses get separate decisions, so that a decision of one group neither opens
    private addresses to the other nor keeps it out.
    """

    def __init__(self, archive: Archive, client: Client, agent: str) -> None:
        self._archive = archive
        self._client = client
        self._agent = agent
        self._known: OrderedDict[tuple[str, bool], Robots] = OrderedDict()
        self._asking: dict[tuple[str, bool], asyncio.Task[Robots]] = {}

    async def of(self, url: str, *, private_ok: bool) -> Robots:
        """The rules for a URL's host."""
        return self.known(url, private_ok=private_ok) or await self._ask((_origin(url), private_ok))

    def known(self, url: str, *, private_ok: bool) -> Robots | None:
        """The same if no request is needed; None if one is."""
        known = self._known.get((_origin(url), private_ok))
        return known if known is not None and not known.expired(self._archive.clock()) else None

    async def _ask(self, key: tuple[str, bool]) -> Robots:
        """Many URLs of one host can wait for the same answer."""
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.ensure_future(self._fetch(*key))
        try:
            return await asking
        finally:
            self._asking.pop(key, None)

    async def _fetch(self, origin: str, private_ok: bool) -> Robots:
        found = await fetch_robots(
            self._client, origin, self._agent, self._archive.clock(), limits=Limits(total_seconds=30.0),
            private_ok=private_ok,
        )  # fmt: skip
        self._known[origin, private_ok] = found
        if len(self._known) > _IN_MEMORY:
            self._known.popitem(last=False)
        return found


def _origin(url: str) -> str:
    return url[: url.index("/", 8)]
