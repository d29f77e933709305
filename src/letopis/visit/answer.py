"""The check that a recorded look became, told without asking the catalogue again. Pure."""

from __future__ import annotations

from letopis.archive import Recorded, digest_text
from letopis.archive.arrivals import details_of
from letopis.model import Check, Observation, Outcome, from_millis
from letopis.visit.known import Known

_VERSION = (Outcome.NEW, Outcome.CHANGED)


def check_of(
    look: Observation, done: Recorded, known: Known | None, changed_for_you: bool | None = None
) -> Check | None:
    """Equal to the row that the history now ends with.

    None where only the record can tell: another process has recorded a
    version since `known` was read.
    """
    is_version, unchanged = done.outcome in _VERSION, done.outcome is Outcome.UNCHANGED and done.number is not None
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
        available=done.available,
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
        meaningful=(change.meaningful if change else None) if is_version else False if unchanged else None,
        score=details.score if is_version else 0.0 if unchanged else None,
        blocks=details.blocks if is_version else (),
        changed_for_you=changed_for_you,
    )
