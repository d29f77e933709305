"""What the archive records: checks, versions, and the values passed in for recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum, StrEnum
from typing import Any

from letopis.model.page import Change, Page
from letopis.model.times import Moment, rfc3339
from letopis.model.web import Headers, Hop, Response
from letopis.tuples import NamedTuple


class Outcome(StrEnum):
    """What a check did to the archive."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    UNAVAILABLE = "unavailable"
    TOO_LARGE = "too-large"
    REFUSED = "refused"

    @property
    def available(self) -> bool | None:
        """Whether the document was available; None if it was not requested."""
        return None if self is Outcome.REFUSED else self is not Outcome.UNAVAILABLE


class Check(NamedTuple):
    """One check of a URL, always recorded.

    `available` is None if no request was sent, because of robots.txt, a setting or a private address: that says
    nothing about the document. `failure` names the kind of failure (a `FailureKind`, or `http` for an error status),
    `error` describes it in a sentence. `version` is the number of the version that was current after the check, None
    if there was none. `changed_for_you` is set for the observer that asked; `cached` marks an answer from the record.
    """

    url: str
    final_url: str
    checked_at: datetime
    available: bool | None
    status: int
    outcome: Outcome
    version: int | None = None
    digest: str = ""
    length: int = 0
    content_type: str = ""
    redirects: tuple[Hop, ...] = ()
    error: str = ""
    warnings: tuple[str, ...] = ()
    headers: Headers = ()
    meaningful: bool | None = None
    score: float | None = None
    blocks: tuple[str, ...] = ()
    cached: bool = False
    changed_for_you: bool | None = None
    failure: str = ""
    reason: str = ""
    muted: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """In one word: the outcome, but `noise` for a new version without a meaningful change."""
        return "noise" if self.outcome is Outcome.CHANGED and self.meaningful is False else str(self.outcome)


class Version(NamedTuple):
    """Content that differs from the previous version, with the span of time in which it was seen.

    `body` is empty in listings. `digest` is the base32 SHA-1 of the body, as in CDX and WARC. `decoded_bytes` is the
    coder output of this read.
    """

    url: str
    number: int
    time: datetime
    valid_until: datetime | None
    digest: str
    content_type: str
    raw_bytes: int
    stored_bytes: int
    method: str
    last_modified: str = ""
    last_seen: datetime | None = None
    headers: Headers = ()
    body: bytes = b""
    decoded_bytes: int = 0


class Put(NamedTuple):
    """A version to be stored by hand."""

    url: str
    body: bytes
    at: Moment | None = None
    content_type: str = "text/html"


class PutResult(NamedTuple):
    """The result of a put. `stored` is False if the body equalled the newest version."""

    url: str
    number: int
    stored: bool
    time: datetime
    digest: str


class SetMember(NamedTuple):
    """A resource that a page used, by its URL and the time of its check."""

    url: str
    time: datetime


class WholePage(NamedTuple):
    """What one look at a page brought beside the page: looks at its resources, the picture, the text as shown.

    `reused` are resources of looks that were recorded before, and that this one used again without asking.
    """

    resources: tuple[Observation, ...] = ()
    reused: tuple[SetMember, ...] = ()
    screenshot: bytes = b""
    text: str = ""


class Observation(NamedTuple):
    """One finished look, ready for `Archive.record`, the only commit point.

    `page` and `change` are None where nothing could be read or compared. `dated` looks come from elsewhere with a time
    of their own (imports) and may lie before what is already known. `identity` holds the digests of the body (as the
    archive makes them) where they are already known. With `whole` the page and its resources are recorded as one
    capture set.
    """

    response: Response
    outcome: Outcome
    page: Page | None = None
    change: Change | None = None
    keep_body: bool = True
    dated: bool = False
    identity: tuple[bytes, int] | None = None
    whole: WholePage | None = None


class Stats(NamedTuple):
    """Totals of an archive. `links` are those of the versions that the index has taken in.

    `disk_bytes` is all that the archive takes: packs, catalogue and indexes.
    """

    documents: int
    versions: int
    checks: int
    contents: int
    raw_bytes: int
    pack_bytes: int
    catalog_bytes: int
    links: int
    hosts: int
    index_bytes: int = 0

    @property
    def disk_bytes(self) -> int:
        """Packs, catalogue and indexes together."""
        return self.pack_bytes + self.catalog_bytes + self.index_bytes


def json_value(value: Any) -> Any:
    """A value as JSON can hold it: times in RFC 3339 UTC, rows as objects."""
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: json_value(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: json_value(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(part) for part in value]
    return value
