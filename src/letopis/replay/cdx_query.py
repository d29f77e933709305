"""A CDX query: the keys, parameters and filters it is read from, and the rows that answer it, batch by batch.

Filters of both dialects come from strangers: the length of a pattern is bounded, each match has a time limit, and a
whole query has one too.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, islice
from typing import Any, Literal
from urllib.parse import parse_qsl

from letopis.archive import Archive
from letopis.archive.captures import ALL_TIMES, CaptureList, KeyRange, TimeRange
from letopis.bounded import check_pattern
from letopis.errors import UsageError
from letopis.exchange.cdx import FIELDS, CdxRow, cdx_rows
from letopis.lazy import regex
from letopis.replay.addresses import earliest_millis, latest_millis
from letopis.replay.captures import similar_keys
from letopis.tuples import NamedTuple
from letopis.urls import surt

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


MATCH_TYPES = ("exact", "prefix", "host", "domain")


def key_range(url: str, match: str | None) -> KeyRange:
    """The keys that `url` and `matchType` mean; `*.host` and `prefix*` are understood too."""
    if not match:
        url, match = _wildcard(url)
    if match not in MATCH_TYPES:
        raise UsageError(f"matchType must be one of {', '.join(MATCH_TYPES)}")
    key = surt(url)
    if match == "exact":
        return KeyRange.exactly(key)
    if match == "prefix":
        return _below(key + "/" if url.endswith("/") and not key.endswith("/") else key)
    host = key.partition(")")[0]
    if match == "host":
        return KeyRange(host + ")/", host + "*")
    return KeyRange(host + (")/" if "," in host else ","), host + "-")


def _wildcard(url: str) -> tuple[str, str]:
    if url.startswith("*."):
        return url[2:].removesuffix("*").removesuffix("/"), "domain"
    return (url[:-1], "prefix") if url.endswith("*") else (url, "exact")


def _below(prefix: str) -> KeyRange:
    return KeyRange(prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1))


URLS_PER_BLOCK = 1000
"""What `page` counts: this many URLs make one block."""

MAX_SORTED = 100_000
"""Rows that may be held to answer backwards or by nearness."""


class CollapseRule(NamedTuple):
    """Of neighbours that agree in (the first characters of) a field only the first is kept."""

    place: int
    length: int | None


class CdxQuery(NamedTuple):
    """The query. `resume` is the last row that the client already has."""

    keys: KeyRange
    span: TimeRange = ALL_TIMES
    filters: tuple[RowFilter, ...] = ()
    collapse: tuple[CollapseRule, ...] = ()
    order: Literal["forward", "backward", "closest"] = "forward"
    closest: int = 0
    limit: int | None = None
    offset: int = 0
    page: int | None = None
    page_size: int = 1
    resume: tuple[str, int] | None = None
    revisit_status: str = "-"
    resolved: str | None = None
    """The status that revisits get with the media type of their original; None: they stay revisits."""
    counts: tuple[str, ...] = ()
    """Fields that count rows and follow the others: dupecount, skipcount, endtimestamp."""
    fuzzy: bool = False


class CdxFinder:
    """Answers questions over one archive."""

    def __init__(self, archive: Archive) -> None:
        self._captures = archive.attached(CaptureList)

    def pages(self, query: CdxQuery) -> int:
        """How many pages the whole answer has."""
        return -(-self._captures.blocks(query.keys) // (URLS_PER_BLOCK * query.page_size))

    def find(self, query: CdxQuery) -> Iterator[list[CdxRow]]:
        """Rows in the requested order, never more than the limit."""
        batches = self._collapsed(query)
        if query.order == "backward":
            batches = _backward(batches, query.limit)
        elif query.order == "closest":
            batches = _closest(batches, query)
        elif query.limit is not None and query.limit < 0:
            batches = _last(batches, -query.limit)
        return _cut(batches, query.offset, query.limit)

    def _collapsed(self, query: CdxQuery) -> Iterator[list[CdxRow]]:
        batches = self._filtered(query)
        if DUPLICATES in query.counts:
            batches = _duplicates_counted(batches)
        if SKIPPED in query.counts or LAST_SKIPPED in query.counts:
            return _skips_counted(batches, query)
        for rule in query.collapse:
            batches = _collapsed(batches, rule)
        return batches

    def _filtered(self, query: CdxQuery) -> Iterator[list[CdxRow]]:
        keys = self._page(query)
        if keys is None:
            return
        if query.fuzzy and keys.is_single and not self._captures.blocks(keys):
            keys = similar_keys(self._captures, keys.low) or keys
        if query.resume is not None:
            keys = KeyRange(max(keys.low, query.resume[0]), keys.high)
        for batch in self._captures.batches(keys, query.span):
            rows = cdx_rows(self._captures, batch, query.revisit_status, resolved=query.resolved)
            if query.resume is not None:
                seen = query.resume
                rows = [row for row in rows if (row[0], row[7]) > seen]
            for passes in query.filters:
                rows = [row for row in rows if passes(row)]
            yield rows

    def _page(self, query: CdxQuery) -> KeyRange | None:
        if query.page is None:
            return query.keys
        count = URLS_PER_BLOCK * query.page_size
        return self._captures.block(query.keys, query.page * count, count)


def _collapsed(batches: Iterator[list[CdxRow]], rule: CollapseRule) -> Iterator[list[CdxRow]]:
    last: object = None
    for rows in batches:
        kept = []
        for row in rows:
            value = str(row[rule.place])[: rule.length]
            if value != last:
                kept.append(row)
                last = value
        yield kept


DUPLICATES, SKIPPED, LAST_SKIPPED = "dupecount", "skipcount", "endtimestamp"


def _duplicates_counted(batches: Iterator[list[CdxRow]]) -> Iterator[list[Any]]:
    """Each row with how many rows of its key before it have its digest."""
    seen: Counter[str] = Counter()
    key = ""
    for rows in batches:
        counted = []
        for row in rows:
            if row[0] != key:
                key = row[0]
                seen.clear()
            counted.append((*row, str(seen[row[5]])))
            seen[row[5]] += 1
        yield counted


def _skips_counted(batches: Iterator[list[CdxRow]], query: CdxQuery) -> Iterator[list[Any]]:
    """Collapsed rows, each with how many were left out after it, and the time of the last of them."""
    last: list[str | None] = [None] * len(query.collapse)
    waiting: CdxRow | None = None
    skipped, end = 0, ""

    def counted(row: CdxRow) -> tuple[Any, ...]:
        found = {SKIPPED: str(skipped), LAST_SKIPPED: end or row[1]}
        return (*row, *(found[name] for name in query.counts if name in found))

    for rows in batches:
        kept = []
        for row in rows:
            if query.collapse and _is_skipped(row, query.collapse, last):
                skipped, end = skipped + 1, row[1]
                continue
            if waiting is not None:
                kept.append(counted(waiting))
            waiting, skipped, end = row, 0, ""
        yield kept
    if waiting is not None:
        yield [counted(waiting)]


def _is_skipped(row: CdxRow, rules: Sequence[CollapseRule], last: list[str | None]) -> bool:
    """Whether one of the rules leaves a row out; later rules see only what earlier ones keep."""
    for at, rule in enumerate(rules):
        value = str(row[rule.place])[: rule.length]
        if value == last[at]:
            return True
        last[at] = value
    return False


def _backward(batches: Iterator[list[CdxRow]], limit: int | None) -> Iterator[list[CdxRow]]:
    most = MAX_SORTED if limit is None else min(abs(limit), MAX_SORTED)
    rows = deque(chain.from_iterable(batches), maxlen=most)
    rows.reverse()
    yield list(rows)


def _last(batches: Iterator[list[CdxRow]], count: int) -> Iterator[list[CdxRow]]:
    yield list(deque(chain.from_iterable(batches), maxlen=min(count, MAX_SORTED)))


def _closest(batches: Iterator[list[CdxRow]], query: CdxQuery) -> Iterator[list[CdxRow]]:
    most = MAX_SORTED if query.limit is None else min(abs(query.limit), MAX_SORTED)
    yield nsmallest(most, chain.from_iterable(batches), key=lambda row: abs(row[7] - query.closest))


def _cut(batches: Iterator[list[CdxRow]], offset: int, limit: int | None) -> Iterator[list[CdxRow]]:
    left = abs(limit) if limit is not None else None
    for rows in batches:
        if offset:
            offset, rows = max(0, offset - len(rows)), rows[offset:]
        if left is not None:
            rows = rows[:left]
            left -= len(rows)
        if rows:
            yield rows
        if left == 0:
            return


def resume_key(row: CdxRow) -> str:
    """Where the next query continues; safe in a URL however often it is quoted."""
    return base64.urlsafe_b64encode(f"{row[7]} {row[0]}".encode()).decode().rstrip("=")


def parse_resume_key(text: str) -> tuple[str, int]:
    """The inverse of `resume_key`."""
    try:
        plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        time, _, key = plain.partition(" ")
        return key, int(time)
    except (ValueError, binascii.Error):
        raise UsageError("unknown resumeKey; start without one") from None


def first_rows(batches: Iterator[list[CdxRow]], count: int) -> list[CdxRow]:
    """The first rows of an answer."""
    return list(islice(chain.from_iterable(batches), count))


MAX_ADDRESS = 8192
_TRUE = ("true", "1", "yes", "on")


class CdxParameters:
    """The text after the question mark; a name may occur several times."""

    def __init__(self, query_string: bytes) -> None:
        self._pairs = parse_qsl(query_string.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=100)

    def all(self, name: str) -> list[str]:
        """Every value of a name."""
        return [value for key, value in self._pairs if key == name]

    def get(self, *names: str) -> str:
        """The first value of the first name that is there, or an empty text."""
        for name in names:
            for key, value in self._pairs:
                if key == name and value:
                    return value
        return ""

    def flag(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.get(name).lower() in _TRUE

    def number(self, name: str, least: int = 0, most: int = 2**31) -> int | None:
        """A whole number, or None where it is not given."""
        text = self.get(name)
        if not text:
            return None
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 11):
            raise UsageError(f"{name} must be a whole number")
        if not least <= int(text) <= most:
            raise UsageError(f"{name} must lie between {least} and {most}")
        return int(text)


def parse_parameters(query_string: bytes) -> CdxParameters:
    """Reads the part after the question mark; invalid values raise UsageError."""
    try:
        return CdxParameters(query_string)
    except ValueError:
        raise UsageError("too many parameters; at most 100 are read") from None


def _shared_parts(parameters: CdxParameters, filters: Callable[[Sequence[str]], list[RowFilter]]) -> dict[str, Any]:
    """The parts of a question that both dialects write alike."""
    url = parameters.get("url")
    if not url:
        raise UsageError("give url=, for example url=example.org/*")
    if len(url) > MAX_ADDRESS:
        raise UsageError(f"url may have at most {MAX_ADDRESS} characters")
    since, until = parameters.get("from", "from_ts"), parameters.get("to")
    return {
        "keys": key_range(url, parameters.get("matchType")),
        "span": TimeRange(
            earliest_millis(since) if since else ALL_TIMES.since, latest_millis(until) if until else ALL_TIMES.until
        ),
        "filters": tuple(filters(parameters.all("filter"))),
        "page": parameters.number("page"),
        "page_size": parameters.number("pageSize", 1, 1000) or 1,
        "offset": parameters.number("offset") or 0,
        **_order(parameters),
    }


def _order(parameters: CdxParameters) -> dict[str, Any]:
    closest, sort = parameters.get("closest"), parameters.get("sort")
    if closest:
        return {"order": "closest", "closest": latest_millis(closest) - 999}
    if sort == "closest":
        raise UsageError("sort=closest needs closest=TIMESTAMP")
    return {"order": "backward"} if sort == "reverse" or parameters.flag("reverse") else {}


_COUNTING = (("showDupeCount", DUPLICATES), ("showSkipCount", SKIPPED), ("lastSkipTimestamp", LAST_SKIPPED))


def wayback_query(parameters: CdxParameters) -> CdxQuery:
    """A question in the Internet Archive's dialect."""
    resume = parameters.get("resumeKey")
    return CdxQuery(
        **_shared_parts(parameters, wayback_filters),
        collapse=tuple(_parse_collapse(text) for text in parameters.all("collapse") if text),
        limit=parameters.number("limit", least=-(2**31)),
        resume=parse_resume_key(resume) if resume else None,
        counts=tuple(name for flag, name in _COUNTING if parameters.flag(flag)),
        resolved="200" if parameters.flag("resolveRevisits") else None,
    )


def _parse_collapse(text: str) -> CollapseRule:
    name, _, length = text.partition(":")
    if length and not (length.isascii() and length.isdigit() and len(length) < 6):
        raise UsageError("collapse is written field or field:count")
    return CollapseRule(field_index(name), int(length) if length else None)


def pywb_query(parameters: CdxParameters) -> CdxQuery:
    """A question in pywb's dialect."""
    return CdxQuery(
        **_shared_parts(parameters, pywb_filters),
        limit=parameters.number("limit"),
        revisit_status="",
        resolved="" if parameters.flag("resolveRevisits") else None,
        fuzzy=parameters.get("allowFuzzy").lower() not in ("0", "false"),
    )


def available_query(parameters: CdxParameters) -> CdxQuery:
    """The good capture nearest to a timestamp, else the newest."""
    parts = _shared_parts(parameters, wayback_filters)
    stamp = parameters.get("timestamp")
    nearest = {"order": "closest", "closest": latest_millis(stamp) - 999} if stamp else {"order": "backward"}
    good = wayback_filters(["statuscode:[23].."])
    return CdxQuery(**{**parts, **nearest, "filters": tuple(good)}, resolved="200", limit=1)
