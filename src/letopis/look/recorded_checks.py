"""The check that a look became, told without reading the record again."""

from __future__ import annotations

from letopis.archive import RecordedCapture, digest_text
from letopis.archive.records import details_of
from letopis.look.known import KnownVersion
from letopis.model import Check, Observation, Outcome, from_millis

_VERSION_OUTCOMES = (Outcome.NEW, Outcome.CHANGED)


def check_of_look(
    look: Observation, done: RecordedCapture, known: KnownVersion | None, changed_for_you: bool | None = None
) -> Check | None:
    """Equal to the row that the history now ends with.

    None where only the record can tell: another process has recorded a
    version since `known` was read.
    """
    is_version, unchanged = (
        done.outcome in _VERSION_OUTCOMES,
        done.outcome is Outcome.UNCHANGED and done.number is not None,
    )
    current = None if is_version else known
    if not is_version and done.version != (known.version if known else None):
        return None
    details, response = details_of(look), look.response
    digest = done.identity.text if done.identity and is_version else ""
    if unchanged and current is not None:
        digest = digest_text(current.sha1)
    raw = len(response.body) if is_version else current.raw_bytes if unchanged and current else 0
    change = look.change
    return Check(
        url=done.url,
        final_url=response.final_url,
        checked_at=from_millis(done.time),
        available=done.outcome.available,
        status=response.status,
        outcome=done.outcome,
        version=done.number,
        digest=digest,
        length=details.length or raw,
        content_type=response.header("content-type"),
        redirects=details.hops,
        error=details.error,
        warnings=details.warnings,
        headers=response.headers,
        meaningful=False if unchanged else change.meaningful if change else None,
        score=0.0 if unchanged else details.score,
        blocks=() if unchanged else details.blocks,
        reason=details.reason if is_version else "",
        muted=details.muted if is_version else (),
        changed_for_you=changed_for_you,
        failure=details.failure_kind(response.status) if not is_version else "",
    )
