"""Filters of CDX queries in both dialects, and the fields they are about.

Patterns come from strangers: their length is bounded, each match has a time limit, and a whole query has one too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from letopis.bounded import check_pattern
from letopis.errors import UsageError
from letopis.exchange.cdx import FIELDS, CdxRow
from letopis.lazy import regex

RowFilter = Callable[[CdxRow], bool]

MAX_PATTERN = 300
MAX_FILTERS = 20
MATCH_SECONDS = 0.1
TOTAL_SECONDS = 2.0
_MOST_MEMOIZED = 20_000

FIELD_INDEXES: Mapping[str, int] = {name: place for place, name in enumerate(FIELDS)} | {
    "url": 2, "mime": 3, "status": 4,
}  # fmt: skip
"""The position of each field in a row, by all its names."""


ELSEWHERE = ("redirect", "robotflags", "orig.length", "orig.offset", "orig.filename")
"""Fields that no capture has here: they are `-`."""
IN_FILE = ("filename", "offset")
"""The place of a capture in an exported WARC file; `-` if there is no such file."""


def field_index(name: str) -> int:
    """The place of a field."""
    if name not in FIELD_INDEXES:
        raise UsageError(f"unknown field '{name[:40]}'; the fields are {', '.join(FIELDS)}")
    return FIELD_INDEXES[name]


class _Budget:
    """Time that all patterns of one question may take together."""

    def __init__(self) -> None:
        self._left = TOTAL_SECONDS

    def search(self, match: Callable[..., object], value: str) -> bool:
        if self._left <= 0:
            raise UsageError("the filter takes too long; use a simpler pattern")
        started = time.monotonic()
        try:
            return match(value, timeout=MATCH_SECONDS) is not None
        except TimeoutError:
            raise UsageError("the filter takes too long; use a simpler pattern") from None
        finally:
            self._left -= time.monotonic() - started


def wayback_filters(texts: Sequence[str]) -> list[RowFilter]:
    """`[!]field:regex`, which must match the whole field."""
    budget = _Budget()
    return [_wayback(text, budget) for text in _bounded(texts)]


def _wayback(text: str, budget: _Budget) -> RowFilter:
    inverted, text = text.startswith("!"), text.removeprefix("!")
    name, colon, pattern = text.partition(":")
    if not colon:
        raise UsageError("a filter is written field:pattern or !field:pattern")
    match = _compiled(pattern).fullmatch
    return _tested(field_index(name), lambda value: budget.search(match, value), inverted)


def pywb_filters(texts: Sequence[str]) -> list[RowFilter]:
    """`[!][=|~]field:text`: contains, `=` equals, `~` begins with a match of a regular expression."""
    budget = _Budget()
    return [_pywb(text, budget) for text in _bounded(texts)]


def _pywb(text: str, budget: _Budget) -> RowFilter:
    inverted, text = text.startswith("!"), text.removeprefix("!")
    mode, text = (text[0], text[1:]) if text[:1] in ("=", "~") else ("", text)
    name, colon, wanted = text.partition(":")
    test = _test(mode, wanted if colon else text, budget)
    if not colon:
        return lambda row: test(" ".join(row[:7])) != inverted
    # Other servers know more fields; one that no row has is empty everywhere.
    return _tested(FIELD_INDEXES[name], test, inverted) if name in FIELD_INDEXES else lambda row: test("") != inverted


def _test(mode: str, wanted: str, budget: _Budget) -> Callable[[str], bool]:
    if mode == "~":
        match = _compiled(wanted).match
        return lambda value: budget.search(match, value)
    if mode == "=":
        return lambda value: value == wanted
    return lambda value: wanted in value


def _tested(place: int, test: Callable[[str], bool], inverted: bool) -> RowFilter:
    """Few different statuses and types come in many rows: each value is tested once."""
    known: dict[str, bool] = {}

    def passes(row: CdxRow) -> bool:
        value: str = row[place]  # type: ignore[assignment]
        verdict = known.get(value)
        if verdict is None:
            if len(known) > _MOST_MEMOIZED:
                known.clear()
            verdict = known[value] = test(value) != inverted
        return verdict

    return passes


def _bounded(texts: Sequence[str]) -> Sequence[str]:
    if len(texts) > MAX_FILTERS:
        raise UsageError(f"at most {MAX_FILTERS} filters at once")
    return texts


def _compiled(pattern: str) -> regex.Pattern[str]:
    if len(pattern) > MAX_PATTERN:
        raise UsageError(f"a pattern has at most {MAX_PATTERN} characters")
    check_pattern(pattern)
    return regex.compile(pattern)
