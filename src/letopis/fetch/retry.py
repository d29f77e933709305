"""What is worth a further try, and how long to wait before it. Pure decisions."""

from __future__ import annotations

from datetime import UTC, datetime

from letopis.config.sections import FetchSettings
from letopis.model.web import FailureKind, Response

MAX_RETRY_AFTER = 7 * 86400.0
"""A server may ask for a week; what it asks beyond that is cut to this."""
_PASSING = frozenset({FailureKind.CONNECT, FailureKind.RESET})


def retry_after(response: Response, now: datetime) -> float | None:
    """Seconds that the server asks us to stay away, 0 or more; None when it does not ask.

    Understands seconds and HTTP dates. Never more than a week.
    """
    value = response.header("retry-after").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), MAX_RETRY_AFTER)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few answers ask, and every check starts

    try:
        until = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    aware = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    return min(max(0.0, (aware - now).total_seconds()), MAX_RETRY_AFTER)


def pause_before_retry(response: Response, attempt: int, settings: FetchSettings, now: datetime) -> float | None:
    """Seconds to wait after a passing failure, before try number `attempt + 1` (0 the first); None: leave it.

    A Retry-After longer than the settings allow is not waited for: whoever
    plans the next visit reads it from the response.
    """
    if attempt >= settings.retries:
        return None
    pause: float = settings.retry_wait * 2.0**attempt
    asked = retry_after(response, now)
    if asked is None:
        return pause
    return max(asked, pause) if asked <= settings.retry_after else None


def is_passing(response: Response, settings: FetchSettings) -> bool:
    """A failure that may be gone a moment later."""
    if response.failure is not None:
        return response.failure.kind in _PASSING and response.status == 0
    return str(response.status) in settings.retry_status
