"""What the archive knows of a URL before it is asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from letopis.archive import Archive, Identity
from letopis.catalog.lookup import Latest, latest
from letopis.model import Headers, header
from letopis.urls import host as host_of

DIGESTS = frozenset({"content-md5", "digest", "repr-digest"})


@dataclass(frozen=True, slots=True)
class Known:
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
    def etag(self) -> str:
        """For If-None-Match."""
        return header(self.headers, "etag")

    @property
    def last_modified(self) -> str:
        """For If-Modified-Since."""
        return header(self.headers, "last-modified")

    def unchanged_if(self) -> Headers:
        """Length and digest fields that prove an answer unchanged without a download."""
        fields = tuple(
            (name, value)
            for name, value in self.headers
            if name.lower() in DIGESTS and name.lower() not in self.distrusted
        )
        length = header(self.headers, "content-length")
        return (*fields, ("Content-Length", length)) if fields and length else ()

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
    has_digest = any(name.lower() in DIGESTS for name, _ in headers)
    doubts = archive.catalog.lessons.distrusted(host_of(row.url)) if has_digest else frozenset()
    return Known(row.resource, row.version, row.number, bytes(row.sha1), row.raw_bytes, headers, final, doubts)
