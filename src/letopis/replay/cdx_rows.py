"""Captures as CDX rows, made in whole batches, and filters over their fields in both dialects.

Patterns come from strangers: their length is bounded, each match has a time limit, and a whole query has one too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import regex

from letopis.catalog import OUTCOME_CODES, Catalog
from letopis.catalog.captures import IS_VERSION, CaptureTuple
from letopis.errors import UsageError
from letopis.model import Outcome, header
from letopis.replay.addresses import timestamp

FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
"""The fields of a row, in the order of its places; the time in milliseconds follows them."""

CdxRow = tuple[str, str, str, str, str, str, str, int]

URLKEY, TIMESTAMP, ORIGINAL, MIMETYPE, STATUSCODE, DIGEST, LENGTH, TIME = range(8)
REVISIT = "warc/revisit"
EMPTY_DIGEST = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""SHA-1 of nothing: what a redirect carried of its own."""

_UNCHANGED = OUTCOME_CODES[Outcome.UNCHANGED]
_TOO_LARGE = OUTCOME_CODES[Outcome.TOO_LARGE]
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", np.uint8)
_SHIFTS = np.arange(35, -1, -5, dtype=np.uint64)
_BYTES = np.array([1 << 32, 1 << 24, 1 << 16, 1 << 8, 1], np.uint64)
_NOTHING = bytes(20)
_MOST_MEDIA_TYPES = 200_000


def digests(hashes: Sequence[bytes]) -> list[str]:
    """Base32 of many SHA-1 at once."""
    groups = np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 5).astype(np.uint64) @ _BYTES
    places = (groups[:, None] >> _SHIFTS) & np.uint64(31)
    text = _ALPHABET[places.astype(np.intp)].tobytes().decode("ascii")
    return [text[start : start + 32] for start in range(0, len(text), 32)]


def has_hops(extra: str | None) -> bool:
    """Whether a check was redirected; quotes inside texts are escaped, so the mark cannot be forged."""
    return extra is not None and ('{"hops":[' in extra or ',"hops":[' in extra)


class MediaTypes:
    """Media types by the id of their headers, remembered across questions."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[int | None, str] = {None: "unk"}

    def of(self, batch: Sequence[CaptureTuple]) -> dict[int | None, str]:
        """The types of all headers in a batch; texts without one are `unk`."""
        missing = {capture[4] for capture in batch} - self._known.keys()
        if missing:
            if len(self._known) > _MOST_MEDIA_TYPES:
                self._known = {None: "unk"}
                missing |= {capture[4] for capture in batch if capture[4] is not None}
            found = self._catalog.heads.types({number for number in missing if number is not None})
            self._known.update((number, found.get(number or 0) or "unk") for number in missing)
        return self._known


def rows_of(batch: Sequence[CaptureTuple], types: MediaTypes, revisit_status: str) -> list[CdxRow]:
    """The rows of a batch. A check that found nothing new is a revisit, a redirected one a redirect."""
    kinds = types.of(batch)
    texts = digests([capture[5] or _NOTHING for capture in batch])
    rows: list[CdxRow] = []
    add = rows.append
    for capture, digest in zip(batch, texts, strict=True):
        name, url, time, status, head, sha1, length, extra, outcome = capture
        if outcome == IS_VERSION and extra is None:
            add((name, timestamp(time), url, kinds[head], str(status), digest, str(length), time))
        elif has_hops(extra):
            code, kind = _redirect(extra)
            add((name, timestamp(time), url, kind, code, EMPTY_DIGEST, "0", time))
        elif outcome == _UNCHANGED and (status < 300 or status == 304):
            told = digest if sha1 is not None else "-"
            add((name, timestamp(time), url, REVISIT, revisit_status, told, str(length or 0), time))
        elif sha1 is None:
            told = "-" if outcome == _TOO_LARGE else EMPTY_DIGEST
            add((name, timestamp(time), url, kinds[head], str(status), told, "0", time))
        else:
            add((name, timestamp(time), url, kinds[head], str(status), digest, str(length), time))
    return rows


def _redirect(extra: str | None) -> tuple[str, str]:
    hop = json.loads(extra or "{}")["hops"][0]
    kind = header(tuple((name, value) for name, value in hop[4]), "content-type")
    words = kind.partition(";")[0].split()
    return str(hop[1]), words[0].lower() if words else "unk"


RowFilter = Callable[[CdxRow], bool]

MAX_PATTERN = 300
MAX_FILTERS = 20
MATCH_SECONDS = 0.1
TOTAL_SECONDS = 2.0
_MOST_MEMOIZED = 20_000

FIELD_INDEXES: Mapping[str, int] = {name: place for place, name in enumerate(FIELDS)} | {
    "url": 2, "mime": 3, "status": 4,
}  # fmt: skip
"""Where each field stands in a row, by all its names."""


def field_index(name: str) -> int:
    """The place of a field."""
    if name not in FIELD_INDEXES:
        raise UsageError(f"there is no field '{name[:40]}'; the fields are {', '.join(FIELDS)}")
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
    # Their server knows more fields than ours; one that no row has is empty everywhere.
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
    try:
        return regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError, MemoryError) as error:
        raise UsageError(f"the filter is no regular expression: {error}") from None
