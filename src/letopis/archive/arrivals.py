"""From a look or a put to what is written down: pure decisions."""

from __future__ import annotations

from datetime import datetime

from letopis.archive.facts import NO_DETAILS, Details
from letopis.archive.identity import Identity
from letopis.archive.recording import ERROR_BODY_BYTES, Arrival, AsSent
from letopis.model import Observation, Outcome, Put, Response, to_millis

_VERSIONED = (Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED)


def put_arrival(put: Put, url: str, now: datetime) -> Arrival:
    """A put counts as a capture with status 200."""
    return Arrival(
        url=url,
        time=to_millis(put.at or now),
        status=200,
        headers=(("Content-Type", put.content_type),),
        body=put.body,
        outcome=Outcome.NEW,
        dated=put.at is not None,
    )


def arrival_of(look: Observation) -> Arrival:
    """A look as the rows and bytes that remember it."""
    response = look.response
    has_content = look.outcome in _VERSIONED and 200 <= response.status < 300 and not response.skipped
    return Arrival(
        url=response.url,
        time=to_millis(response.at),
        status=response.status,
        headers=response.headers,
        body=_body(look, has_content),
        outcome=look.outcome,
        versioned=has_content,
        dated=look.dated,
        identity=Identity(*look.identity) if look.identity is not None and has_content else None,
        details=details_of(look),
        meaningful=look.change.meaningful if look.change else None,
        title=look.page.title if look.page else None,
        as_sent=AsSent(response.as_sent.headers, response.as_sent.body) if response.as_sent and has_content else None,
    )


def _body(look: Observation, has_content: bool) -> bytes | None:
    if has_content:
        return look.response.body if look.keep_body else None
    is_small_error = look.response.status >= 300 and 0 < len(look.response.body) <= ERROR_BODY_BYTES
    return look.response.body if is_small_error else None


def details_of(look: Observation) -> Details:
    """What the row of this look says beyond its columns."""
    response, change = look.response, look.change
    if _says_nothing(look):
        return NO_DETAILS
    return Details(
        final_url=response.final_url if response.final_url != response.url else "",
        hops=response.hops,
        error=response.failure.message if response.failure else "",
        warnings=response.warnings,
        score=round(change.score, 4) if change and change.meaningful is not None else None,
        blocks=tuple(f"{part.action} {part.kind}: {part.text[:120]}" for part in change.blocks[:8]) if change else (),
        length=_told_length(response) if look.outcome is Outcome.TOO_LARGE else None,
    )


def _says_nothing(look: Observation) -> bool:
    """The same bytes at the same place: that nothing changed is what the outcome says already."""
    response, change = look.response, look.change
    moved = response.final_url != response.url or response.hops
    return not ((change and not change.same_bytes) or moved or response.failure or response.warnings)


def _told_length(response: Response) -> int | None:
    told = response.header("content-length")
    return int(told) if told.isascii() and told.isdigit() and len(told) < 16 else None
