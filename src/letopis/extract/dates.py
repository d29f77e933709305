"""Times as documents write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_ISO = re.compile(r"\d{4}-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?\s?(?:Z|[+-]\d{2}:?\d{2})?)?)?")
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def read_date(text: str) -> datetime | None:
    """An aware time of an ISO 8601 or RFC 822 text; None for others and for impossible ones."""
    text = text.strip()[:64]
    try:
        moment = _iso(text) if text[:4].isdigit() else parsedate_to_datetime(text)
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


def _iso(text: str) -> datetime | None:
    found = _ISO.match(text)
    if not found:
        return None
    plain = found[0].upper().replace(",", ".").replace(" Z", "Z")
    return datetime.fromisoformat(plain if len(plain) > 7 else plain + "-01")
