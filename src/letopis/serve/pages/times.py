"""Dates as people choose them in a form."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from letopis.model import parse_time

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def end_of(text: str, now: datetime) -> datetime:
    """The time that a text names; a bare date means all of that day."""
    moment = parse_time(text, now)
    return moment + timedelta(days=1, milliseconds=-1) if _DATE.fullmatch(text.strip()) else moment
