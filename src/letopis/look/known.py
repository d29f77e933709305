"""What the archive knows of a URL before it is asked again, and when a header alone proves it unchanged.

Digest fields that a host once sent wrongly are not trusted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from letopis.archive import Archive, Identity
from letopis.catalog import Cursor
from letopis.catalog.versions import NewestVersion, newest_versions
from letopis.model import FailureKind, Headers, Response
from letopis.urls import host as host_of

DIGEST_HEADERS = frozenset({"content-md5", "digest", "repr-digest"})


class Validators(NamedTuple):
    """What a header says about the identity of its content; empty where it says nothing."""

    etag: str
    last_modified: str
    length: str
    digests: Headers


@lru_cache(maxsize=1024)
def validators_of(headers: Headers) -> Validators:
    """Found in one walk, and remembered: pages of a site often share their header."""
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
    def told(self) -> Validators:
        """What its header said; etag and date go back to the server as conditions."""
        return validators_of(self.headers)

    def unchanged_if(self) -> Headers:
        """Length and digest fields that prove an answer unchanged without a download."""
        length, digests = self.told.length, self.trusted(self.headers)
        return (*digests, ("Content-Length", length)) if digests and length else ()

    def trusted(self, headers: Headers) -> Headers:
        """The digest fields of a header that are believed of this host."""
        return tuple(item for item in validators_of(headers).digests if item[0].lower() not in self.distrusted)

    def is_same(self, identity: Identity) -> bool:
        """Whether a body with this identity is the newest version again."""
        return identity.sha1 == self.sha1


def known_version(archive: Archive, url: str) -> KnownVersion | None:
    """None when there is no version to compare with."""
    return known_versions(archive, [url]).get(url)


def known_versions(archive: Archive, urls: Sequence[str]) -> dict[str, KnownVersion]:
    """The same for many URLs in a few statements; those without a version are not in it."""
    return {url: _known_of_row(archive, row) for url, row in newest_versions(archive.catalog.database, urls).items()}


def _known_of_row(archive: Archive, row: NewestVersion) -> KnownVersion:
    headers = archive.catalog.heads.read(bytes(row.head))
    final = (archive.answers.final_url(row.extra) if row.extra else "") or row.url
    has_digest = bool(validators_of(headers).digests)
    doubts = archive.catalog.noise_profiles.distrusted(host_of(row.url)) if has_digest else frozenset()
    return KnownVersion(row.resource, row.version, row.number, bytes(row.sha1), row.raw_bytes, headers, final, doubts)


_FINAL_FAILURES = frozenset(
    (FailureKind.DNS, FailureKind.CONNECT, FailureKind.TLS, FailureKind.TIMEOUT, FailureKind.FORBIDDEN_ADDRESS)
)
"""Failures that another method would meet as well."""


def header_suffices(told: Response, known: KnownVersion) -> bool:
    """True when no GET is needed: nothing changed by the header's word, or nothing can be had now.

    An error status settles nothing, since many servers know no HEAD; neither
    does a header that names no validator, or one of another address.
    """
    if told.failure is not None:
        return told.failure.kind in _FINAL_FAILURES
    if told.status == 304:
        return True
    if not told.available or told.status >= 300 or told.final_url != known.final_url:
        return False
    return header_says_same(known, told.headers)


def header_says_same(known: KnownVersion, headers: Headers) -> bool:
    """Whether a header names the content that is known: by entity tag, else digest, else date and length."""
    told, before = validators_of(headers), known.told
    if told.etag or before.etag:
        return told.etag == before.etag
    if not told.length or told.length != before.length:
        return False
    digests = _field_set(known.trusted(known.headers))
    if digests:
        return digests <= _field_set(known.trusted(headers))
    return bool(told.last_modified) and told.last_modified == before.last_modified


def _field_set(fields: Headers) -> set[tuple[str, str]]:
    return {(name.lower(), value) for name, value in fields}


class UntrustedDigests:
    """Gathers doubts while looking; they are written with the visits that raised them. For one thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._fields: dict[str, set[str]] = {}

    def note(self, response: Response) -> None:
        """Remembers the fields that the warnings of an answer name."""
        wrong = {name.lower() for name, _ in response.headers if name.lower() in DIGEST_HEADERS}
        named = frozenset(name for name in wrong if any(name in text.lower() for text in response.warnings))
        if named:
            self._fields.setdefault(host_of(response.url), set()).update(named)

    def save(self, cursor: Cursor) -> None:
        """Part of the transaction that records the visits."""
        lessons = self._archive.catalog.noise_profiles
        for host, fields in self._fields.items():
            lessons.distrust(cursor, host, lessons.distrusted(host) | fields)
        self._fields.clear()
