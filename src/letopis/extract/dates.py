"""Times as documents write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_ISO = re.compile(r"\d{4}-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?\s?(?:Z|[+-]\d{2}:?\d{2})?)?)?")
_HTTP = re.compile(r"[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) ([12]\d{3}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def read_date(text: str) -> datetime | None:
    """An aware time of an ISO 8601 or RFC 822 text; None for others and for impossible ones."""
    text = text.strip()[:64]
    if not text:
        return None
    try:
        moment = _iso(text) if text[:4].isdigit() else _named(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment is None:
        return None
    return _sane(moment)


def _sane(moment: datetime) -> datetime | None:
    try:
        utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return None
    return utc if _EARLIEST <= utc < _LATEST else None


def _named(text: str) -> datetime:
    """A time with the name of its month: as servers must write it, or in any older way."""
    found = _HTTP.fullmatch(text)
    if found and found[2] in _MONTHS:
        year, month, day = int(found[3]), _MONTHS.index(found[2]) + 1, int(found[1])
        return datetime(year, month, day, int(found[4]), int(found[5]), int(found[6]), tzinfo=UTC)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few times are written so, and every crawl starts

    return parsedate_to_datetime(text)


def _iso(text: str) -> datetime | None:
    found = _ISO.match(text)
    if not found:
        return None
    plain = found[0].upper().replace(",", ".").replace(" Z", "Z")
    return datetime.fromisoformat(plain if len(plain) > 7 else plain + "-01")
