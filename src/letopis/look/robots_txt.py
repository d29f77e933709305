"""robots.txt read as RFC 9309 and the large search engines read it: groups, the most specific rule, wildcards. Pure.

A file that is badly written is read as its author most likely meant it:
missing colons, common misspellings, any line ending. Where that leaves two
readings, the stricter one for us is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from letopis.tuples import NamedTuple

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
    """What the lines about one agent say, gathered from all of its groups."""

    def __init__(self) -> None:
        self.named = False
        self.rules: list[PathRule] = []
        self.delay: float | None = None


class RobotsFile:
    """A robots.txt as one agent has to read it.

    `agent` is a product name such as `Letopis`; the rules of its own groups
    hold alone where there is one, those for all agents otherwise.
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
        return next((rule.allows for rule in self._rules if rule.matches(path)), True)

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
        """The groups that a user-agent line begins, of those that matter to this agent."""
        if value == "*" or value.startswith(("* ", "*\t")):
            return [self._everybody]
        name = (_NAME.match(value) or [""])[0].lower()
        if name and name == self._agent:
            self._own.named = True
            return [self._own]
        return []


def path_and_query(url: str) -> str:
    """What rules are compared with: everything behind the host, without the fragment."""
    at = url.find("/", url.find("://") + 3) if "://" in url else -1
    if at > 0 and "?" not in (before := url[:at]) and ";" not in before:  # as all addresses in their normal form
        return url[at:].partition("#")[0]
    rest = url.partition("://")[2] if "://" in url.partition("?")[0] else url.removeprefix("//")
    found = re.search(r"[/?;]", rest)
    path = rest[found.start() :].partition("#")[0] if found else "/"
    return path if path.startswith("/") else "/" + path


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """The lines that say something, as a known key and its value; half a byte order mark is passed over too."""
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
    """The rules of one line. Allowing a directory's index page allows the directory itself."""
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
