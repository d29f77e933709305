"""What the archive knows of a URL before it is asked again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from letopis.archive import Archive, Identity
from letopis.catalog.lookup import Latest, latest
from letopis.model import Headers
from letopis.urls import host as host_of

DIGESTS = frozenset({"content-md5", "digest", "repr-digest"})


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
    digests = () if DIGESTS.isdisjoint(first) else tuple(item for item in headers if item[0].lower() in DIGESTS)
    return Validators(first.get("etag", ""), first.get("last-modified", ""), first.get("content-length", ""), digests)


class Known(NamedTuple):
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


def known_of(archive: Archive, url: str) -> Known | None:
    """None when there is no version to compare with."""
    return known_of_many(archive, [url]).get(url)


def known_of_many(archive: Archive, urls: Sequence[str]) -> dict[str, Known]:
    """The same for many URLs in a few statements; those without a version are not in it."""
    return {url: _known(archive, row) for url, row in latest(archive.catalog.database, urls).items()}


def _known(archive: Archive, row: Latest) -> Known:
    headers = archive.catalog.heads.read(bytes(row.head))
    final = (archive.answers.final_url(row.extra) if row.extra else "") or row.url
    has_digest = bool(validators_of(headers).digests)
    doubts = archive.catalog.lessons.distrusted(host_of(row.url)) if has_digest else frozenset()
    return Known(row.resource, row.version, row.number, bytes(row.sha1), row.raw_bytes, headers, final, doubts)
