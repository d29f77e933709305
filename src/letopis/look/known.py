"""What the archive knows about a URL before the next request, and when a header alone proves it unchanged.

Digest fields of a host that once sent wrong ones are not trusted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from letopis.archive import Archive, Identity, RecordedCapture, digest_text
from letopis.archive.page_memory import CurrentVersion, PageMemory, newest_versions_of
from letopis.archive.records import details_of
from letopis.model import (
    BlockChange,
    Change,
    Check,
    FailureKind,
    Headers,
    Observation,
    Outcome,
    Response,
    from_millis,
    header,
)
from letopis.tuples import NamedTuple
from letopis.urls import host as host_of

DIGEST_HEADERS = frozenset({"content-md5", "digest", "repr-digest"})


class Validators(NamedTuple):
    """What a header says about the identity of its content; empty if it says nothing."""

    etag: str
    last_modified: str
    length: str
    digests: Headers


@lru_cache(maxsize=1024)
def validators_of(headers: Headers) -> Validators:
    """Found in one pass and cached: pages of a site often share their header."""
    first = {name.lower(): value for name, value in reversed(headers)}
    digests = (
        () if DIGEST_HEADERS.isdisjoint(first) else tuple(item for item in headers if item[0].lower() in DIGEST_HEADERS)
    )
    return Validators(first.get("etag", ""), first.get("last-modified", ""), first.get("content-length", ""), digests)


class KnownVersion(NamedTuple):
    """The newest version's validators and identity; empty for a URL without versions."""

    resource: int
    version: int
    number: int
    sha1: bytes
    raw_bytes: int
    headers: Headers
    final_url: str
    distrusted: frozenset[str] = frozenset()

    @property
    def validators(self) -> Validators:
        """What its header contained; etag and date are sent back to the server as conditions."""
        return validators_of(self.headers)

    def unchanged_if(self) -> Headers:
        """Length and digest fields that prove an answer unchanged without a download."""
        length, digests = self.validators.length, self.trusted(self.headers)
        return (*digests, ("Content-Length", length)) if digests and length else ()

    def trusted(self, headers: Headers) -> Headers:
        """The digest fields of a header that are trusted from this host."""
        return tuple(item for item in validators_of(headers).digests if item[0].lower() not in self.distrusted)

    def is_same(self, identity: Identity) -> bool:
        """Whether a body with this identity equals the newest version."""
        return identity.sha1 == self.sha1


def known_version(archive: Archive, url: str) -> KnownVersion | None:
    """None when there is no version to compare with."""
    return known_versions(archive, [url]).get(url)


def known_versions(archive: Archive, urls: Sequence[str]) -> dict[str, KnownVersion]:
    """The same for many URLs in a few statements; those without a version are not in it."""
    memory = PageMemory(archive)
    return {url: _known_of_row(memory, url, row) for url, row in newest_versions_of(archive, urls).items()}


def _known_of_row(memory: PageMemory, url: str, row: CurrentVersion) -> KnownVersion:
    has_digest = bool(validators_of(row.headers).digests)
    return KnownVersion(*row, memory.untrusted_digests(host_of(url)) if has_digest else frozenset())


_FINAL_FAILURES = frozenset(
    (FailureKind.DNS, FailureKind.CONNECT, FailureKind.TLS, FailureKind.TIMEOUT, FailureKind.FORBIDDEN_ADDRESS)
)
"""Failures that a request with another method would have too."""


def header_suffices(answer: Response, known: KnownVersion) -> bool:
    """True if no GET is needed: according to the header nothing changed, or nothing can be fetched now.

    An error status proves nothing, since many servers do not support HEAD; nor does a header without a validator, or
    the header of another URL.
    """
    if answer.failure is not None:
        return answer.failure.kind in _FINAL_FAILURES
    if answer.status == 304:
        return True
    if not answer.available or answer.status >= 300 or answer.final_url != known.final_url:
        return False
    return header_says_same(known, answer.headers)


def header_says_same(known: KnownVersion, headers: Headers) -> bool:
    """Whether a header names the content that is known: by its entity tag, else by digest and length.

    A date proves nothing: pages change within a second, and some servers send the time of the request.
    """
    now, before = validators_of(headers), known.validators
    if now.etag or before.etag:
        return now.etag == before.etag
    if not now.length or now.length != before.length:
        return False
    digests = _field_set(known.trusted(known.headers))
    return bool(digests) and digests <= _field_set(known.trusted(headers))


_SIDES: tuple[Literal["removed", "added"], ...] = ("removed", "added")


def header_change(before: Headers, now: Headers) -> Change | None:
    """How a document that was too large to be stored differs from before, according to its headers.

    Equal entity tags mean the same document; otherwise another tag, length or date means another one. None if the
    headers have none of these.
    """
    old, new = validators_of(before), validators_of(now)
    pairs = [("ETag", old.etag, new.etag)] if old.etag == new.etag != "" else [
        ("ETag", old.etag, new.etag), ("Content-Length", old.length, new.length),
        ("Last-Modified", old.last_modified, new.last_modified),
    ]  # fmt: skip
    known = [pair for pair in pairs if pair[1] and pair[2]]
    if not known:
        return None
    blocks = [
        BlockChange(action, "header", f"{name}: {value}")
        for name, *values in known
        for action, value in zip(_SIDES, values, strict=True)
        if values[0] != values[1]
    ]
    changed = bool(blocks)
    return Change(not changed, not changed, changed, float(changed), tuple(blocks))


def _field_set(fields: Headers) -> set[tuple[str, str]]:
    return {(name.lower(), value) for name, value in fields}


def wrong_digest_fields(response: Response) -> frozenset[str]:
    """The digest fields of an answer (lower case) that did not fit its body, as its warnings name them."""
    sent = {name.lower() for name, _ in response.headers if name.lower() in DIGEST_HEADERS}
    return frozenset(name for name in sent if any(name in text.lower() for text in response.warnings))


_VERSION_OUTCOMES = (Outcome.NEW, Outcome.CHANGED)


def check_of_look(
    look: Observation, done: RecordedCapture, known: KnownVersion | None, changed_for_you: bool | None = None
) -> Check | None:
    """Equal to the row that is now the last of the history.

    None if only the record can answer: another process has recorded a version since `known` was read.
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
    # By position, in half the time: this runs for every check.
    return Check(
        done.url, response.final_url, from_millis(done.time), outcome.available, response.status, outcome, number,
        digest, details.length or raw, header(response.headers, "content-type"), details.hops, details.error,
        details.warnings, response.headers, False if unchanged else change.meaningful if change else None,
        0.0 if unchanged else details.score, () if unchanged else details.blocks, False, changed_for_you,
        details.failure_kind(response.status) if not is_version else "", details.reason if is_version else "",
        details.muted if is_version else (),
    )  # fmt: skip
