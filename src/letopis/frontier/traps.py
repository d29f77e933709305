"""Spider traps: endless URLs, recognised by their shape and by their number.

A verdict needs only the URL; counting needs a few bytes per pattern of a host and is bounded, so that a trap cannot
fill the memory.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from xxhash import xxh3_64_intdigest

_DIGITS = re.compile(r"\d+", re.ASCII)
_TOKEN = re.compile(r"(?=[^/=&]*\d)(?=[^/=&]*[a-f])[0-9a-f-]{16,}", re.ASCII | re.IGNORECASE)
_HEX_RUN = re.compile(r"[0-9a-fA-F-]{16}", re.ASCII)
_SESSION_NAMES: Final = frozenset(
    ("sid", "sessid", "sessionid", "session_id", "session", "phpsessid", "jsessionid", "cfid", "cftoken", "zenid")
)
_SESSION_VALUE = re.compile(r"[0-9A-Za-z,_-]{12,}", re.ASCII)
_DATE_NAMES: Final = frozenset(
    ("date", "day", "month", "year", "week", "from", "to", "start", "end", "y", "ym", "cal", "calendar", "time")
)
_DATE_PATH = re.compile(r"/(\d{4})(?:[/-](\d{1,2}))?(?:[/-](\d{1,2}))?(?=/|$)", re.ASCII)
_YEAR = re.compile(r"(?<!\d)(\d{4})(?!\d)", re.ASCII)
_EARLIEST = 1970
_AHEAD = 2
_MOST_SAME = 3


class TrapDetector:
    """Says why a URL looks like a trap. Counts URLs that pass, host by host."""

    def __init__(self, most_depth: int = 16, most_pages: int = 2000, most_patterns: int = 200_000) -> None:
        """0 turns a limit off."""
        self._most_depth, self._most_pages, self._most_patterns = most_depth, most_pages, most_patterns
        self._counts: dict[int, int] = {}

    def why(self, url: str, year: int) -> str:
        """The reason not to follow a new URL, or an empty text; passing URLs are counted.

        `year` is the present one: calendars that lead far from it are traps.
        """
        host, path, query = _split(url)
        reason = self._shape(path, query, year)
        if reason or not self._most_pages:
            return reason
        key = xxh3_64_intdigest((host + url_pattern(path, query)).encode())
        seen = self._counts.get(key, 0) + 1
        if seen > self._most_pages:
            return f"more than {self._most_pages} pages of one pattern"
        self._counts[key] = seen
        if len(self._counts) > self._most_patterns:
            self._thin_out()
        return ""

    def _shape(self, path: str, query: str, year: int) -> str:
        segments = [part for part in path.split("/") if part]
        if self._most_depth and len(segments) > self._most_depth:
            return f"more than {self._most_depth} path segments"
        if has_repeating_segments(segments):
            return "a path that repeats itself"
        if _has_session(path, query):
            return "a session in the address"
        return "an endless calendar" if _far_date(path, query, year) else ""

    def _thin_out(self) -> None:
        """All counts decrease by the same until half of the patterns are gone; frequent ones stay."""
        floor = sorted(self._counts.values())[len(self._counts) // 2]
        self._counts = {key: count - floor for key, count in self._counts.items() if count > floor}


def url_pattern(path: str, query: str) -> str:
    """The URL without variable parts: numbers, long tokens, values of parameters."""
    # Hardly any path has a token, and searching one at each letter takes longer than all else here.
    plain = _DIGITS.sub("0", _TOKEN.sub("x", path) if _HEX_RUN.search(path) else path)
    return plain + "?" + "&".join(sorted({part.partition("=")[0] for part in query.split("&")})) if query else plain


def has_repeating_segments(segments: list[str]) -> bool:
    """The same segments repeat: a/b/a/b/a/b, or one of them more than three times."""
    if len(segments) > _MOST_SAME and max(segments.count(part) for part in set(segments)) > _MOST_SAME:
        return True
    return any(segments[-3 * size :] == segments[-size:] * 3 for size in range(1, min(3, len(segments) // 3) + 1))


def _split(url: str) -> tuple[str, str, str]:
    rest = url.partition("#")[0].partition("://")[2]
    before, _, query = rest.partition("?")
    host, slash, path = before.partition("/")
    return host, slash + path, query


def _has_session(path: str, query: str) -> bool:
    if not query and ";" not in path:
        return False
    pieces = [*query.split("&"), *path.partition(";")[2].split(";")]
    for piece in pieces:
        name, _, value = piece.partition("=")
        if name.lower() in _SESSION_NAMES and _SESSION_VALUE.fullmatch(unquote(value)):
            return True
    return False


def _far_date(path: str, query: str, year: int) -> bool:
    """A date in a calendar's place that is long past or far ahead."""
    years = [int(found[1]) for found in _DATE_PATH.finditer(path) if found[2] and 1 <= int(found[2]) <= 12]
    for piece in query.split("&") if query else ():
        name, _, value = piece.partition("=")
        if name.lower() in _DATE_NAMES:
            years.extend(int(found) for found in _YEAR.findall(value))
    return any(not _EARLIEST <= one <= year + _AHEAD for one in years)
