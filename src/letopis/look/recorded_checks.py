"""The check that a look became, told without reading the record again."""

from __future__ import annotations

from letopis.archive import RecordedCapture, digest_text
from letopis.archive.records import details_of
from letopis.look.known import KnownVersion
from letopis.model import Check, Observation, Outcome, from_millis, header

_VERSION_OUTCOMES = (Outcome.NEW, Outcome.CHANGED)


def check_of_look(
    look: Observation, done: RecordedCapture, known: KnownVersion | None, changed_for_you: bool | None = None
) -> Check | None:
    """Equal to the row that the history now ends with.

    None where only the record can tell: another process has recorded a
    version since `known` was read.
    """
    outcome, number = done.outcome, done.number
    is_version, unchanged = outcome in _VERSION_OUTCOMES, outcome is Outcome.UNCHANGED and number is not None
    current = None if is_version else known
    if not is_version and done.version != (known.version if known else None):
        return None
    details, response = details_of(look), look.response
    digest = done.identity.text if done.identity and is_version else ""
    if unchanged and current is not None:
        digest = digest_text(current.sha1)
    raw = len(response.body) if is_version else current.raw_bytes if unchanged and current else 0
    change = look.change
    # By position, in half the time: every look comes through here.
    return Check(
        done.url, response.final_url, from_millis(done.time), outcome.available, response.status, outcome, number,
        digest, details.length or raw, header(response.headers, "content-type"), details.hops, details.error,
        details.warnings, response.headers, False if unchanged else change.meaningful if change else None,
        0.0 if unchanged else details.score, () if unchanged else details.blocks, False, changed_for_you,
        details.failure_kind(response.status) if not is_version else "", details.reason if is_version else "",
        details.muted if is_version else (),
    )  # fmt: skip
